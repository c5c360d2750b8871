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
from benchmarks import lattice
from benchmarks.harness import Figure, about_device, device_seconds, wall_seconds
from benchmarks.stencil_peers import peers

__all__ = ["about", "measurements"]

about = about_device
_STEPS = 64
_LOOPED = 24
_SMALL = (128, 128)
# The grid of the fluid on a card and on a CPU, and million cells a second on a card.
_FLUID = (256, 256, 256), (128, 128, 256)
_FLUID_OF_SOFTWARE = (32, 32, 256)  # drivers that compute on a CPU bind 128 MiB at most
_FLUID_AIMS = {"f32": 15_000, "f16": 24_000}
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
    fluids = [functools.partial(_fluid, spec, dtype) for dtype in (td.float32, td.float16)]
    beside = [functools.partial(_beside_others, spec, case) for case in _CASES[:2]]
    return [*cases, *together, *fluids, functools.partial(_small, spec), *beside]


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


def _fluid(spec: str, dtype: Any) -> list[Figure]:
    """A step of a lattice Boltzmann model in place, beside a copy of as many bytes."""
    with td.use_device(spec) as device:
        small = device.traits.on_host or device.traits.software
        shape = _FLUID_OF_SOFTWARE if device.traits.software else _FLUID[small]
        f = td.random.uniform((19, *shape), -1e-3, 1e-3).to(dtype).realize()
        copied = td.zeros_like(f).realize()
        source, target = f.__treadle_array__(), copied.__treadle_array__()
        steps = [lattice.stepper(odd, dtype) for odd in (0, 1)]
        even, odd, *copies = _seconds(
            device,
            lambda: steps[0](f, 1.2),
            lambda: steps[1](f, 1.2),
            lambda: source.copy_elements_to(target),
            lambda: (f + 1).realize(),
        )
        cells, took = f.size / 19e6, (even + odd) / 2
        bound = cells / min(copies)
        aim = _FLUID_AIMS[dtype.short] / bound if not small else 0.7
        size = 2 * 19 * dtype.itemsize
        return [
            Figure(
                f"stencils-{spec}",
                f"D3Q19 in place, {dtype.name} {'×'.join(map(str, shape))}, {size} bytes a cell",
                "million cells/s", cells / took, aim, higher=True, peer="best copy", peers=bound,
                ratio=True, seconds=took, note="" if small else _aim_of(dtype),
            )
        ]  # fmt: skip


def _aim_of(dtype: Any) -> str:
    return f"the aim is {_FLUID_AIMS[dtype.short]:,} million cells/s"


def _beside_others(spec: str, case: _Case) -> list[Figure]:
    """5 and 7 points beside other libraries that compile Python, where they are installed."""
    with td.use_device(spec) as device:
        on_cuda = spec.startswith("cuda")
        if not (on_cuda or device.traits.on_host):
            return []
        shape = case.on_card if on_cuda else case.on_cpu
        u = td.random.uniform(shape).realize()
        out = td.zeros(shape).realize()
        others = peers(u.numpy(), on_cuda=on_cuda)
        case.stencil(u, out)
        inner, found = (slice(1, -1),) * len(shape), out.numpy()
        for each in others:
            each.run()
            each.wait()
            np.testing.assert_allclose(each.result()[inner], found[inner], rtol=1e-4)

        def wait() -> None:
            device.synchronize()
            for each in others:
                each.wait()

        ours, *theirs = wall_seconds(
            wait, lambda: case.stencil(u, out), *(each.run for each in others)
        )
        moved = 2 * u.size * 4 / 1e9
        rates = sorted(
            ((each.name, moved / took) for each, took in zip(others, theirs, strict=True)),
            key=lambda one: -one[1],
        )
    if not rates:
        return []
    (fastest, rate), *rest = rates
    return [
        Figure(
            f"stencils-{spec}", f"{case.name}, beside {fastest}", "GB/s", moved / ours, 1.0,
            higher=True, peer=fastest, peers=rate, ratio=True, others=tuple(rest),
        )
    ]  # fmt: skip
