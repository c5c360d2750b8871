"""Logarithms and the inverse hyperbolic functions.

x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), found by integer arithmetic on the bits;
then log x = e log 2 + f + f p(f), so that nothing cancels near x = 1 (where e = 0).
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_quotient, exact_root, head, power_of_two, with_sign_of
from treadle.lang.math.exponential import EXP_VANISHES, LN2_HIGH, LN2_LOW, exp_sum
from treadle.lang.math.formats import (
    FRACTION_WIDTH,
    INFINITY,
    LARGEST,
    LARGEST_BITS,
    LEAST_NORMAL,
    NAN,
    Bits,
    Float,
    Integer,
)
from treadle.lang.math.generic import either, generic
from treadle.lang.math.polynomials import log2_tail, log10_tail, log_tail

LOG10_2_HIGH = either(0.301025390625, 0.30102999566395283)  # 16 and 42 bits
LOG10_2_LOW = either(4.605039066518657e-06, 2.8363394551044964e-14)
ROOT_HALF = either(0x3F3504F3, 0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
DENORMAL_SHIFT = either(25, 54)  # the exponent by which `normalized` scales denormals
DENORMAL_SCALE = either(33554432.0, 18014398509481984.0)  # 2 to that power
ONE_VANISHES = either(30, 60)  # the e from which on 1 + x rounds to x = 2^e
ASINH_FAR = either(67108864.0, 18014398509481984.0)  # 2^26, 2^54: from here on it is log(2a)
ATANH_NEAR = either(0.0001, 1e-8)  # up to here it is a


@generic
def normalized(x: Float) -> Float:
    """A positive denormal times a power of two; other numbers as they are."""
    return td.where(x < LEAST_NORMAL, x * DENORMAL_SCALE, x)


@generic
def exponent_of(x: Float) -> td.i32:
    """The e of x = 2^e (1 + f), for a positive normal x."""
    return td.i32((td.bitcast(x, Integer) - ROOT_HALF) >> FRACTION_WIDTH)


@generic
def fraction_of(x: Float) -> Float:
    """The f of x = 2^e (1 + f), for a positive normal x."""
    bits = td.bitcast(x, Integer)
    return (
        td.bitcast(bits - (((bits - ROOT_HALF) >> FRACTION_WIDTH) << FRACTION_WIDTH), Float) - 1.0
    )


@generic
def log_or_special(x: Float, y: Float) -> Float:
    """`y`, the logarithm of x, unless x is 0, infinite, negative or NaN."""
    ordinary = td.bitcast(x, Bits) - 1 < LARGEST_BITS
    special = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, x))
    return td.where(ordinary, y, special)


@generic
def log(x: Float) -> Float:
    """The natural logarithm."""
    s = normalized(x)
    e = Float(exponent_of(s) - td.where(x < LEAST_NORMAL, DENORMAL_SHIFT, 0))
    f = fraction_of(s)
    y = e * LN2_HIGH + (f + (f * log_tail(f) + e * LN2_LOW))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


@generic
def log2(x: Float) -> Float:
    """The logarithm to base 2."""
    s = normalized(x)
    e = Float(exponent_of(s) - td.where(x < LEAST_NORMAL, DENORMAL_SHIFT, 0))
    f = fraction_of(s)
    y = e + (f + f * log2_tail(f))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


@generic
def log10(x: Float) -> Float:
    """The logarithm to base 10."""
    s = normalized(x)
    e = Float(exponent_of(s) - td.where(x < LEAST_NORMAL, DENORMAL_SHIFT, 0))
    f = fraction_of(s)
    y = e * LOG10_2_HIGH + (f * 0.4375 + (f * log10_tail(f) + e * LOG10_2_LOW))
    return log_or_special(x, td.where(s == 0.0, -INFINITY, y))


@generic
def log1p_plus(x: Float, k: td.i32) -> Float:
    """log(1 + x) + k ln 2, for a finite x > -1.

    With 1 + x = 2^e (1 + f), f = 2^-e x + (2^-e - 1): rounded once, and not at all where e = 0.
    """
    u = 1.0 + x
    e = exponent_of(u)
    p = power_of_two(-td.minimum(e, ONE_VANISHES))
    f = td.where(e > ONE_VANISHES, fraction_of(u), x * p + (p - 1.0))
    n = Float(e + k)
    return n * LN2_HIGH + (f + (f * log_tail(f) + n * LN2_LOW))


@generic
def log1p(x: Float) -> Float:
    """log(1 + x), without cancellation near 0."""
    inside = x > -1.0 and x <= LARGEST
    y = log1p_plus(td.where(inside, x, 1.0), 0)
    special = td.where(x == -1.0, -INFINITY, td.where(x < -1.0, NAN, x))
    return td.where(inside and x != 0.0, y, special)


@generic
def logaddexp(a: Float, b: Float) -> Float:
    """log(exp(a) + exp(b)) = max + log(1 + exp(-|a - b|)).

    The distance is computed in two parts, since its rounding would affect the exponential.
    """
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    near = high - low < -EXP_VANISHES  # false for infinities, whose difference may be NaN
    distance = head(td.where(near, high - low, -EXP_VANISHES))
    from_high = (high - distance) - low
    from_low = high - (low + distance)
    tail = td.where(td.abs(high) > td.abs(low), from_high, from_low)
    tail = td.where(near, tail, 0.0)
    y = high + log1p_plus(exp_sum(-distance, -tail, 0), 0)
    y = td.where(td.isinf(high), high, y)
    return td.where(td.isnan(a), a, td.where(td.isnan(b), b, y))


@generic
def asinh(x: Float) -> Float:
    """The inverse hyperbolic sine: log(1 + (a + a^2 / (1 + sqrt(1 + a^2)))), a = |x|."""
    a = td.abs(x)
    far = a > ASINH_FAR
    b = td.where(far, 1.0, a)
    argument = td.where(far, a, b + b * b / (1.0 + td.sqrt(1.0 + b * b)))
    finite = td.isfinite(x)
    y = log1p_plus(td.where(finite, argument, 1.0), td.where(far, 1, 0))
    return td.where(finite, with_sign_of(y, x), x)


@generic
def acosh(x: Float) -> Float:
    """The inverse hyperbolic cosine: log(1 + (t + sqrt(t (2 + t)))), t = x - 1."""
    far = x > ASINH_FAR
    inside = x >= 1.0 and x <= LARGEST
    t = td.where(inside and not far, x - 1.0, 0.0)
    near = t + exact_root(t * (2.0 + t))
    y = log1p_plus(td.where(inside and far, x, near), td.where(far, 1, 0))
    special = td.where(x < 1.0, NAN, x)
    return td.where(inside, y, special)


@generic
def atanh(x: Float) -> Float:
    """The inverse hyperbolic tangent: log(1 + 2a / (1 - a)) / 2, a = |x|."""
    a = td.abs(x)
    b = td.where(a < 1.0, a, 0.0)
    y = 0.5 * log1p_plus(exact_quotient(2.0 * b, 1.0 - b), 0)
    y = td.where(a == 1.0, INFINITY, td.where(a > 1.0, NAN, y))
    y = td.where(b < ATANH_NEAR, td.where(a < ATANH_NEAR, a, y), y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))
