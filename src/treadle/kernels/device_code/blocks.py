"""Blocks of matrices: their product, and substitution through a triangle.

An argument is an array with a `Block`, which says where its matrices lie. Transposing, a part and
the other end first are steps, so one compiled kernel serves all of these.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.fields import field_of
from treadle.lang.kernel import Kernel


@td.struct
class Block:
    """Where the rows and columns of parts of matrices are in an array of one axis."""

    at: td.i32  # the first element
    step: td.i32  # from matrix to matrix
    down: td.i32  # from row to row
    along: td.i32  # from column to column
    rows: td.i32
    columns: td.i32


@td.func
def place(block, m, i, j):
    """Where an element is."""
    return block.at + m * block.step + i * block.down + j * block.along


SIDE = 16  # threads along either side of a tile of a product
DEPTH = 16
IDENTITY, LOWER, UPPER = range(3)  # what is filled


class Product(NamedTuple):
    """What a kernel multiplies. A thread computes rows × columns of the result."""

    dtype: DType
    rows: int
    columns: int
    conj: bool = False  # of the left one


@functools.cache
def multiplier(what: Product) -> Kernel:
    """A kernel whose blocks compute a tile each of the products of two matrices, and write them or
    subtract them from what is there. If the columns of the left one are side by side in memory
    (`turned`), neighbouring threads read these."""
    field = field_of(what.dtype)
    element, mul = field.element, field.mul
    number, real = field.number, field.real
    conj = field.conj if what.conj else _same
    rows, columns = what.rows, what.columns
    height, width = SIDE * rows, SIDE * columns
    pitch = height + 1

    @td.kernel(checked=False)
    def multiply_blocks(
        a, a_block: Block, b, b_block: Block, c, c_block: Block, turned: td.i32, subtract: td.i32
    ):
        wide = (c_block.columns + width - 1) // width
        high = (c_block.rows + height - 1) // height
        m = td.block_idx.x // (wide * high)
        tile = td.block_idx.x - m * (wide * high)
        top = tile // wide * height
        left = (tile - tile // wide * wide) * width
        t = td.thread_idx.x
        y = t // SIDE
        x = t - y * SIDE
        i_of = x if turned == 1 else y
        k_of = y if turned == 1 else x
        lefts = td.shared(DEPTH * pitch, element)
        rights = td.shared(DEPTH * width, element)
        totals = td.local(rows * columns, element)
        for e in td.static_range(rows * columns):
            totals[e] = number(real(0))
        for start in range(0, a_block.columns, DEPTH):
            for s in td.static_range(rows):
                i = i_of + s * SIDE
                value = number(real(0))
                if top + i < a_block.rows and start + k_of < a_block.columns:
                    value = conj(a[place(a_block, m, top + i, start + k_of)])
                lefts[k_of * pitch + i] = value
            for s in td.static_range(columns):
                j = x + s * SIDE
                value = number(real(0))
                if left + j < b_block.columns and start + y < b_block.rows:
                    value = b[place(b_block, m, start + y, left + j)]
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
                if i < c_block.rows and j < c_block.columns:
                    at = place(c_block, m, i, j)
                    if subtract == 1:
                        c[at] = c[at] - totals[r * columns + s]
                    else:
                        c[at] = totals[r * columns + s]

    return multiply_blocks


@td.func
def _same(value):
    return value


class Substitution(NamedTuple):
    """How the columns of a matrix are solved for, through a lower triangle of up to `width`."""

    dtype: DType
    width: int
    threads: int
    conj: bool = False  # whether the triangle is taken as its conjugate


@functools.cache
def substituter(what: Substitution) -> Kernel:
    """A kernel that replaces columns by their solutions; a thread does one. With `unit` the
    diagonal is taken for ones."""
    field = field_of(what.dtype)
    element, mul, div = field.element, field.mul, field.div
    conj = field.conj if what.conj else _same
    width, threads = what.width, what.threads

    @td.kernel(checked=False)
    def substitute(triangle, t_block: Block, x, x_block: Block, unit: td.i32):
        n = t_block.rows
        blocks = (x_block.columns + threads - 1) // threads
        m = td.block_idx.x // blocks
        t = td.thread_idx.x
        column = (td.block_idx.x - m * blocks) * threads + t
        lefts = td.shared(width * width, element)
        known = td.shared(width * threads, element)
        for e in range(t, n * n, threads):
            i = e // n
            lefts[e] = conj(triangle[place(t_block, m, i, e - i * n)])
        td.sync_threads()
        if column < x_block.columns:
            for i in range(n):
                at = place(x_block, m, i, column)
                total = x[at]
                for k in range(i):
                    total -= mul(lefts[i * n + k], known[k * threads + t])
                if unit == 0:
                    total = div(total, lefts[i * n + i])
                known[i * threads + t] = total
                x[at] = total

    return substitute


@functools.cache
def filler(dtype: DType) -> Kernel:
    """A kernel that copies a triangle with its diagonal, the upper or the lower one, and writes
    zeros beside it; or that writes ones on the diagonal and zeros beside it, by `kind`. A thread
    does one element."""
    field = field_of(dtype)
    number, real = field.number, field.real

    @td.kernel(checked=False)
    def fill(a, a_block: Block, out, out_block: Block, kind: td.i32):
        thread = td.grid(1)
        row = thread // out_block.columns
        j = thread - row * out_block.columns
        m = row // out_block.rows
        i = row - m * out_block.rows
        value = number(real(1) if kind == IDENTITY and i == j else real(0))
        if (kind == LOWER and j <= i) or (kind == UPPER and j >= i):
            value = a[place(a_block, m, i, j)]
        out[place(out_block, m, i, j)] = value

    return fill
