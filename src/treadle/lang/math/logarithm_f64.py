"""Logarithms and the inverse hyperbolic functions, in f64.

As in f32 (`logarithm`).
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient_f64,
    exact_root_f64,
    head_f64,
    power_of_two_f64,
    with_sign_of_f64,
)
from treadle.lang.math.exponential_f64 import LN2_HIGH, LN2_LOW, exp_sum_f64
from treadle.lang.math.polynomials import log2_tail_f64, log10_tail_f64, log_tail_f64

INFINITY = float("inf")
NAN = float("nan")
LOG10_2_HIGH = 0.30102999566395283  # 42 bits
LOG10_2_LOW = 2.8363394551044964e-14
LN2 = 0.6931471805599453


def normalized_f64(x: td.f64) -> td.f64:
    """A positive denormal times 2^54; other numbers as they are."""
    return td.where(x < 2.2250738585072014e-308, x * 18014398509481984.0, x)


def exponent_of_f64(x: td.f64) -> td.i32:
    """The e of x = 2^e (1 + f), for a positive normal x. 0x3FE6A09E667F3BCD is sqrt(1/2)."""
    return td.i32((td.bitcast(x, td.i64) - 0x3FE6A09E667F3BCD) >> 52)


def fraction_of_f64(x: td.f64) -> td.f64:
    """The f of x = 2^e (1 + f), for a positive normal x."""
    bits = td.bitcast(x, td.i64)
    return td.bitcast(bits - (((bits - 0x3FE6A09E667F3BCD) >> 52) << 52), td.f64) - 1.0


def log_or_special_f64(x: td.f64, y: td.f64) -> td.f64:
    """`y`, the logarithm of x, unless x is 0, infinite, negative or NaN."""
    ordinary = td.bitcast(x, td.u64) - 1 < 0x7FEFFFFFFFFFFFFF
    special = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, x))
    return td.where(ordinary, y, special)


def log_f64(x: td.f64) -> td.f64:
    """The natural logarithm."""
    s = normalized_f64(x)
    e = td.f64(exponent_of_f64(s) - td.where(x < 2.2250738585072014e-308, 54, 0))
    f = fraction_of_f64(s)
    y = e * LN2_HIGH + (f + (f * log_tail_f64(f) + e * LN2_LOW))
    return log_or_special_f64(x, td.where(s == 0.0, -INFINITY, y))


def log2_f64(x: td.f64) -> td.f64:
    """The logarithm to base 2."""
    s = normalized_f64(x)
    e = td.f64(exponent_of_f64(s) - td.where(x < 2.2250738585072014e-308, 54, 0))
    f = fraction_of_f64(s)
    y = e + (f + f * log2_tail_f64(f))
    return log_or_special_f64(x, td.where(s == 0.0, -INFINITY, y))


def log10_f64(x: td.f64) -> td.f64:
    """The logarithm to base 10."""
    s = normalized_f64(x)
    e = td.f64(exponent_of_f64(s) - td.where(x < 2.2250738585072014e-308, 54, 0))
    f = fraction_of_f64(s)
    y = e * LOG10_2_HIGH + (f * 0.4375 + (f * log10_tail_f64(f) + e * LOG10_2_LOW))
    return log_or_special_f64(x, td.where(s == 0.0, -INFINITY, y))


def log1p_plus_f64(x: td.f64, k: td.i32) -> td.f64:
    """log(1 + x) + k ln 2, for a finite x > -1.

    With 1 + x = 2^e (1 + f), f = 2^-e x + (2^-e - 1): rounded once, and not at all where e = 0.
    """
    u = 1.0 + x
    e = exponent_of_f64(u)
    p = power_of_two_f64(-td.minimum(e, 60))
    f = td.where(e > 60, fraction_of_f64(u), x * p + (p - 1.0))
    n = td.f64(e + k)
    return n * LN2_HIGH + (f + (f * log_tail_f64(f) + n * LN2_LOW))


def log1p_f64(x: td.f64) -> td.f64:
    """log(1 + x), without cancellation near 0."""
    inside = x > -1.0 and x <= 1.7976931348623157e308
    y = log1p_plus_f64(td.where(inside, x, 1.0), 0)
    special = td.where(x == -1.0, -INFINITY, td.where(x < -1.0, NAN, x))
    return td.where(inside and x != 0.0, y, special)


def logaddexp_f64(a: td.f64, b: td.f64) -> td.f64:
    """log(exp(a) + exp(b)) = max + log(1 + exp(-|a - b|)).

    The distance is taken in two parts, since its rounding would show in a large one's exponential.
    """
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    near = high - low < 746.0  # not where an infinity is: with two of them it is a NaN
    distance = head_f64(td.where(near, high - low, 746.0))
    from_high = (high - distance) - low
    from_low = high - (low + distance)
    rest = td.where(td.abs(high) > td.abs(low), from_high, from_low)
    rest = td.where(near, rest, 0.0)
    y = high + log1p_plus_f64(exp_sum_f64(-distance, -rest, 0), 0)
    y = td.where(td.isinf(high), high, y)
    return td.where(td.isnan(a), a, td.where(td.isnan(b), b, y))


def asinh_f64(x: td.f64) -> td.f64:
    """The inverse hyperbolic sine: log(1 + (a + a^2 / (1 + sqrt(1 + a^2)))), a = |x|."""
    a = td.abs(x)
    far = a > 18014398509481984.0  # 2^54: there it is log(2a)
    b = td.where(far, 1.0, a)
    argument = td.where(far, a, b + b * b / (1.0 + td.sqrt(1.0 + b * b)))
    finite = td.isfinite(x)
    y = log1p_plus_f64(td.where(finite, argument, 1.0), td.where(far, 1, 0))
    return td.where(finite, with_sign_of_f64(y, x), x)


def acosh_f64(x: td.f64) -> td.f64:
    """The inverse hyperbolic cosine: log(1 + (t + sqrt(t (2 + t)))), t = x - 1."""
    far = x > 18014398509481984.0
    inside = x >= 1.0 and x <= 1.7976931348623157e308
    t = td.where(inside and not far, x - 1.0, 0.0)
    near = t + exact_root_f64(t * (2.0 + t))
    y = log1p_plus_f64(td.where(inside and far, x, near), td.where(far, 1, 0))
    special = td.where(x < 1.0, NAN, x)
    return td.where(inside, y, special)


def atanh_f64(x: td.f64) -> td.f64:
    """The inverse hyperbolic tangent: log(1 + 2a / (1 - a)) / 2, a = |x|."""
    a = td.abs(x)
    b = td.where(a < 1.0, a, 0.0)
    y = 0.5 * log1p_plus_f64(exact_quotient_f64(2.0 * b, 1.0 - b), 0)
    y = td.where(a == 1.0, INFINITY, td.where(a > 1.0, NAN, y))
    y = td.where(b < 1e-8, td.where(a < 1e-8, a, y), y)
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))
