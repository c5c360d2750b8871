"""Stencils over large grids, beside a copy of the same bytes in the same run.

A figure is the effective throughput: unknowns read and written once, over the time. The copy is the
faster one of the device's own and of an elementwise kernel: what no stencil can pass that does one
step at a time. Steps are launched one by one; those of `td.stencil_loop`, several in a launch, are
beside the same loop step by step.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, device_seconds, installed, wall_seconds

__all__ = ["about", "measurements"]

about = about_device
_STEPS = 64
_LOOPED = 24
_SMALL = (128, 128)
# Coefficients of the second derivative to the eighth order.
_EIGHTH = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


@td.stencil
def copy(u, out, pos):
    out[pos] = u[pos]


@td.stencil(boundary="clamp")
def five_points(u, out, pos):
    out[pos] = u[pos] + 0.2 * (
        pos.north(u) + pos.south(u) + pos.west(u) + pos.east(u) - 4.0 * u[pos]
    )


@td.stencil(boundary="clamp")
def seven_points(u, out, pos):
    around = pos.up(u) + pos.down(u) + pos.north(u) + pos.south(u) + pos.west(u) + pos.east(u)
    out[pos] = u[pos] + 0.1 * (around - 6.0 * u[pos])


@td.stencil(boundary="zero")
def star(u, out, pos):
    total = 3.0 * _EIGHTH[0] * u[pos]
    for d in td.static_range(1, 5):
        along = pos.at(u, d, 0, 0) + pos.at(u, -d, 0, 0) + pos.at(u, 0, d, 0)
        along += pos.at(u, 0, -d, 0) + pos.at(u, 0, 0, d) + pos.at(u, 0, 0, -d)
        total += _EIGHTH[d] * along
    out[pos] = total


@dataclass(frozen=True)
class _Case:
    """A stencil, the grids of the CPU and of a card, and what part of a copy is aimed at."""

    name: str
    stencil: Any
    on_cpu: tuple[int, ...]
    on_card: tuple[int, ...]
    cpu_aim: float
    card_aim: float
    cpu_together: float = 1.5  # several steps in a launch over step by step
    card_together: float = 1.5


_CASES = (
    _Case("2-D, 5 points", five_points, (8192, 8192), (16384, 16384), 0.85, 0.85, 1.5, 2.0),
    _Case("3-D, 7 points", seven_points, (384, 384, 384), (640, 640, 640), 0.85, 0.85),
    _Case("3-D, star of 25", star, (384, 384, 384), (640, 640, 640), 0.6, 0.75),
)


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    cases = [functools.partial(_case, spec, case) for case in _CASES]
    together = [functools.partial(_together, spec, case) for case in _CASES[:2]]
    return [*cases, *together, functools.partial(_small, spec), functools.partial(_numba, spec)]


def _seconds(device: td.Device, *runs: Callable[[], object]) -> list[float]:
    if device.traits.on_host:
        return wall_seconds(device.synchronize, *runs)
    return device_seconds(device, *runs)


def _case(spec: str, case: _Case) -> list[Figure]:
    with td.use_device(spec) as device:
        small = device.traits.on_host or device.traits.software
        shape = case.on_cpu if small else case.on_card
        u = td.random.uniform(shape).realize()
        out = td.zeros(shape).realize()
        source, target = u.__treadle_array__(), out.__treadle_array__()
        ours, stenciled, copied, added = _seconds(
            device,
            lambda: case.stencil(u, out),
            lambda: copy(u, out),
            lambda: source.copy_elements_to(target),
            lambda: (u + 1).realize(),
        )
        moved = 2 * u.size * 4 / 1e9
        aim = case.cpu_aim if small else case.card_aim
        return [
            Figure(
                f"stencils-{spec}", f"{case.name}, float32 {'×'.join(map(str, shape))}", "GB/s",
                moved / ours, aim, higher=True, peer="best copy",
                peers=moved / min(copied, added), ratio=True,
                seconds=ours, others=(("copy as a stencil", moved / stenciled),),
            )
        ]  # fmt: skip


def _together(spec: str, case: _Case) -> list[Figure]:
    """Several steps in a launch, as `td.stencil_loop` chooses them, beside step by step."""
    with td.use_device(spec) as device:
        small = device.traits.on_host or device.traits.software
        shape = case.on_cpu if small else case.on_card
        a = td.random.uniform(shape).realize()
        b = td.zeros(shape).realize()

        def steps(several: int | None) -> None:
            td.stencil_loop(case.stencil, a, b, steps=_LOOPED, steps_per_launch=several)

        chosen, single = _seconds(device, lambda: steps(None), lambda: steps(1))
        moved = 2 * a.size * 4 * _LOOPED / 1e9
        aim = case.cpu_together if small else case.card_together
        return [
            Figure(
                f"stencils-{spec}", f"{case.name}, steps of a loop, {'×'.join(map(str, shape))}",
                "GB/s", moved / chosen, aim, higher=True, peer="step by step",
                peers=moved / single, ratio=True, seconds=chosen,
            )
        ]  # fmt: skip


def _small(spec: str) -> list[Figure]:
    """What a step of a small grid costs, recorded beside launched."""
    with td.use_device(spec) as device:
        a = td.random.uniform(_SMALL).realize()
        b = td.zeros(_SMALL).realize()
        graph = td.Graph(device)
        with graph.capture():
            for _ in range(_STEPS // 2):
                five_points(a, b)
                five_points(b, a)

        def launched() -> None:
            for _ in range(_STEPS // 2):
                five_points(a, b)
                five_points(b, a)

        replayed, direct = wall_seconds(device.synchronize, graph.replay, launched)
    return [
        Figure(
            f"stencils-{spec}", f"a step of {_SMALL[0]}×{_SMALL[1]}, replayed", "µs",
            1e6 * replayed / _STEPS, peer="launched", peers=1e6 * direct / _STEPS,
        )
    ]  # fmt: skip


def _numba(spec: str) -> list[Figure]:
    """The 5 points beside Numba's threads, where it is installed."""
    numba = installed("numba")
    with td.use_device(spec) as device:
        if numba is None or not device.traits.on_host:
            return []

        @numba.njit(parallel=True, fastmath=True)
        def peer(u, out):
            rows, columns = u.shape
            for i in numba.prange(1, rows - 1):
                for j in range(1, columns - 1):
                    around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                    out[i, j] = u[i, j] + np.float32(0.2) * (around - np.float32(4) * u[i, j])

        shape = _CASES[0].on_cpu
        u = td.random.uniform(shape).realize()
        out = td.zeros(shape).realize()
        theirs, theirs_out = u.numpy(), np.zeros(shape, np.float32)
        peer(theirs, theirs_out)
        ours, other = wall_seconds(
            device.synchronize, lambda: five_points(u, out), lambda: peer(theirs, theirs_out)
        )
        moved = 2 * u.size * 4 / 1e9
    return [
        Figure(
            f"stencils-{spec}", "2-D, 5 points, beside Numba", "GB/s", moved / ours, 1.0,
            higher=True, peer="Numba", peers=moved / other, ratio=True,
        )
    ]  # fmt: skip
