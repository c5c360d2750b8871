"""Stable radix sort of long rows, for threads that work alone on long pieces: on the CPU.

A pass orders by eight bits of the keys, the lowest first. The digits of each piece of a row are
counted; the sums of the counts before (by row, then digit, then piece) are where a thread puts the
elements of its piece. While it does, it counts the next digits of what it puts into each piece, so
that only the first pass needs a reading of its own to count.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import key_of, wide
from treadle.kernels.device_code.merging import Sorting
from treadle.lang.kernel import Function, Kernel

DIGITS = 256


def passes(dtype: DType) -> int:
    """The digits of a key: a narrow integer has no more than it has bytes."""
    return (wide(dtype) if dtype.is_float else dtype).itemsize


@functools.cache
def digit_counter(dtype: DType, descending: bool) -> Kernel:
    """A kernel whose threads count the digits of a piece each."""
    digit = _digit(dtype, descending)

    @td.kernel(checked=False)
    def count_digits(
        x, counts: td.Array[td.i32], n: td.i32, piece: td.i32, pieces: td.i32, shift: td.i32
    ):
        t = td.grid(1)
        row = t // pieces
        part = t - row * pieces
        count = td.local(DIGITS, td.i32)
        for d in range(DIGITS):
            count[d] = 0
        begin = row * n + part * piece
        for i in range(begin, td.minimum(begin + piece, row * n + n)):
            count[digit(x[i], shift)] += 1
        for d in range(DIGITS):
            counts[(row * DIGITS + d) * pieces + part] = count[d]

    return count_digits


@functools.cache
def digit_mover(what: Sorting, first: bool, last: bool) -> Kernel:
    """A kernel whose threads move the elements of a piece each, behind all that come before. In the
    first pass, an element's place is where it is; in the last there is no next digit. Pieces have
    2 ** log elements."""
    digit = _digit(what.dtype, what.descending)
    placed = what.place is not None
    place_as = what.place or td.i32

    @td.kernel(checked=False)
    def move_digits(
        x, order, out, out_order, before: td.Array[td.i32], after: td.Array[td.i32],
        n: td.i32, log: td.i32, pieces: td.i32, shift: td.i32,
    ):  # fmt: skip
        t = td.grid(1)
        row = t // pieces
        part = t - row * pieces
        to = td.local(DIGITS, td.i32)
        for d in range(DIGITS):
            to[d] = before[(row * DIGITS + d) * pieces + part]
        counts = t * pieces * DIGITS
        if not last:
            for d in range(pieces * DIGITS):
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
def add_counts(after: td.Array[td.i32], counts: td.Array[td.i32], pieces: td.i32):
    """The counts of what all threads of a row put into a piece."""
    t = td.grid(1)
    row = t // (DIGITS * pieces)
    d = t // pieces - row * DIGITS
    part = t - (row * DIGITS + d) * pieces
    total = 0
    for source in range(pieces):
        total += after[((row * pieces + source) * pieces + part) * DIGITS + d]
    counts[t] = total


@functools.cache
def _digit(dtype: DType, descending: bool) -> Function:
    """Eight bits of an element's key, from `shift` on."""
    form = wide(dtype)
    key = key_of(dtype, descending)
    bits = td.u64 if form.itemsize == 8 else td.u32
    # The sign's bit set makes the order of signed keys that of their bits.
    sign = 0 if form.kind == "uint" else 1 << (8 * passes(dtype) - 1)

    @td.func
    def digit(value, shift):
        return td.i32(((bits(key(form(value))) ^ bits(sign)) >> bits(shift)) & bits(DIGITS - 1))

    return digit
