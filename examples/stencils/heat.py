"""Heat in a plate whose conductivity differs from place to place, between a hot and a cold edge.

A coefficient array has the conductivity of each cell; what flows between two cells depends on both.

    python examples/stencils/heat.py --out results
    python examples/stencils/heat.py --size 2048 --steps 200000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

RATE = 0.2  # time step * conductivity of the metal / cell², at most 0.25


@td.func
def between(a, b):
    """The conductivity from the middle of a cell to that of the next."""
    return 2.0 * a * b / (a + b)


@td.stencil(boundary="clamp")  # nothing flows through the outer edge
def heat(u, k, out, pos):
    j = pos.index[1]
    here = u[pos]
    flow = between(k[pos], pos.north(k)) * (pos.north(u) - here)
    flow += between(k[pos], pos.south(k)) * (pos.south(u) - here)
    flow += between(k[pos], pos.west(k)) * (pos.west(u) - here)
    flow += between(k[pos], pos.east(k)) * (pos.east(u) - here)
    if j == 0:
        out[pos] = 1.0
    elif j == u.shape[1] - 1:
        out[pos] = 0.0
    else:
        out[pos] = here + RATE * flow


def plate(size: int) -> np.ndarray:
    """Metal, with three walls of an insulator, each open at one end."""
    k = np.ones((size, size), np.float32)
    thick = max(size // 40, 1)
    for wall in range(3):
        at = size * (wall + 1) // 4
        open_end = slice(0, size * 3 // 4) if wall % 2 else slice(size // 4, size)
        k[open_end, at : at + thick] = 0.002
    return k


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The mean temperature at the end."""
    given = options(__doc__, arguments, size=80, steps=24000)
    size = given.size
    k = td.asarray(plate(size), device=given.device)
    u, out = (td.zeros((size, size), device=given.device) for _ in range(2))

    seen = {}

    def picture(step, u):
        seen[f"after {step} steps"] = u.numpy(), {"cmap": "inferno", "vmin": 0, "vmax": 1}

    td.stencil_loop(
        heat, u, k, out, steps=given.steps, every=-(-given.steps // 3), callback=picture
    )
    mean = float(next(reversed(seen.values()))[0].mean())
    print(f"mean temperature {mean:.3f}")
    save(given, "heat", {"conductivity": (k.numpy(), {"cmap": "gray"}), **seen}, mean=mean)
    return mean


if __name__ == "__main__":
    main()
