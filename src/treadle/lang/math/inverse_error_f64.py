"""The inverse error functions, the scaled one, and the normal distribution, in f64.

erfinv is x p(x^2) up to 1/2. Beyond, with w = sqrt(-log p), erfcinv(p) / w is a nearly flat
function of (w - 5)/(w + 5), and w is as precise as p, down to the smallest numbers.
"""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_root_f64,
    head_f64,
    quotient_of_parts_f64,
    with_sign_of_f64,
)
from treadle.lang.math.exponential_f64 import exp_sum_f64
from treadle.lang.math.logarithm_f64 import log_f64
from treadle.lang.math.polynomials import erf_tail_f64, erfc_scaled_f64
from treadle.lang.math.special_polynomials import (
    erfcinv_tail_f64,
    erfcx_near_f64,
    erfinv_center_f64,
)

INFINITY = float("inf")
NAN = float("nan")
ONE_OVER_ROOT_PI = 0.5641895835477563
ROOT_HALF_HIGH = 0.7071067811865476
ROOT_HALF_LOW = -4.833646656726457e-17
ROOT_TWO_HIGH = 1.4142135623730951
ROOT_TWO_LOW = -9.667293313452913e-17


def erfcx_positive_f64(a: td.f64) -> td.f64:
    """exp(a^2) erfc(a), a >= 0: a polynomial up to 1, then as in `erfc`, and from 27.0 on by the
    asymptotic expansion (DLMF 7.12.1)."""
    near = erfcx_near_f64(td.where(a < 1.0, a, 1.0) - 0.5)
    b = td.where(a < 1.0, 1.0, td.where(a < 27.0, a, 27.0))
    divisor = head_f64(b + 2.0)
    divisor_rest = b - (divisor - 2.0)
    u = quotient_of_parts_f64(b - 2.0, divisor, divisor_rest)
    middle = quotient_of_parts_f64(erfc_scaled_f64(u), divisor, divisor_rest)
    inverse = 1.0 / td.where(a < 27.0, 27.0, a)
    z = 0.5 * inverse * inverse
    rest = 1.0 - 13.0 * z
    rest = 1.0 - 11.0 * z * rest
    rest = 1.0 - 9.0 * z * rest
    rest = 1.0 - 7.0 * z * rest
    rest = 1.0 - 5.0 * z * rest
    rest = 1.0 - 3.0 * z * rest
    far = inverse * ONE_OVER_ROOT_PI * (1.0 - z * rest)
    return td.where(a < 1.0, near, td.where(a < 27.0, middle, far))


def erfcx_f64(x: td.f64) -> td.f64:
    """exp(x^2) erfc(x). Below 0 it is 2 exp(x^2) less that of -x."""
    y = erfcx_positive_f64(td.abs(x))
    b = td.where(x < 0.0, td.where(x > -26.7, -x, 26.7), 0.0)
    b_head = head_f64(b)
    grown = exp_sum_f64(b_head * b_head, (b - b_head) * (b + b_head), 1)
    return td.where(td.isnan(x), x, td.where(x < 0.0, grown - y, y))


def normcdf_f64(x: td.f64) -> td.f64:
    """The share of the normal distribution below x: erfc(-x / sqrt(2)) / 2.

    Away from 0 it is exp(-x^2 / 2) erfcx(|x| / sqrt(2)) / 2, where the exponent is exact and a
    rounding of the quotient does no harm.
    """
    a = td.abs(x)
    inside = td.where(a < 38.6, a, 38.6)
    t = inside * ROOT_HALF_HIGH + inside * ROOT_HALF_LOW
    z = td.where(a < 0.7, t * t, 0.0)
    half = 0.5 * (t + t * erf_tail_f64(z))
    close = td.where(x < 0.0, 0.5 - half, 0.5 + half)
    b_head = head_f64(inside)
    power = exp_sum_f64(-0.5 * (b_head * b_head), 0.5 * ((b_head - inside) * (b_head + inside)), 64)
    tail = power * erfcx_positive_f64(t) * 2.710505431213761e-20  # 2^-65
    y = td.where(a < 0.7, close, td.where(x < 0.0, tail, 1.0 - tail))
    return td.where(td.isnan(x), x, y)


def erfcinv_small_f64(p: td.f64) -> td.f64:
    """The y with erfc(y) = p, 0 < p <= 1/2."""
    w = exact_root_f64(-log_f64(p))
    divisor = head_f64(w + 5.0)
    u = quotient_of_parts_f64(w - 5.0, divisor, w - (divisor - 5.0))
    return w * erfcinv_tail_f64(u)


def erfinv_f64(x: td.f64) -> td.f64:
    """The y with erf(y) = x; infinite at -1 and 1, NaN beyond."""
    a = td.abs(x)
    near = a <= 0.5
    center = x * erfinv_center_f64(td.where(near, x * x, 0.0))
    inside = a > 0.5 and a < 1.0
    tail = erfcinv_small_f64(td.where(inside, 1.0 - a, 0.5))
    tail = td.where(inside, tail, td.where(a == 1.0, td.f64(INFINITY), NAN))
    return td.where(near, center, td.where(td.isnan(x), x, with_sign_of_f64(tail, x)))


def erfcinv_f64(x: td.f64) -> td.f64:
    """The y with erfc(y) = x; infinite at 0 and 2, NaN outside."""
    d = 1.0 - x
    near = td.abs(d) <= 0.5
    center = d * erfinv_center_f64(td.where(near, d * d, 0.0))
    p = td.where(x < 1.0, x, 2.0 - x)
    inside = p > 0.0 and p < 0.5
    tail = erfcinv_small_f64(td.where(inside, p, 0.5))
    tail = td.where(inside, tail, td.where(p == 0.0, td.f64(INFINITY), NAN))
    tail = td.where(x > 1.0, -tail, tail)
    return td.where(near, center, td.where(td.isnan(x), x, tail))


def normcdfinv_f64(x: td.f64) -> td.f64:
    """The y that has the share x of the normal distribution below it: -sqrt(2) erfcinv(2 x)."""
    y = erfcinv_f64(x + x)
    ordinary = td.isfinite(y)
    inside = td.where(ordinary, y, 0.0)
    scaled = 0.0 - (inside * ROOT_TWO_HIGH + inside * ROOT_TWO_LOW)
    return td.where(ordinary, scaled, -y)
