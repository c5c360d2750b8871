"""Embedding lookups as lazy operations on checked operands: rows of tables, bags of rows, and the
operations of their gradients."""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import int32
from treadle.core.limits import MOST_NARROW
from treadle.graph import history
from treadle.graph.calls import call, call_of_several
from treadle.graph.node import constant
from treadle.graph.placeholders import record_composite
from treadle.graph.views import is_whole
from treadle.kernels.add_rows import add_rows
from treadle.kernels.embedding_bags import add_bags, greatest_of_bags
from treadle.kernels.scatter import scattered
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.conversions import number_as
from treadle.tensor.elementwise_functions import clip
from treadle.tensor.functional.gathers import AxisIndices, gather_axes, index_range
from treadle.tensor.tensor import Tensor, from_node


class TableGradient(NamedTuple):
    """How the gradient of a table of `rows` rows is computed: divided by the number of lookups of a
    row if `by_frequency`; 0 for the row `padding`."""

    rows: int
    by_frequency: bool = False
    padding: int | None = None


@composite
@as_one_node
def gather_rows(index: Tensor, table: Tensor, giving: TableGradient) -> Tensor:
    """The rows of a table at integer indices; zeros for indices outside."""
    axes = tuple(range(index.ndim))
    shape = (*index.shape, table.shape[1])
    rows, size = table.shape[0], table.size
    inside: Tensor | None = (index >= 0) & (index < rows)
    if is_whole(table._where, table._cell.value.shape) and size + table.shape[1] < MOST_NARROW:
        index, inside = clip(index, -1, rows), None  # a gather outside the array gives 0
    return gather_axes(table, shape, {index.ndim: 1}, [AxisIndices(0, index, axes, inside)])


@composite
def accumulate_rows(values: Tensor, index: Tensor, rows: int) -> Tensor:
    """`rows` rows, each the sum of the rows of `values` with its index."""
    columns = values.shape[1]
    shape, device = (rows, columns), values.device
    narrow = max(math.prod(shape), values.size) < MOST_NARROW
    if narrow and (values.dtype.itemsize < 8 or device.traits.atomics_64):
        nodes = (values._node, index._node)
        return from_node(call(add_rows, nodes, shape, values.dtype, (rows,)))
    # Element by element, for sizes and dtypes that the kernel for rows does not take.
    wide = index.reshape(-1, 1).to(index_range(values, 0).dtype)
    places = (wide * columns + index_range(values, columns)).reshape(-1)
    zeros = constant(number_as(0, values.dtype), (rows * columns,), values.dtype, device)
    sources = (zeros, places._node, values.reshape(-1)._node)
    found = call(scattered, sources, (rows * columns,), values.dtype, ("sum",))
    return from_node(found).reshape(shape)


@composite
def reduce_bags(
    table: Tensor, index: Tensor, starts: Tensor, samples: Tensor | None, bags: int,
    averaged: bool, giving: TableGradient,
) -> Tensor:  # fmt: skip
    """The sum of the rows of each bag, times `samples`, or their mean; the arguments are those of
    `kernels.embedding_bags.add_bags`."""
    sources = [each._node for each in (table, index, starts, samples) if each is not None]
    shape = (bags, table.shape[1])
    return from_node(call(add_bags, sources, shape, table.dtype, (bags, averaged)))


def max_of_bags(table: Tensor, index: Tensor, starts: Tensor, bags: int) -> Tensor:
    """The elementwise maximum of the rows of each bag. If gradients are recorded, the rows of the
    maxima are kept."""
    source, shape = table._node, (bags, table.shape[1])
    results = ((shape, table.dtype), (shape, int32))
    with history.recorded(False):
        values, rows = call_of_several(
            greatest_of_bags, (source, index._node, starts._node), results, (bags,)
        )
    if source.history is not None and history.recording.get():
        derivative = history.derivatives["max_of_bags"]
        record_composite(derivative, [values], [source], extra=[rows])
    return from_node(values)
