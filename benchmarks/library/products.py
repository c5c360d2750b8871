"""Products of matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.library.case import Arrays, Case

_GPUS = ("cuda", "webgpu", "dawn")
_FLOAT32 = {"webgpu": ("PyTorch", 0.78), "cuda": ("PyTorch", 0.78)}  # 40 of 51.5 TFLOP/s
_HALVES = {"cuda": ("PyTorch", 0.9)}


def _arrays(*shapes: tuple[int, ...]) -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _multiplied(x: Any, y: Any) -> Any:
    return x @ y


def _in_torch(torch: Any, x: Any, y: Any) -> Any:
    torch.backends.cuda.matmul.allow_tf32 = False
    return x @ y


def _reference(dtype: str) -> Callable[..., Any]:
    """In float64, of the numbers that a dtype has."""
    kept = getattr(td, dtype).numpy

    def multiply(*arrays: np.ndarray[Any, Any]) -> Any:
        first, second = (array.astype(kept).astype(np.float64) for array in arrays)
        return first @ second

    return multiply


def _case(
    name: str,
    first: tuple[int, ...],
    second: tuple[int, ...],
    devices: tuple[str, ...],
    dtype: str = "",
    targets: dict[str, tuple[str, float]] | None = None,
) -> Case:
    *_, columns = second
    numpy = np.matmul if "cpu" in devices and not dtype else None
    count = 2 * float(np.prod(first)) * columns
    return Case(
        "products", name, functools.partial(_arrays, first, second), _multiplied, count,
        "GFLOP/s" if "cpu" in devices else "TFLOP/s", devices, torch=_in_torch, numpy=numpy,
        reference=_reference(dtype or "float32"), dtype=dtype, targets=targets or {},
        tolerance={"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 2e-5),
    )  # fmt: skip


def _square(n: int, dtype: str = "", **more: Any) -> Case:
    return _case(f"{dtype or 'float32'} {n}^3", (n, n), (n, n), _GPUS, dtype, **more)


def _layer(x: Any, w: Any, b: Any, r: Any) -> Any:
    return td.nn.functional.gelu(x @ w.mT + b) + r


def _layer_in_torch(torch: Any, x: Any, w: Any, b: Any, r: Any) -> Any:
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.nn.functional.gelu(x @ w.mT + b) + r


def _layer_in_numpy(*arrays: np.ndarray[Any, Any]) -> Any:
    from math import erf

    x, w, b, r = (array.astype(np.float64) for array in arrays)
    y = x @ w.T + b
    return y * (0.5 + 0.5 * np.vectorize(erf)(y / np.sqrt(2))) + r


CASES = [
    *(_square(n) for n in (1024, 2048)),
    _square(4096, targets=_FLOAT32),
    *(_square(4096, dtype, targets=_HALVES) for dtype in ("float16", "bfloat16")),
    _case("float32 16 x 4096 x 4096", (16, 4096), (4096, 4096), _GPUS),
    _case("float32 of 64 times 512^3", (64, 512, 512), (64, 512, 512), _GPUS),
    Case(
        "products", "gelu(x @ w.mT + b) + r, 2048 x 4096 x 4096",
        lambda: _arrays((2048, 4096), (4096, 4096), (4096,), (2048, 4096)), _layer,
        2.0 * 2048 * 4096 * 4096, "TFLOP/s", _GPUS, torch=_layer_in_torch,
        reference=_layer_in_numpy,
    ),
    _case("float32 2048^3", (2048, 2048), (2048, 2048), ("cpu",), targets={"cpu": ("NumPy", 0.95)}),
    _case("float32 64^3", (64, 64), (64, 64), ("cpu",)),
    _case("float32 of 64 times 128^3", (64, 128, 128), (64, 128, 128), ("cpu",)),
    _case("bfloat16 1024^3", (1024, 1024), (1024, 1024), ("cpu",), "bfloat16"),
]  # fmt: skip
