"""A lattice Boltzmann model with 19 velocities (D3Q19) in place, as `examples/stencils` has it."""

from __future__ import annotations

from typing import Any

import treadle as td

_HALF = [(k, i, j) for k in (0, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if k * i * j == 0]
_C = ((0, 0, 0), *(c for k, i, j in _HALF[5:] for c in ((k, i, j), (-k, -i, -j))))  # in pairs
_K, _I, _J = zip(*_C, strict=True)
_W = tuple({0: 1 / 3, 1: 1 / 18, 2: 1 / 36}[k * k + i * i + j * j] for k, i, j in _C)


def stepper(odd: int, storage: Any) -> Any:
    """The stencil of even steps (0) or odd ones (1), of populations less their weights."""

    @td.stencil(boundary="wrap", storage=storage, fastmath=True)
    def step(f: td.Array[td.f32, 4], omega: td.f32, pos: td.GridPos):
        one, other = td.local(19, td.f32), td.local(19, td.f32)
        excess, vk, vi, vj = f[0][pos], 0.0, 0.0, 0.0
        for q in td.static_range(1, 19, 2):
            one[q], other[q] = f[q + odd][pos], pos.at(f[q + 1 - odd], _K[q], _I[q], _J[q])
            excess, flow = excess + one[q] + other[q], one[q] - other[q]
            vk, vi, vj = vk + _K[q] * flow, vi + _I[q] * flow, vj + _J[q] * flow
        mass = 1.0 / (1.0 + excess)
        rest = excess - 1.5 * mass * (vk * vk + vi * vi + vj * vj)
        f[0][pos] += omega * (_W[0] * rest - f[0][pos])
        for q in td.static_range(1, 19, 2):
            along = 3.0 * (_K[q] * vk + _I[q] * vi + _J[q] * vj)
            even = rest + 0.5 * mass * along * along
            one[q] += omega * (_W[q] * (even + along) - one[q])
            f[q + 1 - odd][pos.shifted(_K[q], _I[q], _J[q])] = one[q]
            f[q + odd][pos] = other[q] + omega * (_W[q] * (even - along) - other[q])

    return step
