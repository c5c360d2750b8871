"""A wave, live

Press and move the pointer on the picture. It is drawn straight from the GPU's memory.
"""

import math

import playground
import treadle as td

SIZE = 256


@td.kernel
def step(before, now, after, y, x, force, height):
    """The wave equation: how fast a point speeds up is how far it lies from its neighbours. The
    water loses some of its speed, so that waves die down, and is held at a height near (y, x)."""
    i, j = td.grid(2)
    if i < now.shape[0] and j < now.shape[1]:
        bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
        value = now[i, j] + 0.998 * (now[i, j] - before[i, j]) + 0.25 * bend
        held = force * td.exp(-((td.f32(i) - y) ** 2 + (td.f32(j) - x) ** 2) / 16.0)
        after[i, j] = value + held * (height - value)


before, now, after = (td.zeros((SIZE, SIZE)) for _ in range(3))
canvas = await playground.canvas(SIZE, SIZE)

async for frame in canvas.frames():
    for time in range(4 * frame, 4 * frame + 4):  # four steps in time for each picture
        drop, beat = divmod(time, 352)
        y, x, force, height = 0.0, 0.0, 0.0, 0.6 * math.sin(beat / 4)
        if canvas.pointer is not None:  # it goes up and down
            (y, x), force = canvas.pointer, 1.0
        elif beat < 12:  # a drop every one and a half seconds, each at another place
            y, x = (SIZE * (0.15 + 0.7 * (drop * part % 1.0)) for part in (0.618, 0.755))
            force = 1.0
        step.launch((SIZE, SIZE), before, now, after, float(y), float(x), force, height)
        before, now, after = now, after, before
    canvas.draw(now, low=-0.4, high=0.4)
