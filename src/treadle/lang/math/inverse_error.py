"""The inverse and scaled error functions, and the normal distribution.

erfinv is x p(x^2) up to 1/2. Above, with w = sqrt(-log p), erfcinv(p) / w is a nearly constant
function of (w - MIDDLE)/(w + MIDDLE), and w is as precise as p, down to the smallest numbers.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_root, head, inverse_of, quotient_of_parts, with_sign_of
from treadle.lang.math.exponential import exp_of_half_square, exp_sum
from treadle.lang.math.formats import INFINITY, NAN, Float
from treadle.lang.math.generic import either, generic
from treadle.lang.math.logarithm import log
from treadle.lang.math.polynomials import erf_tail, erfc_scaled
from treadle.lang.math.special_polynomials import (
    erfcinv_tail,
    erfcx_near,
    erfinv_center,
    normcdf_center,
    normcdf_tail,
)

ONE_OVER_ROOT_PI = 0.5641895835477563
ROOT_HALF_HIGH = either(0.7071067690849304, 0.7071067811865476)
ROOT_HALF_LOW = either(1.2101617485882343e-08, -4.833646656726457e-17)
ROOT_TWO_HIGH = either(1.4142135381698608, 1.4142135623730951)
ROOT_TWO_LOW = either(2.4203234971764687e-08, -9.667293313452913e-17)
TWO_TO_MINUS_65 = 2.710505431213761e-20

ERFCX_FAR = either(10.0, 27.0)
# The factors of the asymptotic expansion, from the last term in use.
ERFCX_LAST = either(9.0, 13.0)
ERFCX_FACTORS = either((7.0, 5.0, 3.0), (11.0, 9.0, 7.0, 5.0, 3.0))
ERFCX_OVERFLOWS = either(9.5, 26.7)  # at the negative of it
NORMCDF_VANISHES = either(14.6, 38.6)  # at the negative of it
NORMCDF_NEAR = 0.7
MIDDLE = either(3.0, 5.0)


@generic
def erfcx_positive(a: Float) -> Float:
    """exp(a^2) erfc(a), a >= 0: a polynomial up to 1, then as in `erfc`, and from ERFCX_FAR on by
    the asymptotic expansion (DLMF 7.12.1)."""
    near = erfcx_near(td.where(a < 1.0, a, 1.0) - 0.5)
    b = td.where(a < 1.0, 1.0, td.where(a < ERFCX_FAR, a, ERFCX_FAR))
    divisor = head(b + 2.0)
    divisor_tail = b - (divisor - 2.0)
    u = quotient_of_parts(b - 2.0, divisor, divisor_tail)
    middle = quotient_of_parts(erfc_scaled(u), divisor, divisor_tail)
    inverse = 1.0 / td.where(a < ERFCX_FAR, ERFCX_FAR, a)
    z = 0.5 * inverse * inverse
    tail = 1.0 - ERFCX_LAST * z
    for factor in ERFCX_FACTORS:
        tail = 1.0 - factor * z * tail
    far = inverse * ONE_OVER_ROOT_PI * (1.0 - z * tail)
    return td.where(a < 1.0, near, td.where(a < ERFCX_FAR, middle, far))


@generic
def erfcx(x: Float) -> Float:
    """exp(x^2) erfc(x). Below 0 it is 2 exp(x^2) - erfcx(-x)."""
    y = erfcx_positive(td.abs(x))
    b = td.where(x < 0.0, td.where(x > -ERFCX_OVERFLOWS, -x, ERFCX_OVERFLOWS), 0.0)
    b_head = head(b)
    grown = exp_sum(b_head * b_head, (b - b_head) * (b + b_head), 1)
    return td.where(td.isnan(x), x, td.where(x < 0.0, grown - y, y))


@generic
def normcdf(x: Float) -> Float:
    """The cumulative normal distribution: erfc(-x / sqrt(2)) / 2.

    Away from 0 it is exp(-x^2 / 2) erfcx(|x| / sqrt(2)) / 2, where the exponent is exact and the
    rounding of the quotient is negligible.
    """
    a = td.abs(x)
    inside = td.where(a < NORMCDF_VANISHES, a, NORMCDF_VANISHES)
    t = inside * ROOT_HALF_HIGH + inside * ROOT_HALF_LOW
    z = td.where(a < NORMCDF_NEAR, t * t, 0.0)
    half = 0.5 * (t + t * erf_tail(z))
    close = td.where(x < 0.0, 0.5 - half, 0.5 + half)
    b_head = head(inside)
    power = exp_sum(-0.5 * (b_head * b_head), 0.5 * ((b_head - inside) * (b_head + inside)), 64)
    tail = power * erfcx_positive(t) * TWO_TO_MINUS_65
    y = td.where(a < NORMCDF_NEAR, close, td.where(x < 0.0, tail, 1.0 - tail))
    return td.where(td.isnan(x), x, y)


@generic
def quick_normcdf(x: Float) -> Float:
    """`normcdf` to 9 ULP of float32, in half as many instructions, for activations.

    Near 0 it is a polynomial; at -|x| it is exp(-x^2 / 2) p((|x| - 5) / (|x| + 5)) / (|x| + 5) with
    another one, where the square is exact. The other tail is the rest to 1.
    """
    a = td.abs(x)
    b = td.where(a > NORMCDF_VANISHES, NORMCDF_VANISHES, a)
    inverse = inverse_of(b + 5.0)
    tail = exp_of_half_square(b) * (normcdf_tail((b - 5.0) * inverse) * inverse)
    y = td.where(x < 0.0, tail, 1.0 - tail)
    y = td.where(a < NORMCDF_NEAR, 0.5 + x * normcdf_center(b * b), y)
    return td.where(td.isnan(x), x, y)


@quick_normcdf.double
def quick_normcdf(x: Float) -> Float:
    """`normcdf`."""
    return normcdf(x)


@generic
def erfcinv_small(p: Float) -> Float:
    """The y with erfc(y) = p, 0 < p <= 1/2."""
    w = exact_root(-log(p))
    divisor = head(w + MIDDLE)
    u = quotient_of_parts(w - MIDDLE, divisor, w - (divisor - MIDDLE))
    return w * erfcinv_tail(u)


@generic
def erfinv(x: Float) -> Float:
    """The y with erf(y) = x; infinite at -1 and 1, NaN beyond."""
    a = td.abs(x)
    near = a <= 0.5
    center = x * erfinv_center(td.where(near, x * x, 0.0))
    inside = a > 0.5 and a < 1.0
    tail = erfcinv_small(td.where(inside, 1.0 - a, 0.5))
    tail = td.where(inside, tail, td.where(a == 1.0, Float(INFINITY), NAN))
    return td.where(near, center, td.where(td.isnan(x), x, with_sign_of(tail, x)))


@generic
def erfcinv(x: Float) -> Float:
    """The y with erfc(y) = x; infinite at 0 and 2, NaN outside."""
    d = 1.0 - x
    near = td.abs(d) <= 0.5
    center = d * erfinv_center(td.where(near, d * d, 0.0))
    p = td.where(x < 1.0, x, 2.0 - x)
    inside = p > 0.0 and p < 0.5
    tail = erfcinv_small(td.where(inside, p, 0.5))
    tail = td.where(inside, tail, td.where(p == 0.0, Float(INFINITY), NAN))
    tail = td.where(x > 1.0, -tail, tail)
    return td.where(near, center, td.where(td.isnan(x), x, tail))


@generic
def normcdfinv(x: Float) -> Float:
    """The inverse of the cumulative normal distribution: -sqrt(2) erfcinv(2 x)."""
    y = erfcinv(x + x)
    ordinary = td.isfinite(y)
    inside = td.where(ordinary, y, 0.0)
    scaled = 0.0 - (inside * ROOT_TWO_HIGH + inside * ROOT_TWO_LOW)
    return td.where(ordinary, scaled, -y)
