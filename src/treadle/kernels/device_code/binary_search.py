"""Binary search in a sorted array, in the order that sorting has."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import key_of, wide
from treadle.lang.decorators import Kernel


@functools.cache
def searcher(dtype: DType, place: DType, right: bool, by_sorter: bool) -> Kernel:
    """A kernel whose threads look one value up each: before its equals, or after them."""
    form = wide(dtype)
    key = key_of(dtype)

    @td.kernel(checked=False)
    def search(elements, sorter, values, out, n: td.i32):
        i = td.grid(1)
        wanted = key(form(values[i]))
        low = 0
        high = n
        while low < high:
            middle = low + ((high - low) >> 1)
            at = middle
            if by_sorter:
                at = td.i32(sorter[middle])
            found = key(form(elements[at]))
            goes_on = found < wanted
            if right:
                goes_on = found <= wanted
            if goes_on:
                low = middle + 1
            else:
                high = middle
        out[i] = place(low)

    return search
