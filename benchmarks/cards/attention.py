"""Attention, forward and backward, by head sizes, causal and whole."""

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
_BATCH, _HEADS, _LENGTH = 4, 16, 4096
_BOUNDS = {"float16": 2e-3, "bfloat16": 1e-2}


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return measurements_of("attention", spec)


def _drawn(size: int, count: int, rng: np.random.Generator) -> Arrays:
    shape = (_BATCH, _HEADS, _LENGTH, size)
    return [rng.standard_normal(shape, np.float32) for _ in range(count)]


def _ours(causal: bool, q: Any, k: Any, v: Any) -> Run:
    attend = td.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v, is_causal=causal)


def _theirs(causal: bool, torch: Any, q: Any, k: Any, v: Any) -> Run:
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v, is_causal=causal)


def _ours_back(causal: bool, q: Any, k: Any, v: Any, g: Any) -> Run:
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    out = td.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal).realize()
    return lambda: tuple(td.autograd.grad(out, leaves, g, retain_graph=True))


def _theirs_back(causal: bool, torch: Any, q: Any, k: Any, v: Any, g: Any) -> Run:
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
    return lambda: torch.autograd.grad(out, leaves, g, retain_graph=True)


def _exact(causal: bool, torch: Any, q: Any, k: Any, v: Any) -> Any:
    """By the formula, in float64, a head at a time."""
    hidden = torch.ones((_LENGTH, _LENGTH), dtype=torch.bool, device=q.device).triu(1)
    found = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    for b, h in np.ndindex(*q.shape[:2]):
        scores = q[b, h].double() @ k[b, h].double().T / q.shape[-1] ** 0.5
        if causal:
            scores.masked_fill_(hidden, -float("inf"))
        found[b, h] = torch.softmax(scores, -1) @ v[b, h].double()
    return found


def _exact_back(causal: bool, torch: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
    """The gradient of the query."""
    hidden = torch.ones((_LENGTH, _LENGTH), dtype=torch.bool, device=q.device).triu(1)
    found = torch.empty(q.shape, dtype=torch.float64, device=q.device)
    scale = q.shape[-1] ** -0.5
    for b, h in np.ndindex(*q.shape[:2]):
        scores = q[b, h].double() @ k[b, h].double().T * scale
        if causal:
            scores.masked_fill_(hidden, -float("inf"))
        weights = torch.softmax(scores, -1)
        of_weights = g[b, h].double() @ v[b, h].double().T
        sums = (weights * of_weights).sum(-1, keepdim=True)
        found[b, h] = weights * (of_weights - sums) @ k[b, h].double() * scale
    return found


def _case(size: int, causal: bool, back: bool, dtype: str, target: float | None) -> Case:
    """Both products of the keys that are seen count, backward five."""
    work = (10.0 if back else 4.0) * _BATCH * _HEADS * _LENGTH**2 * size * (0.5 if causal else 1.0)
    way = "backward" if back else "forward"
    seen = "causal" if causal else "whole"
    dawn = () if back or not causal or dtype != "float16" else ("dawn",)
    return Case(
        f"{way}, {_BATCH} × {_HEADS} × {_LENGTH} × {size} {dtype}, {seen}",
        functools.partial(_drawn, size, 4 if back else 3),
        functools.partial(_ours_back if back else _ours, causal),
        functools.partial(_theirs_back if back else _theirs, causal),
        functools.partial(_exact_back if back else _exact, causal), work, dtype=dtype,
        targets={} if target is None else {"cuda": target}, bound=_BOUNDS[dtype] * (1 + 2 * back),
        devices=("cuda", *dawn),
    )  # fmt: skip


CASES = [
    *(_case(size, causal, False, "float16", 1.0 if causal else None)
      for size in (64, 128) for causal in (True, False)),
    *(_case(size, causal, True, "float16", 0.9)
      for size in (64, 128) for causal in (True, False)),
    _case(128, True, False, "bfloat16", 1.0),
]  # fmt: skip
