"""Derivatives of reductions: the gradient is spread over what was gathered."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.graph import kinds, views
from treadle.graph.history import RESULT, History
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor


def spread(g: Tensor, axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """What belongs to a result, seen over the elements that it was made of."""
    view = g._where
    for axis in sorted(axes):
        view = views.unsqueeze(view, axis)
    return g._seen_through(views.expand(view, shape))


def _of_reduction(g: Tensor, made: History) -> tuple[Any]:
    kind, axes, *_ = made.options
    edge = made.edges[0]
    assert edge is not None
    return (_KINDS[kind](g, made, axes, edge.shape),)


def _sum(g: Tensor, made: History, axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    return spread(g, axes, shape)


def _extreme(g: Tensor, made: History, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Those that are as great as the greatest have equal parts of its gradient."""
    x, out = tensor_of(made, 0), tensor_of(made, RESULT)
    found = x == spread(out, axes, shape)
    count = total(found.to(g.dtype), axis=axes)
    return found.to(g.dtype) * spread(g / count, axes, shape)


_KINDS = {"sum": _sum, "max": _extreme, "min": _extreme}

NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {kinds.REDUCE: (_of_reduction, (0, RESULT))}
