"""Inverse trigonometric and hyperbolic functions of complex numbers, in f32 and f64 alike.

The formulas are W. Kahan's ("Branch cuts for complex elementary functions, or much ado about
nothing's sign bit", 1987): products of the square roots of 1 - z and 1 + z, in which nothing
cancels, even near the branch points. They are used in one quadrant, and the signs are restored
afterwards. So the branch cuts are those of C99's Annex G: the sign of a zero determines on which
side of a cut a number lies.
"""

from __future__ import annotations

from typing import Any

from treadle.lang import namespace as td
from treadle.lang.math.complex_arithmetic import pair, sqrt
from treadle.lang.math.complex_exponential import LN2, log_abs

HALF_PI = 1.5707963267948966
HUGE = 1e18  # above, 1 is negligible in 1 + z^2


def height(p: Any, q: Any, z: Any, huge: Any) -> Any:
    """The imaginary part of asin z, in the first quadrant, from the roots of 1 - z and 1 + z."""
    y = td.asinh(td.where(huge, 0.0, p.x * q.y + p.y * q.x))
    return td.where(huge, log_abs(z) + LN2, y)


def is_huge(z: Any) -> Any:
    """Whether asin z and similar functions equal their asymptotes."""
    return td.abs(z.x) > HUGE or td.abs(z.y) > HUGE


def asin(z: Any) -> Any:
    """The arc sine; the branch cuts are the real axis beyond 1 and -1."""
    huge = is_huge(z)
    a = td.abs(z.x)
    b = td.abs(z.y)
    p = sqrt(pair(z, 1.0 - a, b))
    q = sqrt(pair(z, 1.0 + a, b))
    x = td.atan2(a, td.where(huge, b, p.x * q.x + p.y * q.y))
    x = td.where(a == 0.0, 0.0, x)
    y = height(p, q, z, huge)
    return pair(z, td.copysign(x, z.x), td.copysign(y, z.y))


def acos(z: Any) -> Any:
    """The arc cosine, its real part from 0 to pi; the branch cuts are those of `asin`."""
    huge = is_huge(z)
    a = td.abs(z.x)
    b = td.abs(z.y)
    p = sqrt(pair(z, 1.0 - a, b))
    q = sqrt(pair(z, 1.0 + a, b))
    left = td.signbit(z.x)
    x = 2.0 * td.atan2(td.where(left, q.x, p.x), td.where(left, p.x, q.x))
    x = td.where(huge, td.atan2(b, z.x), x)
    x = td.where(a == 0.0, HALF_PI, x)
    y = td.copysign(height(p, q, z, huge), z.y)
    return pair(z, x, -y)


def acosh(z: Any) -> Any:
    """The inverse hyperbolic cosine, its real part >= 0; the branch cut is the axis below 1."""
    w = acos(z)
    return pair(z, td.abs(w.y), td.copysign(w.x, z.y))


def asinh(z: Any) -> Any:
    """The inverse hyperbolic sine, i asin(-iz); the branch cuts are the imaginary axis beyond i and
    -i."""
    return asin(z.yx).yx


def atanh(z: Any) -> Any:
    """The inverse hyperbolic tangent; the branch cuts are the real axis beyond 1 and -1."""
    huge = is_huge(z)
    a = td.where(huge, 0.0, td.abs(z.x))
    b = td.where(huge, 0.0, td.abs(z.y))
    away = 1.0 - a
    x = 0.25 * td.log1p(4.0 * a / (away * away + b * b))
    close = a == 1.0 and b < 1e-9  # b^2 may underflow
    x = td.where(close, 0.5 * (LN2 - td.log(td.where(close, b, 1.0))), x)
    y = 0.5 * td.atan2(2.0 * b, away * (1.0 + a) - b * b)
    if huge:
        size = td.hypot(z.x, z.y)
        x = td.where(td.isinf(size), 0.0, td.abs(z.x) / size / size)
        y = td.where(td.isnan(z.y), z.y, td.where(td.isnan(size), size, HALF_PI))
    x = td.where(z.x == 0.0, 0.0, x)
    return pair(z, td.copysign(x, z.x), td.copysign(y, z.y))


def atan(z: Any) -> Any:
    """The arc tangent, i atanh(-iz); the branch cuts are the imaginary axis beyond i and -i."""
    return atanh(z.yx).yx
