"""Derivatives of pooling: the gradient of a window is distributed to its elements."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.graph.history import History, recording
from treadle.kernels.pool import Windows
from treadle.tensor.creation import zeros_like
from treadle.tensor.functional.pooling_operations import (
    gather_from_images,
    indices_into_all,
    max_pool_gradient,
    mean_pool,
    mean_pool_gradient,
)
from treadle.tensor.tensor import Tensor


def _max_pool(g: Tensor, made: History) -> tuple[Any]:
    """`made` has the places of the greatest elements in addition to the operand."""
    edge = made.edges[0]
    assert edge is not None
    found = max_pool_gradient(g, tensor_of(made, 1), made.options, edge.shape)
    return (found + _zeros_of(edge, found) if recording.get() else found,)


def _zeros_of(edge: History, like: Tensor) -> Tensor:
    """Zeros whose gradients flow on to what was pooled: it decides alone which elements the windows
    take. So its second derivative is 0, and not nothing, for which optimizers make no step."""
    made = zeros_like(like)
    made._node.history = edge
    return made * 0


def _max_pool_gradient(g: Tensor, places: Tensor, windows: Windows) -> Any:
    return gather_from_images(g, indices_into_all(places, g.shape[g.ndim - windows.axes :]))


def _scatter_to_images(g: Tensor, at: Tensor) -> Any:
    return gather_from_images(g, at)


def _mean_pool(g: Tensor, x: Tensor, windows: Windows, include: bool, divisor: int) -> Any:
    return mean_pool_gradient(g, windows, include, divisor, x.shape)


def _mean_pool_gradient(g: Tensor, windows: Windows, include: bool, divisor: int) -> Any:
    return mean_pool(g, windows, include, divisor)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {"max_pool": (_max_pool, ())}
RULES: dict[str, Rule] = {
    "max_pool_gradient": _max_pool_gradient,
    "mean_pool": _mean_pool,
    "mean_pool_gradient": _mean_pool_gradient,
    "scatter_to_images": _scatter_to_images,
}
