"""Writing and adding where an array of indices says. An index outside the target is dropped."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.kernel import Kernel


@td.kernel
def put(target, index, values, step: td.i32):
    """Every index is there once, or all values are one (step 0)."""
    i = td.grid(1)
    target[index[i]] = values[i * step]


@td.kernel
def find_last(last: td.Array[td.i32], index):
    """The last place of each index, counted from 1."""
    i = td.grid(1)
    td.atomic_max(last, index[i], i + 1)


@td.kernel
def put_last(target, index, values, last: td.Array[td.i32]):
    """Of several values for an element, only the last is written."""
    i = td.grid(1)
    at = index[i]
    if last[at] == i + 1:
        target[at] = values[i]


@functools.cache
def adder(form: DType, parts: int) -> Kernel:
    """A kernel that adds numbers as `form`, by atomics; elements have so many parts."""

    @td.kernel
    def add(target, index, values, step: td.i32):
        i = td.grid(1)
        element = i // parts
        part = i - element * parts
        at = index[element] * parts + part
        td.atomic_add(target, at, form(values[element * step * parts + part]))

    return add


@functools.cache
def converter(dtype: DType, form: DType) -> Kernel:
    """A kernel that adds sums which were made in a wider dtype."""

    @td.kernel
    def add_sums(target, sums):
        i = td.grid(1)
        target[i] = dtype(form(target[i]) + sums[i])

    return add_sums


@td.kernel
def add_segments(target, index, order: td.Array[td.i32], values, step: td.i32):
    """Indices are sorted; the first of equal ones adds what belongs to all of them."""
    i = td.grid(1)
    at = index[i]
    if i == 0 or index[td.maximum(i - 1, 0)] != at:
        total = target[at]
        j = i
        while j < index.size and index[j] == at:
            total += values[order[j] * step]
            j += 1
        target[at] = total
