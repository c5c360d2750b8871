"""Convolutions with kernels of 3 × 3, in the usual layout and with channels last."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.cards import measurements_of
from benchmarks.cards.case import Arrays, Case, Run
from benchmarks.harness import Figure, about_device

__all__ = ["CASES", "about", "measurements"]

about = about_device
_LAST = (0, 2, 3, 1)  # axes in the order of memory where channels are last
_FIRST = (0, 3, 1, 2)


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return measurements_of("convolutions", spec)


def _drawn(batch: int, channels: int, edge: int, rng: np.random.Generator) -> Arrays:
    shapes = (batch, channels, edge, edge), (channels, channels, 3, 3)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def _ours(last: bool, x: Any, weight: Any) -> Run:
    if last:
        memory = td.permute_dims(x, _LAST).copied().realize()
        x = td.permute_dims(memory, _FIRST)
    return lambda: td.nn.functional.conv2d(x, weight, None, padding=1)


def _theirs(last: bool, torch: Any, x: Any, weight: Any) -> Run:
    if last:
        x, weight = (each.to(memory_format=torch.channels_last) for each in (x, weight))
    return lambda: torch.nn.functional.conv2d(x, weight, None, padding=1)


def _right(torch: Any, x: Any, weight: Any) -> Any:
    """As sums of products, in float64."""
    padded = torch.nn.functional.pad(x.double(), (1, 1, 1, 1))
    edge, wide = x.shape[-1], weight.double()
    return sum(
        torch.einsum("nchw,oc->nohw", padded[:, :, i : i + edge, j : j + edge], wide[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )


def _case(
    what: str, batch: int, channels: int, edge: int, target: float | None, last: bool = False
) -> Case:
    tf32, dtype = what == "TF32", "" if what in ("float32", "TF32") else what
    work = 2.0 * batch * edge * edge * channels * channels * 9
    layout = ", channels last" if last else ""
    return Case(
        f"3 × 3, {batch} × {channels} × {edge}², {what}{layout}",
        functools.partial(_drawn, batch, channels, edge), functools.partial(_ours, last),
        functools.partial(_theirs, last), _right, work, dtype=dtype,
        precision="high" if tf32 else "highest",
        bound={"float16": 1e-3, "TF32": 1e-3}.get(what, 2e-5),
        targets={} if target is None else {"cuda": target},
        more={} if last else {"PyTorch, channels last": functools.partial(_theirs, True)},
    )  # fmt: skip


CASES = [
    _case("float16", 64, 256, 56, 0.85),
    _case("float16", 64, 256, 56, None, last=True),
    _case("float16", 32, 256, 28, 0.85),
    _case("float16", 64, 64, 56, None),
    _case("TF32", 32, 256, 56, 0.8),
    _case("TF32", 32, 256, 56, None, last=True),
    _case("float32", 32, 256, 56, None),
]
