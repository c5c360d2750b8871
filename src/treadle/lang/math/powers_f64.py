"""Powers and roots, in f64: see `powers`."""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_quotient_f64, exact_root_f64, head_f64, with_sign_of_f64
from treadle.lang.math.exponential_f64 import limited_f64, scaled_f64
from treadle.lang.math.logarithm_f64 import exponent_of_f64, fraction_of_f64, normalized_f64
from treadle.lang.math.polynomials import exp2_tail_f64, log2_quotient_tail_f64

INFINITY = float("inf")
NAN = float("nan")
LOG2_TEN_HIGH = 3.321928083896637  # 26 bits
LOG2_TEN_LOW = 1.0990725384979695e-08
TWO_OVER_LN2 = 2.8853900817779268
TWO_OVER_LN2_HIGH = 2.885390043258667  # 26 bits
TWO_OVER_LN2_LOW = 3.851925982253235e-08
TWO_THIRDS_OVER_LN2 = 0.9617966939259756
TWO_THIRDS_OVER_LN2_HIGH = 0.9617966860532761  # 26 bits
TWO_THIRDS_OVER_LN2_LOW = 7.872699542894897e-09


def log2_parts_f64(a: td.f64, lower: td.bool) -> td.f64:
    """log2(a) as the sum of a number of 26 bits and a small one, good to 2^-62; a > 0.

    With s = f / (2 + f), log2(1 + f) = (2/ln 2) s + (2/(3 ln 2)) s^3 + s^5 p(s^2). Of s and of the
    second term more is known than a float holds: heads, and rests of exact products.
    """
    normal = normalized_f64(a)
    e = td.f64(exponent_of_f64(normal) - td.where(a < 2.2250738585072014e-308, 54, 0))
    f = fraction_of_f64(normal)
    divisor = 2.0 + f
    divisor_head = head_f64(divisor)
    divisor_rest = f - (divisor_head - 2.0)
    inverse = 1.0 / divisor
    s_head = head_f64(f * inverse)
    s_rest = ((f - s_head * divisor_head) - s_head * divisor_rest) * inverse
    s = s_head + s_rest
    # z = s^2, u = (2/(3 ln 2)) z and s u, each as a head and a rest
    square = s_head * s_head  # exact
    z_head = head_f64(square)
    z_rest = (square - z_head) + s_rest * (s_head + s)
    u_product = z_head * TWO_THIRDS_OVER_LN2_HIGH  # exact
    u_tail = z_head * TWO_THIRDS_OVER_LN2_LOW + z_rest * TWO_THIRDS_OVER_LN2
    u_head = head_f64(u_product + u_tail)
    u_rest = (u_product - u_head) + u_tail
    cube = s_head * u_head  # exact
    z = z_head + z_rest
    rest = s_head * TWO_OVER_LN2_LOW + s * z * z * log2_quotient_tail_f64(z)
    rest = s_rest * TWO_OVER_LN2 + rest
    rest = rest + (s_head * u_rest + s_rest * (u_head + u_rest))
    product = s_head * TWO_OVER_LN2_HIGH  # exact
    high = head_f64(e + (product + (cube + rest)))
    return td.where(lower, (((e - high) + product) + cube) + rest, high)


def exp2_of_product_f64(y: td.f64, high: td.f64, low: td.f64) -> td.f64:
    """2^(y (high + low)), where `high` has 26 bits; 0 or infinity far outside the range."""
    y_head = head_f64(y)
    product = y_head * high  # exact
    rest = (y - y_head) * high + y * low
    p = product + rest
    n = td.round(limited_f64(p, td.f64(-1077.0), td.f64(1024.0)))
    r = limited_f64((product - n) + rest, td.f64(-1.0), td.f64(1.0))
    result = scaled_f64(1.0 + r * exp2_tail_f64(r), td.i32(n))
    return td.where(p >= 1024.0, INFINITY, td.where(p < -1077.0, 0.0, result))


def pow_f64(x: td.f64, y: td.f64) -> td.f64:
    """`x` to the power y, with the special cases of C and IEEE 754."""
    a = td.abs(x)
    b = td.abs(y)
    ordinary = a > 0.0 and a <= 1.7976931348623157e308
    base = td.where(ordinary, a, 1.0)
    # Beyond 2^65 the power is 0, 1 or infinite whatever the base.
    exponent = limited_f64(y, td.f64(-36893488147419103232.0), td.f64(36893488147419103232.0))
    exponent = td.where(td.isnan(y), 1.0, exponent)
    result = exp2_of_product_f64(exponent, log2_parts_f64(base, False), log2_parts_f64(base, True))
    grows = td.where(y < 0.0, td.f64(INFINITY), 0.0)
    result = td.where(a == 0.0, grows, result)
    result = td.where(td.isinf(x), td.where(y < 0.0, td.f64(0.0), INFINITY), result)
    whole = td.trunc(y) == y or b >= 4503599627370496.0
    last_bit = td.i64(td.where(b < 9007199254740992.0, b, 0.0)) & 1
    odd = whole and last_bit != 0
    negative = td.bitcast(x, td.i64) < 0
    result = td.where(negative and odd, -result, result)
    result = td.where(x < 0.0 and not whole and not td.isinf(x), NAN, result)
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(x == 1.0 or y == 0.0, 1.0, result)


def exp10_f64(x: td.f64) -> td.f64:
    """10 to the power x."""
    inside = limited_f64(x, td.f64(-400.0), td.f64(400.0))
    inside = td.where(td.isnan(x), 0.0, inside)
    y = exp2_of_product_f64(inside, td.f64(LOG2_TEN_HIGH), td.f64(LOG2_TEN_LOW))
    return td.where(td.isnan(x), x, y)


def rsqrt_f64(x: td.f64) -> td.f64:
    """1 / sqrt(x)."""
    small = x < 1e-200
    inside = x > 0.0 and x <= 1.7976931348623157e308
    big = x > 1e250  # the square of a sloppy root would overflow
    down = td.where(big, td.f64(5.421010862427522e-20), 1.0)  # 2^-64
    down = td.where(small, 1.3407807929942597e154, down)  # 2^512
    up = td.where(big, td.f64(2.3283064365386963e-10), 1.0)
    up = td.where(small, 1.157920892373162e77, up)
    s = td.where(inside, x * down, 1.0)
    y = exact_quotient_f64(td.f64(1.0), exact_root_f64(s)) * up
    special = td.where(x == 0.0, INFINITY, td.where(x > 0.0, td.f64(0.0), NAN))
    special = td.where(x == 0.0, with_sign_of_f64(special, x), special)
    return td.where(inside and s != 0.0, y, td.where(td.isnan(x), x, special))


def cbrt_f64(x: td.f64) -> td.f64:
    """The cube root: a third of the exponent, two steps of Halley's iteration, and a last one from
    26 bits, whose square is exact."""
    a = td.abs(x)
    small = a < 1e-280
    big = a > 1e300
    inside = a > 0.0 and a <= 1.7976931348623157e308
    down = td.where(small, 6.277101735386681e57, td.where(big, td.f64(1.5930919111324523e-58), 1.0))
    up = td.where(small, 5.421010862427522e-20, td.where(big, td.f64(18446744073709551616.0), 1.0))
    s = td.where(inside, a * down, 1.0)
    t = td.bitcast(td.bitcast(s, td.i64) // 3 + 3071309929958676992, td.f64)
    t_cubed = t * t * t
    t = t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s))
    t_cubed = t * t * t
    t = head_f64(t * ((t_cubed + 2.0 * s) / (2.0 * t_cubed + s)))
    r = s / (t * t)
    t = t + t * ((r - t) / (2.0 * t + r))
    return td.where(inside and s != 0.0, with_sign_of_f64(t * up, x), x)


def rcbrt_f64(x: td.f64) -> td.f64:
    """1 / cbrt(x): infinite for 0, with its sign."""
    root = cbrt_f64(x)
    size = td.abs(root)
    ordinary = size > 0.0 and td.isfinite(size)
    y = exact_quotient_f64(td.f64(1.0), td.where(ordinary, size, 1.0))
    y = td.where(ordinary, y, td.where(size == 0.0, td.f64(INFINITY), 0.0))
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def hypot_f64(x: td.f64, y: td.f64) -> td.f64:
    """sqrt(x^2 + y^2), without overflow or underflow on the way."""
    a = td.abs(x)
    b = td.abs(y)
    high = td.where(a > b, a, b)
    low = td.where(a > b, b, a)
    big = high > 3.273390607896142e150  # 2^500
    tiny = high < 3.872591914849318e-121  # 2^-400
    down = td.where(big, 2.409919865102884e-181, td.where(tiny, td.f64(4.149515568880993e180), 1.0))
    up = td.where(big, 4.149515568880993e180, td.where(tiny, td.f64(2.409919865102884e-181), 1.0))
    u = high * down
    v = low * down
    result = exact_root_f64(u * u + v * v) * up
    result = td.where(td.isnan(x) or td.isnan(y), NAN, result)
    return td.where(td.isinf(x) or td.isinf(y), INFINITY, result)
