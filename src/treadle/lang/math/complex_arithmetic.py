"""Arithmetic of complex numbers, which are vectors of two: x the real part, y the imaginary one.

The functions work in f32 and f64, by the type of the argument. Numbers near the ends of the range
are scaled by powers of two where f32 needs it; that is harmless in f64, whose range is larger.
Special values are those of C99's Annex G, except for products: an infinite factor may give NaN, as
in NumPy.
"""

from __future__ import annotations

from typing import Any

from treadle.lang import namespace as td

INFINITY = float("inf")
NAN = float("nan")
HUGE = 1e30
TINY = 1e-30
UP = 72057594037927936.0  # 2^56
DOWN = 1.3877787807814457e-17  # 2^-56
ROOT_UP = 268435456.0  # 2^28
ROOT_DOWN = 3.725290298461914e-09  # 2^-28


def pair(like: Any, x: Any, y: Any) -> Any:
    """The complex number x + iy, of the type of `like`."""
    z = like
    z.x = x
    z.y = y
    return z


def larger_part(z: Any) -> Any:
    """The larger of |x| and |y|."""
    a = td.abs(z.x)
    b = td.abs(z.y)
    return td.where(a > b, a, b)


def down_scale(z: Any) -> Any:
    """A power of two that scales z away from the ends of the range."""
    size = larger_part(z)
    return td.where(size > HUGE, DOWN, td.where(size < TINY, UP, 1.0))


def up_scale(z: Any) -> Any:
    """The inverse of `down_scale`."""
    size = larger_part(z)
    return td.where(size > HUGE, UP, td.where(size < TINY, DOWN, 1.0))


def unit_part(v: Any) -> Any:
    """1 for an infinity, else 0, with the sign of v."""
    return td.copysign(td.where(td.isinf(v), 1.0, 0.0), v)


def infinite_part(v: Any) -> Any:
    """v times infinity."""
    return td.where(v == 0.0 or td.isnan(v), NAN, td.copysign(INFINITY, v))


def mul(z: Any, w: Any) -> Any:
    """The product."""
    return pair(z, z.x * w.x - z.y * w.y, z.x * w.y + z.y * w.x)


def square(z: Any) -> Any:
    """z * z, whose real part (x - y) (x + y) does not cancel."""
    return pair(z, (z.x - z.y) * (z.x + z.y), 2.0 * z.x * z.y)


def div(z: Any, w: Any) -> Any:
    """The quotient.

    Both sides are divided by the larger part of w (R. L. Smith, "Algorithm 116: Complex division",
    1962). If the quotient of its parts underflows, the product is computed in another order (M.
    Baudin and R. L. Smith, "A robust complex division in Scilab", 2012).
    """
    down_z = down_scale(z)
    down_w = down_scale(w)
    a = z.x * down_z
    b = z.y * down_z
    c = w.x * down_w
    d = w.y * down_w
    flat = td.abs(c) >= td.abs(d)
    high = td.where(flat, c, d)
    low = td.where(flat, d, c)
    p = td.where(flat, a, b)
    q = td.where(flat, b, a)
    ratio = low / high
    divisor = high + low * ratio
    lost = ratio == 0.0
    x = (p + td.where(lost, q / high * low, q * ratio)) / divisor
    y = (q - td.where(lost, p / high * low, p * ratio)) / divisor
    back = up_scale(z) * down_w
    x = x * back
    y = td.where(flat, y, -y) * back
    finite = isfinite(z)
    if isinf(w) and finite:
        x = 0.0 * (a * unit_part(w.x) + b * unit_part(w.y))
        y = 0.0 * (b * unit_part(w.x) - a * unit_part(w.y))
    if isinf(z) and isfinite(w):
        x = infinite_part(unit_part(z.x) * c + unit_part(z.y) * d)
        y = infinite_part(unit_part(z.y) * c - unit_part(z.x) * d)
    if w.x == 0.0 and w.y == 0.0:
        x = infinite_part(td.where(td.signbit(w.x), -z.x, z.x))
        y = infinite_part(td.where(td.signbit(w.x), -z.y, z.y))
    return pair(z, x, y)


def reciprocal(z: Any) -> Any:
    """1 / z."""
    return div(pair(z, 1.0, 0.0), z)


def conj(z: Any) -> Any:
    """The conjugate, x - iy."""
    return pair(z, z.x, -z.y)


def abs(z: Any) -> Any:
    """The absolute value, a real number."""
    return td.hypot(z.x, z.y)


def angle(z: Any) -> Any:
    """The angle, from -pi to pi. On the negative real axis it is pi if the imaginary part is 0, and
    -pi if it is -0."""
    return td.atan2(z.y, z.x)


def sign(z: Any) -> Any:
    """z / |z|, and 0 for every zero. For an infinite z it is the direction."""
    scale = down_scale(z)
    endless = isinf(z) and not isnan(z)
    x = td.where(endless, unit_part(z.x), z.x * scale)
    y = td.where(endless, unit_part(z.y), z.y * scale)
    size = td.hypot(x, y)
    zero = size == 0.0
    size = td.where(zero, 1.0, size)
    return pair(z, td.where(zero, 0.0, x / size), td.where(zero, 0.0, y / size))


def isnan(z: Any) -> Any:
    """Whether a part is NaN."""
    return td.isnan(z.x) or td.isnan(z.y)


def isinf(z: Any) -> Any:
    """Whether a part is infinite, even if the other is NaN."""
    return td.isinf(z.x) or td.isinf(z.y)


def isfinite(z: Any) -> Any:
    """Whether both parts are finite."""
    return td.isfinite(z.x) and td.isfinite(z.y)


def sqrt(z: Any) -> Any:
    """The square root with a real part >= 0; the branch cut is the negative real axis.

    The larger part of the root is sqrt((|x| + |z|) / 2), which does not cancel, and the other one
    is |y| / 2 divided by it (W. Kahan, "Branch cuts for complex elementary functions", 1987).
    """
    scale = down_scale(z)
    size = larger_part(z)
    back = td.where(size > HUGE, ROOT_UP, td.where(size < TINY, ROOT_DOWN, 1.0))
    a = td.abs(z.x) * scale
    b = td.abs(z.y) * scale
    high = td.sqrt(0.5 * (a + td.hypot(a, b)))
    low = 0.5 * td.abs(z.y) * (scale * back) / td.where(high == 0.0, 1.0, high)
    right = z.x >= 0.0
    x = td.where(right, high * back, low)
    y = td.where(right, low, high * back)
    if td.isinf(z.x):
        other = td.where(td.isnan(z.y), z.y, 0.0)
        x = td.where(right, INFINITY, other)
        y = td.where(right, other, INFINITY)
    if td.isinf(z.y):
        x = td.abs(z.y)
        y = td.abs(z.y)
    return pair(z, x, td.copysign(y, z.y))


def rsqrt(z: Any) -> Any:
    """1 / sqrt(z)."""
    return reciprocal(sqrt(z))
