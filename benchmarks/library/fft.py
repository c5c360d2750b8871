"""Fourier transforms: bytes that have to be read and written once, beside a copy of these."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.library.case import Arrays, Case

_GPUS = ("cuda", "webgpu", "dawn")
_AIM = {"cpu": ("NumPy", 0.5)}


def _complex(*shape: int) -> Arrays:
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((*shape, 2), dtype=np.float32)
    return [parts.view(np.complex64)[..., 0]]


def _real(count: int) -> Arrays:
    return [np.random.default_rng(0).standard_normal(count, dtype=np.float32)]


def _case(name: str, arrays: Callable[[], Arrays], function: str, size: int, **more: Any) -> Case:
    """`size` is that of the input and that of the result, in bytes."""
    return Case(
        "fft", name, arrays, getattr(td.fft, function), 2 * size, "GB/s",
        torch=lambda torch, x: getattr(torch.fft, function)(x),
        numpy=getattr(np.fft, function), targets=_AIM, tolerance=1e-6, copied=True, **more,
    )  # fmt: skip


CASES = [
    _case("2**20 complex", functools.partial(_complex, 1 << 20), "fft", 8 << 20),
    _case("4096 × 1024 complex", functools.partial(_complex, 4096, 1024), "fft", 32 << 20),
    _case("1024 × 1024 complex, 2-D", functools.partial(_complex, 1024, 1024), "fft2", 8 << 20),
    _case("1,000,000 complex", functools.partial(_complex, 1000000), "fft", 8000000),
    _case("2**20 real", functools.partial(_real, 1 << 20), "rfft", 4 << 20),
    _case("64 × 1009 complex", functools.partial(_complex, 64, 1009), "fft", 64 * 1009 * 8),
    _case("2**24 real", functools.partial(_real, 1 << 24), "rfft", 64 << 20, devices=_GPUS),
    _case(
        "512 × 512 × 64 complex, 3-D", functools.partial(_complex, 512, 512, 64), "fftn",
        128 << 20, devices=_GPUS,
    ),
]  # fmt: skip
