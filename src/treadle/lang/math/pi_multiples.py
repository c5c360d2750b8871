"""sin(pi x) and cos(pi x): the reduction modulo 2 is exact, and so are results at multiples of
1/2."""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import flip_sign_by
from treadle.lang.math.formats import NAN, Float
from treadle.lang.math.generic import either, generic
from treadle.lang.math.trigonometry import cos_near, sin_near

PI_HIGH = either(3.1415927410125732, 3.141592653589793)
PI_LOW = either(-8.742278012618954e-08, 1.2246467991473532e-16)


@generic
def modulo_two(a: Float) -> Float:
    """a modulo 2, exactly, for a >= 0."""
    return a - 2.0 * td.floor(0.5 * a)


@generic
def sinpi(x: Float) -> Float:
    """The sine of pi x. At integers it is 0, with the sign of x."""
    b = modulo_two(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH + r * PI_LOW
    y = td.where((q & 1) != 0, cos_near(angle), sin_near(angle))
    y = td.where((q & 2) != 0 and y != 0.0, -y, y)
    return td.where(td.isfinite(x), flip_sign_by(y, x), NAN)


@generic
def cospi(x: Float) -> Float:
    """The cosine of pi x. Halfway between integers it is 0."""
    b = modulo_two(td.abs(x))
    n = td.round(b + b)
    q = td.i32(n)
    r = b - 0.5 * n
    angle = r * PI_HIGH + r * PI_LOW
    odd = (q & 1) != 0
    y = td.where(odd, sin_near(angle), cos_near(angle))
    y = td.where(((q + 1) & 2) != 0, -y, y)
    y = td.where(odd and r == 0.0, 0.0, y)
    return td.where(td.isfinite(x), y, NAN)
