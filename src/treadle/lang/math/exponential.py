"""Exponentials and the functions made of them.

exp(x) = 2^n exp(r) with n the integer nearest x / ln 2 and r = x - n ln 2, where ln 2 is split in
two parts so that n times the first is exact (W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions", 1980). 2^n is multiplied in two halves, since 2^n may overflow or be denormal
while each half is a normal number.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.builtins import has_near_functions, near_exp2
from treadle.lang.math.bits import (
    INTEGER_IN_BITS,
    head,
    inverse_of,
    nearest_integer,
    power_of_two,
    quotient_by_inverse,
    with_sign_of,
)
from treadle.lang.math.formats import INFINITY, Float
from treadle.lang.math.generic import either, generic
from treadle.lang.math.polynomials import exp2_tail, exp_tail, sinh_tail, tanh_tail

LOG2_E = 1.4426950408889634
LOG2_E_NEAR = 1.44269502162933349609375  # the nearest float32, and what it lacks
LOG2_E_REST = 1.92596303350001107e-08
# 16 and 42 bits: times an integer below 2^8 or 2^11 it is exact.
LN2_HIGH = either(0.693145751953125, 0.6931471805598903)
LN2_LOW = either(1.428606765330187e-06, 5.497923018708371e-14)

# For exp(x): below the first it is 0; from the second on, or above the third, it is infinite.
EXP_VANISHES = either(-104.0, -746.0)
EXP_OVERFLOWS = either(89.0, 710.0)
EXP_LAST = either(88.72283, 709.782712893384)
EXP2_VANISHES = either(-151.0, -1076.0)
EXP2_OVERFLOWS = either(128.0, 1024.0)
EXPM1_IS_MINUS_ONE = either(-30.0, -60.0)
COSH_OVERFLOWS = either(90.0, 711.0)
COSH_LAST = either(89.415985, 710.4758600739439)
TANH_IS_ONE = either(10.0, 25.0)


@generic
def scaled(y: Float, n: td.i32) -> Float:
    """y * 2^n, where n is up to twice the exponent of a normal number."""
    half = n >> 1
    return y * power_of_two(half) * power_of_two(n - half)


@generic
def exp_sum(high: Float, low: Float, k: td.i32) -> Float:
    """exp(high + low) * 2^k, for |high| < 150, |low| < 0.01 and a small k."""
    q = nearest_integer(high * LOG2_E)
    n = Float(q)
    r = ((high - n * LN2_HIGH) - n * LN2_LOW) + low
    return scaled(1.0 + (r + r * r * exp_tail(r)), q + k)


@exp_sum.double
def exp_sum(high: Float, low: Float, k: td.i32) -> Float:
    """exp(high + low) * 2^k, for |high| < 800, |low| < 0.01 and a small k."""
    n = td.round(high * LOG2_E)
    r = ((high - n * LN2_HIGH) - n * LN2_LOW) + low
    return scaled(1.0 + (r + r * r * exp_tail(r)), td.i32(n) + k)


@generic
def limited(x: Float, low: Float, high: Float) -> Float:
    """`x` between two bounds; NaN stays."""
    return td.where(x < low, low, td.where(x > high, high, x))


def exp_by_power(x: td.f32) -> td.f32:
    """exp(x) on targets that have powers of two, which are right for all numbers without a test:
    2^n is a normal number, and what is left of an exponent beyond that is the power's."""
    at_bits = td.fma(x, LOG2_E_NEAR, INTEGER_IN_BITS)
    at_bits = td.minimum(td.maximum(at_bits, INTEGER_IN_BITS - 126.0), INTEGER_IN_BITS + 127.0)
    n = at_bits - INTEGER_IN_BITS
    r = td.fma(x, LOG2_E_REST, td.fma(x, LOG2_E_NEAR, -n))
    return near_exp2(r) * td.bitcast((td.bitcast(at_bits, td.i32) << 23) + 0x3F800000, td.f32)


def exp_of_half_square_by_power(x: td.f32) -> td.f32:
    """`exp_of_half_square` on targets that have powers of two."""
    square = x * x
    at_bits = td.fma(square, -0.5 * LOG2_E_NEAR, INTEGER_IN_BITS)
    at_bits = td.maximum(at_bits, INTEGER_IN_BITS - 126.0)
    n = at_bits - INTEGER_IN_BITS
    r = td.fma(square, -0.5 * LOG2_E_REST, td.fma(square, -0.5 * LOG2_E_NEAR, -n))
    r = td.fma(td.fma(x, x, -square), -0.5 * LOG2_E_NEAR, r)
    return near_exp2(r) * td.bitcast((td.bitcast(at_bits, td.i32) << 23) + 0x3F800000, td.f32)


@generic
def exp_of_half_square_of_parts(x_head: Float, x: Float) -> Float:
    """The same on other targets."""
    return exp_sum(-0.5 * (x_head * x_head), 0.5 * ((x_head - x) * (x_head + x)), 0)


@generic
def exp_of_half_square(x: Float) -> Float:
    """exp(-x^2 / 2) for 0 <= x < 17, with an exact square."""
    y = Float(0.0)
    if has_near_functions(x):
        y = exp_of_half_square_by_power(x)
    else:
        y = exp_of_half_square_of_parts(head(x), x)
    return y


@generic
def exp_inside(x: Float) -> Float:
    """exp(x) for |x| < 150."""
    y = Float(0.0)
    if has_near_functions(x):
        y = exp_by_power(x)
    else:
        y = exp_sum(x, Float(0.0), 0)
    return y


@exp_inside.double
def exp_inside(x: Float) -> Float:
    """exp(x) for |x| < 800."""
    return exp_sum(x, Float(0.0), 0)


@generic
def exp(x: Float) -> Float:
    """The exponential function."""
    y = Float(0.0)
    if has_near_functions(x):
        y = exp_by_power(x)
    else:
        y = exp_sum(limited(x, Float(EXP_VANISHES), Float(EXP_OVERFLOWS)), Float(0.0), 0)
        y = td.where(x > EXP_LAST, INFINITY, y)
        y = td.where(td.isnan(x), x, y)
    return y


@exp.double
def exp(x: Float) -> Float:
    """The exponential function."""
    y = exp_sum(limited(x, Float(EXP_VANISHES), Float(EXP_OVERFLOWS)), Float(0.0), 0)
    y = td.where(x > EXP_LAST, INFINITY, y)
    return td.where(td.isnan(x), x, y)


@generic
def exp2(x: Float) -> Float:
    """2 to the power x."""
    inside = limited(x, Float(EXP2_VANISHES), Float(EXP2_OVERFLOWS + 1.0))
    q = nearest_integer(inside)
    r = inside - Float(q)
    y = scaled(1.0 + r * exp2_tail(r), q)
    y = td.where(x >= EXP2_OVERFLOWS, INFINITY, y)
    return td.where(td.isnan(x), x, y)


@exp2.double
def exp2(x: Float) -> Float:
    """2 to the power x."""
    inside = limited(x, Float(EXP2_VANISHES), Float(EXP2_OVERFLOWS + 1.0))
    n = td.round(inside)
    r = inside - n
    y = scaled(1.0 + r * exp2_tail(r), td.i32(n))
    y = td.where(x >= EXP2_OVERFLOWS, INFINITY, y)
    return td.where(td.isnan(x), x, y)


@generic
def expm1(x: Float) -> Float:
    """exp(x) - 1, without cancellation near 0: 2^n (exp(r) - 1) + (2^n - 1)."""
    inside = limited(x, Float(EXPM1_IS_MINUS_ONE), Float(EXP_OVERFLOWS))
    q = nearest_integer(inside * LOG2_E)
    n = Float(q)
    r = (inside - n * LN2_HIGH) - n * LN2_LOW
    near = r + r * r * exp_tail(r)
    half = power_of_two(q - 1)  # 2^128 would overflow
    y = td.where(q == 0, near, 2.0 * (near * half + (half - 0.5)))
    y = td.where(x > EXP_LAST, INFINITY, y)
    return td.where(td.isnan(x) or x == 0.0, x, y)


@expm1.double
def expm1(x: Float) -> Float:
    """exp(x) - 1, without cancellation near 0: 2^n (exp(r) - 1) + (2^n - 1)."""
    inside = limited(x, Float(EXPM1_IS_MINUS_ONE), Float(EXP_OVERFLOWS))
    n = td.round(inside * LOG2_E)
    r = (inside - n * LN2_HIGH) - n * LN2_LOW
    near = r + r * r * exp_tail(r)
    half = power_of_two(td.i32(n) - 1)  # 2^1024 would overflow
    y = td.where(n == 0.0, near, 2.0 * (near * half + (half - 0.5)))
    y = td.where(x > EXP_LAST, INFINITY, y)
    return td.where(td.isnan(x) or x == 0.0, x, y)


@generic
def sigmoid(x: Float) -> Float:
    """1 / (1 + exp(-x)); e = exp(-|x|) can't overflow."""
    e = exp_sum(-td.minimum(td.abs(x), -EXP_VANISHES), Float(0.0), 0)
    divisor = 1.0 + e
    first = head(divisor)
    part = td.where(x < 0.0, e, Float(1.0))
    y = quotient_by_inverse(part, first, divisor - first, inverse_of(divisor))
    return td.where(td.isnan(x), x, y)


@generic
def sinh(x: Float) -> Float:
    """The hyperbolic sine."""
    a = td.abs(x)
    z = td.where(a < 1.0, x * x, 0.0)
    near = a + a * z * sinh_tail(z)
    half = exp_sum(td.minimum(a, COSH_OVERFLOWS), Float(0.0), -1)  # exp(a) / 2
    y = td.where(a < 1.0, near, half - 0.25 / half)
    y = td.where(a > COSH_LAST, INFINITY, y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def cosh(x: Float) -> Float:
    """The hyperbolic cosine."""
    a = td.abs(x)
    half = exp_sum(td.minimum(a, COSH_OVERFLOWS), Float(0.0), -1)  # exp(a) / 2
    y = td.where(a > COSH_LAST, INFINITY, half + 0.25 / half)
    return td.where(td.isnan(x), x, y)


@generic
def tanh(x: Float) -> Float:
    """The hyperbolic tangent: a polynomial up to 0.8, then 1 - 2 / (exp(2x) + 1)."""
    a = td.abs(x)
    z = td.where(a < 0.8, x * x, 0.0)
    near = a + a * z * tanh_tail(z)
    e = exp_inside(2.0 * td.minimum(a, TANH_IS_ONE))
    y = td.where(a < 0.8, near, 1.0 - 2.0 * inverse_of(e + 1.0))
    return td.where(td.isnan(x), x, with_sign_of(y, x))
