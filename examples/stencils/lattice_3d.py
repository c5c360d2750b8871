"""Water that seeps through spheres: lattice Boltzmann in three dimensions, 19 velocities (D3Q19).

The state is a struct of arrays: a stack of grids, one for each velocity. A force drives the flow;
the speed tells how permeable the bed is.

    python examples/stencils/lattice_3d.py --out results
    python examples/stencils/lattice_3d.py --size 256 --steps 8000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

AROUND = (-1, 0, 1)
VELOCITIES = [(k, i, j) for k in AROUND for i in AROUND for j in AROUND if k * i * j == 0]
CK, CI, CJ = zip(*VELOCITIES, strict=True)
W = tuple({0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[k * k + i * i + j * j] for k, i, j in VELOCITIES)
OMEGA = 1.0  # one over the time in which velocities settle
FORCE = 1e-5


@td.stencil(boundary="wrap")
def step(solid, fluid: td.Array[td.f32, 4], out: td.Array[td.f32, 4], pos):
    f = td.local(19, td.f32)
    density, vk, vi, vj = 0.0, 0.0, 0.0, 0.0
    for q in td.static_range(19):  # what comes from the neighbours
        f[q] = pos.at(fluid[q], -CK[q], -CI[q], -CJ[q])
        density += f[q]
        vk += CK[q] * f[q]
        vi += CI[q] * f[q]
        vj += CJ[q] * f[q]
    vk, vi, vj = vk / density, vi / density, vj / density
    energy = vk * vk + vi * vi + vj * vj
    for q in td.static_range(19):
        if solid[pos]:
            out[q][pos] = f[18 - q]  # back to where it came from
        else:
            along = CK[q] * vk + CI[q] * vi + CJ[q] * vj
            settled = W[q] * density * (1.0 + 3.0 * along + 4.5 * along * along - 1.5 * energy)
            out[q][pos] = f[q] + OMEGA * (settled - f[q]) + 3.0 * W[q] * CJ[q] * FORCE


def spheres(size: int) -> np.ndarray:
    """A bed of spheres that may overlap, and continues around the ends."""
    grid = np.indices((size,) * 3) / size
    solid = np.zeros(grid.shape[1:], bool)
    for center in np.random.default_rng(5).random((24, 3, 1, 1, 1)):
        away = np.abs(grid - center)
        solid |= (np.minimum(away, 1 - away) ** 2).sum(axis=0) < 0.15**2
    return solid


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The mean speed at the end, in cells a step."""
    given = options(__doc__, arguments, size=48, steps=300)
    solid = spheres(given.size)
    rest = np.tile(np.float32(W)[:, None, None, None], (1, *solid.shape))
    a, mask = (td.asarray(each, device=given.device) for each in (rest, solid))
    b = td.zeros_like(a)
    f = td.stencil_loop(step, mask, a, b, steps=given.steps, rotate=("fluid", "out")).numpy()
    along = np.where(solid, np.nan, np.tensordot(np.float32(CJ), f, 1) / f.sum(axis=0))
    mean = float(np.nanmean(along))
    print(f"mean speed {mean:.3g}")
    look = {"cmap": "viridis", "vmin": 0, "vmax": 4 * mean}
    at = [given.size * part // 8 for part in (1, 3, 5, 7)]
    save(given, "lattice_3d", {f"plane {k}": (along[k], look) for k in at}, mean=mean)
    return mean


if __name__ == "__main__":
    main()
