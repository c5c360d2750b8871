"""Equations whose solutions are known: the error falls with the grid's step as it must."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td


def order(error: Callable[[int], float], sizes: tuple[int, int]) -> float:
    """The order at which an error falls from one size of a grid to another."""
    coarse, fine = (error(size) for size in sizes)
    assert 0 < fine < coarse
    return float(np.log(coarse / fine) / np.log(sizes[1] / sizes[0]))


def relative(found: np.ndarray, right: np.ndarray) -> float:
    """The error in the mean square, beside the solution."""
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def on(device: td.Device, *arrays: np.ndarray) -> list[td.Tensor]:
    return [td.asarray(each, dtype=td.float32, device=device) for each in arrays]


# --- heat ----------------------------------------------------------------------------------------


@td.stencil(boundary="clamp")
def heat_1d(u, rate, out, pos):
    out[pos] = u[pos] + rate * (pos.west(u) - 2.0 * u[pos] + pos.east(u))


@td.stencil(boundary="clamp")
def heat_2d(u, rate, out, pos):
    around = pos.north(u) + pos.south(u) + pos.west(u) + pos.east(u)
    out[pos] = u[pos] + rate * (around - 4.0 * u[pos])


@td.stencil(boundary="clamp")
def heat_3d(u, rate, out, pos):
    around = pos.north(u) + pos.south(u) + pos.west(u) + pos.east(u) + pos.up(u) + pos.down(u)
    out[pos] = u[pos] + rate * (around - 6.0 * u[pos])


def heat_error(device: td.Device, ndim: int, rate: float, size: int) -> float:
    """The heat kernel from one width to a greater one, in a box whose walls it does not reach."""
    steps = round(0.004 * size**2 / rate)
    width = np.array([0.002, 0.002 + rate * steps / size**2])
    x = np.stack(np.indices((size,) * ndim)) / size + 0.5 / size - 0.5
    squares = (x**2).sum(axis=0)
    first, right = (np.exp(-squares / (4 * w)) * (width[0] / w) ** (ndim / 2) for w in width)
    (u,) = on(device, first)
    step = (heat_1d, heat_2d, heat_3d)[ndim - 1]
    last = td.stencil_loop(step, u, rate, td.zeros_like(u), steps=steps)
    return relative(last.numpy(), right)


@pytest.mark.parametrize(("ndim", "sizes"), [(1, (32, 64)), (2, (24, 48)), (3, (20, 40))])
def test_the_heat_kernel(device: td.Device, ndim: int, sizes: tuple[int, int]) -> None:
    found = order(lambda size: heat_error(device, ndim, 0.15, size), sizes)
    assert found > 1.75
    if ndim == 1:  # the errors of the second order in space and time cancel for one step in time
        assert order(lambda size: heat_error(device, 1, 1 / 6, size), (24, 48)) > 3.5


# --- waves ---------------------------------------------------------------------------------------


@td.stencil(boundary="wrap")
def wave(before, now, rate, after, pos):
    around = pos.north(now) + pos.south(now) + pos.west(now) + pos.east(now)
    after[pos] = 2.0 * now[pos] - before[pos] + rate * (around - 4.0 * now[pos])


def wave_error(device: td.Device, size: int) -> float:
    """A plane wave that goes along the diagonal, once around the box."""
    courant = 0.5
    i, j = np.indices((size, size)) / size
    phase = 2 * np.pi * (i + j)
    steps = round(size / courant / np.sqrt(2))
    at = 2 * np.pi * np.sqrt(2) * courant / size  # the phase of a step
    before, now = on(device, np.cos(phase + at), np.cos(phase))
    last = td.stencil_loop(
        wave, before, now, courant**2, td.zeros_like(now), steps=steps,
        rotate=("before", "now", "after"),
    )  # fmt: skip
    return relative(last.numpy(), np.cos(phase - at * steps))


def test_a_plane_wave(device: td.Device) -> None:
    assert 1.8 < order(lambda size: wave_error(device, size), (24, 48)) < 2.2


@td.stencil(boundary="wrap")
def update_magnetic(h, e, rate, pos):
    h[pos] += rate * (pos.east(e) - e[pos])


@td.stencil(boundary="wrap")
def update_electric(e, h, rate, pos):
    e[pos] += rate * (h[pos] - pos.west(h))


def light_error(device: td.Device, size: int) -> float:
    """A plane wave of light in one dimension: h lies between the cells, and between the steps."""
    courant, x = 0.5, np.arange(size) / size
    steps = round(size / courant)
    e, h = on(device, np.sin(2 * np.pi * x), -np.sin(2 * np.pi * (x + 0.5 * (1 + courant) / size)))
    td.stencil_loop(
        [(update_magnetic, h, e, courant), (update_electric, e, h, courant)], steps=steps
    )
    right = np.sin(2 * np.pi * (x - courant * steps / size))
    return relative(e.numpy(), right)


def test_light(device: td.Device) -> None:
    assert 1.8 < order(lambda size: light_error(device, size), (24, 48)) < 2.2


# --- lattice Boltzmann ---------------------------------------------------------------------------

DI, DJ = (-1, -1, -1, 0, 0, 0, 1, 1, 1), (-1, 0, 1, -1, 0, 1, -1, 0, 1)
W = tuple(part / 36 for part in (1, 4, 1, 4, 16, 4, 1, 4, 1))
VISCOSITY = 1 / 6  # velocities settle in one step


@td.struct
class Cell:
    f: td.f32[9]


@td.stencil(boundary="wrap")
def fluid(cells: td.Array[Cell, 2], solid, force, out: td.Array[Cell, 2], pos: td.GridPos):
    f = td.local(9, td.f32)
    density, vi, vj = 0.0, 0.0, 0.0
    for q in td.static_range(9):
        f[q] = pos.at(cells, -DI[q], -DJ[q]).f[q]
        density += f[q]
        vi += DI[q] * f[q]
        vj += DJ[q] * f[q]
    for q in td.static_range(9):
        if solid[pos]:
            out[pos].f[q] = f[8 - q]
        else:
            along = 3.0 * (DI[q] * vi + DJ[q] * vj) / density
            energy = 1.5 * (vi * vi + vj * vj) / (density * density)
            settled = W[q] * density * (1.0 + along + 0.5 * along * along - energy)
            out[pos].f[q] = settled + 3.0 * W[q] * DJ[q] * force


def flow(
    device: td.Device, density: Any, vi: Any, vj: Any, solid: np.ndarray, force: float, steps: int
) -> tuple[np.ndarray, np.ndarray]:
    """The velocities after some steps. Half of a step's force is in the velocity."""
    first = np.zeros(solid.shape, Cell.dtype)
    for q in range(9):
        along = 3 * (DI[q] * vi + DJ[q] * vj)
        first["f"][..., q] = W[q] * density * (1 + along + 0.5 * along**2 - 1.5 * (vi**2 + vj**2))
    a = td.asarray(first, device=device)
    mask = td.asarray(solid, device=device)
    last = td.stencil_loop(fluid, a, mask, force, td.zeros_like(a), steps=steps)
    f = last.numpy()["f"].astype(np.float64)
    density = f.sum(axis=-1)
    return f @ np.array(DI) / density, (f @ np.array(DJ) - 0.5 * force) / density


def poiseuille_error(device: td.Device, height: int) -> float:
    """The parabola of a flow between two walls, which lie between the last cells and the mask."""
    solid = np.zeros((height + 2, 3), bool)
    solid[[0, -1]] = True
    y = np.arange(height + 2) - 0.5
    force = 8 * VISCOSITY * 0.1 / height**2
    right = force / (2 * VISCOSITY) * y * (height - y)
    start = np.repeat(np.where(solid[:, 0], 0, right)[:, None], 3, axis=1)
    _, vj = flow(device, 1.0, 0.0 * start, start, solid, force, 3 * height**2)
    return relative(vj[1:-1, 1], right[1:-1])


def test_poiseuille_flow(device: td.Device) -> None:
    assert 1.8 < order(lambda height: poiseuille_error(device, height), (8, 16)) < 2.2


def vortices_error(device: td.Device, size: int) -> float:
    """Taylor's and Green's vortices, which decay to 1/e."""
    i, j = np.indices((size, size)) * (2 * np.pi / size)
    vi, vj = np.cos(i) * np.sin(j), -np.sin(i) * np.cos(j)
    rate = 2 * VISCOSITY * (2 * np.pi / size) ** 2
    steps = round(1 / rate)
    speed = 0.8 / size
    pressure = -0.25 * speed**2 * (np.cos(2 * i) + np.cos(2 * j))
    solid = np.zeros(vi.shape, bool)
    found = np.stack(flow(device, 1 + 3 * pressure, speed * vi, speed * vj, solid, 0.0, steps))
    right = speed * np.exp(-rate * steps) * np.stack([vi, vj])
    return relative(found, right)


def test_taylor_green_decay(device: td.Device) -> None:
    assert 1.8 < order(lambda size: vortices_error(device, size), (16, 32)) < 2.3
