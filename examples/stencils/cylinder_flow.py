"""Vortices behind a cylinder: a flow by the lattice Boltzmann method, with nine velocities (D2Q9).

A cell has how much of the fluid moves in each of nine directions. These parts move on and collide.

    python examples/stencils/cylinder_flow.py --out results
    python examples/stencils/cylinder_flow.py --size 800 --steps 100000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

# The directions: rows, columns, weights. The opposite of direction q is 8 - q.
DI, DJ = (-1, -1, -1, 0, 0, 0, 1, 1, 1), (-1, 0, 1, -1, 0, 1, -1, 0, 1)
W = tuple(n / 36 for n in (1, 4, 1, 4, 16, 4, 1, 4, 1))
SPEED, REYNOLDS = 0.1, 120.0  # of the flow; in cells a step


@td.struct
class Cell:
    f: td.f32[9]


@td.func
def settled(part, along, energy):  # how much moves in a direction along which there is some speed
    return part * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * energy)


@td.stencil(boundary="wrap")
def step(cells: td.Array[Cell, 2], solid, omega, out: td.Array[Cell, 2], pos):
    f = td.local(9, td.f32)
    density, vi, vj = 0.0, 0.0, 0.0
    for q in td.static_range(9):  # what comes from the neighbours
        f[q] = pos.at(cells, -DI[q], -DJ[q]).f[q]
        density += f[q]
        vi += DI[q] * f[q]
        vj += DJ[q] * f[q]
    vi, vj = vi / density, vj / density
    for q in td.static_range(9):
        if solid[pos]:
            out[pos].f[q] = f[8 - q]
        elif pos.index[1] == 0:  # the inflow
            out[pos].f[q] = settled(W[q], DJ[q] * SPEED, SPEED * SPEED)
        else:
            new = settled(W[q] * density, DI[q] * vi + DJ[q] * vj, vi * vi + vj * vj)
            out[pos].f[q] = f[q] + omega * (new - f[q])


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The mean speed along the channel, beside that of the inflow."""
    given = options(__doc__, arguments, size=80, steps=9000)
    size, radius = given.size, given.size / 9
    i, j = np.mgrid[:size, : 3 * size]
    solid = np.hypot(i - size / 2 + 1, j - size / 2) < radius
    solid[[0, -1]] = True  # the walls of the channel
    cells = np.zeros(solid.shape, Cell.dtype)
    along = SPEED * np.float32(DJ)
    cells["f"] = W * (1 + 3 * along + 4.5 * along**2 - 1.5 * SPEED**2)
    a, mask = (td.asarray(each, device=given.device) for each in (cells, solid))
    seen, speeds = {}, []

    def picture(at, cells):
        f = cells.numpy()["f"]
        vi, vj = ((f @ np.float32(each)) / f.sum(axis=-1) for each in (DI, DJ))
        speeds.append(float(vj[~solid].mean() / SPEED))
        curl = np.where(solid, np.nan, np.gradient(vi, axis=1) - np.gradient(vj, axis=0))
        seen[f"after {at} steps"] = curl, {"cmap": "RdBu", "vmin": -0.02, "vmax": 0.02}

    omega = 1 / (0.5 + 3 * SPEED * 2 * radius / REYNOLDS)
    arrays, third = (a, mask, omega, td.zeros_like(a)), -(-given.steps // 3)
    td.stencil_loop(step, *arrays, steps=given.steps, every=third, callback=picture)
    print(f"mean speed {speeds[-1]:.2f} of the inflow's")
    save(given, "cylinder_flow", seen, speed=speeds[-1])
    return speeds[-1]


if __name__ == "__main__":
    main()
