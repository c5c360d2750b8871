"""Pooling, interpolation, and rows of a table: what moves images and looks things up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle.nn.functional as F
from benchmarks.library.case import Arrays, Case

SMALL = (8, 64, 56, 56)  # a CPU's images
LARGE = (32, 128, 112, 112)  # a GPU's
TABLE = (50_000, 768)  # rows and columns
_GPUS = ("cuda", "webgpu", "dawn")
_TARGETS = dict.fromkeys(("cpu", "cuda"), ("PyTorch", 0.8))


def images(shape: tuple[int, ...]) -> Arrays:
    """Numbers as a layer gives them."""
    return [np.random.default_rng(0).standard_normal(shape, dtype=np.float32)]


def table(count: int) -> Arrays:
    """A table, and numbers of its rows."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(TABLE, dtype=np.float32), rng.integers(0, TABLE[0], count)]


def greatest(x: Any) -> Any:
    """Of windows of 3 x 3, 2 apart, that begin before the image."""
    padded = np.pad(x, [(0, 0)] * 2 + [(1, 1)] * 2, constant_values=-np.inf)
    return _windows(padded, 3, 2).max(axis=(-2, -1))


def means(x: Any) -> Any:
    """Of windows of 2 x 2, side by side."""
    return _windows(x.astype(np.float64), 2, 2).mean(axis=(-2, -1))


def _windows(x: Any, size: int, stride: int) -> Any:
    view = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(-2, -1))
    return view[..., ::stride, ::stride, :, :]


def doubled(x: Any) -> Any:
    """Images of twice the size, by straight lines between pixels."""
    for axis in (2, 3):
        extent = x.shape[axis]
        at = np.maximum((np.arange(2 * extent) + 0.5) / 2 - 0.5, 0)
        left = np.floor(at).astype(int)
        part = (at - left).reshape((-1,) + (1,) * (3 - axis))
        right = np.minimum(left + 1, extent - 1)
        x = np.take(x, left, axis) * (1 - part) + np.take(x, right, axis) * part
    return x


# What is computed here, by PyTorch, and by NumPy; and how many elements it writes for one it reads.
_KINDS: dict[str, tuple[Any, Any, Any, float]] = {
    "max_pool2d, 3 x 3, stride 2": (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda torch, x: torch.nn.functional.max_pool2d(x, 3, 2, 1), greatest, 0.25,
    ),
    "avg_pool2d, 2 x 2": (
        lambda x: F.avg_pool2d(x, 2),
        lambda torch, x: torch.nn.functional.avg_pool2d(x, 2), means, 0.25,
    ),
    "interpolate, bilinear, twice": (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
        doubled, 4.0,
    ),
}  # fmt: skip


def _of_images(kind: str, shape: tuple[int, ...], devices: tuple[str, ...]) -> Case:
    compute, torch, reference, factor = _KINDS[kind]
    size = " x ".join(map(str, shape))
    return Case(
        "pooling", f"{kind}, {size}", lambda: images(shape), compute,
        math.prod(shape) * (1 + factor) * 4, "GB/s", devices, torch=torch, reference=reference,
        targets=_TARGETS,
    )  # fmt: skip


def _embedding(count: int, devices: tuple[str, ...]) -> Case:
    return Case(
        "pooling", f"embedding, {count} of {TABLE[0]} rows of {TABLE[1]}", lambda: table(count),
        lambda weight, index: F.embedding(index, weight), count * TABLE[1] * 8, "GB/s", devices,
        torch=lambda torch, weight, index: torch.nn.functional.embedding(index, weight),
        numpy=lambda weight, index: weight[index], targets=_TARGETS,
    )  # fmt: skip


CASES = [
    *[_of_images(kind, SMALL, ("cpu",)) for kind in _KINDS],
    *[_of_images(kind, LARGE, _GPUS) for kind in _KINDS],
    _embedding(8192, ("cpu",)),
    _embedding(65536, _GPUS),
]
