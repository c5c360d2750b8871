"""Sorting, selecting, counting and moving."""

from __future__ import annotations

import numpy as np

import treadle as td
from benchmarks.library.case import Arrays, Case

_MANY = 4 << 20
_LARGE = 16 << 20
_GPUS = ("cuda", "webgpu", "dawn")


def _floats(count: int) -> Arrays:
    return [np.random.default_rng(0).standard_normal(count).astype(np.float32)]


def _places(count: int, below: int) -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(count).astype(np.float32), rng.integers(0, below, count, np.int32)]


def _bincount(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.bincount(at, minlength=1024)


CASES = [
    Case(
        "sorting", "sort of 4 M float32", lambda: _floats(_MANY), td.sort, _MANY, "M/s", ("cpu",),
        torch=lambda torch, x: torch.sort(x)[0], numpy=np.sort, targets={"cpu": ("NumPy", 0.5)},
    ),
    Case(
        "sorting", "argsort of 4 M float32", lambda: _floats(_MANY), td.argsort, _MANY, "M/s",
        ("cpu",), numpy=lambda x: np.argsort(x, stable=True),
    ),
    Case(
        "sorting", "the 10 greatest of 4 M float32", lambda: _floats(_MANY),
        lambda x: td.topk(x, 10).values, _MANY, "M/s", ("cpu",),
        torch=lambda torch, x: torch.topk(x, 10)[0], numpy=lambda x: -np.partition(-x, 10)[:10],
        reference=lambda x: np.sort(x)[::-1][:10],
    ),
    Case(
        "sorting", "sort of 16 M float32", lambda: _floats(_LARGE), td.sort, _LARGE, "M/s", _GPUS,
        torch=lambda torch, x: torch.sort(x)[0], reference=np.sort,
    ),
    Case(
        "sorting", "the 10 greatest of 16 M float32", lambda: _floats(_LARGE),
        lambda x: td.topk(x, 10).values, _LARGE, "M/s", _GPUS,
        torch=lambda torch, x: torch.topk(x, 10)[0], reference=lambda x: np.sort(x)[::-1][:10],
    ),
    Case(
        "sorting", "running sum of 16 M float32", lambda: _floats(_LARGE), td.cumulative_sum,
        _LARGE, "M/s", torch=lambda torch, x: torch.cumsum(x, 0),
        reference=lambda x: np.cumsum(x, dtype=np.float64), tolerance=1e-4,
    ),
    Case(
        "sorting", "bincount of 4 M int32 in 1024", lambda: _places(_MANY, 1024),
        lambda x, at: td.bincount(at, minlength=1024), _MANY, "M/s",
        torch=lambda torch, x, at: torch.bincount(at, minlength=1024), numpy=_bincount,
    ),
    Case(
        "sorting", "scatter_add of 4 M float32 to 1 M", lambda: _places(_MANY, 1 << 20),
        lambda x, at: td.scatter_add(td.zeros(1 << 20), 0, at, x), _MANY, "M/s",
        torch=lambda torch, x, at: torch.zeros(1 << 20, device=x.device).index_add_(0, at, x),
        reference=lambda x, at: np.bincount(at, x, 1 << 20),
    ),
    Case(
        "sorting", "gather of 4 M float32", lambda: _places(_MANY, _MANY),
        lambda x, at: td.gather(x, 0, at), _MANY, "M/s",
        torch=lambda torch, x, at: x[at], numpy=lambda x, at: x[at],
    ),
]  # fmt: skip
