"""Water waves through a wall with two gaps: the acoustic wave equation in two dimensions.

Two arrays are enough: the new wave replaces the one of two steps before, cell by cell. A sponge
along the edges absorbs what comes there. The clock is an array too, so that the recorded steps,
which the device repeats by itself, know the time.

    python examples/stencils/wave_2d.py --out results
    python examples/stencils/wave_2d.py --size 2048 --steps 4000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

SPEED = 0.4  # (speed of sound * time step / cell)², at most 0.5
FREQUENCY = 0.35  # of the source, in radians a step


@td.stencil
def tick(clock, pos):
    clock[pos] += 1


@td.stencil(boundary="zero")
def wave(u, now, solid, sponge, clock, pos):
    """`u` is the wave before and becomes the next one."""
    j = pos.index[1]
    laplacian = pos.north(now) + pos.south(now) + pos.west(now) + pos.east(now) - 4.0 * now[pos]
    after = 2.0 * now[pos] - u[pos] + SPEED * laplacian - sponge[pos] * (now[pos] - u[pos])
    if j == now.shape[1] // 8:
        after += 0.2 * td.sin(FREQUENCY * td.f32(clock[0]))
    u[pos] = 0.0 if solid[pos] else after


def tank(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the wall is, and how much is absorbed."""
    i, j = np.mgrid[:size, :size]
    solid = (j >= size // 3) & (j < size // 3 + max(size // 60, 1))
    for center in (size * 2 // 5, size * 3 // 5):
        solid &= abs(i - center) > size // 40
    edge = np.minimum.reduce([i, j, size - 1 - i, size - 1 - j])
    sponge = 0.4 * np.clip(1 - edge / (size / 12), 0, 1) ** 2
    return solid, sponge.astype(np.float32)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The mean square of the wave beyond the wall."""
    given = options(__doc__, arguments, size=240, steps=480)
    size = given.size
    solid, sponge = (td.asarray(each, device=given.device) for each in tank(size))
    a, b = (td.zeros((size, size), device=given.device) for _ in range(2))
    clock = td.zeros(1, dtype=td.int32, device=given.device)

    seen = {}

    def picture(step, clock, a, b):
        wall = solid.numpy()
        wave = np.where(wall, np.nan, b.numpy())
        seen[f"after {2 * step} steps"] = wave, {"cmap": "RdBu", "vmin": -1, "vmax": 1}

    both = [(tick, clock), (wave, a, b, solid, sponge, clock)]
    both += [(tick, clock), (wave, b, a, solid, sponge, clock)]
    pairs = given.steps // 2
    td.stencil_loop(both, steps=pairs, every=-(-pairs // 3), callback=picture)
    beyond = float((b.numpy()[:, size // 2 :] ** 2).mean())
    print(f"mean square beyond the wall {beyond:.4f}")
    save(given, "wave_2d", seen, beyond=beyond)
    return beyond


if __name__ == "__main__":
    main()
