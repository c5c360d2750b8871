"""Rows: reductions, softmax, norms and cross-entropy, which move bytes and little else."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
import treadle.nn.functional as F
from benchmarks.library.case import Arrays, Case

ROWS, LENGTH = 4096, 8192  # of a GPU's matrices
SIDE = 4096  # of a CPU's
LONG = 10_000_000
_GPUS = ("cuda", "webgpu", "dawn")
_OF_COPY = dict.fromkeys(("cuda", "webgpu"), ("copy", 0.8))
_OF_PYTORCH = {"cpu": ("PyTorch", 5.0)}


def matrix(rows: int, length: int) -> Arrays:
    """Numbers as scores are."""
    return [np.random.default_rng(0).standard_normal((rows, length), dtype=np.float32)]


def scores(rows: int, length: int) -> Arrays:
    """The same, and a class for each row."""
    classes = np.random.default_rng(1).integers(0, length, rows).astype(np.int32)
    return [*matrix(rows, length), classes]


def softmax(x: Any) -> Any:
    """In float64."""
    powers = np.exp(x - x.max(axis=1, keepdims=True).astype(np.float64))
    return powers / powers.sum(axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    """In float64."""
    centered = x - x.mean(axis=1, keepdims=True, dtype=np.float64)
    return centered / np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + 1e-5)


def rms_norm(x: Any) -> Any:
    """In float64."""
    square = np.square(x, dtype=np.float64).mean(axis=1, keepdims=True)
    return x / np.sqrt(square + np.finfo(np.float32).eps)


def cross_entropy(x: Any, classes: Any) -> Any:
    """In float64."""
    logs = np.log(np.exp(x.astype(np.float64)).sum(axis=1))
    return (logs - np.take_along_axis(x, classes[:, None], 1)[:, 0]).mean()


# What is computed here, by PyTorch, and in float64; and bytes a float that is read.
_KINDS: dict[str, tuple[Any, Any, Any, int]] = {
    "sum": (
        lambda x: td.sum(x, axis=1), lambda torch, x: x.sum(1),
        lambda x: x.sum(axis=1, dtype=np.float64), 4,
    ),
    "softmax": (
        lambda x: F.softmax(x, dim=1), lambda torch, x: torch.softmax(x, 1), softmax, 8,
    ),
    "layer_norm": (
        lambda x: F.layer_norm(x, x.shape[1]),
        lambda torch, x: torch.nn.functional.layer_norm(x, (x.shape[1],)), layer_norm, 8,
    ),
    "rms_norm": (
        lambda x: F.rms_norm(x, x.shape[1]),
        lambda torch, x: torch.nn.functional.rms_norm(x, (x.shape[1],)), rms_norm, 8,
    ),
    "cross_entropy": (
        lambda x, classes: F.cross_entropy(x, classes),
        lambda torch, x, classes: torch.nn.functional.cross_entropy(x, classes.long()),
        cross_entropy, 4,
    ),
}  # fmt: skip


def _case(
    kind: str, rows: int, length: int, devices: tuple[str, ...], dtype: str = "", **rest: Any
) -> Case:
    compute, torch, reference, bytes_each = _KINDS[kind]
    make = scores if kind == "cross_entropy" else matrix
    half = 2 if dtype else 1
    return Case(
        "rows", f"{kind} of {rows} x {length}{f' {dtype}' if dtype else ''}",
        lambda: make(rows, length), compute, rows * length * bytes_each / half, "GB/s", devices,
        torch=torch, reference=reference, tolerance=1e-2 if dtype else 2e-5, dtype=dtype,
        copied=True, **rest,
    )  # fmt: skip


CASES = [
    *[_case(kind, ROWS, LENGTH, _GPUS, targets=_OF_COPY) for kind in _KINDS],
    *[
        _case(kind, ROWS, LENGTH, _GPUS, "bfloat16")
        for kind in ("softmax", "layer_norm", "cross_entropy")
    ],
    *[_case(kind, 1, LONG, (*_GPUS, "cpu")) for kind in ("softmax", "cross_entropy")],
    _case("softmax", 1 << 20, 32, _GPUS),
    *[_case(kind, SIDE, SIDE, ("cpu",), targets=_OF_PYTORCH) for kind in ("softmax", "layer_norm")],
    *[_case(kind, SIDE, SIDE, ("cpu",)) for kind in ("sum", "rms_norm", "cross_entropy")],
]
