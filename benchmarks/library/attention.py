"""Attention: whole sequences, and one new query against many keys."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import treadle as td
from benchmarks.library.case import Arrays, Case

_GPUS = ("cuda", "webgpu", "dawn")
Array = np.ndarray[Any, Any]


def _operands(batch: int, heads: int, queries: int, keys: int, size: int, of_keys: int) -> Arrays:
    """Query, key and value; key and value have so many heads."""
    rng = np.random.default_rng(0)
    shapes = ((batch, heads, queries, size), *[(batch, of_keys, keys, size)] * 2)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def _treadle(*arrays: td.Tensor, **options: Any) -> td.Tensor:
    return td.nn.functional.scaled_dot_product_attention(*arrays, **options)


def _torch(torch: Any, *arrays: Any, **options: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(*arrays, **options)


def _reference(query: Array, key: Array, value: Array, is_causal: bool = False) -> Array:
    """The formula, head by head."""
    group = query.shape[1] // key.shape[1]
    out = np.empty((*query.shape[:-1], value.shape[-1]), np.float32)
    hidden = np.triu(np.ones((query.shape[-2], key.shape[-2]), bool), 1) if is_causal else None
    for b, h in np.ndindex(*query.shape[:2]):
        scores = query[b, h] @ key[b, h // group].T / np.float32(query.shape[-1] ** 0.5)
        if hidden is not None:
            scores[hidden] = -np.inf
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[b, h] = powers / powers.sum(axis=1, keepdims=True) @ value[b, h // group]
    return out


def _case(
    name: str, sizes: tuple[int, int, int, int, int, int], devices: tuple[str, ...],
    targets: dict[str, tuple[str, float]], dtype: str = "", **options: Any,
) -> Case:  # fmt: skip
    """Both products of the keys that are seen count."""
    batch, heads, queries, keys, size, _ = sizes
    share = 0.5 if options.get("is_causal") else 1.0
    causal = {key: value for key, value in options.items() if key == "is_causal"}
    return Case(
        "attention", name, functools.partial(_operands, *sizes),
        functools.partial(_treadle, **options), 4.0 * batch * heads * queries * keys * size * share,
        "GFLOP/s", devices, torch=functools.partial(_torch, **options),
        reference=functools.partial(_reference, **causal), dtype=dtype,
        tolerance=2e-5 if not dtype else 2e-3, targets=targets,
    )  # fmt: skip


_GROUPED = {"enable_gqa": True}
CASES = [
    _case("8 × 1024 × 64 float32", (1, 8, 1024, 1024, 64, 8), ("cpu",), {"cpu": ("PyTorch", 1.0)}),
    _case("8 × 1024 × 64 float32, causal", (1, 8, 1024, 1024, 64, 8), ("cpu",),
          {"cpu": ("PyTorch", 1.0)}, is_causal=True),
    _case("one query, 32 heads on 8 × 4096 × 64 float32", (1, 32, 1, 4096, 64, 8), ("cpu",), {},
          **_GROUPED),
    _case("4 × 16 × 4096 × 64 float16, causal", (4, 16, 4096, 4096, 64, 16), _GPUS,
          {"cuda": ("PyTorch", 1 / 6)}, "float16", is_causal=True),
    _case("4 × 16 × 2048 × 128 float16", (4, 16, 2048, 2048, 128, 16), _GPUS, {}, "float16"),
    _case("one query of 64 heads on 8192 × 64 float16", (4, 16, 1, 8192, 64, 16), _GPUS, {},
          "float16"),
    _case("one query, 32 heads on 4 × 8 × 8192 × 128 float16", (4, 32, 1, 8192, 128, 8), _GPUS, {},
          "float16", **_GROUPED),
]  # fmt: skip
