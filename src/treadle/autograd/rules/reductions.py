"""Derivatives of reductions: the gradient is broadcast to the elements that were reduced."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.graph import views
from treadle.graph.history import RESULT, History
from treadle.graph.node import REDUCE
from treadle.tensor.axes import some_axes
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import prod as product
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_where, _conj = FUNCTIONS["where"], FUNCTIONS["conj"]


def broadcast_back(g: Tensor, axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """A value that a result has (its gradient, say), broadcast along the axes that were reduced."""
    view = g._where
    for axis in sorted(axes):
        view = views.unsqueeze(view, axis)
    return g._seen_through(views.expand(view, shape))


# --- sums, extremes, products --------------------------------------------------------------------


def _edge_shape(made: History) -> tuple[int, ...]:
    edge = made.edges[0]
    assert edge is not None
    return edge.shape


def _sum(g: Tensor, made: History) -> tuple[Any]:
    return (broadcast_back(g, made.options[1], _edge_shape(made)),)


def _extreme(g: Tensor, made: History) -> tuple[Any]:
    """Those that are as great as the greatest have equal parts of its gradient.

    A product, so that the gradient of a NaN is NaN (0 · g / 0), as that of PyTorch's `amax` is."""
    axes, shape = made.options[1], _edge_shape(made)
    x, out = tensor_of(made, 0), tensor_of(made, RESULT)
    found: Any = (x == broadcast_back(out, axes, shape)).to(g.dtype)
    return (found * broadcast_back(g / total(found, axis=axes), axes, shape),)


def _product(g: Tensor, made: History) -> tuple[Any]:
    axes, shape = made.options[1], _edge_shape(made)

    x: Any = tensor_of(made, 0)
    groups = [
        broadcast_back(reduce(values, axis=axes), axes, shape)
        for reduce, values in zip((product, total, total), parts_of_factors(x), strict=True)
    ]
    return (broadcast_back(g, axes, shape) * of_others(x, *groups),)


def parts_of_factors(x: Any) -> tuple[Any, Any, Any]:
    """Of factors: what to multiply, and what to add up, for `of_others`."""
    is_zero: Any = x == 0
    return _where(is_zero, 1, x), is_zero.to(x.dtype.component), _where(is_zero, x, 0)


def of_others(x: Any, product: Any, zeros: Any, sum_of_zeros: Any) -> Any:
    """For each factor the (conjugate) product of all others: from that of all that are not 0, how
    many are 0, and their sum.

    It is the product divided by the factor where none is 0. Where some are, their own product is
    that of the only one, and else flat; what is here for it is their sum, so that the gradient of
    this has the right value as well.
    """
    is_zero: Any = x == 0
    others = product / _where(is_zero, 1, x)
    without_zeros = _where(zeros == 1, 1, _where(zeros == 2, sum_of_zeros - x, 0))
    without_others = _where(zeros == 0, 1, _where(zeros == 1, sum_of_zeros, 0))
    found = others * _where(is_zero, without_zeros, without_others)
    return _conj(found) if x.dtype.kind == "complex" else found


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {
    f"{REDUCE} max": (_extreme, (0, RESULT)),
    f"{REDUCE} min": (_extreme, (0, RESULT)),
    f"{REDUCE} prod": (_product, (0,)),
    f"{REDUCE} sum": (_sum, ()),
}


# --- statistics ----------------------------------------------------------------------------------


def _over(g: Any, x: Tensor, axis: Any, keepdims: bool) -> Any:
    """A result's gradient, or the result, over the elements; halves in float32."""
    g, _ = widened(g)
    axes = some_axes("gradient", axis, len(x.shape))
    if keepdims:
        return broadcast_to(g, x.shape)
    return broadcast_back(g, axes, x.shape)


def _distance(x: Any, axis: Any, correction: float) -> tuple[Any, float]:
    """From the mean, and the factor that the derivative of its mean square has."""
    x, _ = widened(x)
    count = math.prod(x.shape[each] for each in some_axes("var", axis, len(x.shape)))
    free = count - correction
    return x - mean(x, axis=axis, keepdims=True), 2 / free if free > 0 else math.inf


def _var(g: Any, x: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    away, factor = _distance(x, axis, correction)
    return _over(g, x, axis, keepdims) * factor * away


def _std(g: Any, x: Any, out: Any, axis: Any, correction: float, keepdims: bool) -> Any:
    away, factor = _distance(x, axis, correction)
    g, out = widened(g)[0], widened(out)[0]
    slope = _where(out == 0, 0, g / (2 * _where(out == 0, 1, out)))
    return _over(slope, x, axis, keepdims) * factor * away


RULES: dict[str, Rule] = {"std": _std, "var": _var}
