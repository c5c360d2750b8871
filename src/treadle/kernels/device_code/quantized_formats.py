"""How kernels read ggml's block formats: words of four elements, scales and minima.

A row is read as groups of 32 elements, and eight groups are 256 elements. In some bytes of a *step*
are the elements of one, two or four groups: `unpack` reads a word of these bytes (or a vec4 of
words) and makes a word of bytes for each of the groups. An element is (byte - center) * scale +
minimum, where the scale and the minimum are those of its group, or of its half of the group.

Functions take the arrays of planes, in the order of `PLANES`, and the number of a group from which
they count, all rows' groups one after the other; in formats with blocks of 256 it is a block's
first group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from treadle import lang as td
from treadle.lang.decorators import Function

PLANES = ("values", "high", "scale", "min", "scales", "mins")
"""What a format may have. `low` in a format is the first of these here: the bytes of elements."""

GROUP = 32  # elements
BLOCK = 8  # groups

# The values of four bits: ggml's, fitted to weights that are normally distributed, and twice those
# of a float of 1 sign bit, 2 bits of exponent and 1 of fraction (Open Compute's MX formats).
NONLINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
DOUBLED_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
_SPREAD = 0x00204081  # times four bits: each bit to the lowest of a byte
_LOWEST = 0x01010101
_NIBBLES = 0x0F0F0F0F


@dataclass(frozen=True)
class Form:
    """A format as kernels read it.

    unpack: makes, for a number of words that a thread reads together, the function
        (values, high, group, step, t, words, at), where t counts vectors of words in a step.
    scale: (scale, scales, group, i); i counts groups, or halves of groups.
    step: the groups of a step.
    large: whether blocks have 256 elements.
    paired: of a step's two groups, the first has the bytes of the first half of the threads, and
        its two halves lie in their nibbles; otherwise, each thread has bytes of all groups.
    halves: whether halves of groups have scales of their own.
    signed: whether bytes are signed.
    center: what is taken from each byte.
    words, high_words: of a group in `values` and in `high`.
    least: the minimum, (min, scales, mins, group, i), if groups have minima.
    wide: the steps that a GPU's thread takes together, which are four groups.
    together: for four groups, (scale, min, scales, mins, group, own, half, factors, shifts, at):
        all factors, and minima if there are any, with few loads; own counts four groups in a block.
        `scales` and `mins` are words then, or pairs of words where halves have scales.
    """

    unpack: Callable[[int], Function]
    scale: Function
    step: int
    large: bool = False
    paired: bool = False
    halves: bool = False
    signed: bool = False
    center: int = 0
    words: int = 4
    high_words: int = 0
    least: Function | None = None
    wide: int = 1
    together: Function | None = None


# --- words ---------------------------------------------------------------------------------------


def _word(lanes: int) -> Any:
    return td.u32 if lanes == 1 else td.vec4[td.u32]


@functools.cache
def _bytes(lanes: int) -> Function:
    per = 8 // lanes

    @td.func
    def unpack(values, high, group, step, t, words, at):
        words[at] = values[(group + step) * per + t]

    return unpack


@functools.cache
def _nibbles(lanes: int) -> Function:
    """Four bits: 32 bytes for two groups."""

    @td.func
    def unpack(values, high, group, step, t, words, at):
        both = values[(group * 4 + step * 8) // lanes + t]
        words[at] = both & _NIBBLES
        words[at + 1] = (both >> 4) & _NIBBLES

    return unpack


def _table(values: Sequence[int]) -> Callable[[int], Function]:
    """Four bits that are indices of sixteen signed bytes.

    A table in memory would be a load for each element. The bits of a value are polynomials of the
    index's bits modulo 2, and are computed for four elements at once: c0 ^ (c1 & b0), and so on.
    """
    c = [value & 255 for value in values]
    for bit in (1, 2, 4, 8):
        c = [own ^ c[at ^ bit] if at & bit else own for at, own in enumerate(c)]
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15 = (
        byte * _LOWEST for byte in c
    )

    @td.func
    def mask(index, bit):
        """Ones in each byte of a word whose index has a bit."""
        found = (index >> td.u32(bit)) & _LOWEST
        return (found << 8) - found

    @td.func
    def looked_up(index):
        """The values of the indices in the bytes of a word."""
        b0 = mask(index, 0)
        b1 = mask(index, 1)
        b2 = mask(index, 2)
        low = ((b0 & c1) ^ c0) ^ (b1 & ((b0 & c3) ^ c2))
        low ^= b2 & (((b0 & c5) ^ c4) ^ (b1 & ((b0 & c7) ^ c6)))
        high = ((b0 & c9) ^ c8) ^ (b1 & ((b0 & c11) ^ c10))
        high ^= b2 & (((b0 & c13) ^ c12) ^ (b1 & ((b0 & c15) ^ c14)))
        return low ^ (mask(index, 3) & high)

    @functools.cache
    def made(lanes: int) -> Function:
        @td.func
        def unpack(values, high, group, step, t, words, at):
            both = values[(group * 4 + step * 8) // lanes + t]
            words[at] = looked_up(both & _NIBBLES)
            words[at + 1] = looked_up((both >> 4) & _NIBBLES)

        return unpack

    return made


@functools.cache
def _five_bits(lanes: int) -> Function:
    """Five bits, the fifth of all elements of a group in one word."""
    several = lanes > 1
    word = _word(lanes)

    @td.func
    def unpack(values, high, group, step, t, words, at):
        both = values[(group * 4 + step * 8) // lanes + t]
        if several:
            fifth = word(high[group + 2 * step + t]) >> word(0, 4, 8, 12)
        else:
            # Two words that all threads read, not one that each looks up.
            bits = td.where(t < 4, high[group + 2 * step], high[group + 2 * step + 1])
            fifth = bits >> td.u32((t & 3) * 4)
        words[at] = (both & _NIBBLES) | ((((fifth & 15) * _SPREAD) & _LOWEST) << 4)
        fifth = fifth >> 16
        words[at + 1] = ((both >> 4) & _NIBBLES) | ((((fifth & 15) * _SPREAD) & _LOWEST) << 4)

    return unpack


@functools.cache
def _five_bits_of_blocks(lanes: int) -> Function:
    """Five bits, the fifth of eight groups in the bits of 32 bytes."""

    @td.func
    def unpack(values, high, group, step, t, words, at):
        both = values[(group * 4 + step * 8) // lanes + t]
        fifth = high[group // lanes + t] >> td.u32(2 * step)
        words[at] = (both & _NIBBLES) | ((fifth & _LOWEST) << 4)
        words[at + 1] = ((both >> 4) & _NIBBLES) | (((fifth >> 1) & _LOWEST) << 4)

    return unpack


@functools.cache
def _six_bits(lanes: int) -> Function:
    """Six bits: 64 bytes with the low four of four groups, and 32 with the two high ones."""
    apart = 8 // lanes

    @td.func
    def unpack(values, high, group, step, t, words, at):
        place = (group * 4 + step * 16) // lanes + t
        first = values[place]
        second = values[place + apart]
        upper = high[(group * 2 + step * 8) // lanes + t]
        words[at] = (first & _NIBBLES) | ((upper & 0x03030303) << 4)
        words[at + 1] = (second & _NIBBLES) | ((upper & 0x0C0C0C0C) << 2)
        words[at + 2] = ((first >> 4) & _NIBBLES) | (upper & 0x30303030)
        words[at + 3] = ((second >> 4) & _NIBBLES) | ((upper & 0xC0C0C0C0) >> 2)

    return unpack


def _two_bits(with_third: bool) -> Callable[[int], Function]:
    """Two bits: 32 bytes for four groups; a third in the bits of 32 bytes for eight groups."""

    @functools.cache
    def made(lanes: int) -> Function:
        @td.func
        def unpack(values, high, group, step, t, words, at):
            all = values[(group * 2 + step * 8) // lanes + t]
            for k in td.static_range(4):
                words[at + k] = (all >> (2 * k)) & 0x03030303
            if with_third:
                third = high[group // lanes + t] >> td.u32(4 * step)
                for k in td.static_range(4):
                    words[at + k] |= ((third >> k) & _LOWEST) << 2

        return unpack

    return made


# --- scales and minima ---------------------------------------------------------------------------


@td.func
def _of_group(scale, scales, group, i):
    return td.f32(scale[group + i])


@td.func
def _power_of_group(scale, scales, group, i):
    """2 ** (exponent - 128) by its bits; the first two are subnormal."""
    exponent = td.u32(scale[group + i])
    small = td.u32(1 << 21) << (exponent & 1)
    return td.bitcast(td.where(exponent < 2, small, (exponent - 1) << 23), td.f32)


@td.func
def _of_block(scale, scales, group, i):
    return td.f32(scale[group // BLOCK])


@td.func
def _scaled(scale, scales, group, i):
    return td.f32(scale[group // BLOCK]) * td.f32(scales[group + i])


@td.func
def _scaled_halves(scale, scales, group, i):
    return td.f32(scale[group // BLOCK]) * td.f32(scales[2 * group + i])


@td.func
def _scaled_nibbles(scale, scales, group, i):
    return td.f32(scale[group // BLOCK]) * td.f32(scales[2 * group + i] & 15)


@td.func
def _least_of_group(min, scales, mins, group, i):
    return td.f32(min[group + i])


@td.func
def _scaled_least(min, scales, mins, group, i):
    return -td.f32(min[group // BLOCK]) * td.f32(mins[group + i])


@td.func
def _least_nibbles(min, scales, mins, group, i):
    return -td.f32(min[group // BLOCK]) * td.f32(scales[2 * group + i] >> 4)


@td.func
def _scales_of_four(scale, min, scales, mins, group, own, half, factors, shifts, at):
    own_scale = td.f32(scale[group // BLOCK])
    own_min = -td.f32(min[group // BLOCK])
    of_scales = scales[group // 4 + own]
    of_mins = mins[group // 4 + own]
    for k in td.static_range(4):
        factors[at + k] = own_scale * td.f32((of_scales >> (8 * k)) & 255)
        shifts[at + k] = own_min * td.f32((of_mins >> (8 * k)) & 255)


@td.func
def _signed_scales_of_halves(scale, min, scales, mins, group, own, half, factors, shifts, at):
    own_scale = td.f32(scale[group // BLOCK])
    pair = scales[group // 4 + own]
    up = td.u32(24 - 8 * half)
    for k in td.static_range(4):
        word = pair.x if k < 2 else pair.y
        byte = td.i32((word >> (16 * (k % 2))) << up) >> 24
        factors[at + k] = own_scale * td.f32(byte)
        shifts[at + k] = 0.0


@td.func
def _nibbles_of_halves(scale, min, scales, mins, group, own, half, factors, shifts, at):
    own_scale = td.f32(scale[group // BLOCK])
    own_min = -td.f32(min[group // BLOCK])
    pair = scales[group // 4 + own]
    for k in td.static_range(4):
        word = pair.x if k < 2 else pair.y
        byte = (word >> td.u32(16 * (k % 2) + 8 * half)) & 255
        factors[at + k] = own_scale * td.f32(byte & 15)
        shifts[at + k] = own_min * td.f32(byte >> 4)


@td.func
def no_minimum(min, scales, mins, group, i):
    """What formats without minima have."""
    return td.f32(0.0)


FORMS: dict[str, Form] = {
    "q4_0": Form(_nibbles, _of_group, 2, paired=True, center=8),
    "q4_1": Form(_nibbles, _of_group, 2, paired=True, least=_least_of_group),
    "q5_0": Form(_five_bits, _of_group, 2, paired=True, center=16, high_words=1),
    "q5_1": Form(_five_bits, _of_group, 2, paired=True, least=_least_of_group, high_words=1),
    "q8_0": Form(_bytes, _of_group, 1, signed=True, words=8),
    "q2_k": Form(
        _two_bits(False),
        _scaled_nibbles,
        4,
        large=True,
        halves=True,
        least=_least_nibbles,
        words=2,
        together=_nibbles_of_halves,
    ),
    "q3_k": Form(
        _two_bits(True),
        _scaled_halves,
        4,
        large=True,
        halves=True,
        center=4,
        words=2,
        high_words=1,
        together=_signed_scales_of_halves,
    ),
    "q4_k": Form(
        _nibbles, _scaled, 2, large=True, least=_scaled_least, wide=2, together=_scales_of_four
    ),
    "q5_k": Form(
        _five_bits_of_blocks,
        _scaled,
        2,
        large=True,
        least=_scaled_least,
        high_words=1,
        wide=2,
        together=_scales_of_four,
    ),
    "q6_k": Form(
        _six_bits,
        _scaled_halves,
        4,
        large=True,
        halves=True,
        center=32,
        high_words=2,
        together=_signed_scales_of_halves,
    ),
    "q8_k": Form(_bytes, _of_block, 1, large=True, signed=True, words=8),
    "iq4_nl": Form(_table(NONLINEAR), _of_group, 2, paired=True, signed=True),
    "iq4_xs": Form(_table(NONLINEAR), _scaled, 2, large=True, paired=True, signed=True),
    "mxfp4": Form(_table(DOUBLED_E2M1), _power_of_group, 2, paired=True, signed=True),
}
"""By the names of `quant.blocks`. Floats of 16 bits are no blocks."""
