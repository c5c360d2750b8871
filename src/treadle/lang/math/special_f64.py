"""The error function and the gamma function, in f64."""

from __future__ import annotations

from treadle import lang as td
from treadle.lang.math.bits import (
    exact_quotient_f64,
    flip_sign_by_f64,
    head_f64,
    quotient_of_parts_f64,
    with_sign_of_f64,
)
from treadle.lang.math.exponential_f64 import exp_sum_f64, scaled_f64
from treadle.lang.math.logarithm_f64 import log_f64
from treadle.lang.math.polynomials import (
    erf_tail_f64,
    erfc_scaled_f64,
    exp2_tail_f64,
    gamma_middle_f64,
    lgamma_near_one_f64,
    lgamma_near_two_f64,
    sinpi_tail_f64,
    stirling_tail_f64,
)
from treadle.lang.math.powers_f64 import log2_parts_f64

INFINITY = float("inf")
NAN = float("nan")
HALF_LOG_TWO_PI = 0.9189385332046727
LOG2_ROOT_TWO_PI = 1.3257480647361592
LOG2_E = 1.4426950408889634
LOG2_E_HIGH = 1.4426950216293335  # 26 bits
LOG2_E_LOW = 1.9259629911266175e-08
TWO_OVER_ROOT_PI = 1.1283791670955126


def erf_f64(x: td.f64) -> td.f64:
    """The error function: a polynomial up to 1, then 1 - erfc(|x|)."""
    a = td.abs(x)
    near = a < 1.0
    z = td.where(near, x * x, 0.0)
    far = 1.0 - erfc_f64(td.where(a < 6.0, td.where(near, 1.0, a), 6.0))
    y = td.where(near, a + a * erf_tail_f64(z), far)
    y = td.where(a < 1e-200, a * TWO_OVER_ROOT_PI, y)  # there a term of the sum may be denormal
    return td.where(td.isnan(x), x, with_sign_of_f64(y, x))


def erfc_f64(x: td.f64) -> td.f64:
    """1 - erf(x), to full precision where it is small.

    exp(x^2) erfc(x) (x + 2) is a nearly flat function of (x - 2)/(x + 2) (M. M. Shepherd and J. G.
    Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981, have the idea), and
    x^2 is the exact square of x's head and a rest.
    """
    a = td.abs(x)
    near = a < 1.0
    z = td.where(near, x * x, 0.0)
    close = (1.0 - x) - x * erf_tail_f64(z)
    b = td.where(a < 27.3, td.where(near, 1.0, a), 27.3)
    b_head = head_f64(b)
    power = exp_sum_f64(-(b_head * b_head), (b_head - b) * (b_head + b), 64)
    divisor = head_f64(b + 2.0)
    divisor_rest = b - (divisor - 2.0)
    u = quotient_of_parts_f64(b - 2.0, divisor, divisor_rest)
    far = quotient_of_parts_f64(power * erfc_scaled_f64(u), divisor, divisor_rest)
    far = far * 5.421010862427522e-20
    y = td.where(x < 0.0, 2.0 - far, far)
    return td.where(td.isnan(x), x, td.where(near, close, y))


def sin_pi_over_pi_f64(a: td.f64) -> td.f64:
    """|sin(pi a)| / pi for a >= 0: exactly 0 at integers."""
    r = td.abs(a - td.round(a))
    z = r * r
    return r + r * z * sinpi_tail_f64(z)


def gamma_one_plus_f64(a: td.f64, k: td.i32) -> td.f64:
    """gamma(1 + a) * 2^k, 0 <= a < 190.

    Up to 6 from gamma on [1, 2] by its recurrence, whose factors are exact; then by Stirling's
    series (DLMF 5.11.1), as a power of 2 whose exponent is summed in parts.
    """
    t = a - td.floor(a)
    near = gamma_middle_f64(t - 0.5)
    near = td.where(a >= 1.0, near * a, near)
    near = td.where(a >= 2.0, near * (a - 1.0), near)
    near = td.where(a >= 3.0, near * (a - 2.0), near)
    near = td.where(a >= 4.0, near * (a - 3.0), near)
    near = td.where(a >= 5.0, near * (a - 4.0), near)
    b = td.where(a < 6.0, 6.0, a)
    log_high = log2_parts_f64(b, False)
    log_low = log2_parts_f64(b, True)
    inverse = 1.0 / b
    power = b + 0.5
    power_head = head_f64(power)
    power_rest = b - (power_head - 0.5)  # exact, where the sum may not be
    product = power_head * log_high  # exact
    b_head = head_f64(b)
    minus = b_head * LOG2_E_HIGH  # exact
    rest = (power_rest * log_high + power * log_low) - ((b - b_head) * LOG2_E_HIGH + b * LOG2_E_LOW)
    rest = rest + (LOG2_ROOT_TWO_PI + stirling_tail_f64(inverse * inverse) * inverse * LOG2_E)
    n = td.round((product - minus) + rest)
    r = ((product - n) - minus) + rest
    far = scaled_f64(1.0 + r * exp2_tail_f64(r), td.i32(n) + k)
    return td.where(a < 6.0, scaled_f64(near, k), far)


def gamma_f64(x: td.f64) -> td.f64:
    """The gamma function; NaN at negative integers. Below 0 by Euler's reflection formula."""
    a = td.abs(x)
    negative = x < 0.0
    inside = a < 190.0
    b = td.where(inside and a > 1e-100, td.where(x >= 1.0, x - 1.0, a), 0.0)
    far_below = negative and a > 100.0  # there the gamma function of |x| may be too large
    g = gamma_one_plus_f64(b, td.where(far_below, -512, 0))
    sine = sin_pi_over_pi_f64(b)
    odd = (td.i64(td.floor(td.where(a < 4503599627370496.0, a, 0.0))) & 1) != 0
    safe = td.where(negative and sine != 0.0, g * sine, 1.0)
    reflected = exact_quotient_f64(td.f64(1.0), safe)
    reflected = td.where(far_below, reflected * 7.458340731200207e-155, reflected)
    reflected = td.where(odd, reflected, -reflected)
    reflected = td.where(td.floor(x) == x, NAN, reflected)
    small = a < 1e-100  # there gamma(x) is 1/x, and the product above could be denormal
    tiny = 1.0 / td.where(small and a > 5.562684646268003e-309, a, 1.0)
    tiny = td.where(a > 5.562684646268003e-309, tiny, INFINITY)
    y = td.where(x >= 1.0, g, g / td.where(small, 1.0, td.where(x > 0.0, x, 1.0)))
    y = td.where(negative, reflected, y)
    zero = with_sign_of_f64(td.f64(0.0), td.where(odd, td.f64(1.0), -1.0))
    outside = td.where(negative, td.where(td.floor(x) == x, NAN, zero), INFINITY)
    y = td.where(inside, y, outside)
    y = td.where(x > 171.6243769563027, INFINITY, y)
    y = td.where(small, flip_sign_by_f64(tiny, x), y)
    return td.where(td.isnan(x), x, y)


def lgamma_positive_f64(a: td.f64, log_a: td.f64) -> td.f64:
    """log gamma(a), a > 0, given the logarithm of a."""
    product = td.where(a >= 3.0, a - 1.0, 1.0) * td.where(a >= 4.0, a - 2.0, 1.0)
    product = product * td.where(a >= 5.0, a - 3.0, 1.0) * td.where(a >= 6.0, a - 4.0, 1.0)
    product = product * td.where(a >= 7.0, a - 5.0, 1.0)
    b = td.where(a < 8.0, a, 7.0)
    low = b < 0.5
    one = b < 1.5
    t = td.where(low, b, td.where(one, b - 1.0, td.where(b < 3.0, b - 2.0, b - td.floor(b))))
    near = t * td.where(one, lgamma_near_one_f64(t), lgamma_near_two_f64(t)) + 0.0  # no -0 at 1
    near = td.where(low, near - log_a, td.where(b >= 3.0, near + log_f64(product), near))
    c = td.where(a < 8.0, 8.0, a)
    inverse = 1.0 / td.where(c < 1e30, c, 1e30)
    tail = stirling_tail_f64(inverse * inverse) * inverse
    far = (c - 0.5) * (log_a - 1.0) + ((HALF_LOG_TWO_PI - 0.5) + tail)
    return td.where(a < 8.0, near, far)


def lgamma_f64(x: td.f64) -> td.f64:
    """log |gamma(x)|. Below 0 by reflection: there, near its zeros, only absolutely precise."""
    a = td.abs(x)
    log_a = log_f64(a)
    y = lgamma_positive_f64(td.where(a > 0.0, a, 1.0), log_a)
    below = td.where(a < 4503599627370496.0, sin_pi_over_pi_f64(a), 0.0)
    reflected = -log_a - (log_f64(td.where(below > 0.0, below, 1.0)) + y)
    reflected = td.where(below > 0.0, reflected, INFINITY)
    reflected = td.where(a < 1e-20, -log_a, reflected)
    y = td.where(x < 0.0, reflected, y)
    y = td.where(td.isinf(x) or x == 0.0, INFINITY, y)
    return td.where(td.isnan(x), x, y)
