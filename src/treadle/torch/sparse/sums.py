"""Sums over a sparse tensor's elements, in a fixed order: they are the same in every run.

Rows that are added up are bags of rows of a table, which a kernel of treadle's adds: a thread for
each element of the result, without a dense form of the sparse factor.
"""

from __future__ import annotations

import math
from typing import Any

import treadle as td
from treadle.autograd.function import Function
from treadle.tensor.computed_views import complex_of
from treadle.tensor.functional.embedding_operations import TableGradient, reduce_bags
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.sparse.patterns import Merge, Pattern


def _bags(table: Inner, index: Inner, starts: Inner, samples: Inner | None) -> Inner:
    bags = starts.shape[0] - 1
    if not table.size or not index.size:
        return td.zeros((bags, table.shape[1]), dtype=table.dtype, device=table.device)
    giving = TableGradient(table.shape[0])
    return reduce_bags(table, index, starts, samples, bags, False, giving)


def _of_parts(table: Inner, index: Inner, starts: Inner, samples: Inner | None) -> Inner:
    """The same, of complex numbers part by part."""
    if not table.dtype.is_complex:
        return _bags(table, index, starts, samples)
    parts = td.concat([td.real(table), td.imag(table)], axis=1)
    width = table.shape[1]
    one = _bags(parts, index, starts, None if samples is None else td.real(samples))
    real, imag = one[:, :width], one[:, width:]
    if samples is not None:
        two = _bags(parts, index, starts, td.imag(samples))
        real, imag = real - two[:, width:], imag + two[:, :width]
    return complex_of(real, imag)


class _Product(Function):
    """A sparse matrix times a dense one; with axis 1, its transpose."""

    @staticmethod
    def forward(ctx: Any, values: Inner, dense: Inner, pattern: Pattern, axis: int) -> Inner:
        order, starts, others = pattern.bags(axis)
        ctx.save_for_backward(values, dense)
        ctx.pattern, ctx.axis = pattern, axis
        return _of_parts(dense, others, starts, values if order is None else td.take(values, order))

    @staticmethod
    def backward(ctx: Any, g: Inner) -> Any:
        values, dense = ctx.saved_tensors
        pattern, axis = ctx.pattern, ctx.axis
        of_values = of_dense = None
        if ctx.needs_input_grad[0]:
            rows, others = pattern.indices[axis], pattern.indices[1 - axis]
            of_values = products_at(g, rows, conjugate(dense), others)
        if ctx.needs_input_grad[1]:
            of_dense = product(pattern, conjugate(values), g, 1 - axis)
        return of_values, of_dense, None, None


class _Merged(Function):
    """The sums of the rows of values with equal indices."""

    @staticmethod
    def forward(ctx: Any, values: Inner, merge: Merge) -> Inner:
        ctx.merge = merge
        return _of_parts(values, merge.order, merge.starts, None)

    @staticmethod
    def backward(ctx: Any, g: Inner) -> Any:
        return _Spread.apply(g, ctx.merge), None


class _Spread(Function):
    """What belongs to indices, for each row of values with these indices."""

    @staticmethod
    def forward(ctx: Any, sums: Inner, merge: Merge) -> Inner:
        ctx.merge = merge
        return td.take(sums, merge.group, axis=0)

    @staticmethod
    def backward(ctx: Any, g: Inner) -> Any:
        return _Merged.apply(g, ctx.merge), None


def conjugate(x: Inner) -> Inner:
    """The complex conjugate; the tensor itself, if it is real."""
    return td.conj(x) if x.dtype.is_complex else x


def products_at(one: Inner, rows: Inner, other: Inner, others: Inner) -> Inner:
    """The scalar products of chosen rows of two matrices, one for each pair of indices."""
    return td.sum(
        td.take(one, rows, axis=0) * td.take(other, others, axis=0), axis=1, dtype=one.dtype
    )


def product(pattern: Pattern, values: Inner, dense: Inner, axis: int = 0) -> Inner:
    """A sparse matrix (with axis 1 its transpose) times a dense one, of shape (m, k)."""
    found: Inner = _Product.apply(values, dense, pattern, axis)
    return found


def merged(values: Inner, merge: Merge) -> Inner:
    """The sums of values with equal indices; bools are true where one is."""
    if values.dtype.kind == "bool":
        return merged(values.to(td.int32), merge) != 0
    found: Inner = _Merged.apply(in_rows(values), merge)
    return found.reshape(merge.pattern.count, *values.shape[1:])


def spread(sums: Inner, merge: Merge) -> Inner:
    """What belongs to indices, for each value with these indices."""
    found: Inner = _Spread.apply(in_rows(sums), merge)
    return found.reshape(merge.group.shape[0], *sums.shape[1:])


def in_rows(values: Inner) -> Inner:
    """Values that are arrays, as the rows of a matrix."""
    return values.reshape(values.shape[0], math.prod(values.shape[1:]))
