"""Exponents and fractions of numbers, and scaling by powers of two. All of it is exact, but where
a result is too small to hold all its bits: that is rounded once.

Numbers are taken apart as integers, so that denormal ones count on targets that take them for 0.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import power_of_two, power_of_two_f64

INFINITY = float("inf")
LEAST = -2147483648
MOST = 2147483647


def frexp_exponent(x: td.f32) -> td.i32:
    """The e of x = f 2^e with 1/2 <= |f| < 1; 0 for 0, infinity and NaN."""
    size = td.bitcast(x, td.u32) & 0x7FFFFFFF
    e = td.i32(size >> 23) - 126
    e = td.where(size < 0x00800000, -117 - td.clz(size), e)
    return td.where(size == 0 or size >= 0x7F800000, 0, e)


def frexp_fraction(x: td.f32) -> td.f32:
    """The f of x = f 2^e with 1/2 <= |f| < 1; 0, infinity and NaN as they are."""
    bits = td.bitcast(x, td.u32)
    size = bits & 0x7FFFFFFF
    shift = td.u32(td.clz(size)) - 8
    digits = td.where(size < 0x00800000, size << shift, size) & 0x007FFFFF
    fraction = td.bitcast((bits & 0x80000000) | 0x3F000000 | digits, td.f32)
    return td.where(size == 0 or size >= 0x7F800000, x, fraction)


def ilogb(x: td.f32) -> td.i32:
    """The exponent e of x = f 2^e with 1 <= |f| < 2. Of 0 and NaN it is the least integer, of
    infinity the greatest."""
    size = td.bitcast(x, td.u32) & 0x7FFFFFFF
    e = frexp_exponent(x) - 1
    e = td.where(size == 0 or size > 0x7F800000, LEAST, e)
    return td.where(size == 0x7F800000, MOST, e)


def logb(x: td.f32) -> td.f32:
    """The exponent as a float: -infinity for 0, infinity for infinity."""
    size = td.bitcast(x, td.u32) & 0x7FFFFFFF
    e = td.f32(frexp_exponent(x) - 1)
    e = td.where(size == 0, -INFINITY, e)
    return td.where(size >= 0x7F800000, td.abs(x), e)


def ldexp(x: td.f32, n: td.i32) -> td.f32:
    """x 2^n. Far down it goes in steps that leave 24 bits, so that only the last one rounds."""
    k = td.where(n < -300, -300, td.where(n > 300, 300, n))
    first = td.where(k < -126, -102, td.where(k > 127, 127, 0))
    k = k - first
    second = td.where(k < -126, -102, td.where(k > 127, 127, 0))
    k = k - second
    last = td.where(k < -126, -126, td.where(k > 127, 127, k))
    return x * power_of_two(first) * power_of_two(second) * power_of_two(last)


def frexp_exponent_f64(x: td.f64) -> td.i32:
    """The e of x = f 2^e with 1/2 <= |f| < 1; 0 for 0, infinity and NaN."""
    size = td.bitcast(x, td.u64) & 0x7FFFFFFFFFFFFFFF
    e = td.i32(size >> 52) - 1022
    e = td.where(size < 0x0010000000000000, -1010 - td.clz(size), e)
    return td.where(size == 0 or size >= 0x7FF0000000000000, 0, e)


def frexp_fraction_f64(x: td.f64) -> td.f64:
    """The f of x = f 2^e with 1/2 <= |f| < 1; 0, infinity and NaN as they are."""
    bits = td.bitcast(x, td.u64)
    size = bits & 0x7FFFFFFFFFFFFFFF
    shift = td.u64(td.clz(size)) - 11
    digits = td.where(size < 0x0010000000000000, size << shift, size) & 0x000FFFFFFFFFFFFF
    fraction = td.bitcast((bits & 0x8000000000000000) | 0x3FE0000000000000 | digits, td.f64)
    return td.where(size == 0 or size >= 0x7FF0000000000000, x, fraction)


def ilogb_f64(x: td.f64) -> td.i32:
    """The exponent e of x = f 2^e with 1 <= |f| < 2. Of 0 and NaN it is the least integer, of
    infinity the greatest."""
    size = td.bitcast(x, td.u64) & 0x7FFFFFFFFFFFFFFF
    e = frexp_exponent_f64(x) - 1
    e = td.where(size == 0 or size > 0x7FF0000000000000, LEAST, e)
    return td.where(size == 0x7FF0000000000000, MOST, e)


def logb_f64(x: td.f64) -> td.f64:
    """The exponent as a float: -infinity for 0, infinity for infinity."""
    size = td.bitcast(x, td.u64) & 0x7FFFFFFFFFFFFFFF
    e = td.f64(frexp_exponent_f64(x) - 1)
    e = td.where(size == 0, -INFINITY, e)
    return td.where(size >= 0x7FF0000000000000, td.abs(x), e)


def ldexp_f64(x: td.f64, n: td.i32) -> td.f64:
    """x 2^n. Far down it goes in steps that leave 53 bits, so that only the last one rounds."""
    k = td.where(n < -2200, -2200, td.where(n > 2200, 2200, n))
    first = td.where(k < -1022, -969, td.where(k > 1023, 1023, 0))
    k = k - first
    second = td.where(k < -1022, -969, td.where(k > 1023, 1023, 0))
    k = k - second
    last = td.where(k < -1022, -1022, td.where(k > 1023, 1023, k))
    return x * power_of_two_f64(first) * power_of_two_f64(second) * power_of_two_f64(last)
