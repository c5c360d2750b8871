"""Powers and roots."""

from __future__ import annotations

from typing import Any

from treadle.lang import namespace as td
from treadle.lang.math.bits import (
    exact_quotient,
    exact_root,
    head,
    nearest_integer,
    with_sign_of,
)
from treadle.lang.math.exponential import EXP2_OVERFLOWS, limited, scaled
from treadle.lang.math.formats import (
    ALL_WHOLE,
    INFINITY,
    LARGEST,
    LEAST_NORMAL,
    NAN,
    Bits,
    Float,
    Integer,
)
from treadle.lang.math.generic import either, generic
from treadle.lang.math.logarithm import DENORMAL_SHIFT, exponent_of, fraction_of, normalized
from treadle.lang.math.polynomials import exp2_tail, log2_quotient_tail

# The first part, here and below, is a head: the number rounded to 12 bits (26 in f64), so that the
# product of two heads is exact.
LOG2_TEN_HIGH = either(3.3212890625, 3.321928083896637)
LOG2_TEN_LOW = either(0.0006390323873623479, 1.0990725384979695e-08)
TWO_OVER_LN2 = 2.8853900817779268
TWO_OVER_LN2_HIGH = either(2.884765625, 2.885390043258667)
TWO_OVER_LN2_LOW = either(0.0006244567921385169, 3.851925982253235e-08)
TWO_THIRDS_OVER_LN2 = 0.9617966939259756
TWO_THIRDS_OVER_LN2_HIGH = either(0.961669921875, 0.9617966860532761)
TWO_THIRDS_OVER_LN2_LOW = either(0.0001267720509755735, 7.872699542894897e-09)

# For `pow`
POWER_VANISHES = either(-151.0, -1077.0)  # the exponent of 2 below which it is 0
MOST_EXPONENT = either(8589934592.0, 36893488147419103232.0)  # 2^33, 2^65
ALL_EVEN = either(16777216.0, 9007199254740992.0)  # from here on all numbers are even

EXP10_BEYOND = either(60.0, 400.0)  # from here on 10^x is infinite

# `hypot` multiplies numbers above BIG and below TINY by a power of two, and its result by the
# inverse.
BIG = either(1.1529215e18, 3.273390607896142e150)  # 2^60, 2^500
TINY = either(9.094947e-13, 3.872591914849318e-121)  # 2^-40, 2^-400
BIG_DOWN = either(1.3552527156068805e-20, 2.409919865102884e-181)  # 2^-66, 2^-600
BIG_UP = either(7.378697629483821e19, 4.149515568880993e180)
TINY_UP = either(1.2379400392853803e27, 4.149515568880993e180)  # 2^90, 2^600
TINY_DOWN = either(8.077935669463161e-28, 2.409919865102884e-181)


@generic
def log2_parts(a: Float, lower: td.bool) -> Float:
    """log2(a) as the sum of a head and a small number, with an error of 2^-33 or 2^-62; a > 0.

    With s = f / (2 + f), log2(1 + f) = (2/ln 2) s + (2/(3 ln 2)) s^3 + s^5 p(s^2). s and the second
    term are computed with more bits than a float has: as heads, and remainders of exact products.
    """
    normal = normalized(a)
    e = Float(exponent_of(normal) - td.where(a < LEAST_NORMAL, DENORMAL_SHIFT, 0))
    f = fraction_of(normal)
    divisor = 2.0 + f
    divisor_head = head(divisor)
    divisor_tail = f - (divisor_head - 2.0)
    inverse = 1.0 / divisor
    s_head = head(f * inverse)
    s_tail = ((f - s_head * divisor_head) - s_head * divisor_tail) * inverse
    s = s_head + s_tail
    # z = s^2, u = (2/(3 ln 2)) z and s u, each as a head and a remainder
    square = s_head * s_head  # exact
    z_head = head(square)
    z_tail = (square - z_head) + s_tail * (s_head + s)
    u_product = z_head * TWO_THIRDS_OVER_LN2_HIGH  # exact
    u_small = z_head * TWO_THIRDS_OVER_LN2_LOW + z_tail * TWO_THIRDS_OVER_LN2
    u_head = head(u_product + u_small)
    u_tail = (u_product - u_head) + u_small
    cube = s_head * u_head  # exact
    z = z_head + z_tail
    tail = s_head * TWO_OVER_LN2_LOW + s * z * z * log2_quotient_tail(z)
    tail = s_tail * TWO_OVER_LN2 + tail
    tail = tail + (s_head * u_tail + s_tail * (u_head + u_tail))
    product = s_head * TWO_OVER_LN2_HIGH  # exact
    high = head(e + (product + (cube + tail)))
    return td.where(lower, (((e - high) + product) + cube) + tail, high)


@generic
def exp2_of_product(y: Float, high: Float, low: Float) -> Float:
    """2^(y (high + low)), where `high` is a head; 0 or infinity far outside the range."""
    y_head = head(y)
    product = y_head * high  # exact
    tail = (y - y_head) * high + y * low
    p = product + tail
    n = nearest_integer(limited(p, Float(POWER_VANISHES), Float(EXP2_OVERFLOWS)))
    r = limited((product - Float(n)) + tail, Float(-1.0), Float(1.0))
    result = scaled(1.0 + r * exp2_tail(r), n)
    return td.where(p >= EXP2_OVERFLOWS, INFINITY, td.where(p < POWER_VANISHES, 0.0, result))


@exp2_of_product.double
def exp2_of_product(y: Float, high: Float, low: Float) -> Float:
    """2^(y (high + low)), where `high` is a head; 0 or infinity far outside the range."""
    y_head = head(y)
    product = y_head * high  # exact
    tail = (y - y_head) * high + y * low
    p = product + tail
    n = td.round(limited(p, Float(POWER_VANISHES), Float(EXP2_OVERFLOWS)))
    r = limited((product - n) + tail, Float(-1.0), Float(1.0))
    result = scaled(1.0 + r * exp2_tail(r), td.i32(n))
    return td.where(p >= EXP2_OVERFLOWS, INFINITY, td.where(p < POWER_VANISHES, 0.0, result))


@generic
def pow(x: Float, y: Float) -> Float:
    """`x` to the power y, with the special cases of C and IEEE 754."""
    a = td.abs(x)
    b = td.abs(y)
    ordinary = a > 0.0 and a <= LARGEST
    base = td.where(ordinary, a, 1.0)
    # Above, the power is 0, 1 or infinite for every base.
    exponent = limited(y, Float(-MOST_EXPONENT), Float(MOST_EXPONENT))
    exponent = td.where(td.isnan(y), 1.0, exponent)
    result = exp2_of_product(exponent, log2_parts(base, False), log2_parts(base, True))
    grows = td.where(y < 0.0, Float(INFINITY), 0.0)
    result = td.where(a == 0.0, grows, result)
    result = td.where(td.isinf(x), td.where(y < 0.0, Float(0.0), INFINITY), result)
    whole = td.trunc(y) == y or b >= ALL_WHOLE
    last_bit = Integer(td.where(b < ALL_EVEN, b, 0.0)) & 1
    odd = whole and last_bit != 0
    negative = td.bitcast(x, Integer) < 0
    result = td.where(negative and odd, -result, result)
    result = td.where(x < 0.0 and not whole and not td.isinf(x), NAN, result)
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(x == 1.0 or y == 0.0, 1.0, result)


@generic
def exp10(x: Float) -> Float:
    """10 to the power x."""
    inside = limited(x, Float(-EXP10_BEYOND), Float(EXP10_BEYOND))
    inside = td.where(td.isnan(x), 0.0, inside)
    y = exp2_of_product(inside, Float(LOG2_TEN_HIGH), Float(LOG2_TEN_LOW))
    return td.where(td.isnan(x), x, y)


@generic
def rsqrt(x: Float) -> Float:
    """1 / sqrt(x)."""
    small = x < 1e-20
    inside = x > 0.0 and x <= LARGEST
    big = x > 1e30  # the square of an inexact root would overflow
    down = td.where(small, 281474976710656.0, td.where(big, 3.552713678800501e-15, 1.0))  # 2^±48
    up = td.where(small, 16777216.0, td.where(big, 5.960464477539063e-08, 1.0))
    s = td.where(inside, x * down, 1.0)
    y = exact_quotient(Float(1.0), exact_root(s)) * up
    special = td.where(x == 0.0, INFINITY, td.where(x > 0.0, 0.0, NAN))
    special = td.where(x == 0.0, with_sign_of(special, x), special)
    return td.where(inside and s != 0.0, y, td.where(td.isnan(x), x, special))


@rsqrt.double
def rsqrt(x: Float) -> Float:
    """1 / sqrt(x)."""
    small = x < 1e-200
    inside = x > 0.0 and x <= LARGEST
    big = x > 1e250  # the square of an inexact root would overflow
    down = td.where(big, Float(5.421010862427522e-20), 1.0)  # 2^-64
    down = td.where(small, 1.3407807929942597e154, down)  # 2^512
    up = td.where(big, Float(2.3283064365386963e-10), 1.0)
    up = td.where(small, 1.157920892373162e77, up)
    s = td.where(inside, x * down, 1.0)
    y = exact_quotient(Float(1.0), exact_root(s)) * up
    special = td.where(x == 0.0, INFINITY, td.where(x > 0.0, Float(0.0), NAN))
    special = td.where(x == 0.0, with_sign_of(special, x), special)
    return td.where(inside and s != 0.0, y, td.where(td.isnan(x), x, special))


@generic
def cbrt(x: Float) -> Float:
    """The cube root: a third of the exponent, one step of Halley's iteration, and a last one from
    eight bits, whose square is exact."""
    a = td.abs(x)
    small = a < 1e-30
    big = a > 1e30
    inside = a > 0.0 and a <= LARGEST
    down = td.where(small, 16777216.0, td.where(big, 5.960464477539063e-08, 1.0))
    up = td.where(small, 0.00390625, td.where(big, 256.0, 1.0))
    s = td.where(inside, a * down, 1.0)
    t = td.bitcast(td.bitcast(s, td.i32) // 3 + 709965728, Float)
    t_cubed = t * t * t
    t = t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s))
    t = td.bitcast((td.bitcast(t, Bits) + 0x8000) & 0xFFFF0000, Float)
    r = s / (t * t)
    t = t + t * ((r - t) / (2.0 * t + r))
    return td.where(inside and s != 0.0, with_sign_of(t * up, x), x)


@cbrt.double
def cbrt(x: Float) -> Float:
    """The cube root: a third of the exponent, two steps of Halley's iteration, and a last one from
    26 bits, whose square is exact."""
    a = td.abs(x)
    small = a < 1e-280
    big = a > 1e300
    inside = a > 0.0 and a <= LARGEST
    down = td.where(small, 6.277101735386681e57, td.where(big, Float(1.5930919111324523e-58), 1.0))
    up = td.where(small, 5.421010862427522e-20, td.where(big, Float(18446744073709551616.0), 1.0))
    s = td.where(inside, a * down, 1.0)
    t = td.bitcast(td.bitcast(s, Integer) // 3 + 3071309929958676992, Float)
    t_cubed = t * t * t
    t = t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s))
    t_cubed = t * t * t
    t = head(t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s)))
    r = s / (t * t)
    t = t + t * ((r - t) / (2.0 * t + r))
    return td.where(inside and s != 0.0, with_sign_of(t * up, x), x)


@generic
def rcbrt(x: Float) -> Float:
    """1 / cbrt(x): infinite for 0, with its sign."""
    root = cbrt(x)
    size = td.abs(root)
    ordinary = size > 0.0 and td.isfinite(size)
    y = exact_quotient(Float(1.0), td.where(ordinary, size, 1.0))
    y = td.where(ordinary, y, td.where(size == 0.0, Float(INFINITY), 0.0))
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def hypot(x: Float, y: Float) -> Float:
    """sqrt(x^2 + y^2), without overflow or underflow on the way."""
    a = td.abs(x)
    b = td.abs(y)
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    big = high > BIG
    tiny = high < TINY
    down = td.where(big, BIG_DOWN, td.where(tiny, Float(TINY_UP), 1.0))
    up = td.where(big, BIG_UP, td.where(tiny, Float(TINY_DOWN), 1.0))
    u = high * down
    v = low * down
    result = exact_root(u * u + v * v) * up
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(td.isinf(x) or td.isinf(y), INFINITY, result)


def integer_power(base: Any, exponent: Any) -> Any:
    """base ** exponent for integers. A negative exponent gives the truncated fraction: 1 for 1,
    1 or -1 for -1, and 0 for all others (0 too), as in PyTorch."""
    result = base * 0 + 1
    if exponent < 0:
        result = base * 0
        if base == 1 or base + 1 == 0:
            result = base if exponent & 1 == 1 else base * base
    while exponent > 0:
        if exponent & 1 == 1:
            result = result * base
        base = base * base
        exponent = exponent >> 1
    return result
