"""Derivatives of gathered rows of tables: the gradient of each is added to its row."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.autograd.rules.moving import added_at
from treadle.graph.history import History
from treadle.kernels.device_code.embedding_bags import IGNORED
from treadle.tensor.elementwise_functions import where
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.embedding_operations import (
    TableGradient,
    accumulate_rows,
    gather_rows,
)
from treadle.tensor.functional.gathers import index_range
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import searchsorted
from treadle.tensor.tensor import Tensor


def _given(g: Tensor, index: Tensor, giving: TableGradient) -> Tensor:
    """The gradient of a table of which rows were taken, from theirs, one after the other."""
    if giving.by_frequency:
        ones = (index * 0 + 1).to(g.dtype).reshape(-1, 1)
        often = accumulate_rows(ones, index, giving.rows)
        g = g / where(often == 0, 1, often)[clip_to(index, giving.rows)]
    if giving.padding is not None:
        index = where(index == giving.padding, -1, index)
    return accumulate_rows(g, index, giving.rows)


def clip_to(index: Tensor, count: int) -> Tensor:
    """Indices, with 0 for those outside: the element gathered there is not used."""
    return where((index >= 0) & (index < count), index, 0)


def _gather_rows(g: Tensor, index: Tensor, giving: TableGradient) -> Any:
    flat = index.reshape(-1)
    return {"table": _given(g.reshape(flat.size, g.shape[-1]), flat, giving)}


def _accumulate_rows(g: Tensor, index: Tensor, rows: int) -> Any:
    return gather_rows(index, g, TableGradient(rows))


def _reduce_bags(
    g: Tensor, table: Tensor, index: Tensor, starts: Tensor, samples: Tensor | None, bags: int,
    averaged: bool, giving: TableGradient,
) -> Any:  # fmt: skip
    (g, dtype), count = widened(g), index.shape[0]
    item = index_range(g, count).to(starts.dtype)
    bag = searchsorted(starts, item, side="right").to(index.dtype) - 1  # of each item
    index = where(bag < bags, index, IGNORED)  # past the last bag
    if averaged:
        numbers = (index > IGNORED).to(g.dtype).reshape(-1, 1)
        numbers = accumulate_rows(numbers, bag, bags)
        g = g / where(numbers == 0, 1, numbers)
    each = gather_rows(bag, g, TableGradient(bags))
    if samples is None:
        return {"table": _given(each.to(dtype), index, giving)}
    by = expand_dims(samples, -1)
    mine = gather_rows(index, table, TableGradient(giving.rows))
    return {
        "table": _given((each * by).to(dtype), index, giving),
        "samples": total(each * mine, axis=-1).to(dtype),
    }


def _max_of_bags(g: Tensor, made: History) -> tuple[Any]:
    """`made` has the rows of the greatest elements in addition to the table."""
    edge = made.edges[0]
    assert edge is not None
    rows, columns = tensor_of(made, 1), g.shape[1]
    column = index_range(g, columns)
    places = where(rows < 0, -1, rows.to(column.dtype) * columns + column)
    return (added_at(places, g, edge.shape),)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {"max_of_bags": (_max_of_bags, ())}
RULES: dict[str, Rule] = {
    "reduce_bags": _reduce_bags,
    "accumulate_rows": _accumulate_rows,
    "gather_rows": _gather_rows,
}
