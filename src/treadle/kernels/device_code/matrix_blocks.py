"""Blocks of matrices: their product, and substitution with a triangle.

Each array is followed by the place of a part of its matrices: the first element, the strides to the
next matrix, row and column, and the number of rows and columns. A transposed, partial or reversed
matrix differs in these numbers alone, so one compiled kernel serves all of them.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.lang.decorators import Kernel

SIDE = 16  # threads along either side of a tile of a product
DEPTH = 16
IDENTITY, LOWER, UPPER = range(3)  # kinds of `filler`


class Multiplying(NamedTuple):
    """What a kernel multiplies. A thread computes rows × columns of the result."""

    dtype: DType
    rows: int
    columns: int
    conj: bool = False  # of the left one


@functools.cache
def multiplier(what: Multiplying) -> Kernel:
    """A kernel whose blocks compute a tile each of the products of two matrices, and write them or
    subtract them from what is there. If columns of the left one are contiguous
    (`transposed`), neighbouring threads read along them, so that loads coalesce."""
    ops = arithmetic_of(what.dtype)
    element, mul = ops.element, ops.mul
    number, real = ops.number, ops.real
    conj = ops.conj if what.conj else _same
    rows, columns = what.rows, what.columns
    height, width = SIDE * rows, SIDE * columns
    pitch = height + 1

    @td.kernel(checked=False)
    def multiply_blocks(
        a, a_at, a_step, a_down, a_along, a_rows, a_columns,
        b, b_at, b_step, b_down, b_along, b_rows, b_columns,
        c, c_at, c_step, c_down, c_along, c_rows, c_columns,
        transposed, subtract,
    ):  # fmt: skip
        wide = (c_columns + width - 1) // width
        high = (c_rows + height - 1) // height
        m = td.block_idx.x // (wide * high)
        a_first = a_at + m * a_step
        b_first = b_at + m * b_step
        c_first = c_at + m * c_step
        tile = td.block_idx.x - m * (wide * high)
        top = tile // wide * height
        left = (tile - tile // wide * wide) * width
        t = td.thread_idx.x
        y = t // SIDE
        x = t - y * SIDE
        i_of = x if transposed == 1 else y
        k_of = y if transposed == 1 else x
        lefts = td.shared(DEPTH * pitch, element)
        rights = td.shared(DEPTH * width, element)
        totals = td.local(rows * columns, element)
        for e in td.static_range(rows * columns):
            totals[e] = number(real(0))
        for start in range(0, a_columns, DEPTH):
            for s in td.static_range(rows):
                i = i_of + s * SIDE
                value = number(real(0))
                if top + i < a_rows and start + k_of < a_columns:
                    value = conj(a[a_first + (top + i) * a_down + (start + k_of) * a_along])
                lefts[k_of * pitch + i] = value
            for s in td.static_range(columns):
                j = x + s * SIDE
                value = number(real(0))
                if left + j < b_columns and start + y < b_rows:
                    value = b[b_first + (start + y) * b_down + (left + j) * b_along]
                rights[y * width + j] = value
            td.sync_threads()
            for k in range(DEPTH):
                for r in td.static_range(rows):
                    one = lefts[k * pitch + y + r * SIDE]
                    for s in td.static_range(columns):
                        other = rights[k * width + x + s * SIDE]
                        totals[r * columns + s] = totals[r * columns + s] + mul(one, other)
            td.sync_threads()
        for r in td.static_range(rows):
            for s in td.static_range(columns):
                i = top + y + r * SIDE
                j = left + x + s * SIDE
                if i < c_rows and j < c_columns:
                    at = c_first + i * c_down + j * c_along
                    if subtract == 1:
                        c[at] = c[at] - totals[r * columns + s]
                    else:
                        c[at] = totals[r * columns + s]

    return multiply_blocks


@td.func
def _same(value):
    return value


class Substituting(NamedTuple):
    """How the columns of a matrix are solved for, with a lower triangle of up to `width` rows."""

    dtype: DType
    width: int
    threads: int
    conj: bool = False  # whether the triangle is taken as its conjugate


@functools.cache
def substituter(what: Substituting) -> Kernel:
    """A kernel that replaces columns by their solutions; a thread does one. With `unit` the
    diagonal is taken for ones."""
    ops = arithmetic_of(what.dtype)
    element, mul, div = ops.element, ops.mul, ops.div
    conj = ops.conj if what.conj else _same
    width, threads = what.width, what.threads

    @td.kernel(checked=False)
    def substitute(
        t, t_at, t_step, t_down, t_along, t_rows, t_columns,
        x, x_at, x_step, x_down, x_along, x_rows, x_columns,
        unit,
    ):  # fmt: skip
        n = t_rows
        blocks = (x_columns + threads - 1) // threads
        m = td.block_idx.x // blocks
        t_first = t_at + m * t_step
        x_first = x_at + m * x_step
        thread = td.thread_idx.x
        column = (td.block_idx.x - m * blocks) * threads + thread
        lefts = td.shared(width * width, element)
        known = td.shared(width * threads, element)
        for e in range(thread, n * n, threads):
            i = e // n
            lefts[e] = conj(t[t_first + i * t_down + (e - i * n) * t_along])
        td.sync_threads()
        if column < x_columns:
            for i in range(n):
                at = x_first + i * x_down + column * x_along
                total = x[at]
                for k in range(i):
                    total -= mul(lefts[i * n + k], known[k * threads + thread])
                if unit == 0:
                    total = div(total, lefts[i * n + i])
                known[i * threads + thread] = total
                x[at] = total

    return substitute


@functools.cache
def filler(dtype: DType) -> Kernel:
    """A kernel that, by `kind`, copies the upper or the lower triangle with its diagonal and writes
    zeros elsewhere, or writes the identity. A thread writes one element."""
    ops = arithmetic_of(dtype)
    number, real = ops.number, ops.real

    @td.kernel(checked=False)
    def fill(
        a, a_at, a_step, a_down, a_along, a_rows, a_columns,
        out, out_at, out_step, out_down, out_along, out_rows, out_columns,
        kind,
    ):  # fmt: skip
        thread = td.grid(1)
        row = thread // out_columns
        j = thread - row * out_columns
        m = row // out_rows
        a_first = a_at + m * a_step
        out_first = out_at + m * out_step
        i = row - m * out_rows
        value = number(real(1) if kind == IDENTITY and i == j else real(0))
        if (kind == LOWER and j <= i) or (kind == UPPER and j >= i):
            value = a[a_first + i * a_down + j * a_along]
        out[out_first + i * out_down + j * out_along] = value

    return fill


@td.kernel(checked=False)
def subtract(
    a, a_at, a_step, a_down, a_along, a_rows, a_columns,
    c, c_at, c_step, c_down, c_along, c_rows, c_columns,
):  # fmt: skip
    """Subtract the first from the second. A thread does one element."""
    thread = td.grid(1)
    row = thread // c_columns
    j = thread - row * c_columns
    m = row // c_rows
    i = row - m * c_rows
    at = c_at + m * c_step + i * c_down + j * c_along
    c[at] = c[at] - a[a_at + m * a_step + i * a_down + j * a_along]
