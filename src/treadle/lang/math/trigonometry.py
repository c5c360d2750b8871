"""Trigonometric functions and their inverses, in f32.

|x| is reduced to r = |x| - q pi/2 with |r| <= pi/4. Up to 200, pi/2 comes in three parts, so that q
times each of the first two is exact (Cody & Waite, 1980). Beyond, |x| is multiplied, modulo 4, with
the bits of 2/pi that matter, in integer arithmetic (M. H. Payne and R. N. Hanek, "Radian reduction
for trigonometric functions", 1983): right up to the largest float. The 128 bits that may matter are
picked from 2/pi by selects, not by a table, so the code has neither loops nor memory.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient,
    exact_root,
    flip_sign_by,
    nearest_integer,
    with_sign_of,
)
from treadle.lang.math.polynomials import asin_tail, atan_tail, cos_tail, sin_tail, tan_tail

NAN = float("nan")
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = 1.5707855224609375  # 17 bits
HALF_PI_2 = 1.0804273188114166e-05  # 17 bits
HALF_PI_3 = 6.07710062827671e-11
HALF_PI = 1.5707963705062866
HALF_PI_LOW = -4.371138828673793e-08
NEAR = 200.0  # up to here three parts of pi/2 are enough


def turns(a: td.f32, upper: td.bool) -> td.u32:
    """The upper or lower half of the 64 bits of (a * 2/pi mod 4) * 2^62, for 16 <= a < infinity."""
    bits = td.bitcast(a, td.u32)
    m = (bits & 0x7FFFFF) | 0x800000
    position = (bits >> 23) - 120  # where the window begins in 0, 2/pi as a stream of bits
    word = position >> 5
    w4 = word >= 4
    a0 = td.where(w4, td.u32(0xF534DDC0), td.u32(0))
    a1 = td.where(w4, td.u32(0xDB629599), td.u32(0xA2F9836E))
    a2 = td.where(w4, td.u32(0x3C439041), td.u32(0x4E441529))
    a3 = td.where(w4, td.u32(0xFE5163AB), td.u32(0xFC2757D1))
    a4 = td.u32(0xF534DDC0)
    a5 = td.u32(0xDB629599)
    a6 = td.u32(0x3C439041)
    w2 = (word & 2) != 0
    b0 = td.where(w2, a2, a0)
    b1 = td.where(w2, a3, a1)
    b2 = td.where(w2, a4, a2)
    b3 = td.where(w2, a5, a3)
    b4 = td.where(w2, a6, a4)
    w1 = (word & 1) != 0
    c0 = td.where(w1, b1, b0)
    c1 = td.where(w1, b2, b1)
    c2 = td.where(w1, b3, b2)
    c3 = td.where(w1, b4, b3)
    left = position & 31
    right = 32 - left  # a shift by 32 gives 0
    d0 = (c0 << left) | (c1 >> right)
    d1 = (c1 << left) | (c2 >> right)
    d2 = (c2 << left) | (c3 >> right)
    middle = m * d1
    lower = middle + td.mul_high(m, d2)
    carry = td.where(lower < middle, td.u32(1), td.u32(0))
    return td.where(upper, m * d0 + td.mul_high(m, d1) + carry, lower)


def far_quadrant(a: td.f32) -> td.i32:
    """q modulo 4, for any a from 16 up."""
    return td.i32((turns(a, True) + 0x20000000) >> 30)


def far_rest(a: td.f32) -> td.f32:
    """a - q pi/2, for any a from 16 up."""
    high = turns(a, True)
    low = turns(a, False)
    high = high - (((high + 0x20000000) >> 30) << 30)
    negative = high >= 0x80000000
    high = td.where(negative, ~high, high)  # the two's complement, but for a unit in 2^62
    low = td.where(negative, ~low, low)
    turn = td.f32(high & 0xFFFFFF00) * 9.313225746154785e-10  # exact
    rest = td.f32(high & 0xFF) * 9.313225746154785e-10 + td.f32(low) * 2.168404344971009e-19
    r = turn * HALF_PI + (turn * HALF_PI_LOW + rest * HALF_PI)
    return td.where(negative, -r, r)


def sin_near(r: td.f32) -> td.f32:
    """The sine, |r| <= pi/4."""
    z = r * r
    return r + r * z * sin_tail(z)


def cos_near(r: td.f32) -> td.f32:
    """The cosine, |r| <= pi/4."""
    z = r * r
    return (1.0 - 0.5 * z) + z * z * cos_tail(z)


def sin(x: td.f32) -> td.f32:
    """The sine of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = td.f32(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = td.where(td.isfinite(a), far_rest(a), NAN)
    y = td.where((q & 1) != 0, cos_near(r), sin_near(r))
    flips = (td.bitcast(x, td.u32) ^ (td.u32(q) << 30)) & 0x80000000
    return td.bitcast(td.bitcast(y, td.u32) ^ flips, td.f32)


def cos(x: td.f32) -> td.f32:
    """The cosine of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = td.f32(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = td.where(td.isfinite(a), far_rest(a), NAN)
    y = td.where((q & 1) != 0, sin_near(r), cos_near(r))
    flips = (td.u32(q + 1) << 30) & 0x80000000
    return td.bitcast(td.bitcast(y, td.u32) ^ flips, td.f32)


def tan(x: td.f32) -> td.f32:
    """The tangent of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = td.f32(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = far_rest(a)
    z = r * r
    t = r + r * z * tan_tail(z)
    odd = (q & 1) != 0
    y = td.where(odd, exact_quotient(td.f32(-1.0), td.where(odd, t, 1.0)), t)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


def asin(x: td.f32) -> td.f32:
    """The arc sine; beyond 1/2 it is pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root(z), a)
    y = s + s * z * asin_tail(z)
    y = td.where(far, HALF_PI - (2.0 * y - HALF_PI_LOW), y)
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


def acos(x: td.f32) -> td.f32:
    """The arc cosine; beyond 1/2 it is 2 asin(sqrt((1 - |x|) / 2)), or pi less that."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root(z), x)
    y = s + s * z * asin_tail(z)
    beyond = td.where(x < 0.0, 2.0 * HALF_PI - (2.0 * y - 2.0 * HALF_PI_LOW), 2.0 * y)
    y = td.where(far, beyond, HALF_PI - (y - HALF_PI_LOW))
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, y)


def atan(x: td.f32) -> td.f32:
    """The arc tangent; beyond 1 it is pi/2 - atan(1 / x)."""
    a = td.abs(x)
    far = a > 1.0
    t = td.where(far, 1.0 / td.where(far, td.minimum(a, 1e30), 1.0), a)
    z = t * t
    y = t + t * z * atan_tail(z)
    y = td.where(far, HALF_PI - (y - HALF_PI_LOW), y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


def atan2(y: td.f32, x: td.f32) -> td.f32:
    """The angle of the point (x, y), from -pi to pi."""
    b = td.abs(y)
    a = td.abs(x)
    steep = b > a
    high = td.where(steep, b, a)
    low = td.where(steep, a, b)
    # A divisor near the ends of the range would over- or underflow where division is a product
    # with a reciprocal; two infinities, or two zeros, are taken as 1 and 1, or 0 and 1.
    scale = td.where(high < 1e-18, 1.8446744e19, 1.0)  # 2^64
    scale = td.where(high > 1e30, 5.421010862427522e-20, scale)  # 2^-64
    ends = td.where(low == high, td.where(high == 0.0, 0.0, 1.0), low * scale)
    divisor = td.where(low == high, 1.0, high * scale)
    slight = ends < 1e-18 or ends < divisor * 1e-18  # the quotient's rests must not be denormal
    up = td.where(slight, 1.8446744e19, 1.0)
    down = td.where(slight, 5.421010862427522e-20, 1.0)
    t = exact_quotient(ends * up, td.where(td.isinf(divisor), 1.0, divisor)) * down
    t = td.where(td.isinf(divisor), 0.0, t)
    z = t * t
    angle = t + t * z * atan_tail(z)
    angle = td.where(steep, HALF_PI - (angle - HALF_PI_LOW), angle)
    left = td.bitcast(x, td.i32) < 0
    angle = td.where(left, 2.0 * HALF_PI - (angle - 2.0 * HALF_PI_LOW), angle)
    angle = with_sign_of(angle, y)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, angle))
