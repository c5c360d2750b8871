"""Light that a glass cylinder focuses: Maxwell's equations by finite differences in time (FDTD).

The electric field lies in the cells, the magnetic field on the sides between them: a staggered
grid, on which each field is updated in place from the other one. A perfectly matched layer
(Berenger's, for which E is the sum of two parts) lets light leave without a reflection.

    python examples/stencils/maxwell.py --out results
    python examples/stencils/maxwell.py --size 2048 --steps 6000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

COURANT = 0.5  # speed of light * time step / cell, at most 0.7
LAYER = 12  # cells that absorb, at each side
BLUE = {"cmap": "RdBu", "vmin": -0.15, "vmax": 0.15}


@td.stencil
def tick(clock, pos):
    clock[pos] += 1


@td.stencil(boundary="zero")
def magnetic(ex, ey, hx, hy, keep, pos):  # hx lies above each cell, hy at its left
    i, j = pos.index
    e = ex[pos] + ey[pos]
    above, left = keep[2 * i], keep[2 * j]
    hx[pos] = above * hx[pos] - 0.5 * (1.0 + above) * COURANT * (e - pos.north(ex) - pos.north(ey))
    hy[pos] = left * hy[pos] + 0.5 * (1.0 + left) * COURANT * (e - pos.west(ex) - pos.west(ey))


@td.stencil
def electric(ex, ey, hx, hy, keep, glass, clock, pos):
    i, j = pos.index
    row, column = keep[2 * i + 1], keep[2 * j + 1]
    speed = COURANT / glass[pos]
    ex[pos] = column * ex[pos] + 0.5 * (1.0 + column) * speed * (pos.east(hy) - hy[pos])
    ey[pos] = row * ey[pos] - 0.5 * (1.0 + row) * speed * (pos.south(hx) - hx[pos])
    t = td.f32(clock[0])
    if i == ex.shape[0] // 2 and j == ex.shape[1] // 4:  # six oscillations of an antenna
        ex[pos] += td.exp(-(((t - 120.0) / 50.0) ** 2)) * td.sin(0.25 * t)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the energy that is left at the end."""
    given = options(__doc__, arguments, size=200, steps=1200)
    size = given.size
    # Sides and cells in turn, from the first side: what the layer leaves of a field in a step.
    at = np.arange(2 * size + 1) / 2
    depth = np.maximum(LAYER - np.minimum(at, size - at), 0) / LAYER
    lost = 0.5 * COURANT * depth**3
    i, j = np.mgrid[:size, :size] / size
    lens = np.where((i - 0.5) ** 2 + (j - 0.55) ** 2 < 0.16**2, 2.25, 1.0)
    asked = {"dtype": td.float32, "device": given.device}
    keep, glass = (td.asarray(each, **asked) for each in ((1 - lost) / (1 + lost), lens))
    shapes = (size, size), (size, size), (size + 1, size), (size, size + 1)
    ex, ey, hx, hy = (td.zeros(shape, **asked) for shape in shapes)
    clock = td.zeros(1, dtype=td.int32, device=given.device)
    seen, energies, every = {}, [], max(given.steps // 12, 1)

    def picture(step, *_):
        e = (ex + ey).numpy()
        energies.append(float((lens * e**2).sum()))
        if step in (3 * every, 4 * every, given.steps):
            seen[f"after {step} steps"] = e + 0.02 * (lens - 1), BLUE

    parts = [(tick, clock), (magnetic, ex, ey, hx, hy, keep)]
    parts += [(electric, ex, ey, hx, hy, keep, glass, clock)]
    td.stencil_loop(parts, steps=given.steps, every=every, callback=picture)
    print(f"what is left of the light: {energies[-1] / max(energies):.2e}")
    save(given, "maxwell", seen, energies=energies)
    return energies[-1] / max(energies)


if __name__ == "__main__":
    main()
