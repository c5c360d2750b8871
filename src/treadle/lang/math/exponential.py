"""Exponentials and the functions made of them, in f32.

exp(x) = 2^n exp(r) with n the integer nearest x / ln 2 and r = x - n ln 2, where ln 2 comes in two
parts so that n times the first is exact (W. J. Cody and W. Waite, "Software Manual for the
Elementary Functions", 1980). 2^n is multiplied in two halves: results may overflow or be denormal
although neither half is.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient,
    nearest_integer,
    power_of_two,
    with_sign_of,
)
from treadle.lang.math.polynomials import exp2_tail, exp_tail, sinh_tail, tanh_tail

INFINITY = float("inf")
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693145751953125  # 16 bits: times an integer below 2^8 it is exact
LN2_LOW = 1.428606765330187e-06


def scaled(y: td.f32, n: td.i32) -> td.f32:
    """y * 2^n, -252 <= n <= 254."""
    half = n >> 1
    return y * power_of_two(half) * power_of_two(n - half)


def exp_sum(high: td.f32, low: td.f32, k: td.i32) -> td.f32:
    """exp(high + low) * 2^k, for |high| < 150, |low| < 0.01 and a small k."""
    q = nearest_integer(high * LOG2_E)
    n = td.f32(q)
    r = ((high - n * LN2_HIGH) - n * LN2_LOW) + low
    return scaled(1.0 + (r + r * r * exp_tail(r)), q + k)


def limited(x: td.f32, low: td.f32, high: td.f32) -> td.f32:
    """`x` between two bounds; NaN stays."""
    return td.where(x < low, low, td.where(x > high, high, x))


def exp(x: td.f32) -> td.f32:
    """The exponential function."""
    y = exp_sum(limited(x, td.f32(-104.0), td.f32(89.0)), td.f32(0.0), 0)
    y = td.where(x > 88.72283, INFINITY, y)
    return td.where(td.isnan(x), x, y)


def exp2(x: td.f32) -> td.f32:
    """2 to the power x."""
    inside = limited(x, td.f32(-151.0), td.f32(129.0))
    q = nearest_integer(inside)
    r = inside - td.f32(q)
    y = scaled(1.0 + r * exp2_tail(r), q)
    y = td.where(x >= 128.0, INFINITY, y)
    return td.where(td.isnan(x), x, y)


def expm1(x: td.f32) -> td.f32:
    """exp(x) - 1, without cancellation near 0: 2^n (exp(r) - 1) + (2^n - 1)."""
    inside = limited(x, td.f32(-30.0), td.f32(89.0))
    q = nearest_integer(inside * LOG2_E)
    n = td.f32(q)
    r = (inside - n * LN2_HIGH) - n * LN2_LOW
    near = r + r * r * exp_tail(r)
    half = power_of_two(q - 1)  # 2^128 would overflow
    y = td.where(q == 0, near, 2.0 * (near * half + (half - 0.5)))
    y = td.where(x > 88.72283, INFINITY, y)
    return td.where(td.isnan(x) or x == 0.0, x, y)


def sigmoid(x: td.f32) -> td.f32:
    """1 / (1 + exp(-x)); e = exp(-|x|) can't overflow."""
    e = exp_sum(-td.minimum(td.abs(x), 104.0), td.f32(0.0), 0)
    share = exact_quotient(td.f32(1.0), 1.0 + e)
    y = td.where(x < 0.0, e * share, share)
    return td.where(td.isnan(x), x, y)


def sinh(x: td.f32) -> td.f32:
    """The hyperbolic sine."""
    a = td.abs(x)
    z = td.where(a < 1.0, x * x, 0.0)
    near = a + a * z * sinh_tail(z)
    half = exp_sum(td.minimum(a, 90.0), td.f32(0.0), -1)  # exp(a) / 2
    y = td.where(a < 1.0, near, half - 0.25 / half)
    y = td.where(a > 89.415985, INFINITY, y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


def cosh(x: td.f32) -> td.f32:
    """The hyperbolic cosine."""
    a = td.abs(x)
    half = exp_sum(td.minimum(a, 90.0), td.f32(0.0), -1)  # exp(a) / 2
    y = td.where(a > 89.415985, INFINITY, half + 0.25 / half)
    return td.where(td.isnan(x), x, y)


def tanh(x: td.f32) -> td.f32:
    """The hyperbolic tangent: a polynomial up to 0.8, then 1 - 2 / (exp(2x) + 1)."""
    a = td.abs(x)
    z = td.where(a < 0.8, x * x, 0.0)
    near = a + a * z * tanh_tail(z)
    e = exp_sum(2.0 * td.minimum(a, 10.0), td.f32(0.0), 0)
    y = td.where(a < 0.8, near, 1.0 - 2.0 / (e + 1.0))
    return td.where(td.isnan(x), x, with_sign_of(y, x))
