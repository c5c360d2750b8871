"""Powers and roots, in f32."""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient,
    exact_root,
    head,
    nearest_integer,
    with_sign_of,
)
from treadle.lang.math.exponential import limited, scaled
from treadle.lang.math.logarithm import exponent_of, fraction_of, normalized
from treadle.lang.math.polynomials import exp2_tail, log2_quotient_tail

INFINITY = float("inf")
NAN = float("nan")
LOG2_TEN_HIGH = 3.3212890625  # 12 bits
LOG2_TEN_LOW = 0.0006390323873623479
TWO_OVER_LN2 = 2.8853900817779268
TWO_OVER_LN2_HIGH = 2.884765625  # 12 bits
TWO_OVER_LN2_LOW = 0.0006244567921385169
TWO_THIRDS_OVER_LN2 = 0.9617966939259756
TWO_THIRDS_OVER_LN2_HIGH = 0.961669921875  # 12 bits
TWO_THIRDS_OVER_LN2_LOW = 0.0001267720509755735


def log2_parts(a: td.f32, lower: td.bool) -> td.f32:
    """log2(a) as the sum of a number of 12 bits and a small one, good to 2^-33; a > 0.

    With s = f / (2 + f), log2(1 + f) = (2/ln 2) s + (2/(3 ln 2)) s^3 + s^5 p(s^2). Of s and of the
    second term more is known than a float holds: heads, and rests of exact products.
    """
    normal = normalized(a)
    e = td.f32(exponent_of(normal) - td.where(a < 1.17549435e-38, 25, 0))
    f = fraction_of(normal)
    divisor = 2.0 + f
    divisor_head = head(divisor)
    divisor_rest = f - (divisor_head - 2.0)
    inverse = 1.0 / divisor
    s_head = head(f * inverse)
    s_rest = ((f - s_head * divisor_head) - s_head * divisor_rest) * inverse
    s = s_head + s_rest
    # z = s^2, u = (2/(3 ln 2)) z and s u, each as a head and a rest
    square = s_head * s_head  # exact
    z_head = head(square)
    z_rest = (square - z_head) + s_rest * (s_head + s)
    u_product = z_head * TWO_THIRDS_OVER_LN2_HIGH  # exact
    u_tail = z_head * TWO_THIRDS_OVER_LN2_LOW + z_rest * TWO_THIRDS_OVER_LN2
    u_head = head(u_product + u_tail)
    u_rest = (u_product - u_head) + u_tail
    cube = s_head * u_head  # exact
    z = z_head + z_rest
    rest = s_head * TWO_OVER_LN2_LOW + s * z * z * log2_quotient_tail(z)
    rest = s_rest * TWO_OVER_LN2 + rest
    rest = rest + (s_head * u_rest + s_rest * (u_head + u_rest))
    product = s_head * TWO_OVER_LN2_HIGH  # exact
    high = head(e + (product + (cube + rest)))
    return td.where(lower, (((e - high) + product) + cube) + rest, high)


def exp2_of_product(y: td.f32, high: td.f32, low: td.f32) -> td.f32:
    """2^(y (high + low)), where `high` has 12 bits; 0 or infinity far outside the range."""
    y_head = head(y)
    product = y_head * high  # exact
    rest = (y - y_head) * high + y * low
    p = product + rest
    n = nearest_integer(limited(p, td.f32(-151.0), td.f32(128.0)))
    r = limited((product - td.f32(n)) + rest, td.f32(-1.0), td.f32(1.0))
    result = scaled(1.0 + r * exp2_tail(r), n)
    return td.where(p >= 128.0, INFINITY, td.where(p < -151.0, 0.0, result))


def pow(x: td.f32, y: td.f32) -> td.f32:
    """`x` to the power y, with the special cases of C and IEEE 754."""
    a = td.abs(x)
    b = td.abs(y)
    ordinary = a > 0.0 and a <= 3.4028235e38
    base = td.where(ordinary, a, 1.0)
    # Beyond 2^33 the power is 0, 1 or infinite whatever the base.
    exponent = limited(y, td.f32(-8589934592.0), td.f32(8589934592.0))
    exponent = td.where(td.isnan(y), 1.0, exponent)
    result = exp2_of_product(exponent, log2_parts(base, False), log2_parts(base, True))
    grows = td.where(y < 0.0, INFINITY, 0.0)
    result = td.where(a == 0.0, grows, result)
    result = td.where(td.isinf(x), td.where(y < 0.0, td.f32(0.0), INFINITY), result)
    whole = td.trunc(y) == y or b >= 8388608.0
    last_bit = td.i32(td.where(b < 16777216.0, b, 0.0)) & 1
    odd = whole and last_bit != 0
    negative = td.bitcast(x, td.i32) < 0
    result = td.where(negative and odd, -result, result)
    result = td.where(x < 0.0 and not whole and not td.isinf(x), NAN, result)
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(x == 1.0 or y == 0.0, 1.0, result)


def exp10(x: td.f32) -> td.f32:
    """10 to the power x."""
    inside = limited(x, td.f32(-60.0), td.f32(60.0))
    inside = td.where(td.isnan(x), 0.0, inside)
    y = exp2_of_product(inside, td.f32(LOG2_TEN_HIGH), td.f32(LOG2_TEN_LOW))
    return td.where(td.isnan(x), x, y)


def rsqrt(x: td.f32) -> td.f32:
    """1 / sqrt(x)."""
    small = x < 1e-20
    inside = x > 0.0 and x <= 3.4028235e38
    big = x > 1e30  # the square of a sloppy root would overflow
    down = td.where(small, 281474976710656.0, td.where(big, 3.552713678800501e-15, 1.0))  # 2^±48
    up = td.where(small, 16777216.0, td.where(big, 5.960464477539063e-08, 1.0))
    s = td.where(inside, x * down, 1.0)
    y = exact_quotient(td.f32(1.0), exact_root(s)) * up
    special = td.where(x == 0.0, INFINITY, td.where(x > 0.0, 0.0, NAN))
    special = td.where(x == 0.0, with_sign_of(special, x), special)
    return td.where(inside and s != 0.0, y, td.where(td.isnan(x), x, special))


def cbrt(x: td.f32) -> td.f32:
    """The cube root: a third of the exponent, one step of Halley's iteration, and a last one from
    eight bits, whose square is exact."""
    a = td.abs(x)
    small = a < 1e-30
    big = a > 1e30
    inside = a > 0.0 and a <= 3.4028235e38
    down = td.where(small, 16777216.0, td.where(big, 5.960464477539063e-08, 1.0))
    up = td.where(small, 0.00390625, td.where(big, 256.0, 1.0))
    s = td.where(inside, a * down, 1.0)
    t = td.bitcast(td.bitcast(s, td.i32) // 3 + 709965728, td.f32)
    t_cubed = t * t * t
    t = t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s))
    t = td.bitcast((td.bitcast(t, td.u32) + 0x8000) & 0xFFFF0000, td.f32)
    r = s / (t * t)
    t = t + t * ((r - t) / (2.0 * t + r))
    return td.where(inside and s != 0.0, with_sign_of(t * up, x), x)


def rcbrt(x: td.f32) -> td.f32:
    """1 / cbrt(x): infinite for 0, with its sign."""
    root = cbrt(x)
    size = td.abs(root)
    ordinary = size > 0.0 and td.isfinite(size)
    y = exact_quotient(td.f32(1.0), td.where(ordinary, size, 1.0))
    y = td.where(ordinary, y, td.where(size == 0.0, INFINITY, 0.0))
    return td.where(td.isnan(x), x, with_sign_of(y, x))


def hypot(x: td.f32, y: td.f32) -> td.f32:
    """sqrt(x^2 + y^2), without overflow or underflow on the way."""
    a = td.abs(x)
    b = td.abs(y)
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    big = high > 1.1529215e18  # 2^60
    tiny = high < 9.094947e-13  # 2^-40
    down = td.where(big, 1.3552527156068805e-20, td.where(tiny, 1.2379400392853803e27, 1.0))
    up = td.where(big, 7.378697629483821e19, td.where(tiny, 8.077935669463161e-28, 1.0))
    u = high * down
    v = low * down
    result = exact_root(u * u + v * v) * up
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(td.isinf(x) or td.isinf(y), INFINITY, result)
