"""Bessel functions of whole order, in f64.

Up to 8 they are polynomials times their zeros there, so that they are relatively precise near
them too; those of the second kind have their logarithm in a term of its own (DLMF 10.8.1). From 8
on J and Y are sqrt(2/(pi x)) (P cos - Q sin) and (P sin + Q cos) (DLMF 10.17.3), where, near their
zeros, they are precise compared to sqrt(2/(pi x)) only.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_root_f64, with_sign_of_f64
from treadle.lang.math.exponential_f64 import exp_sum_f64
from treadle.lang.math.logarithm_f64 import log1p_f64, log_f64
from treadle.lang.math.special_polynomials import (
    cosine_part_0_f64,
    cosine_part_1_f64,
    i0_far_f64,
    i0_near_f64,
    i1_far_f64,
    i1_near_f64,
    j0_center_f64,
    j0_near_f64,
    j0_second_f64,
    j1_near_f64,
    j1_second_f64,
    sine_part_0_f64,
    sine_part_1_f64,
    y0_near_f64,
    y0_second_f64,
    y0_third_f64,
    y1_near_f64,
    y1_second_f64,
)
from treadle.lang.math.trigonometry_f64 import cos_f64, sin_f64

INFINITY = float("inf")
NAN = float("nan")
TWO_TO_64 = 18446744073709551616.0
TWO_OVER_PI = 0.6366197723675814
ONE_OVER_ROOT_PI = 0.5641895835477563
# Zeros, each in two parts: x less the first is exact where x is near.
J0_FIRST_HIGH = 2.404825508594513
J0_FIRST_LOW = 4.910125982916851e-08
J0_SECOND_HIGH = 5.520078063011169
J0_SECOND_LOW = 4.727514121600285e-08
J1_FIRST_HIGH = 3.831705927848816
J1_FIRST_LOW = 4.2358696397645683e-08
J1_SECOND_HIGH = 7.015586614608765
J1_SECOND_LOW = 5.520685410509955e-08
Y0_FIRST_HIGH = 0.8935769647359848
Y0_FIRST_LOW = 1.5431827193387933e-09
Y0_SECOND_HIGH = 3.9576783776283264
Y0_SECOND_LOW = 4.168653145236005e-08
Y0_THIRD_HIGH = 7.086050987243652
Y0_THIRD_LOW = 7.305812035387363e-08
Y1_FIRST_HIGH = 2.1971412897109985
Y1_FIRST_LOW = 3.6320018499992785e-08
Y1_SECOND_HIGH = 5.429680943489075
Y1_SECOND_LOW = 9.730506042574076e-08
J0_FIRST = 2.404825557695773
J1_FIRST = 3.8317059702075125
Y0_FIRST = 0.8935769662791675
Y1_FIRST = 2.197141326031017
LOG_Y0_FIRST = -0.11252280788079412
LOG_Y1_FIRST = 0.7871571181569951


def limited_to_f64(x: td.f64, low: td.f64, high: td.f64) -> td.f64:
    """`x` between two bounds; NaN becomes the lower one."""
    return td.where(x > low, td.where(x < high, x, high), low)


def less_f64(x: td.f64, high: td.f64, low: td.f64) -> td.f64:
    """x - (high + low). Near the sum x - high is exact, and goes through an integer, lest a driver
    adds up high and low."""
    d = td.f64(td.i64((x - high) * 9007199254740992.0)) * 1.1102230246251565e-16
    return d - low


def cyl_bessel_i0_f64(x: td.f64) -> td.f64:
    """The modified Bessel function I0."""
    a = td.abs(x)
    r = 0.125 * limited_to_f64(a, td.f64(0.0), td.f64(8.0))
    b = limited_to_f64(a, td.f64(8.0), td.f64(720.0))
    power = exp_sum_f64(b, td.f64(0.0), -64)  # the exponential itself may be too large
    far = power * (i0_far_f64(16.0 / b - 1.0) / exact_root_f64(b) * TWO_TO_64)
    return td.where(td.isnan(x), x, td.where(a < 8.0, i0_near_f64(r * r), far))


def cyl_bessel_i1_f64(x: td.f64) -> td.f64:
    """The modified Bessel function I1."""
    a = td.abs(x)
    inside = limited_to_f64(a, td.f64(0.0), td.f64(8.0))
    r = 0.125 * inside
    b = limited_to_f64(a, td.f64(8.0), td.f64(720.0))
    power = exp_sum_f64(b, td.f64(0.0), -64)  # the exponential itself may be too large
    far = power * (i1_far_f64(16.0 / b - 1.0) / exact_root_f64(b) * TWO_TO_64)
    y = td.where(a < 8.0, inside * i1_near_f64(r * r), far)
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def zeroth_far_f64(x: td.f64, second: td.bool) -> td.f64:
    """J0 or Y0, x >= 8. (cos x + sin x) / sqrt(2) is the cosine of x - pi/4."""
    inverse = 1.0 / x
    t = inverse * inverse
    p = cosine_part_0_f64(t)
    q = inverse * sine_part_0_f64(t)
    plus = cos_f64(x) + sin_f64(x)
    minus = sin_f64(x) - cos_f64(x)
    y = td.where(second, p * minus + q * plus, p * plus - q * minus)
    return y * (ONE_OVER_ROOT_PI / exact_root_f64(x))


def first_far_f64(x: td.f64, second: td.bool) -> td.f64:
    """J1 or Y1, x >= 8. (sin x - cos x) / sqrt(2) is the cosine of x - 3 pi/4."""
    inverse = 1.0 / x
    t = inverse * inverse
    p = cosine_part_1_f64(t)
    q = inverse * sine_part_1_f64(t)
    plus = cos_f64(x) + sin_f64(x)
    minus = sin_f64(x) - cos_f64(x)
    y = td.where(second, q * minus - p * plus, p * minus + q * plus)
    return y * (ONE_OVER_ROOT_PI / exact_root_f64(x))


def j0_f64(x: td.f64) -> td.f64:
    """The Bessel function J0."""
    a = td.abs(x)
    b = limited_to_f64(a, td.f64(0.0), td.f64(4.0))
    d = less_f64(b, td.f64(J0_FIRST_HIGH), td.f64(J0_FIRST_LOW))
    y = j0_near_f64(0.125 * b * b - 1.0) * (d * (b + J0_FIRST))
    z = td.where(a < 1.0, a * a, 0.0)
    y = td.where(a < 1.0, (1.0 - 0.25 * z) + z * z * j0_center_f64(z), y)
    b = limited_to_f64(a, td.f64(4.0), td.f64(8.0))
    d = less_f64(b, td.f64(J0_SECOND_HIGH), td.f64(J0_SECOND_LOW))
    y = td.where(a < 4.0, y, j0_second_f64(b - 6.0) * d)
    if a >= 8.0:
        y = zeroth_far_f64(a, False)
    y = td.where(td.isinf(x), 0.0, y)
    return td.where(td.isnan(x), x, y)


def j1_f64(x: td.f64) -> td.f64:
    """The Bessel function J1."""
    a = td.abs(x)
    b = limited_to_f64(a, td.f64(0.0), td.f64(5.0))
    d = less_f64(b, td.f64(J1_FIRST_HIGH), td.f64(J1_FIRST_LOW))
    y = j1_near_f64(0.08 * b * b - 1.0) * (d * (b + J1_FIRST))
    y = b * y
    b = limited_to_f64(a, td.f64(5.0), td.f64(8.0))
    d = less_f64(b, td.f64(J1_SECOND_HIGH), td.f64(J1_SECOND_LOW))
    y = td.where(a < 5.0, y, j1_second_f64(b - 6.5) * d)
    if a >= 8.0:
        y = first_far_f64(a, False)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(td.signbit(x), -y, y)
    return td.where(td.isnan(x), x, y)


def log_over_f64(x: td.f64, d: td.f64, zero: td.f64, log_zero: td.f64) -> td.f64:
    """log(x / zero), where d = x - zero is known better."""
    near = td.abs(d) < 0.4 * zero
    close = log1p_f64(td.where(near, d, 0.0) / zero)
    return td.where(near, close, log_f64(x) - log_zero)


def y0_f64(x: td.f64) -> td.f64:
    """The Bessel function Y0: -infinity at 0, NaN below."""
    b = td.where(x > 0.0, td.where(x < 2.2, x, 2.2), 1.0)
    d = less_f64(b, td.f64(Y0_FIRST_HIGH), td.f64(Y0_FIRST_LOW))
    logarithm = log_over_f64(b, d, td.f64(Y0_FIRST), td.f64(LOG_Y0_FIRST))
    y = TWO_OVER_PI * logarithm * j0_f64(b) + y0_near_f64(b * b) * (d * (b + Y0_FIRST))
    b = limited_to_f64(x, td.f64(2.2), td.f64(5.0))
    d = less_f64(b, td.f64(Y0_SECOND_HIGH), td.f64(Y0_SECOND_LOW))
    second = y0_second_f64(b - 3.6) * d
    b = limited_to_f64(x, td.f64(5.0), td.f64(8.0))
    d = less_f64(b, td.f64(Y0_THIRD_HIGH), td.f64(Y0_THIRD_LOW))
    third = y0_third_f64(b - 6.5) * d
    y = td.where(x < 2.2, y, td.where(x < 5.0, second, third))
    if x >= 8.0:
        y = zeroth_far_f64(x, True)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, y))
    return td.where(td.isnan(x), x, y)


def y1_f64(x: td.f64) -> td.f64:
    """The Bessel function Y1: -infinity at 0, NaN below."""
    b = td.where(x > 0.0, td.where(x < 3.5, x, 3.5), 1.0)
    d = less_f64(b, td.f64(Y1_FIRST_HIGH), td.f64(Y1_FIRST_LOW))
    logarithm = log_over_f64(b, d, td.f64(Y1_FIRST), td.f64(LOG_Y1_FIRST))
    y = TWO_OVER_PI * logarithm * j1_f64(b) + y1_near_f64(b * b) * (d * (b + Y1_FIRST)) / b
    b = limited_to_f64(x, td.f64(3.5), td.f64(8.0))
    d = less_f64(b, td.f64(Y1_SECOND_HIGH), td.f64(Y1_SECOND_LOW))
    second = y1_second_f64(b - 5.75) * d
    y = td.where(x < 3.5, y, second)
    if x >= 8.0:
        y = first_far_f64(x, True)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, y))
    return td.where(td.isnan(x), x, y)


def jn_f64(x: td.f64, n: td.i32) -> td.f64:
    """The Bessel function J of order n; NaN for a negative one.

    Up from J0 and J1 while n <= |x|. Beyond, down from an order so high that it does not matter
    what stands there, and divided by J0 + 2 J2 + 2 J4 + … = 1 (J. C. P. Miller's algorithm; DLMF
    3.6). Near 0 it is the first terms of the series (DLMF 10.2.2); where n is far beyond 2 |x|, 0.
    """
    a = td.abs(x)
    order = td.f64(n)
    upwards = order <= a
    zeroth = j0_f64(a)
    first = j1_f64(a)
    # up
    k = td.i32(1)
    last = td.where(upwards and td.isfinite(x), n, 1)
    before = zeroth
    up = first
    following = first
    while k < last:
        following = (2.0 * td.f64(k) / a) * up - before
        before = up
        up = following
        k = k + 1
    # near 0
    half = 0.5 * a
    tiny = a < 1e-4 and not upwards
    k = td.i32(1)
    last = td.where(tiny, n, 0)
    series = 1.0 - half * half / (order + 1.0)
    while k <= last and series > 0.0:
        series = series * (half / td.f64(k))
        k = k + 1
    # down
    small = order > 2.0 * a + 2000.0
    ordinary = not upwards and not small and not tiny and n > 1
    divisor = td.where(ordinary, a, 1.0)
    k = td.where(ordinary, (n + td.i32(td.sqrt(200.0 * order))) // 2 * 2, 0)
    even = td.f64(0.0)
    down = td.f64(0.0)
    above = td.f64(0.0)
    current = td.f64(1.0)
    scale = td.f64(1.0)
    while k > 0:
        following = (2.0 * td.f64(k) / divisor) * current - above
        scale = td.where(td.abs(following) > 1e100, td.f64(1e-100), 1.0)
        above = current * scale
        current = following * scale
        even = even * scale
        down = down * scale
        k = k - 1
        even = td.where((k & 1) == 0 and k > 0, even + current, even)
        down = td.where(k == n, current, down)
    down = td.where(ordinary, down / (2.0 * even + current), 0.0)
    y = td.where(upwards, up, td.where(tiny, series, down))
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(n == 0, zeroth, td.where(n == 1, first, y))
    y = td.where(td.signbit(x) and (n & 1) != 0, -y, y)
    return td.where(n < 0, NAN, td.where(td.isnan(x), x, y))


def yn_f64(x: td.f64, n: td.i32) -> td.f64:
    """The Bessel function Y of order n, up from Y0 and Y1; NaN for a negative order."""
    before = y0_f64(x)
    y = y1_f64(x)
    first = before
    following = y
    k = td.i32(1)
    last = td.where(x > 0.0 and td.isfinite(x), n, 0)
    while k < last and td.isfinite(y):
        following = (2.0 * td.f64(k) / x) * y - before
        before = y
        y = following
        k = k + 1
    y = td.where(n == 0, first, y)
    return td.where(n < 0, NAN, td.where(td.isnan(x), x, y))
