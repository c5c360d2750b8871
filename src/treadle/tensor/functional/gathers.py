"""Elements taken from computed places: what padding, folding and interpolation are made of.

A result's element is one of the input, at places that are computed from its indices. The places
are integers along an axis of the input, computed in the kernel that takes the elements, so that
nothing is moved or kept for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.graph import views
from treadle.graph.node import constant
from treadle.graph.views import View
from treadle.tensor.advanced_indexing import Term, gathered, index_dtype, sum_of
from treadle.tensor.conversions import cast, number_as
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor, from_node


class AxisIndices(NamedTuple):
    """Where elements are along an axis of the input: an integer for each index along some axes of
    the result. `inside` says which of them there are; None: all."""

    axis: int
    values: Tensor
    along: tuple[int, ...]  # the axes of the result that the axes of `values` are
    inside: Tensor | None = None


def index_range(x: Tensor, count: int, first: int = 0, step: int = 1) -> Tensor:
    """So many integers, in the dtype that places in an array like x have."""
    dtype = index_dtype(x._cell.value.size)
    return arange(first, first + count * step, step, dtype=dtype, device=x.device)


def gather_axes(
    x: Tensor, shape: tuple[int, ...], kept: dict[int, int], places: Sequence[AxisIndices]
) -> Tensor:
    """The elements of x for a result of this shape: `kept` has for axes of the result those of x
    along which they go together, `places` has the others. What is not inside is 0."""
    source, where = x._whole, x._where
    if not x.size:
        return from_node(constant(number_as(0, source.dtype), shape, source.dtype, source.device))
    steps = tuple([where.strides[kept[axis]] if axis in kept else 0 for axis in range(len(shape))])
    dtype = index_dtype(source.size)
    terms = [
        Term(
            cast(each.values._node, dtype),
            None if each.inside is None else each.inside._node,
            _spread(each, shape),
            where.strides[each.axis],
        )
        for each in places
    ]
    index = sum_of(View(shape, steps, where.offset), terms, source)
    return from_node(gathered(source, index))


def _spread(places: AxisIndices, shape: tuple[int, ...]) -> View:
    """How a result of a shape sees the places."""
    mine = views.whole(places.values.shape).strides
    steps = dict(zip(places.along, mine, strict=True))
    return View(shape, tuple([steps.get(axis, 0) for axis in range(len(shape))]), 0)
