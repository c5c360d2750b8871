"""Trigonometric functions and their inverses.

|x| is reduced to r = |x| - q pi/2 with |r| <= pi/4. Up to `NEAR`, pi/2 comes in three parts, so
that q times each of the first two is exact (Cody & Waite, 1980); beyond, see `payne_hanek`.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import (
    exact_quotient,
    exact_root,
    flip_sign_by,
    nearest_integer,
    with_sign_of,
)
from treadle.lang.math.formats import NAN, SIGN, Bits, Float, Integer
from treadle.lang.math.generic import either, generic
from treadle.lang.math.payne_hanek import HALF_PI, HALF_PI_LOW, far_quadrant, far_remainder
from treadle.lang.math.polynomials import asin_tail, atan_tail, cos_tail, sin_tail, tan_tail

TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = either(1.5707855224609375, 1.5707963267341256)  # 17 and 33 bits
HALF_PI_2 = either(1.0804273188114166e-05, 6.077100506303966e-11)  # 17 and 33 bits
HALF_PI_3 = either(6.07710062827671e-11, 2.0222662487959506e-21)
NEAR = either(200.0, 1600000.0)  # up to here three parts of pi/2 are enough

# `atan2` multiplies numbers below TINY by UP, and above HUGE by 2^-64; a quotient below SLIGHT is
# computed UP times as large.
TINY = either(1e-18, 1e-150)
HUGE = either(1e30, 1e290)
SLIGHT = either(1e-18, 1e-200)
UP = either(1.8446744e19, 1.3407807929942597e154)  # 2^64, 2^512
DOWN = either(5.421010862427522e-20, 7.458340731200207e-155)  # 2^-64, 2^-512


@generic
def sin_near(r: Float) -> Float:
    """The sine, |r| <= pi/4."""
    z = r * r
    return r + r * z * sin_tail(z)


@generic
def cos_near(r: Float) -> Float:
    """The cosine, |r| <= pi/4."""
    z = r * r
    return (1.0 - 0.5 * z) + z * z * cos_tail(z)


@generic
def minus_half_pis(a: Float, n: Float) -> Float:
    """a - n * pi/2, by fused multiply-adds, since drivers would add the parts of pi/2 otherwise."""
    return td.fma(-n, HALF_PI_3, td.fma(-n, HALF_PI_2, td.fma(-n, HALF_PI_1, a)))


@generic
def sin(x: Float) -> Float:
    """The sine of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = Float(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = td.where(td.isfinite(a), far_remainder(a), NAN)
    y = td.where((q & 1) != 0, cos_near(r), sin_near(r))
    flips = (td.bitcast(x, Bits) ^ (Bits(q) << 30)) & SIGN
    return td.bitcast(td.bitcast(y, Bits) ^ flips, Float)


@sin.double
def sin(x: Float) -> Float:
    """The sine of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = minus_half_pis(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant(a)
        r = far_remainder(a)
    y = td.where((q & 1) != 0, cos_near(r), sin_near(r))
    y = td.where((q & 2) != 0, -y, y)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


@generic
def cos(x: Float) -> Float:
    """The cosine of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = Float(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = td.where(td.isfinite(a), far_remainder(a), NAN)
    y = td.where((q & 1) != 0, sin_near(r), cos_near(r))
    flips = (Bits(q + 1) << 30) & SIGN
    return td.bitcast(td.bitcast(y, Bits) ^ flips, Float)


@cos.double
def cos(x: Float) -> Float:
    """The cosine of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = minus_half_pis(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant(a)
        r = far_remainder(a)
    y = td.where((q & 1) != 0, sin_near(r), cos_near(r))
    y = td.where(((q + 1) & 2) != 0, -y, y)
    return td.where(td.isfinite(x), y, NAN)


@generic
def tan(x: Float) -> Float:
    """The tangent of any angle in radians."""
    a = td.abs(x)
    q = nearest_integer(a * TWO_OVER_PI)
    n = Float(q)
    r = ((a - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    if a > NEAR:
        q = far_quadrant(a)
        r = far_remainder(a)
    z = r * r
    t = r + r * z * tan_tail(z)
    odd = (q & 1) != 0
    y = td.where(odd, exact_quotient(Float(-1.0), td.where(odd, t, 1.0)), t)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


@tan.double
def tan(x: Float) -> Float:
    """The tangent of any angle in radians."""
    a = td.abs(x)
    n = td.round(td.where(a < NEAR, a, NEAR) * TWO_OVER_PI)
    r = minus_half_pis(a, n)
    q = td.i32(n)
    if a > NEAR:
        q = far_quadrant(a)
        r = far_remainder(a)
    z = r * r
    t = r + r * z * tan_tail(z)
    odd = (q & 1) != 0
    y = td.where(odd, exact_quotient(Float(-1.0), td.where(odd, t, 1.0)), t)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


@generic
def asin(x: Float) -> Float:
    """The arc sine; beyond 1/2 it is pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root(z), a)
    y = s + s * z * asin_tail(z)
    y = td.where(far, HALF_PI - (2.0 * y - HALF_PI_LOW), y)
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def acos(x: Float) -> Float:
    """The arc cosine; beyond 1/2 it is 2 asin(sqrt((1 - |x|) / 2)), or pi minus that."""
    a = td.abs(x)
    far = a > 0.5
    z = td.where(far, 0.5 - 0.5 * td.minimum(a, 1.0), x * x)
    s = td.where(far, exact_root(z), x)
    y = s + s * z * asin_tail(z)
    beyond = td.where(x < 0.0, 2.0 * HALF_PI - (2.0 * y - 2.0 * HALF_PI_LOW), 2.0 * y)
    y = td.where(far, beyond, HALF_PI - (y - HALF_PI_LOW))
    y = td.where(a > 1.0, NAN, y)
    return td.where(td.isnan(x), x, y)


@generic
def atan(x: Float) -> Float:
    """The arc tangent; beyond 1 it is pi/2 - atan(1 / x)."""
    a = td.abs(x)
    far = a > 1.0
    t = td.where(far, 1.0 / td.where(far, td.minimum(a, 1e30), 1.0), a)
    z = t * t
    y = t + t * z * atan_tail(z)
    y = td.where(far, HALF_PI - (y - HALF_PI_LOW), y)
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), from -pi to pi."""
    b = td.abs(y)
    a = td.abs(x)
    steep = b > a
    high = td.where(steep, b, a)
    low = td.where(steep, a, b)
    # A divisor near the ends of the range would overflow or underflow where division multiplies by
    # a reciprocal. Two infinities are replaced by 1 and 1, two zeros by 0 and 1.
    scale = td.where(high < TINY, Float(UP), 1.0)
    scale = td.where(high > HUGE, 5.421010862427522e-20, scale)  # 2^-64
    ends = td.where(low == high, td.where(high == 0.0, Float(0.0), 1.0), low * scale)
    divisor = td.where(low == high, 1.0, high * scale)
    slight = ends < SLIGHT or ends < divisor * SLIGHT  # remainders must not be denormal
    up = td.where(slight, Float(UP), 1.0)
    down = td.where(slight, Float(DOWN), 1.0)
    t = exact_quotient(ends * up, td.where(td.isinf(divisor), 1.0, divisor)) * down
    t = td.where(td.isinf(divisor), 0.0, t)
    z = t * t
    angle = t + t * z * atan_tail(z)
    angle = td.where(steep, HALF_PI - (angle - HALF_PI_LOW), angle)
    left = td.bitcast(x, Integer) < 0
    angle = td.where(left, 2.0 * HALF_PI - (angle - 2.0 * HALF_PI_LOW), angle)
    angle = with_sign_of(angle, y)
    return td.where(td.isnan(x), x, td.where(td.isnan(y), y, angle))
