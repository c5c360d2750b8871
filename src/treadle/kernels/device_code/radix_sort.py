"""Stable radix sort of long rows on the CPU, where each thread sorts a long chunk.

A pass orders by eight bits of the keys, the lowest first. Each thread counts the digits of its
chunk; the prefix sums of the counts (by row, then digit, then chunk) are the places where it writes
its elements. While it writes, it counts the next digits for each target chunk, so that only the
first pass reads the elements an additional time to count.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import key_of, wide
from treadle.kernels.device_code.merge_sort import Sorting
from treadle.lang.decorators import Function, Kernel

DIGITS = 256


def passes(dtype: DType) -> int:
    """The number of digits of a key, which is the number of its bytes."""
    return (wide(dtype) if dtype.is_float else dtype).itemsize


def first_bit(dtype: DType) -> int:
    """The lowest bit that a pass has to look at: narrow floats are compared as float32, and have 0
    in the last bytes of the keys of all but NaN, whose other bytes are the greatest.

    >>> first_bit(td.bf16), first_bit(td.f16), first_bit(td.f32)
    (16, 8, 0)
    """
    return {"bfloat16": 16, "float16": 8}.get(dtype.name, 0)


@functools.cache
def digit_counter(dtype: DType, descending: bool) -> Kernel:
    """A kernel whose threads count the digits of a chunk each."""
    digit = digit_of(dtype, descending)

    @td.kernel(checked=False)
    def count_digits(
        x, counts: td.Array[td.i32], n: td.i32, chunk: td.i32, chunks: td.i32, shift: td.i32
    ):
        t = td.grid(1)
        row = t // chunks
        part = t - row * chunks
        count = td.local(DIGITS, td.i32)
        for d in range(DIGITS):
            count[d] = 0
        begin = row * n + part * chunk
        for i in range(begin, td.minimum(begin + chunk, row * n + n)):
            count[digit(x[i], shift)] += 1
        for d in range(DIGITS):
            counts[(row * DIGITS + d) * chunks + part] = count[d]

    return count_digits


@functools.cache
def digit_mover(what: Sorting, first: bool, last: bool) -> Kernel:
    """A kernel whose threads move the elements of a chunk each to their places by one digit. In the
    first pass, an element's original place is its index; in the last there is no next digit to
    count. Chunks have 2 ** log elements."""
    digit = digit_of(what.dtype, what.descending)
    placed = what.place is not None
    place_as = what.place or td.i32

    @td.kernel(checked=False)
    def move_digits(
        x, order, out, out_order, before: td.Array[td.i32], after: td.Array[td.i32],
        n: td.i32, log: td.i32, chunks: td.i32, shift: td.i32,
    ):  # fmt: skip
        t = td.grid(1)
        row = t // chunks
        part = t - row * chunks
        to = td.local(DIGITS, td.i32)
        for d in range(DIGITS):
            to[d] = before[(row * DIGITS + d) * chunks + part]
        counts = t * chunks * DIGITS
        if not last:
            for d in range(chunks * DIGITS):
                after[counts + d] = 0
        begin = row * n + (part << log)
        for i in range(begin, td.minimum(begin + (1 << log), row * n + n)):
            value = x[i]
            d = digit(value, shift)
            at = to[d]
            to[d] = at + 1
            out[at] = value
            if not last:
                after[counts + ((at - row * n) >> log) * DIGITS + digit(value, shift + 8)] += 1
            if placed:
                if first:
                    out_order[at] = place_as(i - row * n)
                else:
                    out_order[at] = place_as(order[i])

    return move_digits


@td.kernel(checked=False)
def add_counts(after: td.Array[td.i32], counts: td.Array[td.i32], chunks: td.i32):
    """Add up the counts of all threads of a row for each target chunk."""
    t = td.grid(1)
    row = t // (DIGITS * chunks)
    d = t // chunks - row * DIGITS
    part = t - (row * DIGITS + d) * chunks
    total = 0
    for source in range(chunks):
        total += after[((row * chunks + source) * chunks + part) * DIGITS + d]
    counts[t] = total


@functools.cache
def digit_of(dtype: DType, descending: bool) -> Function:
    """Eight bits of an element's key, from `shift` on."""
    form = wide(dtype)
    key = key_of(dtype, descending)
    bits = td.u64 if form.itemsize == 8 else td.u32
    # With the sign bit flipped, signed keys have the order of their bits.
    sign = 0 if form.kind == "uint" else 1 << (8 * passes(dtype) - 1)

    @td.func
    def digit(value, shift):
        return td.i32(((bits(key(form(value))) ^ bits(sign)) >> bits(shift)) & bits(DIGITS - 1))

    return digit
