"""Rows added at indices: the gradient of a table whose rows were gathered."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel


@functools.cache
def adder(form: DType) -> Kernel:
    """A kernel that adds rows as `form`, by atomics. A thread adds one element."""

    @td.kernel(checked=False)
    def add_rows(values, index, out, items: td.i32, columns: td.i32, rows: td.i32):
        item, column = td.grid(2)
        if item < items and column < columns:
            row = td.i32(index[item])
            if row >= 0 and row < rows:
                td.atomic_add(out, row * columns + column, form(values[item * columns + column]))

    return add_rows


@functools.cache
def adder_serial(form: DType) -> Kernel:
    """A kernel for the CPU, without atomics: each thread owns `share` rows of the result and reads
    all indices, so that sums have the order of the indices."""

    @td.kernel(checked=False)
    def add_rows_serial(
        values, index, out, items: td.i32, columns: td.i32, rows: td.i32, share: td.i32
    ):
        low = td.grid(1) * share
        high = td.minimum(low + share, rows)
        for i in range(low * columns, high * columns):
            out[i] = form(0)
        for item in range(items):
            row = td.i32(index[item])
            if low <= row and row < high:
                for column in range(columns):
                    out[row * columns + column] += form(values[item * columns + column])

    return add_rows_serial
