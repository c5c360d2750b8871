"""Whole programs beside PyTorch: those of `treadle bench programs`, with what is aimed at.

Run `python -m benchmarks programs-cpu` (or `-cuda`, `-webgpu`, `-dawn`) on an idle machine.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import treadle as td
from benchmarks.harness import Figure, about_device, installed, torch_on_cuda
from treadle.cli.bench import programs

__all__ = ["about", "measurements", "with_targets"]


@dataclass(frozen=True)
class Aim:
    """What is aimed at in the figures whose name begins and ends so, by device; `ratio` if it is of
    the peer's value and not of ours, `beyond` if it is by how much ours may be above the peer's."""

    begin: str
    end: str
    targets: dict[str, float]
    ratio: bool = False
    beyond: bool = False


def _all(target: float) -> dict[str, float]:
    return dict.fromkeys(("cpu", "cuda", "webgpu", "dawn"), target)


_READ = {"cpu": 10e-6, "cuda": 30e-6, "webgpu": 60e-6}  # seconds
AIMS = (
    Aim("float(", "", _READ),
    Aim("small operation", "", {"cpu": 8, "cuda": 10, "webgpu": 8, "dawn": 8}),  # µs
    Aim("operation of a chain", "", _all(3)),
    Aim("one small operation with its read", "", {k: 1e6 * v for k, v in _READ.items()}),
    Aim("MLP", "eager", {"cuda": 1.0}, ratio=True),
    Aim("decoder", "growing caches, eager", {"cuda": 1.3, "webgpu": 2, "dawn": 2}, ratio=True),
    Aim("decoder", "fixed room, eager", {"cuda": 1.3, "webgpu": 2, "dawn": 2}, ratio=True),
    Aim("decoder", "compiled, index a number", {"cuda": 0.5e-3, "webgpu": 0.8e-3}),
    Aim("decoder", "compiled, index on the device", {"cuda": 0.5e-3, "webgpu": 0.8e-3}),
    Aim("ResNet-18", "eager", _all(1.3), ratio=True),  # of its compiled step
    Aim("ResNet-18, first", "empty cache", _all(4)),
    Aim("ResNet-18, first", "from disk", _all(1)),
    Aim("", "peak memory", _all(1), beyond=True),
    Aim("softmax", "", _all(1.15), ratio=True),
    Aim("layer norm", "", _all(1.15), ratio=True),
    Aim("decoder", "plans added", _all(0)),
    Aim("decoder", "kernels added", _all(0)),
    Aim("decoder", "memory added", _all(0)),
)
_COMPILED = "compiled"  # the peer of an eager step of the ResNet


def about(spec: str) -> dict[str, Any]:
    """The device measured, and the peer's version."""
    torch = installed("torch") if spec == "cpu" else torch_on_cuda()
    return about_device(spec) | ({"torch": torch.__version__} if torch else {})


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    device = td.device(spec)

    def aimed(part: Callable[[], list[Figure]]) -> list[Figure]:
        with td.use_device(device):
            return with_targets(part(), spec)

    parts = programs.measurements(device, suite=f"programs-{spec}")
    return [functools.partial(aimed, part) for part in parts]


def with_targets(figures: list[Figure], spec: str) -> list[Figure]:
    """Figures with what is aimed at on a device."""
    compiled = {
        figure.name.removesuffix(_COMPILED): figure.ours
        for figure in figures
        if figure.name.startswith("ResNet") and figure.name.endswith(_COMPILED)
    }
    found = []
    for figure in figures:
        if (same := compiled.get(figure.name.removesuffix("eager"))) and figure.unit == "s":
            others = ((figure.peer, figure.peers),) if figure.peers else ()
            figure = dataclasses.replace(figure, peer=_COMPILED, peers=same, others=others)
        found.append(_aimed(figure, spec))
    return found


def _aimed(figure: Figure, spec: str) -> Figure:
    for aim in AIMS:
        target = aim.targets.get(spec)
        fits = figure.name.startswith(aim.begin) and figure.name.endswith(aim.end)
        if target is None or not fits:
            continue
        if aim.beyond:
            if figure.peers is None:
                return figure
            target += figure.peers
        return dataclasses.replace(figure, target=target, ratio=aim.ratio)
    return figure
