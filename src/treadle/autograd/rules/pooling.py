"""Derivatives of pooling: the gradient of a window is distributed to its elements."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.graph.history import History
from treadle.kernels.pool import Windows
from treadle.tensor.functional.pooling_operations import (
    given_to_places,
    in_all,
    means,
    shared,
    taken_at,
)
from treadle.tensor.tensor import Tensor


def _max_pool(g: Tensor, made: History) -> tuple[Any]:
    """`made` has the places of the greatest elements in addition to the operand."""
    edge = made.edges[0]
    assert edge is not None
    return (given_to_places(g, tensor_of(made, 1), made.options, edge.shape),)


def _given_to_places(g: Tensor, places: Tensor, windows: Windows) -> Any:
    return taken_at(g, in_all(places, g.shape[g.ndim - windows.axes :]))


def _unpooled(g: Tensor, at: Tensor) -> Any:
    return taken_at(g, at)


def _means(g: Tensor, x: Tensor, windows: Windows, include: bool, divisor: int) -> Any:
    return shared(g, windows, include, divisor, x.shape)


def _shared(g: Tensor, windows: Windows, include: bool, divisor: int) -> Any:
    return means(g, windows, include, divisor)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {"max_pool": (_max_pool, ())}
RULES: dict[str, Rule] = {
    "given_to_places": _given_to_places,
    "means": _means,
    "shared": _shared,
    "unpooled": _unpooled,
}
