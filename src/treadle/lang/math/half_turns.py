"""sin(pi x) and cos(pi x): reduced exactly, modulo 2, and exact at multiples of 1/2."""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import flip_sign_by, flip_sign_by_f64
from treadle.lang.math.trigonometry import cos_near, sin_near
from treadle.lang.math.trigonometry_f64 import cos_near_f64, sin_near_f64

NAN = float("nan")
PI_HIGH = 3.1415927410125732
PI_LOW = -8.742278012618954e-08
PI_HIGH_F64 = 3.141592653589793
PI_LOW_F64 = 1.2246467991473532e-16


def half_turns(a: td.f32) -> td.f32:
    """a modulo 2, a >= 0: exact."""
    return a - 2.0 * td.floor(0.5 * a)


def sinpi(x: td.f32) -> td.f32:
    """The sine of pi x. At whole numbers 0, with the sign of x."""
    b = half_turns(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH + r * PI_LOW
    y = td.where((q & 1) != 0, cos_near(angle), sin_near(angle))
    y = td.where((q & 2) != 0 and y != 0.0, -y, y)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


def cospi(x: td.f32) -> td.f32:
    """The cosine of pi x. Halfway between whole numbers 0."""
    b = half_turns(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH + r * PI_LOW
    odd = (q & 1) != 0
    y = td.where(odd, sin_near(angle), cos_near(angle))
    y = td.where(((q + 1) & 2) != 0, -y, y)
    y = td.where(odd and r == 0.0, 0.0, y)
    return td.where(td.isfinite(x), y, NAN)


def half_turns_f64(a: td.f64) -> td.f64:
    """a modulo 2, a >= 0: exact."""
    return a - 2.0 * td.floor(0.5 * a)


def sinpi_f64(x: td.f64) -> td.f64:
    """The sine of pi x. At whole numbers 0, with the sign of x."""
    b = half_turns_f64(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH_F64 + r * PI_LOW_F64
    y = td.where((q & 1) != 0, cos_near_f64(angle), sin_near_f64(angle))
    y = td.where((q & 2) != 0 and y != 0.0, -y, y)
    return td.where(td.isfinite(x), flip_sign_by_f64(y, x), NAN)


def cospi_f64(x: td.f64) -> td.f64:
    """The cosine of pi x. Halfway between whole numbers 0."""
    b = half_turns_f64(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH_F64 + r * PI_LOW_F64
    odd = (q & 1) != 0
    y = td.where(odd, sin_near_f64(angle), cos_near_f64(angle))
    y = td.where(((q + 1) & 2) != 0, -y, y)
    y = td.where(odd and r == 0.0, 0.0, y)
    return td.where(td.isfinite(x), y, NAN)
