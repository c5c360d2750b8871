"""Range reduction of large angles to a quarter turn, by integer arithmetic.

|x| is multiplied, modulo 4, by the significant bits of 2/pi (M. H. Payne and R. N. Hanek, "Radian
reduction for trigonometric functions", 1983), for every finite number. These bits, 128 of 2/pi in
f32 and 256 of its first 1216 in f64, are chosen by selects, not from a table, so the code has
neither loops nor memory.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.formats import (
    FRACTION,
    FRACTION_WIDTH,
    LEAST_NORMAL_BITS,
    SIGN,
    Bits,
    Float,
)
from treadle.lang.math.generic import either, generic

HALF_PI = either(1.5707963705062866, 1.5707963267948966)
HALF_PI_LOW = either(-4.371138828673793e-08, 6.123233995736766e-17)
QUARTER_BITS = either(30, 62)  # in the upper half, 2 to this power is a quarter turn
EIGHTH = either(0x20000000, 0x2000000000000000)
UPPER = either(0xFFFFFF00, 0xFFFFFFFFFFFFF800)  # as many bits as a float holds
LOWER = either(0xFF, 0x7FF)  # the others
UNIT = either(9.313225746154785e-10, 2.168404344971009e-19)  # in quarter turns: 2^-30, 2^-62
LOW_UNIT = either(2.168404344971009e-19, 1.1754943508222875e-38)  # of the lower half: 2^-62, 2^-126


@generic
def quarter_turn_bits(a: Float, upper: td.bool) -> Bits:
    """The upper or lower half of the 64 bits of (a * 2/pi mod 4) * 2^62, for 16 <= a < infinity."""
    bits = td.bitcast(a, Bits)
    m = (bits & FRACTION) | LEAST_NORMAL_BITS
    # the start of the window in the bits of 2/pi, with a zero word in front
    position = (bits >> FRACTION_WIDTH) - 120
    word = position >> 5
    w4 = word >= 4
    a0 = td.where(w4, Bits(0xF534DDC0), Bits(0))
    a1 = td.where(w4, Bits(0xDB629599), Bits(0xA2F9836E))
    a2 = td.where(w4, Bits(0x3C439041), Bits(0x4E441529))
    a3 = td.where(w4, Bits(0xFE5163AB), Bits(0xFC2757D1))
    a4 = Bits(0xF534DDC0)
    a5 = Bits(0xDB629599)
    a6 = Bits(0x3C439041)
    w2 = (word & 2) != 0
    b0 = td.where(w2, a2, a0)
    b1 = td.where(w2, a3, a1)
    b2 = td.where(w2, a4, a2)
    b3 = td.where(w2, a5, a3)
    b4 = td.where(w2, a6, a4)
    w1 = (word & 1) != 0
    c0 = td.where(w1, b1, b0)
    c1 = td.where(w1, b2, b1)
    c2 = td.where(w1, b3, b2)
    c3 = td.where(w1, b4, b3)
    left = position & 31
    right = 32 - left  # a shift by 32 gives 0
    d0 = (c0 << left) | (c1 >> right)
    d1 = (c1 << left) | (c2 >> right)
    d2 = (c2 << left) | (c3 >> right)
    middle = m * d1
    lower = middle + td.mul_high(m, d2)
    carry = td.where(lower < middle, Bits(1), Bits(0))
    return td.where(upper, m * d0 + td.mul_high(m, d1) + carry, lower)


@quarter_turn_bits.double
def quarter_turn_bits(a: Float, upper: td.bool) -> Bits:
    """The upper or lower half of the 128 bits of (a * 2/pi mod 4) * 2^126, 16 <= a < infinity."""
    bits = td.bitcast(a, Bits)
    m = (bits & FRACTION) | LEAST_NORMAL_BITS
    # the start of the window in the bits of 2/pi, with a zero word in front
    position = (bits >> FRACTION_WIDTH) - 1013
    word = position >> 6
    w16 = word >= 16
    a0 = td.where(w16, Bits(0x7527BAC7EBE5F17B), Bits(0))
    a1 = td.where(w16, Bits(0x3D0739F78A5292EA), Bits(0xA2F9836E4E441529))
    a2 = td.where(w16, Bits(0x6BFB5FB11F8D5D08), Bits(0xFC2757D1F534DDC0))
    a3 = td.where(w16, Bits(0x56033046FC7B6BAB), Bits(0xDB6295993C439041))
    a4 = Bits(0xFE5163ABDEBBC561)
    a5 = Bits(0xB7246E3A424DD2E0)
    a6 = Bits(0x06492EEA09D1921C)
    a7 = Bits(0xFE1DEB1CB129A73E)
    a8 = Bits(0xE88235F52EBB4484)
    a9 = Bits(0xE99C7026B45F7E41)
    a10 = Bits(0x3991D639835339F4)
    a11 = Bits(0x9C845F8BBDF9283B)
    a12 = Bits(0x1FF897FFDE05980F)
    a13 = Bits(0xEF2F118B5A0A6D1F)
    a14 = Bits(0x6D367ECF27CB09B7)
    a15 = Bits(0x4F463F669E5FEA2D)
    a16 = Bits(0x7527BAC7EBE5F17B)
    a17 = Bits(0x3D0739F78A5292EA)
    a18 = Bits(0x6BFB5FB11F8D5D08)
    w8 = (word & 8) != 0
    b0 = td.where(w8, a8, a0)
    b1 = td.where(w8, a9, a1)
    b2 = td.where(w8, a10, a2)
    b3 = td.where(w8, a11, a3)
    b4 = td.where(w8, a12, a4)
    b5 = td.where(w8, a13, a5)
    b6 = td.where(w8, a14, a6)
    b7 = td.where(w8, a15, a7)
    b8 = td.where(w8, a16, a8)
    b9 = td.where(w8, a17, a9)
    b10 = td.where(w8, a18, a10)
    w4 = (word & 4) != 0
    c0 = td.where(w4, b4, b0)
    c1 = td.where(w4, b5, b1)
    c2 = td.where(w4, b6, b2)
    c3 = td.where(w4, b7, b3)
    c4 = td.where(w4, b8, b4)
    c5 = td.where(w4, b9, b5)
    c6 = td.where(w4, b10, b6)
    w2 = (word & 2) != 0
    d0 = td.where(w2, c2, c0)
    d1 = td.where(w2, c3, c1)
    d2 = td.where(w2, c4, c2)
    d3 = td.where(w2, c5, c3)
    d4 = td.where(w2, c6, c4)
    w1 = (word & 1) != 0
    e0 = td.where(w1, d1, d0)
    e1 = td.where(w1, d2, d1)
    e2 = td.where(w1, d3, d2)
    e3 = td.where(w1, d4, d3)
    left = position & 63
    right = 64 - left  # a shift by 64 gives 0
    f0 = (e0 << left) | (e1 >> right)
    f1 = (e1 << left) | (e2 >> right)
    f2 = (e2 << left) | (e3 >> right)
    middle = m * f1
    lower = middle + td.mul_high(m, f2)
    carry = td.where(lower < middle, Bits(1), Bits(0))
    return td.where(upper, m * f0 + td.mul_high(m, f1) + carry, lower)


@generic
def far_quadrant(a: Float) -> td.i32:
    """q modulo 4, for any a from 16 up."""
    return td.i32((quarter_turn_bits(a, True) + EIGHTH) >> QUARTER_BITS)


@generic
def far_remainder(a: Float) -> Float:
    """a - q pi/2, for any a from 16 up."""
    high = quarter_turn_bits(a, True)
    low = quarter_turn_bits(a, False)
    high = high - (((high + EIGHTH) >> QUARTER_BITS) << QUARTER_BITS)
    negative = high >= SIGN
    high = td.where(negative, ~high, high)  # negated, except for one unit in the last place
    low = td.where(negative, ~low, low)
    turn = Float(high & UPPER) * UNIT  # exact
    remainder = Float(high & LOWER) * UNIT + Float(low) * LOW_UNIT
    r = turn * HALF_PI + (turn * HALF_PI_LOW + remainder * HALF_PI)
    return td.where(negative, -r, r)
