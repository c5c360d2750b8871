"""A wave, live

Press and move the pointer on the picture. It is drawn straight from the GPU's memory.
"""

import playground
import treadle as td

SIZE = 256


@td.kernel
def step(before, now, after, y, x, force):
    """The wave equation: how fast a point speeds up is how far it lies from its neighbours."""
    i, j = td.grid(2)
    if i < now.shape[0] and j < now.shape[1]:
        bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
        value = 0.9995 * (2.0 * now[i, j] - before[i, j] + 0.25 * bend)
        distance = (td.f32(i) - y) ** 2 + (td.f32(j) - x) ** 2
        after[i, j] = value + force * td.exp(-distance / 16.0)


before, now, after = (td.zeros((SIZE, SIZE)) for _ in range(3))
canvas = await playground.canvas(SIZE, SIZE)
drops = [(80, 90), (170, 60), (140, 190)]

async for frame in canvas.frames():
    for part in range(4):  # four steps in time for each picture
        y, x, force = 0.0, 0.0, 0.0
        if canvas.pointer is not None:
            (y, x), force = canvas.pointer, 0.15
        elif part == 0 and frame % 60 == 0 and frame < 180:
            (y, x), force = drops[frame // 60], 1.0  # a few drops to begin with
        step.launch((SIZE, SIZE), before, now, after, float(y), float(x), force)
        before, now, after = now, after, before
    canvas.draw(now, low=-0.6, high=0.6)
