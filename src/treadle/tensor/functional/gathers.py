"""Gathers at computed indices, for embeddings, folding and interpolation.

Each element of the result is one of the input, at indices that are computed from its own. The
indices are computed in the kernel that gathers, so they take no memory.
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
    """Indices along an axis of the input, one for each index along some axes of the result.
    `inside` says which of them exist; None if all do."""

    axis: int
    values: Tensor
    along: tuple[int, ...]  # the axes of the result for those of `values`
    inside: Tensor | None = None


def index_range(x: Tensor, count: int, first: int = 0, step: int = 1) -> Tensor:
    """`count` integers, in the dtype of indices into an array like x."""
    dtype = index_dtype(x._cell.value.size)
    return arange(first, first + count * step, step, dtype=dtype, device=x.device)


def gather_axes(
    x: Tensor, shape: tuple[int, ...], kept: dict[int, int], places: Sequence[AxisIndices]
) -> Tensor:
    """A result of this shape gathered from x: `kept` maps axes of the result to axes of x with the
    same index, `places` has the indices along the other axes of x. Elements not inside are 0."""
    source, where = x._whole, x._where
    if not x.size:
        return from_node(constant(number_as(0, source.dtype), shape, source.dtype, source.device))
    steps = tuple([where.strides[kept[axis]] if axis in kept else 0 for axis in range(len(shape))])
    dtype = index_dtype(source.size)
    terms = [
        Term(
            cast(each.values._node, dtype),
            None if each.inside is None else each.inside._node,
            _broadcast_view(each, shape),
            where.strides[each.axis],
        )
        for each in places
    ]
    index = sum_of(View(shape, steps, where.offset), terms, source.size, source.device)
    return from_node(gathered(source, index))


def _broadcast_view(places: AxisIndices, shape: tuple[int, ...]) -> View:
    """The indices broadcast to the shape of the result."""
    mine = views.whole(places.values.shape).strides
    steps = dict(zip(places.along, mine, strict=True))
    return View(shape, tuple([steps.get(axis, 0) for axis in range(len(shape))]), 0)
