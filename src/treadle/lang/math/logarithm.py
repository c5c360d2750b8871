"""Logarithms and the inverse hyperbolic functions, in f32.

x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), found by integer arithmetic on the bits;
then log x = e log 2 + f + f p(f), so that nothing cancels near x = 1 (where e = 0).
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_quotient, exact_root, head, power_of_two, with_sign_of
from treadle.lang.math.exponential import LN2_HIGH, LN2_LOW, exp_sum
from treadle.lang.math.polynomials import log2_tail, log10_tail, log_tail

INFINITY = float("inf")
NAN = float("nan")
LOG10_2_HIGH = 0.301025390625  # 16 bits
LOG10_2_LOW = 4.605039066518657e-06
LN2 = 0.6931471805599453


def normalized(x: td.f32) -> td.f32:
    """A positive denormal times 2^25; other numbers as they are."""
    return td.where(x < 1.17549435e-38, x * 33554432.0, x)


def exponent_of(x: td.f32) -> td.i32:
    """The e of x = 2^e (1 + f), for a positive normal x. 0x3F3504F3 is sqrt(1/2)."""
    return (td.bitcast(x, td.i32) - 0x3F3504F3) >> 23


def fraction_of(x: td.f32) -> td.f32:
    """The f of x = 2^e (1 + f), for a positive normal x."""
    bits = td.bitcast(x, td.i32)
    return td.bitcast(bits - (((bits - 0x3F3504F3) >> 23) << 23), td.f32) - 1.0


def log_or_special(x: td.f32, y: td.f32) -> td.f32:
    """`y`, the logarithm of x, unless x is 0, infinite, negative or NaN."""
    ordinary = td.bitcast(x, td.u32) - 1 < 0x7F7FFFFF
    special = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, x))
    return td.where(ordinary, y, special)


def log(x: td.f32) -> td.f32:
    """The natural logarithm."""
    s = normalized(x)
    e = td.f32(exponent_of(s) - td.where(x < 1.17549435e-38, 25, 0))
    f = fraction_of(s)
    y = e * LN2_HIGH + (f + (f * log_tail(f) + e * LN2_LOW))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


def log2(x: td.f32) -> td.f32:
    """The logarithm to base 2."""
    s = normalized(x)
    e = td.f32(exponent_of(s) - td.where(x < 1.17549435e-38, 25, 0))
    f = fraction_of(s)
    y = e + (f + f * log2_tail(f))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


def log10(x: td.f32) -> td.f32:
    """The logarithm to base 10."""
    s = normalized(x)
    e = td.f32(exponent_of(s) - td.where(x < 1.17549435e-38, 25, 0))
    f = fraction_of(s)
    y = e * LOG10_2_HIGH + (f * 0.4375 + (f * log10_tail(f) + e * LOG10_2_LOW))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


def log1p_plus(x: td.f32, k: td.i32) -> td.f32:
    """log(1 + x) + k ln 2, for a finite x > -1.

    With 1 + x = 2^e (1 + f), f = 2^-e x + (2^-e - 1): rounded once, and not at all where e = 0.
    """
    u = 1.0 + x
    e = exponent_of(u)
    p = power_of_two(-td.minimum(e, 30))
    f = td.where(e > 30, fraction_of(u), x * p + (p - 1.0))
    n = td.f32(e + k)
    return n * LN2_HIGH + (f + (f * log_tail(f) + n * LN2_LOW))


def log1p(x: td.f32) -> td.f32:
    """log(1 + x), without cancellation near 0."""
    inside = x > -1.0 and x <= 3.4028235e38
    y = log1p_plus(td.where(inside, x, 1.0), 0)
    special = td.where(x == -1.0, -INFINITY, td.where(x < -1.0, NAN, x))
    return td.where(inside and x != 0.0, y, special)


def logaddexp(a: td.f32, b: td.f32) -> td.f32:
    """log(exp(a) + exp(b)) = max + log(1 + exp(-|a - b|)).

    The distance is taken in two parts, since its rounding would show in a large one's exponential.
    """
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    near = high - low < 104.0  # not where an infinity is: with two of them it is a NaN
    distance = head(td.where(near, high - low, 104.0))
    from_high = (high - distance) - low
    from_low = high - (low + distance)
    rest = td.where(td.abs(high) > td.abs(low), from_high, from_low)
    rest = td.where(near, rest, 0.0)
    y = high + log1p_plus(exp_sum(-distance, -rest, 0), 0)
    y = td.where(td.isinf(high), high, y)
    return td.where(td.isnan(a), a, td.where(td.isnan(b), b, y))


def asinh(x: td.f32) -> td.f32:
    """The inverse hyperbolic sine: log(1 + (a + a^2 / (1 + sqrt(1 + a^2)))), a = |x|."""
    a = td.abs(x)
    far = a > 67108864.0  # 2^26: there it is log(2a)
    b = td.where(far, 1.0, a)
    argument = td.where(far, a, b + b * b / (1.0 + td.sqrt(1.0 + b * b)))
    finite = td.isfinite(x)
    y = log1p_plus(td.where(finite, argument, 1.0), td.where(far, 1, 0))
    return td.where(finite, with_sign_of(y, x), x)


def acosh(x: td.f32) -> td.f32:
    """The inverse hyperbolic cosine: log(1 + (t + sqrt(t (2 + t)))), t = x - 1."""
    far = x > 67108864.0
    inside = x >= 1.0 and x <= 3.4028235e38
    t = td.where(inside and not far, x - 1.0, 0.0)
    near = t + exact_root(t * (2.0 + t))
    y = log1p_plus(td.where(inside and far, x, near), td.where(far, 1, 0))
    special = td.where(x < 1.0, NAN, x)
    return td.where(inside, y, special)


def atanh(x: td.f32) -> td.f32:
    """The inverse hyperbolic tangent: log(1 + 2a / (1 - a)) / 2, a = |x|."""
    a = td.abs(x)
    b = td.where(a < 1.0, a, 0.0)
    y = 0.5 * log1p_plus(exact_quotient(2.0 * b, 1.0 - b), 0)
    y = td.where(a == 1.0, INFINITY, td.where(a > 1.0, NAN, y))
    y = td.where(b < 0.0001, td.where(a < 0.0001, a, y), y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))
