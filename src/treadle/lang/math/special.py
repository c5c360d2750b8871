"""The error function and the gamma function."""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import (
    exact_quotient,
    flip_sign_by,
    head,
    quotient_of_parts,
    with_sign_of,
)
from treadle.lang.math.exponential import exp_inside, exp_sum, scaled
from treadle.lang.math.formats import ALL_WHOLE, INFINITY, NAN, Float, Integer
from treadle.lang.math.generic import either, generic
from treadle.lang.math.logarithm import log
from treadle.lang.math.polynomials import (
    erf_tail,
    erfc_exponent,
    erfc_scaled,
    exp2_tail,
    gamma_middle,
    lgamma_near_one,
    lgamma_near_two,
    sinpi_tail,
    stirling_tail,
)
from treadle.lang.math.powers import log2_parts

HALF_LOG_TWO_PI = 0.9189385332046727
LOG2_ROOT_TWO_PI = 1.3257480647361592
LOG2_E = 1.4426950408889634
LOG2_E_HIGH = either(1.4423828125, 1.4426950216293335)  # 12 and 26 bits
LOG2_E_LOW = either(0.00031222839606925845, 1.9259629911266175e-08)
TWO_OVER_ROOT_PI = 1.1283791670955126
TWO_TO_MINUS_64 = 5.421010862427522e-20

ERF_TINY = either(1e-30, 1e-200)
ERFC_VANISHES = either(10.1, 27.3)

STIRLING = either(3.0, 6.0)  # from here on gamma(1 + a) is computed by Stirling's series
RECURRENCE = either((1.0,), (1.0, 2.0, 3.0, 4.0))  # further factors a - 1, a - 2, … below
GAMMA_OVERFLOWS = either(35.0401, 171.6243769563027)
GAMMA_ENDS = either(45.0, 190.0)  # from here on gamma(x) is infinite, and gamma(-x) is 0
GAMMA_TINY = either(1e-20, 1e-100)
INVERSE_OVERFLOWS = either(2.9387359e-39, 5.562684646268003e-309)  # up to here 1/x is infinite
# Below -FAR_BELOW gamma(|x|) is computed times a power of two.
FAR_BELOW = either(20.0, 100.0)
FAR_EXPONENT = either(-64, -512)
FAR_SCALE = either(5.421010862427522e-20, 7.458340731200207e-155)
PARITY_ENDS = either(16777216.0, 4503599627370496.0)  # below, the parity of a number is tested


@generic
def erf(x: Float) -> Float:
    """The error function: a polynomial up to 1, then 1 - exp(-p(|x|))."""
    a = td.abs(x)
    near = a < 1.0
    z = td.where(near, x * x, 0.0)
    b = td.where(a < 4.0, a, 4.0)
    far = 1.0 - exp_inside(-erfc_exponent(b))
    y = td.where(near, a + a * erf_tail(z), far)
    y = td.where(a < ERF_TINY, a * TWO_OVER_ROOT_PI, y)  # a term of the sum may be denormal
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@erf.double
def erf(x: Float) -> Float:
    """The error function: a polynomial up to 1, then 1 - erfc(|x|)."""
    a = td.abs(x)
    near = a < 1.0
    z = td.where(near, x * x, 0.0)
    far = 1.0 - erfc(td.where(a < 6.0, td.where(near, 1.0, a), 6.0))
    y = td.where(near, a + a * erf_tail(z), far)
    y = td.where(a < ERF_TINY, a * TWO_OVER_ROOT_PI, y)  # a term of the sum may be denormal
    return td.where(td.isnan(x), x, with_sign_of(y, x))


@generic
def erfc(x: Float) -> Float:
    """1 - erf(x), to full precision where it is small.

    exp(x^2) erfc(x) (x + 2) is a nearly constant function of (x - 2)/(x + 2) (the idea is from M.
    M. Shepherd and J. G. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981),
    and x^2 is the exact square of x's head plus a remainder.
    """
    a = td.abs(x)
    near = a < 1.0
    z = td.where(near, x * x, 0.0)
    close = (1.0 - x) - x * erf_tail(z)
    b = td.where(a < ERFC_VANISHES, td.where(near, 1.0, a), ERFC_VANISHES)
    b_head = head(b)
    power = exp_sum(-(b_head * b_head), (b_head - b) * (b_head + b), 64)
    divisor = head(b + 2.0)
    divisor_tail = b - (divisor - 2.0)
    u = quotient_of_parts(b - 2.0, divisor, divisor_tail)
    far = quotient_of_parts(power * erfc_scaled(u), divisor, divisor_tail)
    far = far * TWO_TO_MINUS_64
    y = td.where(x < 0.0, 2.0 - far, far)
    return td.where(td.isnan(x), x, td.where(near, close, y))


@generic
def sin_pi_over_pi(a: Float) -> Float:
    """|sin(pi a)| / pi for a >= 0: exactly 0 at integers."""
    r = td.abs(a - td.round(a))
    z = r * r
    return r + r * z * sinpi_tail(z)


@generic
def gamma_one_plus(a: Float, k: td.i32) -> Float:
    """gamma(1 + a) * 2^k, 0 <= a < GAMMA_ENDS.

    Up to 3 or 6 it is computed from gamma on [1, 2] by the recurrence, whose factors are exact;
    above by Stirling's series (DLMF 5.11.1), as a power of 2 whose exponent is summed in parts.
    """
    t = a - td.floor(a)
    near = gamma_middle(t - 0.5)
    near = td.where(a >= 1.0, near * a, near)
    for step in RECURRENCE:
        near = td.where(a >= step + 1.0, near * (a - step), near)
    b = td.where(a < STIRLING, STIRLING, a)
    log_high = log2_parts(b, False)
    log_low = log2_parts(b, True)
    inverse = 1.0 / b
    power = b + 0.5
    power_head = head(power)
    power_tail = b - (power_head - 0.5)  # exact, where the sum may not be
    product = power_head * log_high  # exact
    b_head = head(b)
    minus = b_head * LOG2_E_HIGH  # exact
    tail = (power_tail * log_high + power * log_low) - ((b - b_head) * LOG2_E_HIGH + b * LOG2_E_LOW)
    tail = tail + (LOG2_ROOT_TWO_PI + stirling_tail(inverse * inverse) * inverse * LOG2_E)
    n = td.round((product - minus) + tail)
    r = ((product - n) - minus) + tail
    far = scaled(1.0 + r * exp2_tail(r), td.i32(n) + k)
    return td.where(a < STIRLING, scaled(near, k), far)


@generic
def gamma(x: Float) -> Float:
    """The gamma function; NaN at negative integers. Below 0 by Euler's reflection formula."""
    a = td.abs(x)
    negative = x < 0.0
    inside = a < GAMMA_ENDS
    b = td.where(inside and a > GAMMA_TINY, td.where(x >= 1.0, x - 1.0, a), 0.0)
    far_below = negative and a > FAR_BELOW  # gamma(|x|) may overflow
    g = gamma_one_plus(b, td.where(far_below, FAR_EXPONENT, 0))
    sine = sin_pi_over_pi(b)
    odd = (Integer(td.floor(td.where(a < PARITY_ENDS, a, 0.0))) & 1) != 0
    safe = td.where(negative and sine != 0.0, g * sine, 1.0)
    reflected = exact_quotient(Float(1.0), safe)
    reflected = td.where(far_below, reflected * FAR_SCALE, reflected)
    reflected = td.where(odd, reflected, -reflected)
    reflected = td.where(td.floor(x) == x, NAN, reflected)
    small = a < GAMMA_TINY  # gamma(x) is 1/x, and the product above may be denormal
    tiny = 1.0 / td.where(small and a > INVERSE_OVERFLOWS, a, 1.0)
    tiny = td.where(a > INVERSE_OVERFLOWS, tiny, INFINITY)
    y = td.where(x >= 1.0, g, g / td.where(small, 1.0, td.where(x > 0.0, x, 1.0)))
    y = td.where(negative, reflected, y)
    zero = with_sign_of(Float(0.0), td.where(odd, Float(1.0), -1.0))
    outside = td.where(negative, td.where(td.floor(x) == x, NAN, zero), INFINITY)
    y = td.where(inside, y, outside)
    y = td.where(x > GAMMA_OVERFLOWS, INFINITY, y)
    y = td.where(small, flip_sign_by(tiny, x), y)
    return td.where(td.isnan(x), x, y)


@generic
def lgamma_positive(a: Float, log_a: Float) -> Float:
    """log gamma(a), a > 0, given the logarithm of a."""
    product = td.where(a >= 3.0, a - 1.0, 1.0) * td.where(a >= 4.0, a - 2.0, 1.0)
    product = product * td.where(a >= 5.0, a - 3.0, 1.0) * td.where(a >= 6.0, a - 4.0, 1.0)
    product = product * td.where(a >= 7.0, a - 5.0, 1.0)
    b = td.where(a < 8.0, a, 7.0)
    low = b < 0.5
    one = b < 1.5
    t = td.where(low, b, td.where(one, b - 1.0, td.where(b < 3.0, b - 2.0, b - td.floor(b))))
    near = t * td.where(one, lgamma_near_one(t), lgamma_near_two(t)) + 0.0  # no -0 at 1
    near = td.where(low, near - log_a, td.where(b >= 3.0, near + log(product), near))
    c = td.where(a < 8.0, 8.0, a)
    inverse = 1.0 / td.where(c < 1e30, c, 1e30)
    tail = stirling_tail(inverse * inverse) * inverse
    far = (c - 0.5) * (log_a - 1.0) + ((HALF_LOG_TWO_PI - 0.5) + tail)
    return td.where(a < 8.0, near, far)


@generic
def lgamma(x: Float) -> Float:
    """log |gamma(x)|. Below 0 by reflection; near the zeros there, only the absolute error is
    small."""
    a = td.abs(x)
    log_a = log(a)
    y = lgamma_positive(td.where(a > 0.0, a, 1.0), log_a)
    below = td.where(a < ALL_WHOLE, sin_pi_over_pi(a), 0.0)
    reflected = -log_a - (log(td.where(below > 0.0, below, 1.0)) + y)
    reflected = td.where(below > 0.0, reflected, INFINITY)
    reflected = td.where(a < 1e-20, -log_a, reflected)
    y = td.where(x < 0.0, reflected, y)
    y = td.where(td.isinf(x) or x == 0.0, INFINITY, y)
    return td.where(td.isnan(x), x, y)
