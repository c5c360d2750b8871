"""The inverse error functions, the scaled one, and the normal distribution, in f32.

erfinv is x p(x^2) up to 1/2. Beyond, with w = sqrt(-log p), erfcinv(p) / w is a nearly flat
function of (w - 3)/(w + 3), and w is as precise as p, down to the smallest numbers.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import exact_root, head, quotient_of_parts, with_sign_of
from treadle.lang.math.exponential import exp_sum
from treadle.lang.math.logarithm import log
from treadle.lang.math.polynomials import erf_tail, erfc_scaled
from treadle.lang.math.special_polynomials import (
    erfcinv_tail,
    erfcx_near,
    erfinv_center,
)

INFINITY = float("inf")
NAN = float("nan")
ONE_OVER_ROOT_PI = 0.5641895835477563
ROOT_HALF_HIGH = 0.7071067690849304
ROOT_HALF_LOW = 1.2101617485882343e-08
ROOT_TWO_HIGH = 1.4142135381698608
ROOT_TWO_LOW = 2.4203234971764687e-08


def erfcx_positive(a: td.f32) -> td.f32:
    """exp(a^2) erfc(a), a >= 0: a polynomial up to 1, then as in `erfc`, and from 10.0 on by the
    asymptotic expansion (DLMF 7.12.1)."""
    near = erfcx_near(td.where(a < 1.0, a, 1.0) - 0.5)
    b = td.where(a < 1.0, 1.0, td.where(a < 10.0, a, 10.0))
    divisor = head(b + 2.0)
    divisor_rest = b - (divisor - 2.0)
    u = quotient_of_parts(b - 2.0, divisor, divisor_rest)
    middle = quotient_of_parts(erfc_scaled(u), divisor, divisor_rest)
    inverse = 1.0 / td.where(a < 10.0, 10.0, a)
    z = 0.5 * inverse * inverse
    rest = 1.0 - 9.0 * z
    rest = 1.0 - 7.0 * z * rest
    rest = 1.0 - 5.0 * z * rest
    rest = 1.0 - 3.0 * z * rest
    far = inverse * ONE_OVER_ROOT_PI * (1.0 - z * rest)
    return td.where(a < 1.0, near, td.where(a < 10.0, middle, far))


def erfcx(x: td.f32) -> td.f32:
    """exp(x^2) erfc(x). Below 0 it is 2 exp(x^2) less that of -x."""
    y = erfcx_positive(td.abs(x))
    b = td.where(x < 0.0, td.where(x > -9.5, -x, 9.5), 0.0)
    b_head = head(b)
    grown = exp_sum(b_head * b_head, (b - b_head) * (b + b_head), 1)
    return td.where(td.isnan(x), x, td.where(x < 0.0, grown - y, y))


def normcdf(x: td.f32) -> td.f32:
    """The share of the normal distribution below x: erfc(-x / sqrt(2)) / 2.

    Away from 0 it is exp(-x^2 / 2) erfcx(|x| / sqrt(2)) / 2, where the exponent is exact and a
    rounding of the quotient does no harm.
    """
    a = td.abs(x)
    inside = td.where(a < 14.6, a, 14.6)
    t = inside * ROOT_HALF_HIGH + inside * ROOT_HALF_LOW
    z = td.where(a < 0.7, t * t, 0.0)
    half = 0.5 * (t + t * erf_tail(z))
    close = td.where(x < 0.0, 0.5 - half, 0.5 + half)
    b_head = head(inside)
    power = exp_sum(-0.5 * (b_head * b_head), 0.5 * ((b_head - inside) * (b_head + inside)), 64)
    tail = power * erfcx_positive(t) * 2.710505431213761e-20  # 2^-65
    y = td.where(a < 0.7, close, td.where(x < 0.0, tail, 1.0 - tail))
    return td.where(td.isnan(x), x, y)


def erfcinv_small(p: td.f32) -> td.f32:
    """The y with erfc(y) = p, 0 < p <= 1/2."""
    w = exact_root(-log(p))
    divisor = head(w + 3.0)
    u = quotient_of_parts(w - 3.0, divisor, w - (divisor - 3.0))
    return w * erfcinv_tail(u)


def erfinv(x: td.f32) -> td.f32:
    """The y with erf(y) = x; infinite at -1 and 1, NaN beyond."""
    a = td.abs(x)
    near = a <= 0.5
    center = x * erfinv_center(td.where(near, x * x, 0.0))
    inside = a > 0.5 and a < 1.0
    tail = erfcinv_small(td.where(inside, 1.0 - a, 0.5))
    tail = td.where(inside, tail, td.where(a == 1.0, INFINITY, NAN))
    return td.where(near, center, td.where(td.isnan(x), x, with_sign_of(tail, x)))


def erfcinv(x: td.f32) -> td.f32:
    """The y with erfc(y) = x; infinite at 0 and 2, NaN outside."""
    d = 1.0 - x
    near = td.abs(d) <= 0.5
    center = d * erfinv_center(td.where(near, d * d, 0.0))
    p = td.where(x < 1.0, x, 2.0 - x)
    inside = p > 0.0 and p < 0.5
    tail = erfcinv_small(td.where(inside, p, 0.5))
    tail = td.where(inside, tail, td.where(p == 0.0, INFINITY, NAN))
    tail = td.where(x > 1.0, -tail, tail)
    return td.where(near, center, td.where(td.isnan(x), x, tail))


def normcdfinv(x: td.f32) -> td.f32:
    """The y that has the share x of the normal distribution below it: -sqrt(2) erfcinv(2 x)."""
    y = erfcinv(x + x)
    ordinary = td.isfinite(y)
    inside = td.where(ordinary, y, 0.0)
    scaled = 0.0 - (inside * ROOT_TWO_HIGH + inside * ROOT_TWO_LOW)
    return td.where(ordinary, scaled, -y)
