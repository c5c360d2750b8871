"""Derivatives of prefix sums and products: an element is part of all results from its place on."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule
from treadle.graph import views
from treadle.graph.history import recording
from treadle.tensor.axes import one_axis
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.manipulation import flip, moveaxis
from treadle.tensor.ranges import eye, triu
from treadle.tensor.reductions import sum as total
from treadle.tensor.scans import cumulative_prod, cumulative_sum
from treadle.tensor.tensor import Tensor

_where = FUNCTIONS["where"]


def _along(x: Tensor, axis: int | None) -> int:
    return one_axis("gradient", 0 if axis is None else axis, len(x.shape))


def _behind(g: Tensor, at: int) -> Tensor:
    """The sum of each element and those behind it."""
    return flip(cumulative_sum(flip(g, axis=at), axis=at), axis=at)


def _without_initial(g: Tensor, at: int, include_initial: bool) -> Tensor:
    if not include_initial:
        return g
    return g._seen_through(views.slice_axis(g._where, at, 1, 1, g.shape[at] - 1))


def _cumulative_sum(g: Tensor, axis: int | None, include_initial: bool) -> Tensor:
    at = _along(g, axis)
    return _behind(_without_initial(g, at, include_initial), at)


def _cumulative_prod(g: Tensor, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Any:
    at = _along(x, axis)
    g = _without_initial(g, at, include_initial)
    x = x.to(g.dtype)
    if recording.get():
        return _of_all_others(g, x, at)
    # Behind the first 0 all results are 0, and those of its gradient are the product without it.
    is_zero = x == 0
    zeros = cumulative_sum(is_zero, axis=at)
    first: Any = is_zero & (zeros == 1)
    without = cumulative_prod(_where(first, 1, x), axis=at)
    before = _where(zeros == 0, without, 0)
    sums: Any = _behind(g * FUNCTIONS["conj"](_where(zeros == 0, before, 0)), at)
    at_first_zero = _behind(g * FUNCTIONS["conj"](without), at)
    plain = sums / FUNCTIONS["conj"](_where(is_zero, 1, x))
    return _where(first, at_first_zero, _where(zeros == 0, plain, 0))


def _of_all_others(g: Any, x: Any, at: int) -> Any:
    """The same with all products that leave one element out, which has derivatives itself at zeros,
    too, for the square of the elements' number."""
    last = len(x.shape) - 1
    x, g = (moveaxis(each, at, last) for each in (x, g))
    left_out = eye(x.shape[last], dtype="bool", device=x.device)
    products = cumulative_prod(_where(left_out, 1, x[..., None, :]), axis=-1)
    later: Any = g[..., None, :] * FUNCTIONS["conj"](products)
    return moveaxis(total(triu(later), axis=-1), last, at)


RULES: dict[str, Rule] = {
    "cumulative_prod": _cumulative_prod,
    "cumulative_sum": _cumulative_sum,
}
