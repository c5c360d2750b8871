"""Bessel functions of integer order.

Up to 8 they are polynomials times factors for their zeros, so that the relative error is small near
the zeros too; those of the second kind have a separate term for the logarithm (DLMF 10.8.1). From 8
on J and Y are sqrt(2/(pi x)) (P cos - Q sin) and (P sin + Q cos) (DLMF 10.17.3); there, near the
zeros, the error is small relative to sqrt(2/(pi x)) only.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_root, with_sign_of
from treadle.lang.math.exponential import exp_sum
from treadle.lang.math.formats import INFINITY, NAN, Float, Integer
from treadle.lang.math.generic import either, generic
from treadle.lang.math.logarithm import log, log1p
from treadle.lang.math.special_polynomials import (
    cosine_part_0,
    cosine_part_1,
    i0_far,
    i0_near,
    i1_far,
    i1_near,
    j0_center,
    j0_near,
    j0_second,
    j1_near,
    j1_second,
    sine_part_0,
    sine_part_1,
    y0_near,
    y0_second,
    y0_third,
    y1_near,
    y1_second,
)
from treadle.lang.math.trigonometry import cos, sin

TWO_TO_64 = 18446744073709551616.0
TWO_OVER_PI = 0.6366197723675814
ONE_OVER_ROOT_PI = 0.5641895835477563
# Zeros, each in two parts: x minus the first is exact for x near it.
J0_FIRST_HIGH = either(2.404296875, 2.404825508594513)
J0_FIRST_LOW = either(0.0005286827217787504, 4.910125982916851e-08)
J0_SECOND_HIGH = either(5.51953125, 5.520078063011169)
J0_SECOND_LOW = either(0.0005468602757900953, 4.727514121600285e-08)
J1_FIRST_HIGH = either(3.8310546875, 3.831705927848816)
J1_FIRST_LOW = either(0.000651282723993063, 4.2358696397645683e-08)
J1_SECOND_HIGH = either(7.013671875, 7.015586614608765)
J1_SECOND_LOW = either(0.0019147947896271944, 5.520685410509955e-08)
Y0_FIRST_HIGH = either(0.8935546875, 0.8935769647359848)
Y0_FIRST_LOW = either(2.2278778487816453e-05, 1.5431827193387933e-09)
Y0_SECOND_HIGH = either(3.95703125, 3.9576783776283264)
Y0_SECOND_LOW = either(0.0006471693050116301, 4.168653145236005e-08)
Y0_THIRD_HIGH = either(7.0859375, 7.086050987243652)
Y0_THIRD_LOW = either(0.00011356030154274777, 7.305812035387363e-08)
Y1_FIRST_HIGH = either(2.1962890625, 2.1971412897109985)
Y1_FIRST_LOW = either(0.0008522635325789452, 3.6320018499992785e-08)
Y1_SECOND_HIGH = either(5.427734375, 5.429680943489075)
Y1_SECOND_LOW = either(0.0019466658122837543, 9.730506042574076e-08)
J0_FIRST = 2.404825557695773
J1_FIRST = 3.8317059702075125
Y0_FIRST = 0.8935769662791675
Y1_FIRST = 2.197141326031017
LOG_Y0_FIRST = -0.11252280788079412
LOG_Y1_FIRST = 0.7871571181569951
FIXED_POINT = either(16777216.0, 9007199254740992.0)  # 2^24, 2^53: see `less`
FIXED_POINT_UNIT = either(5.9604644775390625e-08, 1.1102230246251565e-16)
I_OVERFLOWS = either(100.0, 720.0)
# For `jn`: the largest argument for the series; the distance from 2 |x| to orders where the result
# is 0; the constant of the start order of the downward recurrence; and the value above which its
# terms are scaled down.
SERIES = either(0.01, 1e-4)
VANISHES = either(300.0, 2000.0)
START = either(60.0, 200.0)
LARGE = either(1e15, 1e100)
LARGE_DOWN = either(1e-15, 1e-100)


@generic
def limited_to(x: Float, low: Float, high: Float) -> Float:
    """`x` between two bounds; NaN becomes the lower one."""
    return td.where(x > low, td.where(x < high, x, high), low)


@generic
def less(x: Float, high: Float, low: Float) -> Float:
    """x - (high + low). Near the sum, x - high is exact. It goes through an integer, to keep a
    driver from adding high and low."""
    d = Float(Integer((x - high) * FIXED_POINT)) * FIXED_POINT_UNIT
    return d - low


@generic
def cyl_bessel_i0(x: Float) -> Float:
    """The modified Bessel function I0."""
    a = td.abs(x)
    r = 0.125 * limited_to(a, Float(0.0), Float(8.0))
    b = limited_to(a, Float(8.0), Float(I_OVERFLOWS))
    power = exp_sum(b, Float(0.0), -64)  # the exponential itself may be too large
    far = power * (i0_far(16.0 / b - 1.0) / exact_root(b) * TWO_TO_64)
    return td.where(td.isnan(x), x, td.where(a < 8.0, i0_near(r * r), far))


@generic
def cyl_bessel_i1(x: Float) -> Float:
    """The modified Bessel function I1."""
    a = td.abs(x)
    inside = limited_to(a, Float(0.0), Float(8.0))
    r = 0.125 * inside
    b = limited_to(a, Float(8.0), Float(I_OVERFLOWS))
    power = exp_sum(b, Float(0.0), -64)  # the exponential itself may be too large
    far = power * (i1_far(16.0 / b - 1.0) / exact_root(b) * TWO_TO_64)
    y = td.where(a < 8.0, inside * i1_near(r * r), far)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def zeroth_far(x: Float, second: td.bool) -> Float:
    """J0 or Y0, x >= 8. (cos x + sin x) / sqrt(2) is the cosine of x - pi/4."""
    inverse = 1.0 / x
    t = inverse * inverse
    p = cosine_part_0(t)
    q = inverse * sine_part_0(t)
    plus = cos(x) + sin(x)
    minus = sin(x) - cos(x)
    y = td.where(second, p * minus + q * plus, p * plus - q * minus)
    return y * (ONE_OVER_ROOT_PI / exact_root(x))


@generic
def first_far(x: Float, second: td.bool) -> Float:
    """J1 or Y1, x >= 8. (sin x - cos x) / sqrt(2) is the cosine of x - 3 pi/4."""
    inverse = 1.0 / x
    t = inverse * inverse
    p = cosine_part_1(t)
    q = inverse * sine_part_1(t)
    plus = cos(x) + sin(x)
    minus = sin(x) - cos(x)
    y = td.where(second, q * minus - p * plus, p * minus + q * plus)
    return y * (ONE_OVER_ROOT_PI / exact_root(x))


@generic
def j0(x: Float) -> Float:
    """The Bessel function J0."""
    a = td.abs(x)
    b = limited_to(a, Float(0.0), Float(4.0))
    d = less(b, Float(J0_FIRST_HIGH), Float(J0_FIRST_LOW))
    y = j0_near(0.125 * b * b - 1.0) * (d * (b + J0_FIRST))
    z = td.where(a < 1.0, a * a, 0.0)
    y = td.where(a < 1.0, (1.0 - 0.25 * z) + z * z * j0_center(z), y)
    b = limited_to(a, Float(4.0), Float(8.0))
    d = less(b, Float(J0_SECOND_HIGH), Float(J0_SECOND_LOW))
    y = td.where(a < 4.0, y, j0_second(b - 6.0) * d)
    if a >= 8.0:
        y = zeroth_far(a, False)
    y = td.where(td.isinf(x), 0.0, y)
    return td.where(td.isnan(x), x, y)


@generic
def j1(x: Float) -> Float:
    """The Bessel function J1."""
    a = td.abs(x)
    b = limited_to(a, Float(0.0), Float(5.0))
    d = less(b, Float(J1_FIRST_HIGH), Float(J1_FIRST_LOW))
    y = j1_near(0.08 * b * b - 1.0) * (d * (b + J1_FIRST))
    y = b * y
    b = limited_to(a, Float(5.0), Float(8.0))
    d = less(b, Float(J1_SECOND_HIGH), Float(J1_SECOND_LOW))
    y = td.where(a < 5.0, y, j1_second(b - 6.5) * d)
    if a >= 8.0:
        y = first_far(a, False)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(td.signbit(x), -y, y)
    return td.where(td.isnan(x), x, y)


@generic
def log_over(x: Float, d: Float, zero: Float, log_zero: Float) -> Float:
    """log(x / zero), given d = x - zero, which is more precise than the rounded difference."""
    near = td.abs(d) < 0.4 * zero
    close = log1p(td.where(near, d, 0.0) / zero)
    return td.where(near, close, log(x) - log_zero)


@generic
def y0(x: Float) -> Float:
    """The Bessel function Y0: -infinity at 0, NaN below."""
    b = td.where(x > 0.0, td.where(x < 2.2, x, 2.2), 1.0)
    d = less(b, Float(Y0_FIRST_HIGH), Float(Y0_FIRST_LOW))
    logarithm = log_over(b, d, Float(Y0_FIRST), Float(LOG_Y0_FIRST))
    y = TWO_OVER_PI * logarithm * j0(b) + y0_near(b * b) * (d * (b + Y0_FIRST))
    b = limited_to(x, Float(2.2), Float(5.0))
    d = less(b, Float(Y0_SECOND_HIGH), Float(Y0_SECOND_LOW))
    second = y0_second(b - 3.6) * d
    b = limited_to(x, Float(5.0), Float(8.0))
    d = less(b, Float(Y0_THIRD_HIGH), Float(Y0_THIRD_LOW))
    third = y0_third(b - 6.5) * d
    y = td.where(x < 2.2, y, td.where(x < 5.0, second, third))
    if x >= 8.0:
        y = zeroth_far(x, True)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, y))
    return td.where(td.isnan(x), x, y)


@generic
def y1(x: Float) -> Float:
    """The Bessel function Y1: -infinity at 0, NaN below."""
    b = td.where(x > 0.0, td.where(x < 3.5, x, 3.5), 1.0)
    d = less(b, Float(Y1_FIRST_HIGH), Float(Y1_FIRST_LOW))
    logarithm = log_over(b, d, Float(Y1_FIRST), Float(LOG_Y1_FIRST))
    y = TWO_OVER_PI * logarithm * j1(b) + y1_near(b * b) * (d * (b + Y1_FIRST)) / b
    b = limited_to(x, Float(3.5), Float(8.0))
    d = less(b, Float(Y1_SECOND_HIGH), Float(Y1_SECOND_LOW))
    second = y1_second(b - 5.75) * d
    y = td.where(x < 3.5, y, second)
    if x >= 8.0:
        y = first_far(x, True)
    y = td.where(td.isinf(x), 0.0, y)
    y = td.where(x == 0.0, -INFINITY, td.where(x < 0.0, NAN, y))
    return td.where(td.isnan(x), x, y)


@generic
def jn(x: Float, n: td.i32) -> Float:
    """The Bessel function J of order n; NaN for a negative one.

    For n <= |x|, the upward recurrence from J0 and J1. Above, the downward recurrence from an order
    so high that the start value does not matter, normalized by J0 + 2 J2 + 2 J4 + … = 1 (J. C. P.
    Miller's algorithm; DLMF 3.6). Near 0, the first terms of the series (DLMF 10.2.2); for n far
    above 2 |x|, 0.
    """
    a = td.abs(x)
    order = Float(n)
    upwards = order <= a
    zeroth = j0(a)
    first = j1(a)
    # upward recurrence
    k = td.i32(1)
    last = td.where(upwards and td.isfinite(x), n, 1)
    before = zeroth
    up = first
    following = first
    while k < last:
        following = (2.0 * Float(k) / a) * up - before
        before = up
        up = following
        k = k + 1
    # near 0
    half = 0.5 * a
    tiny = a < SERIES and not upwards
    k = td.i32(1)
    last = td.where(tiny, n, 0)
    series = 1.0 - half * half / (order + 1.0)
    while k <= last and series > 0.0:
        series = series * (half / Float(k))
        k = k + 1
    # downward recurrence
    small = order > 2.0 * a + VANISHES
    ordinary = not upwards and not small and not tiny and n > 1
    divisor = td.where(ordinary, a, 1.0)
    k = td.where(ordinary, (n + td.i32(td.sqrt(START * order))) // 2 * 2, 0)
    even = Float(0.0)
    down = Float(0.0)
    above = Float(0.0)
    current = Float(1.0)
    scale = Float(1.0)
    while k > 0:
        following = (2.0 * Float(k) / divisor) * current - above
        scale = td.where(td.abs(following) > LARGE, Float(LARGE_DOWN), 1.0)
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


@generic
def yn(x: Float, n: td.i32) -> Float:
    """The Bessel function Y of order n, by upward recurrence from Y0 and Y1; NaN for a negative
    order."""
    before = y0(x)
    y = y1(x)
    first = before
    following = y
    k = td.i32(1)
    last = td.where(x > 0.0 and td.isfinite(x), n, 0)
    while k < last and td.isfinite(y):
        following = (2.0 * Float(k) / x) * y - before
        before = y
        y = following
        k = k + 1
    y = td.where(n == 0, first, y)
    return td.where(n < 0, NAN, td.where(td.isnan(x), x, y))
