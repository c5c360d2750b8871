"""Exponentials and the functions made of them, in f64.

As in f32 (`exponential`), with 42 bits in the first part of ln 2.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_quotient_f64, power_of_two_f64, with_sign_of_f64
from treadle.lang.math.polynomials import exp2_tail_f64, exp_tail_f64, sinh_tail_f64, tanh_tail_f64

INFINITY = float("inf")
LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471805598903  # 42 bits: times an integer below 2^11 it is exact
LN2_LOW = 5.497923018708371e-14


def scaled_f64(y: td.f64, n: td.i32) -> td.f64:
    """y * 2^n, -2044 <= n <= 2046."""
    half = n >> 1
    return y * power_of_two_f64(half) * power_of_two_f64(n - half)


def exp_sum_f64(high: td.f64, low: td.f64, k: td.i32) -> td.f64:
    """exp(high + low) * 2^k, for |high| < 800, |low| < 0.01 and a small k."""
    n = td.round(high * LOG2_E)
    r = ((high - n * LN2_HIGH) - n * LN2_LOW) + low
    return scaled_f64(1.0 + (r + r * r * exp_tail_f64(r)), td.i32(n) + k)


def limited_f64(x: td.f64, low: td.f64, high: td.f64) -> td.f64:
    """`x` between two bounds; NaN stays."""
    return td.where(x < low, low, td.where(x > high, high, x))


def exp_f64(x: td.f64) -> td.f64:
    """The exponential function."""
    y = exp_sum_f64(limited_f64(x, td.f64(-746.0), td.f64(710.0)), td.f64(0.0), 0)
    y = td.where(x > 709.782712893384, INFINITY, y)
    return td.where(td.isnan(x), x, y)


def exp2_f64(x: td.f64) -> td.f64:
    """2 to the power x."""
    inside = limited_f64(x, td.f64(-1076.0), td.f64(1025.0))
    n = td.round(inside)
    r = inside - n
    y = scaled_f64(1.0 + r * exp2_tail_f64(r), td.i32(n))
    y = td.where(x >= 1024.0, INFINITY, y)
    return td.where(td.isnan(x), x, y)


def expm1_f64(x: td.f64) -> td.f64:
    """exp(x) - 1, without cancellation near 0: 2^n (exp(r) - 1) + (2^n - 1)."""
    inside = limited_f64(x, td.f64(-60.0), td.f64(710.0))
    n = td.round(inside * LOG2_E)
    r = (inside - n * LN2_HIGH) - n * LN2_LOW
    near = r + r * r * exp_tail_f64(r)
    half = power_of_two_f64(td.i32(n) - 1)  # 2^1024 would overflow
    y = td.where(n == 0.0, near, 2.0 * (near * half + (half - 0.5)))
    y = td.where(x > 709.782712893384, INFINITY, y)
    return td.where(td.isnan(x) or x == 0.0, x, y)


def sigmoid_f64(x: td.f64) -> td.f64:
    """1 / (1 + exp(-x)); e = exp(-|x|) can't overflow."""
    e = exp_sum_f64(-td.minimum(td.abs(x), 746.0), td.f64(0.0), 0)
    share = exact_quotient_f64(td.f64(1.0), 1.0 + e)
    y = td.where(x < 0.0, e * share, share)
    return td.where(td.isnan(x), x, y)


def sinh_f64(x: td.f64) -> td.f64:
    """The hyperbolic sine."""
    a = td.abs(x)
    z = td.where(a < 1.0, x * x, 0.0)
    near = a + a * z * sinh_tail_f64(z)
    half = exp_sum_f64(td.minimum(a, 711.0), td.f64(0.0), -1)  # exp(a) / 2
    y = td.where(a < 1.0, near, half - 0.25 / half)
    y = td.where(a > 710.4758600739439, INFINITY, y)
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def cosh_f64(x: td.f64) -> td.f64:
    """The hyperbolic cosine."""
    a = td.abs(x)
    half = exp_sum_f64(td.minimum(a, 711.0), td.f64(0.0), -1)  # exp(a) / 2
    y = td.where(a > 710.4758600739439, INFINITY, half + 0.25 / half)
    return td.where(td.isnan(x), x, y)


def tanh_f64(x: td.f64) -> td.f64:
    """The hyperbolic tangent: a polynomial up to 0.8, then 1 - 2 / (exp(2x) + 1)."""
    a = td.abs(x)
    z = td.where(a < 0.8, x * x, 0.0)
    near = a + a * z * tanh_tail_f64(z)
    e = exp_sum_f64(2.0 * td.minimum(a, 25.0), td.f64(0.0), 0)
    y = td.where(a < 0.8, near, 1.0 - 2.0 / (e + 1.0))
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))
