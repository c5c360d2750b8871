"""Groups of equal elements of a sorted array. Every NaN is a group of its own."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import LAST_32, LAST_64, key_of, wide
from treadle.lang.decorators import Kernel


@functools.cache
def head_marker(dtype: DType) -> Kernel:
    """A kernel that marks the first element of each group with 1, all others with 0."""
    form = wide(dtype)
    key = key_of(dtype)
    floating = form.is_float
    nan_key = LAST_64 if form == td.f64 else LAST_32

    @td.kernel
    def mark_heads(elements, heads: td.Array[td.i32]):
        i = td.grid(1)
        mine = key(form(elements[i]))
        begins = i == 0 or mine != key(form(elements[td.maximum(i - 1, 0)]))
        if floating:
            begins = begins or mine == nan_key
        heads[i] = td.i32(begins)

    return mark_heads


@functools.cache
def group_writer(place: DType) -> Kernel:
    """A kernel that writes each group's value, the place of its first element, and the number of
    every element's group; `before` counts the groups that begin before each element."""

    @td.kernel
    def write_groups(
        elements, order: td.Array[td.i32], heads: td.Array[td.i32], before: td.Array[td.i32],
        values, first, inverse, starts: td.Array[td.i32],
    ):  # fmt: skip
        i = td.grid(1)
        group = before[i] + heads[i] - 1
        inverse[order[i]] = place(group)
        if heads[i] == 1:
            values[group] = elements[i]
            first[group] = place(order[i])
            starts[group] = i

    return write_groups


@functools.cache
def group_counter(place: DType) -> Kernel:
    """A kernel that counts the elements of each group."""

    @td.kernel
    def count_groups(starts: td.Array[td.i32], counts, n: td.i32):
        g = td.grid(1)
        end = n
        if g + 1 < starts.size:
            end = starts[g + 1]
        counts[g] = place(end - starts[g])

    return count_groups
