"""Exponentials, logarithms, powers, hyperbolic and trigonometric functions of complex numbers.

As in `complex_arithmetic` a number is a vector of two, in f32 or f64. The logarithms, which need
exact squares near the unit circle, have a version for each type. e^x may overflow where its product
with a sine does not, so above 80 it is multiplied in two halves. Special values and signs of zeros
are those of C99's Annex G.
"""

from __future__ import annotations

from typing import Any

from treadle.lang import namespace as td
from treadle.lang.math.bits import head
from treadle.lang.math.complex_arithmetic import (
    HUGE,
    INFINITY,
    NAN,
    TINY,
    down_scale,
    larger_part,
    mul,
    pair,
    reciprocal,
    square,
)
from treadle.lang.math.formats import Float
from treadle.lang.math.generic import generic

LN2 = 0.6931471805599453
LN2_56 = 38.816242111356935  # 56 ln 2, to add to the logarithm of a scaled number
LOG2_E = 1.4426950408889634
LOG10_E = 0.4342944819032518
FAR = 80.0
MOST_FACTORS = 16.0  # the largest integer power that is computed by products


def exp(z: Any) -> Any:
    """The exponential function."""
    far = z.x > FAR
    half = td.exp(td.where(far, 0.5 * z.x, z.x))
    return rotated(z, half, td.where(far, half, 1.0))


def exp2(z: Any) -> Any:
    """2 to the power z."""
    far = z.x > FAR
    half = td.exp2(td.where(far, 0.5 * z.x, z.x))
    return rotated(pair(z, z.x, z.y * LN2), half, td.where(far, half, 1.0))


def rotated(z: Any, half: Any, other: Any) -> Any:
    """half * other, a real power, rotated by the angle z.y."""
    x = half * td.cos(z.y) * other
    y = half * td.sin(z.y) * other
    if z.y == 0.0:
        x = half * other
        y = z.y
    if td.isinf(z.x) and not td.isfinite(z.y):
        right = z.x > 0.0
        x = td.where(right, INFINITY, 0.0)
        y = td.where(right, NAN, td.copysign(0.0, z.y))
    return pair(z, x, y)


def expm1(z: Any) -> Any:
    """exp(z) - 1, without cancellation near 0: the real part is expm1(x) cos y - 2 sin(y / 2)^2."""
    whole = exp(z)
    near = z.x < 40.0
    half = td.sin(0.5 * z.y)
    x = td.expm1(td.where(near, z.x, 0.0)) * td.cos(z.y) - 2.0 * half * half
    x = td.where(z.y == 0.0, td.expm1(z.x), td.where(near, x, whole.x))
    x = td.where(td.isinf(z.x) and near, -1.0, x)
    x = td.where(z.x == 0.0 and z.y == 0.0, 0.0, x)  # for -0 too, by the Array API
    return pair(z, x, whole.y)


def sigmoid(z: Any) -> Any:
    """1 / (1 + exp(-z)). With e = exp(-|x|) and c = cos(y / 2) the divisor, 1 + 2 e cos y + e^2, is
    (1 - e)^2 + 4 e c^2, which does not cancel near the poles."""
    e = td.exp(-td.abs(z.x))
    f = -td.expm1(-td.abs(z.x))
    c = td.cos(0.5 * z.y)
    s = td.sin(0.5 * z.y)
    near = 2.0 * c * c
    divisor = f * f + 2.0 * e * near
    x = td.where(z.x < 0.0, e * (near - f), f + e * near)
    return pair(z, x / divisor, 2.0 * e * s * c / divisor)


# --- logarithms ----------------------------------------------------------------------------------


def log_abs(z: Any) -> Any:
    """log |z|, for any z, with an absolute error of one or two roundings."""
    size = larger_part(z)
    scale = down_scale(z)
    y = td.log(td.hypot(z.x * scale, z.y * scale))
    return td.where(size > HUGE, y + LN2_56, td.where(size < TINY, y - LN2_56, y))


@generic
def norm_less_one(t: Float, y: Float) -> Float:
    """(1 + t)^2 + y^2 - 1 = 2t + y^2 + t^2. The squares of heads are exact, and come first."""
    t_head = head(t)
    y_head = head(y)
    tail = (t - t_head) * (t + t_head) + (y - y_head) * (y + y_head)
    return ((2.0 * t + y_head * y_head) + t_head * t_head) + tail


def log_given(z: Any, norm: Any) -> Any:
    """log z, where `norm` is |z|^2 - 1, precise near the unit circle."""
    near = larger_part(z) < 2.0
    circle = near and norm > -0.5 and norm < 1.0
    x = td.where(circle, 0.5 * td.log1p(td.where(circle, norm, 0.0)), log_abs(z))
    return pair(z, x, td.atan2(z.y, z.x))


def log1p_given(z: Any, norm: Any) -> Any:
    """log(1 + z), where `norm` is |1 + z|^2 - 1, precise near the unit circle around -1."""
    w = pair(z, 1.0 + z.x, z.y)
    near = larger_part(w) < 2.0
    circle = near and norm > -0.75 and norm < 3.0
    x = td.where(circle, 0.5 * td.log1p(td.where(circle, norm, 0.0)), log_abs(w))
    x = td.where(z.x == 0.0 and z.y == 0.0, z.x, x)
    return pair(z, x, td.atan2(w.y, w.x))


def smaller_part(z: Any) -> Any:
    """The smaller of |x| and |y|."""
    a = td.abs(z.x)
    b = td.abs(z.y)
    return td.where(a > b, b, a)


def from_one(x: Any) -> Any:
    """|1 + x| - 1, without rounding if it is near 0."""
    return td.where(x < -1.0, -2.0 - x, x)


@generic
def log(z: Any) -> Any:
    """The natural logarithm; the branch cut is the negative real axis."""
    return log_given(z, norm_less_one(larger_part(z) - 1.0, smaller_part(z)))


@generic
def log1p(z: Any) -> Any:
    """log(1 + z), without cancellation near 0."""
    return log1p_given(z, norm_less_one(from_one(z.x), z.y))


@generic
def log2(z: Any) -> Any:
    """The logarithm to base 2."""
    return log(z) * LOG2_E


@generic
def log10(z: Any) -> Any:
    """The logarithm to base 10."""
    return log(z) * LOG10_E


@generic
def logaddexp(z: Any, w: Any) -> Any:
    """log(exp(z) + exp(w)), without overflow."""
    return larger_plus(z, w, log1p(exp(ordered_difference(z, w))))


def ordered_difference(z: Any, w: Any) -> Any:
    """The difference of z and w, ordered so that its real part is not positive; 0 if they are
    equal."""
    d = td.where(w.x > z.x, 1.0, -1.0)
    x = td.where(z.x == w.x, 0.0, d * (z.x - w.x))
    return pair(z, x, d * (z.y - w.y))


def larger_plus(z: Any, w: Any, more: Any) -> Any:
    """The number with the greater real part, plus `more`."""
    is_second = w.x > z.x
    x = td.where(is_second, w.x, z.x)
    return pair(z, x + more.x, td.where(is_second, w.y, z.y) + more.y)


# --- powers --------------------------------------------------------------------------------------


def whole_power(z: Any, n: Any) -> Any:
    """z^n for an integer n from -16 to 16, by products: exact for Gaussian integers."""
    count = td.i32(td.abs(n))
    result = pair(z, 1.0, 0.0)
    factor = z
    for bit in td.static_range(5):
        if (count >> bit) & 1 != 0:
            result = mul(factor, result)
        factor = square(factor)
    if n < 0.0:
        result = reciprocal(result)
    return result


def pow_given(z: Any, w: Any, logarithm: Any) -> Any:
    """z^w = exp(w log z). An integer power is computed by products, unless it is near the ends of
    the range."""
    result = exp(mul(w, logarithm))
    whole = w.y == 0.0 and td.trunc(w.x) == w.x and td.abs(w.x) <= MOST_FACTORS
    if whole and td.abs(w.x * logarithm.x) < FAR:
        result = whole_power(z, w.x)
    if z.x == 0.0 and z.y == 0.0:
        result = pair(z, td.where(w.x > 0.0, 0.0, NAN), td.where(w.x > 0.0, 0.0, NAN))
    if w.x == 0.0 and w.y == 0.0:
        result = pair(z, 1.0, 0.0)
    return result


@generic
def pow(z: Any, w: Any) -> Any:
    """`z` to the power w, by the principal logarithm. 0 to a power with a real part > 0 is 0, and
    to the power 0 it is 1; to others it is NaN."""
    return pow_given(z, w, log(z))


# --- hyperbolic and trigonometric functions ------------------------------------------------------


def sinh(z: Any) -> Any:
    """The hyperbolic sine: sinh x cos y + i cosh x sin y."""
    far = td.abs(z.x) > FAR
    half = td.exp(td.where(far, 0.5 * td.abs(z.x), 0.0))
    c = td.cos(z.y)
    s = td.sin(z.y)
    x = td.where(far, td.copysign(0.5 * half, z.x) * c * half, td.sinh(z.x) * c)
    y = td.where(far, 0.5 * half * s * half, td.cosh(z.x) * s)
    if z.y == 0.0:
        x = td.sinh(z.x)
        y = z.y
    if z.x == 0.0:
        x = td.where(td.isfinite(z.y), x, z.x)
    if td.isinf(z.x) and not td.isfinite(z.y):
        x = z.x
        y = NAN
    return pair(z, x, y)


def cosh(z: Any) -> Any:
    """The hyperbolic cosine: cosh x cos y + i sinh x sin y."""
    far = td.abs(z.x) > FAR
    half = td.exp(td.where(far, 0.5 * td.abs(z.x), 0.0))
    c = td.cos(z.y)
    s = td.sin(z.y)
    x = td.where(far, 0.5 * half * c * half, td.cosh(z.x) * c)
    y = td.where(far, td.copysign(0.5 * half, z.x) * s * half, td.sinh(z.x) * s)
    if z.y == 0.0:
        x = td.cosh(z.x)
        y = td.where(td.signbit(z.x), -z.y, z.y)
    if z.x == 0.0:
        y = td.where(td.isfinite(z.y), y, z.x)
    if td.isinf(z.x) and not td.isfinite(z.y):
        x = td.abs(z.x)
        y = NAN
    return pair(z, x, y)


def tanh(z: Any) -> Any:
    """The hyperbolic tangent, from tan y and sinh x (W. Kahan, "Branch cuts for complex elementary
    functions", 1987)."""
    a = td.abs(z.x)
    far = a > 20.0
    t = td.tan(z.y)
    beta = 1.0 + t * t
    s = td.sinh(td.where(far, 0.0, z.x))
    divisor = 1.0 + beta * s * s
    e = td.exp(-td.where(far, a, 20.0))
    x = td.where(far, td.copysign(1.0, z.x), beta * td.sqrt(1.0 + s * s) * s / divisor)
    y = td.where(far, 4.0 * (t / beta) * e * e, t / divisor)
    if not td.isfinite(z.y):
        x = td.where(z.x == 0.0, z.x, NAN)
    if td.isinf(z.x):
        x = td.copysign(1.0, z.x)
        y = td.copysign(0.0, z.y)  # by the Array API; the sign of tan y in C99
    return pair(z, x, td.where(z.y == 0.0, z.y, y))


def sin(z: Any) -> Any:
    """The sine, -i sinh(iz)."""
    return sinh(z.yx).yx


def cos(z: Any) -> Any:
    """The cosine, cosh(iz)."""
    return cosh(pair(z, -z.y, z.x))


def tan(z: Any) -> Any:
    """The tangent, -i tanh(iz)."""
    return tanh(z.yx).yx
