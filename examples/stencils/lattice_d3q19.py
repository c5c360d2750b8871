"""A vortex breaks into smaller ones: lattice Boltzmann with 19 velocities (D3Q19), in place.

The state is one array, a stack of 19 grids. A cell reads and writes each grid at one place, which
no other cell does ("esoteric pull"). Populations less their weights are fine in 16 bits.

    python examples/stencils/lattice_d3q19.py --size 256 --steps 8000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

HALF = [(k, i, j) for k in (0, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if k * i * j == 0]
C = ((0, 0, 0), *(c for k, i, j in HALF[5:] for c in ((k, i, j), (-k, -i, -j))))  # in pairs
CK, CI, CJ = zip(*C, strict=True)
W = tuple({0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[k * k + i * i + j * j] for k, i, j in C)
AWAY = [(q % 2 == 0) * np.int32(c) for q, c in enumerate(C)]  # before an even step


def stepper(odd: int, storage=None) -> td.stencils.Stencil:
    """The stencil of even steps (0), or of odd ones (1)."""

    @td.stencil(boundary="wrap", storage=storage, fastmath=True)
    def step(f: td.Array[td.f32, 4], omega: td.f32, pos: td.GridPos):
        one, other = td.local(19, td.f32), td.local(19, td.f32)  # of each pair
        excess, vk, vi, vj = f[0][pos], 0.0, 0.0, 0.0  # of the density beyond 1; its momentum
        for q in td.static_range(1, 19, 2):
            one[q], other[q] = f[q + odd][pos], pos.at(f[q + 1 - odd], CK[q], CI[q], CJ[q])
            excess, flow = excess + one[q] + other[q], one[q] - other[q]
            vk, vi, vj = vk + CK[q] * flow, vi + CI[q] * flow, vj + CJ[q] * flow
        mass = 1.0 / (1.0 + excess)
        rest = excess - 1.5 * mass * (vk * vk + vi * vi + vj * vj)
        f[0][pos] += omega * (W[0] * rest - f[0][pos])
        for q in td.static_range(1, 19, 2):  # relax to equilibrium
            along = 3.0 * (CK[q] * vk + CI[q] * vi + CJ[q] * vj)
            even = rest + 0.5 * mass * along * along
            one[q] += omega * (W[q] * (even + along) - one[q])
            f[q + 1 - odd][pos.shifted(CK[q], CI[q], CJ[q])] = one[q]
            f[q + odd][pos] = other[q] + omega * (W[q] * (even - along) - other[q])

    return step


def placed(v: np.ndarray) -> np.ndarray:
    """The array for an even step, of a fluid in equilibrium that has these velocities."""
    along = 3 * np.tensordot(np.float32(C), v, 1)
    f = along + along**2 / 2 - 1.5 * (v**2).sum(axis=0)
    return np.stack([np.roll(W[q] * f[q], -AWAY[q], (0, 1, 2)) for q in range(19)])


def velocities(f: td.Tensor) -> np.ndarray:
    """The velocities before an even step."""
    back = np.stack([np.roll(f[q].numpy(), AWAY[q], (0, 1, 2)) for q in range(19)])
    return np.tensordot(np.float32(C).T, back, 1) / (1 + back.sum(axis=0, dtype=np.float32))


def main(arguments: list[str] | None = None) -> float:
    """Run the example. What is left of the kinetic energy."""
    given = options(__doc__, arguments, size=80, steps=2250)
    k, i, j = np.indices((given.size,) * 3, np.float32) * (2 * np.pi / given.size)
    start = 0.06 * np.cos(k) * np.stack([0 * k, -np.cos(j) * np.sin(i), np.sin(j) * np.cos(i)])
    f = td.asarray(placed(start), dtype=td.float16, device=given.device)
    pictures, look = {}, {"cmap": "RdBu", "vmin": -0.01, "vmax": 0.01}

    def draw(pairs, f):
        spin = np.gradient(velocities(f)[:, given.size // 8], axis=(1, 2))
        pictures[f"after {2 * pairs} steps"] = spin[0][2] - spin[1][1], look

    both = [(stepper(odd, td.float16), f, 1 / 0.506) for odd in (0, 1)]  # a low viscosity
    td.stencil_loop(both, steps=given.steps // 2, every=max(given.steps // 6, 1), callback=draw)
    left = float((velocities(f) ** 2).sum() / (start**2).sum())
    print(f"{left:.1%} of the energy is left")
    save(given, "lattice_d3q19", pictures, left=left)
    return left


if __name__ == "__main__":
    main()
