"""Reductions of the rows of a table that are in a bag. A thread computes one column of a bag."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Kernel

OUTSIDE = -1  # an index of no row: it counts in a mean
IGNORED = -2  # one that does not


@functools.cache
def adder(dtype: DType, weighted: bool, averaged: bool) -> Kernel:
    """A kernel that adds up each bag's rows, each times its weight if they are weighted; divided by
    their number if they are averaged."""
    form = wide(dtype)

    @td.kernel(checked=False)
    def add_bags(
        table, index: td.Array[td.i32], starts: td.Array[td.i32], weights, out, bags: td.i32,
        columns: td.i32, items: td.i32,
    ):  # fmt: skip
        bag, column = td.grid(2)
        if bag < bags and column < columns:
            end = items
            if bag + 1 < starts.size:
                end = starts[bag + 1]
            total = form(0)
            count = 0
            for i in range(starts[bag], end):
                row = index[i]
                if row >= 0:
                    value = form(table[row * columns + column])
                    if weighted:
                        total += value * form(weights[i])
                    else:
                        total += value
                count += 1 if row > IGNORED else 0
            if averaged:
                total = total / form(td.maximum(count, 1))
            out[bag * columns + column] = dtype(total)

    return add_bags


@functools.cache
def greatest(dtype: DType) -> Kernel:
    """A kernel that finds each bag's greatest element of every column, and of which row of the
    table it is (-1: there is none, and the element is 0)."""
    form = wide(dtype)

    @td.kernel(checked=False)
    def find_greatest(
        table, index: td.Array[td.i32], starts: td.Array[td.i32], out, rows: td.Array[td.i32],
        bags: td.i32, columns: td.i32, items: td.i32,
    ):  # fmt: skip
        bag, column = td.grid(2)
        if bag < bags and column < columns:
            end = items
            if bag + 1 < starts.size:
                end = starts[bag + 1]
            best = form(0)
            found = -1
            for i in range(starts[bag], end):
                row = index[i]
                if row >= 0:
                    value = form(table[row * columns + column])
                    if found < 0 or value > best or td.isnan(value):
                        best = value
                        found = row
            out[bag * columns + column] = dtype(best)
            rows[bag * columns + column] = found

    return find_greatest
