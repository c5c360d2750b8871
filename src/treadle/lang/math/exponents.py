"""Exponents and fractions of numbers, and scaling by powers of two. All results are exact, except
denormal results of scaling, which are rounded once.

Numbers are decomposed as integers, so that denormal numbers work on targets that flush them to 0.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import power_of_two
from treadle.lang.math.formats import (
    BIAS,
    EXPONENT_WIDTH,
    FRACTION,
    FRACTION_WIDTH,
    INFINITY,
    INFINITY_BITS,
    LEAST_NORMAL_BITS,
    MAX_EXPONENT,
    MIN_EXPONENT,
    SIGN,
    SIZE,
    Bits,
    Float,
)
from treadle.lang.math.generic import either, generic

HALF_BITS = either(0x3F000000, 0x3FE0000000000000)  # of 1/2
LEAST = -2147483648
MOST = 2147483647
# For `ldexp`: the n from which on the result is 0 or infinite for every x, and a step down that
# keeps all bits of a normal number.
FURTHEST = either(300, 2200)
STEP_DOWN = either(-102, -969)


@generic
def frexp_exponent(x: Float) -> td.i32:
    """The e of x = f 2^e with 1/2 <= |f| < 1; 0 for 0, infinity and NaN."""
    size = td.bitcast(x, Bits) & SIZE
    e = td.i32(size >> FRACTION_WIDTH) - (BIAS - 1)
    e = td.where(size < LEAST_NORMAL_BITS, MIN_EXPONENT + EXPONENT_WIDTH + 1 - td.clz(size), e)
    return td.where(size == 0 or size >= INFINITY_BITS, 0, e)


@generic
def frexp_fraction(x: Float) -> Float:
    """The f of x = f 2^e with 1/2 <= |f| < 1; 0, infinity and NaN as they are."""
    bits = td.bitcast(x, Bits)
    size = bits & SIZE
    shift = Bits(td.clz(size)) - EXPONENT_WIDTH
    digits = td.where(size < LEAST_NORMAL_BITS, size << shift, size) & FRACTION
    fraction = td.bitcast((bits & SIGN) | HALF_BITS | digits, Float)
    return td.where(size == 0 or size >= INFINITY_BITS, x, fraction)


@generic
def ilogb(x: Float) -> td.i32:
    """The exponent e of x = f 2^e with 1 <= |f| < 2; for 0 and NaN the least integer, for infinity
    the greatest."""
    size = td.bitcast(x, Bits) & SIZE
    e = frexp_exponent(x) - 1
    e = td.where(size == 0 or size > INFINITY_BITS, LEAST, e)
    return td.where(size == INFINITY_BITS, MOST, e)


@generic
def logb(x: Float) -> Float:
    """The exponent as a float: -infinity for 0, infinity for infinity."""
    size = td.bitcast(x, Bits) & SIZE
    e = Float(frexp_exponent(x) - 1)
    e = td.where(size == 0, -INFINITY, e)
    return td.where(size >= INFINITY_BITS, td.abs(x), e)


@generic
def ldexp(x: Float, n: td.i32) -> Float:
    """x 2^n. A large negative n is applied in steps that keep all bits, so that only the last step
    rounds."""
    k = td.where(n < -FURTHEST, -FURTHEST, td.where(n > FURTHEST, FURTHEST, n))
    first = td.where(k < MIN_EXPONENT, STEP_DOWN, td.where(k > MAX_EXPONENT, MAX_EXPONENT, 0))
    k = k - first
    second = td.where(k < MIN_EXPONENT, STEP_DOWN, td.where(k > MAX_EXPONENT, MAX_EXPONENT, 0))
    k = k - second
    last = td.where(k < MIN_EXPONENT, MIN_EXPONENT, td.where(k > MAX_EXPONENT, MAX_EXPONENT, k))
    return x * power_of_two(first) * power_of_two(second) * power_of_two(last)
