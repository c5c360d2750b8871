"""Trigonometric functions and their inverses, in f64.

As in f32 (`trigonometry`): three parts of pi/2 up to 1.6 million, then Payne and Hanek's reduction,
here with 256 of the 1216 bits of 2/pi that a double may need.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient_f64,
    exact_root_f64,
    flip_sign_by_f64,
    with_sign_of_f64,
)
from treadle.lang.math.polynomials import (
    asin_tail_f64,
    atan_tail_f64,
    cos_tail_f64,
    sin_tail_f64,
    tan_tail_f64,
)

NAN = float("nan")
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = 1.5707963267341256  # 33 bits
HALF_PI_2 = 6.077100506303966e-11  # 33 bits
HALF_PI_3 = 2.0222662487959506e-21
HALF_PI = 1.5707963267948966
HALF_PI_LOW = 6.123233995736766e-17
NEAR = 1600000.0  # up to here three parts of pi/2 are enough


def turns_f64(a: td.f64, upper: td.bool) -> td.u64:
    """The upper or lower half of the 128 bits of (a * 2/pi mod 4) * 2^126, 16 <= a < infinity."""
    bits = td.bitcast(a, td.u64)
    m = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    position = (bits >> 52) - 1013  # where the window begins in 0, 2/pi as a stream of bits
    word = position >> 6
    w16 = word >= 16
    a0 = td.where(w16, td.u64(0x7527BAC7EBE5F17B), td.u64(0))
    a1 = td.where(w16, td.u64(0x3D0739F78A5292EA), td.u64(0xA2F9836E4E441529))
    a2 = td.where(w16, td.u64(0x6BFB5FB11F8D5D08), td.u64(0xFC2757D1F534DDC0))
    a3 = td.where(w16, td.u64(0x56033046FC7B6BAB), td.u64(0xDB6295993C439041))
    a4 = td.u64(0xFE5163ABDEBBC561)
    a5 = td.u64(0xB7246E3A424DD2E0)
    a6 = td.u64(0x06492EEA09D1921C)
    a7 = td.u64(0xFE1DEB1CB129A73E)
    a8 = td.u64(0xE88235F52EBB4484)
    a9 = td.u64(0xE99C7026B45F7E41)
    a10 = td.u64(0x3991D639835339F4)
    a11 = td.u64(0x9C845F8BBDF9283B)
    a12 = td.u64(0x1FF897FFDE05980F)
    a13 = td.u64(0xEF2F118B5A0A6D1F)
    a14 = td.u64(0x6D367ECF27CB09B7)
    a15 = td.u64(0x4F463F669E5FEA2D)
    a16 = td.u64(0x7527BAC7EBE5F17B)
    a17 = td.u64(0x3D0739F78A5292EA)
    a18 = td.u64(0x6BFB5FB11F8D5D08)
    w8 = (word & 8) != 0
    b0 = td.where(w8, a8, a0)
    b1 = td.where(w8, a9, a1)
    b2 = td.where(w8, a10, a2)
    b3 = td.where(w8, a11, a3)
    b4 = td.where(w8, a12, a4)
    b5 = td.where(w8, a13, a5)
    b6 = td.where(w8, a14, a6)
    b7 = td.where(w8, a15, a7)
    b8 = td.where(w8, a16, a8)
    b9 = td.where(w8, a17, a9)
    b10 = td.where(w8, a18, a10)
    w4 = (word & 4) != 0
    c0 = td.where(w4, b4, b0)
    c1 = td.where(w4, b5, b1)
    c2 = td.where(w4, b6, b2)
    c3 = td.where(w4, b7, b3)
    c4 = td.where(w4, b8, b4)
    c5 = td.where(w4, b9, b5)
    c6 = td.where(w4, b10, b6)
    w2 = (word & 2) != 0
    d0 = td.where(w2, c2, c0)
    d1 = td.where(w2, c3, c1)
    d2 = td.where(w2, c4, c2)
    d3 = td.where(w2, c5, c3)
    d4 = td.where(w2, c6, c4)
    w1 = (word & 1) != 0
    e0 = td.where(w1, d1, d0)
    e1 = td.where(w1, d2, d1)
    e2 = td.where(w1, d3, d2)
    e3 = td.where(w1, d4, d3)
    left = position & 63
    right = 64 - left  # a shift by 64 gives 0
    f0 = (e0 << left) | (e1 >> right)
    f1 = (e1 << left) | (e2 >> right)
    f2 = (e2 << left) | (e3 >> right)
    middle = m * f1
    lower = middle + td.mul_high(m, f2)
    carry = td.where(lower < middle, td.u64(1), td.u64(0))
    return td.where(upper, m * f0 + td.mul_high(m, f1) + carry, lower)


def far_quadrant_f64(a: td.f64) -> td.i32:
    """q modulo 4, for any a from 16 up."""
    return td.i32((turns_f64(a, True) + 0x2000000000000000) >> 62)


def far_rest_f64(a: td.f64) -> td.f64:
    """a - q pi/2, for any a from 16 up."""
    high = turns_f64(a, True)
    low = turns_f64(a, False)
    high = high - (((high + 0x2000000000000000) >> 62) << 62)
    negative = high >= 0x8000000000000000
    high = td.where(negative, ~high, high)  # the two's complement, but for a unit in 2^126
    low = td.where(negative, ~low, low)
    turn = td.f64(high & 0xFFFFFFFFFFFFF800) * 2.168404344971009e-19  # exact
    rest = td.f64(high & 0x7FF) * 2.168404344971009e-19 + td.f64(low) * 1.1754943508222875e-38
    r = turn * HALF_PI + (turn * HALF_PI_LOW + rest * HALF_PI)
    return td.where(negative, -r, r)


def sin_near_f64(r: td.f64) -> td.f64:
    """The sine, |r| <= pi/4."""
    z = r * r
    return r + r * z * sin_tail_f64(z)


def cos_near_f64(r: td.f64) -> td.f64:
    """The cosine, |r| <= pi/4."""
    z = r * r
    return (1.0 - 0.5 * z) + z * z * cos_tail_f64(z)


def without_turns_f64(a: td.f64, n: td.f64) -> td.f64:
    """a - n * pi/2, by fused multiply-adds: drivers add up the parts of pi/2 otherwise."""
    return td.fma(-n, HALF_PI_3, td.fma(-n, HALF_PI_2, td.fma(-n, HALF_PI_1, a)))


def sin_f64(x: td.f64) -> td.f64:
    """The sine of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = without_turns_f64(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant_f64(a)
        r = far_rest_f64(a)
    y = td.where((q & 1) != 0, cos_near_f64(r), sin_near_f64(r))
    y = td.where((q & 2) != 0, -y, y)
    return td.where(td.isfinite(x), flip_sign_by_f64(y, x), NAN)


def cos_f64(x: td.f64) -> td.f64:
    """The cosine of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = without_turns_f64(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant_f64(a)
        r = far_rest_f64(a)
    y = td.where((q & 1) != 0, sin_near_f64(r), cos_near_f64(r))
    y = td.where(((q + 1) & 2) != 0, -y, y)
    return td.where(td.isfinite(x), y, NAN)


def tan_f64(x: td.f64) -> td.f64:
    """The tangent of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = without_turns_f64(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant_f64(a)
        r = far_rest_f64(a)
    z = r * r
    t = r + r * z * tan_tail_f64(z)
    odd = (q & 1) != 0
    y = td.where(odd, exact_quotient_f64(td.f64(-1.0), td.where(odd, t, 1.0)), t)
    return td.where(td.isfinite(x), flip_sign_by_f64(y, x), NAN)


def asin_f64(x: td.f64) -> td.f64:
    """The arc sine; beyond 1/2 it is pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root_f64(z), a)
    y = s + s * z * asin_tail_f64(z)
    y = td.where(far, HALF_PI - (2.0 * y - HALF_PI_LOW), y)
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def acos_f64(x: td.f64) -> td.f64:
    """The arc cosine; beyond 1/2 it is 2 asin(sqrt((1 - |x|) / 2)), or pi less that."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root_f64(z), x)
    y = s + s * z * asin_tail_f64(z)
    beyond = td.where(x < 0.0, 2.0 * HALF_PI - (2.0 * y - 2.0 * HALF_PI_LOW), 2.0 * y)
    y = td.where(far, beyond, HALF_PI - (y - HALF_PI_LOW))
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, y)


def atan_f64(x: td.f64) -> td.f64:
    """The arc tangent; beyond 1 it is pi/2 - atan(1 / x)."""
    a = td.abs(x)
    far = a > 1.0
    t = td.where(far, 1.0 / td.where(far, td.minimum(a, 1e30), 1.0), a)
    z = t * t
    y = t + t * z * atan_tail_f64(z)
    y = td.where(far, HALF_PI - (y - HALF_PI_LOW), y)
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def atan2_f64(y: td.f64, x: td.f64) -> td.f64:
    """The angle of the point (x, y), from -pi to pi."""
    b = td.abs(y)
    a = td.abs(x)
    steep = b > a
    high = td.where(steep, b, a)
    low = td.where(steep, a, b)
    # A divisor near the ends of the range would over- or underflow where division is a product
    # with a reciprocal; two infinities, or two zeros, are taken as 1 and 1, or 0 and 1.
    scale = td.where(high < 1e-150, td.f64(1.3407807929942597e154), 1.0)  # 2^512
    scale = td.where(high > 1e290, 5.421010862427522e-20, scale)  # 2^-64
    ends = td.where(low == high, td.where(high == 0.0, td.f64(0.0), 1.0), low * scale)
    divisor = td.where(low == high, 1.0, high * scale)
    slight = ends < 1e-200 or ends < divisor * 1e-200  # the quotient's rests must not be denormal
    up = td.where(slight, td.f64(1.3407807929942597e154), 1.0)
    down = td.where(slight, td.f64(7.458340731200207e-155), 1.0)
    t = exact_quotient_f64(ends * up, td.where(td.isinf(divisor), 1.0, divisor)) * down
    t = td.where(td.isinf(divisor), 0.0, t)
    z = t * t
    angle = t + t * z * atan_tail_f64(z)
    angle = td.where(steep, HALF_PI - (angle - HALF_PI_LOW), angle)
    left = td.bitcast(x, td.i64) < 0
    angle = td.where(left, 2.0 * HALF_PI - (angle - 2.0 * HALF_PI_LOW), angle)
    angle = with_sign_of_f64(angle, y)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, angle))
