"""Blocks of matrices: their product, and substitution with a triangle.

Each array is followed by the layout of a part of its matrices. A transposed, partial or reversed
matrix differs in its layout alone, so one compiled kernel serves all of them.
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
IDENTITY, UPPER = range(2)  # kinds of `filler`


@td.struct
class Layout:
    """A part of each of an array's matrices: the first element, the strides to the next matrix, row
    and column, and the number of rows and columns."""

    at: td.i32
    step: td.i32
    down: td.i32
    along: td.i32
    rows: td.i32
    columns: td.i32


@td.func
def place(layout: Layout, first: td.i32, row: td.i32, column: td.i32):
    """Where an element of a matrix is that begins at `first`."""
    return first + row * layout.down + column * layout.along


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
        a, a_layout: Layout, b, b_layout: Layout, c, c_layout: Layout, transposed, subtract
    ):
        wide = (c_layout.columns + width - 1) // width
        high = (c_layout.rows + height - 1) // height
        m = td.block_idx.x // (wide * high)
        a_first = a_layout.at + m * a_layout.step
        b_first = b_layout.at + m * b_layout.step
        c_first = c_layout.at + m * c_layout.step
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
        for start in range(0, a_layout.columns, DEPTH):
            for s in td.static_range(rows):
                i = i_of + s * SIDE
                value = number(real(0))
                if top + i < a_layout.rows and start + k_of < a_layout.columns:
                    value = conj(a[place(a_layout, a_first, top + i, start + k_of)])
                lefts[k_of * pitch + i] = value
            for s in td.static_range(columns):
                j = x + s * SIDE
                value = number(real(0))
                if left + j < b_layout.columns and start + y < b_layout.rows:
                    value = b[place(b_layout, b_first, start + y, left + j)]
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
                if i < c_layout.rows and j < c_layout.columns:
                    at = place(c_layout, c_first, i, j)
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


@functools.cache
def substituter(what: Substituting) -> Kernel:
    """A kernel that replaces columns by their solutions; a thread does one. With `unit` the
    diagonal is taken for ones."""
    ops = arithmetic_of(what.dtype)
    element, mul, div = ops.element, ops.mul, ops.div
    width, threads = what.width, what.threads

    @td.kernel(checked=False)
    def substitute(t, t_layout: Layout, x, x_layout: Layout, unit):
        n = t_layout.rows
        blocks = (x_layout.columns + threads - 1) // threads
        m = td.block_idx.x // blocks
        t_first = t_layout.at + m * t_layout.step
        x_first = x_layout.at + m * x_layout.step
        thread = td.thread_idx.x
        column = (td.block_idx.x - m * blocks) * threads + thread
        lefts = td.shared(width * width, element)
        known = td.shared(width * threads, element)
        for e in range(thread, n * n, threads):
            i = e // n
            lefts[e] = t[place(t_layout, t_first, i, e - i * n)]
        td.sync_threads()
        if column < x_layout.columns:
            for i in range(n):
                at = place(x_layout, x_first, i, column)
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
    """A kernel that, by `kind`, copies the upper triangle with its diagonal and writes zeros
    elsewhere, or writes the identity. A thread writes one element."""
    ops = arithmetic_of(dtype)
    number, real = ops.number, ops.real

    @td.kernel(checked=False)
    def fill(a, a_layout: Layout, out, out_layout: Layout, kind):
        thread = td.grid(1)
        row = thread // out_layout.columns
        j = thread - row * out_layout.columns
        m = row // out_layout.rows
        a_first = a_layout.at + m * a_layout.step
        out_first = out_layout.at + m * out_layout.step
        i = row - m * out_layout.rows
        value = number(real(1) if kind == IDENTITY and i == j else real(0))
        if kind == UPPER and j >= i:
            value = a[place(a_layout, a_first, i, j)]
        out[place(out_layout, out_first, i, j)] = value

    return fill


@td.kernel(checked=False)
def subtract(a, a_layout: Layout, c, c_layout: Layout):
    """Subtract the first from the second. A thread does one element."""
    thread = td.grid(1)
    row = thread // c_layout.columns
    j = thread - row * c_layout.columns
    m = row // c_layout.rows
    i = row - m * c_layout.rows
    at = place(c_layout, c_layout.at + m * c_layout.step, i, j)
    c[at] = c[at] - a[place(a_layout, a_layout.at + m * a_layout.step, i, j)]
