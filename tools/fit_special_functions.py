"""Fits the polynomials of the inverse error functions and of the Bessel functions and writes
src/treadle/lang/math/special_polynomials.py, as tools/fit_polynomials.py does for the rest.

Run: python tools/fit_special_functions.py            writes the module (some minutes)
     python tools/fit_special_functions.py NAME...    prints these fits only
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mpmath as mp

sys.path.insert(0, str(Path(__file__).parent))
from fit_polynomials import Fit, Real, RealFunction, written

OUTPUT = Path(__file__).parent.parent / "src/treadle/lang/math/special_polynomials.py"
TITLE = "Polynomials of inverse error and Bessel functions"
ONE_F32, ONE_F64 = ("f32",), ("f64",)


def inverse(function: RealFunction) -> RealFunction:
    """The weight that makes an error relative to the function itself."""
    return lambda x: abs(1 / function(x))


# --- error functions -----------------------------------------------------------------------------


def erfcx(x: Real) -> Real:
    return mp.exp(x * x) * mp.erfc(x)


def erfinv_ratio(z: Real) -> Real:
    """erfinv(x) / x, of z = x^2."""
    if z < mp.mpf("1e-12"):
        return mp.sqrt(mp.pi) / 2 * (1 + mp.pi * z / 12)
    x = mp.sqrt(z)
    return mp.erfinv(x) / x


def tail_u(center: int, w: float) -> Real:
    """The variable in which the tail is nearly flat, as for erfc: w = center is its middle."""
    return (mp.mpf(w) - center) / (mp.mpf(w) + center)


def erfcinv_ratio(center: int, u: Real) -> Real:
    """The quotient y / w where erfc(y) = exp(-w^2), by Newton's method on the logarithm."""
    w = center * (1 + u) / (1 - u)
    y = w
    for _ in range(60):
        step = (mp.log(mp.erfc(y)) + w * w) * mp.sqrt(mp.pi) / 2 * erfcx(y)
        y += step
        if abs(step) < mp.mpf("1e-40"):
            break
    return y / w


# --- Bessel functions ----------------------------------------------------------------------------


def hankel(order: int, k: int) -> Real:
    """The coefficient a_k of the expansions for large x (DLMF 10.17.1)."""
    result = mp.mpf(1)
    for j in range(1, k + 1):
        result *= mp.mpf(4 * order * order - (2 * j - 1) ** 2) / (8 * j)
    return result


def modified_far(order: int, t: Real) -> Real:
    """I(x) exp(-x) sqrt(x), of t = 1/x."""
    if t < mp.mpf("0.004"):
        terms = (mp.mpf(-1) ** k * hankel(order, k) * t**k for k in range(24))
        return mp.fsum(terms) / mp.sqrt(2 * mp.pi)
    x = 1 / t
    return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)


def modified_near(order: int, z: Real) -> Real:
    """I0(x) or I1(x)/x, of z = x^2."""
    terms = ((z / 4) ** k / (mp.factorial(k) * mp.factorial(k + order)) for k in range(70))
    return mp.fsum(terms) / mp.mpf(2) ** order


def cosine_part(order: int, t: Real) -> Real:
    """P of J = sqrt(2/(pi x)) (P cos - Q sin), of t = 1/x^2."""
    if t < mp.mpf("0.0004"):
        return mp.fsum(mp.mpf(-1) ** k * hankel(order, 2 * k) * t**k for k in range(14))
    x = 1 / mp.sqrt(t)
    chi = x - (order / mp.mpf(2) + mp.mpf(1) / 4) * mp.pi
    j, y = mp.besselj(order, x), mp.bessely(order, x)
    return mp.sqrt(mp.pi * x / 2) * (j * mp.cos(chi) + y * mp.sin(chi))


def sine_part(order: int, t: Real) -> Real:
    """Q times x, of t = 1/x^2."""
    if t < mp.mpf("0.0004"):
        return mp.fsum(mp.mpf(-1) ** k * hankel(order, 2 * k + 1) * t**k for k in range(14))
    x = 1 / mp.sqrt(t)
    chi = x - (order / mp.mpf(2) + mp.mpf(1) / 4) * mp.pi
    j, y = mp.besselj(order, x), mp.bessely(order, x)
    return x * mp.sqrt(mp.pi * x / 2) * (y * mp.cos(chi) - j * mp.sin(chi))


def j0_center(z: Real) -> Real:
    return mp.fsum((-z) ** k / (mp.mpf(4) ** (k + 2) * mp.factorial(k + 2) ** 2) for k in range(30))


def j_near(order: int, z: Real) -> Real:
    """J0(x) or J1(x)/x over z - zero^2, of z = x^2."""
    terms = ((-z / 4) ** k / (mp.factorial(k) * mp.factorial(k + order)) for k in range(50))
    zero = mp.besseljzero(order, 1)
    return mp.fsum(terms) / mp.mpf(2) ** order / (z - zero * zero)


def j_between(order: int, center: float, s: Real) -> Real:
    """J(x) / (x - second zero), of s = x - center."""
    zero = mp.besseljzero(order, 2)
    x = mp.mpf(center) + s
    if abs(x - zero) < mp.mpf("1e-15"):
        x = zero + mp.mpf("1e-15")
    return mp.besselj(order, x) / (x - zero)


def y_near(order: int, z: Real) -> Real:
    """The quotient x^order (Y(x) - (2/pi) log(x/first zero) J(x)) / (z - zero^2), of z = x^2."""
    zero = mp.besselyzero(order, 1)
    j_terms = [(-z / 4) ** k / (mp.factorial(k) * mp.factorial(k + order)) for k in range(50)]
    j = mp.fsum(j_terms) / mp.mpf(2) ** order  # J / x^order
    psi = mp.fsum(
        (mp.digamma(k + 1) + mp.digamma(k + 1 + order)) * term for k, term in enumerate(j_terms)
    )
    value = 2 / mp.pi * mp.log(zero / 2) * j - psi / mp.pi / mp.mpf(2) ** order
    if order:
        value = value * z - 2 / mp.pi
    return value / (z - zero * zero)


def y_near_weight(order: int, z: Real) -> Real:
    zero = mp.besselyzero(order, 1)
    x = max(mp.sqrt(z), mp.mpf("1e-9"))
    return abs((z - zero * zero) / (x**order * mp.bessely(order, x)))


def y_between(order: int, number: int, center: float, s: Real) -> Real:
    """Y(x) / (x - zero), of s = x - center."""
    zero = mp.besselyzero(order, number)
    x = mp.mpf(center) + s
    if abs(x - zero) < mp.mpf("1e-15"):
        x = zero + mp.mpf("1e-15")
    return mp.bessely(order, x) / (x - zero)


def relative(name: str, says: str, function: RealFunction, low: float | Real, high: float | Real,
             types: tuple[str, ...] = ("f32", "f64")) -> Fit:  # fmt: skip
    return Fit(name, says, function, low, high, inverse(function), types)


def absolute(name: str, says: str, function: RealFunction, weight: Callable[[Real], Real]) -> Fit:
    return Fit(name, says, function, 0, mp.mpf(1) / 63.9, weight)


FITS = (
    relative("erfcx_near", "exp(x^2) erfc(x) = p(x - 1/2), 0 <= x <= 1",
             lambda s: erfcx(s + mp.mpf(1) / 2), -0.5001, 0.5001),
    relative("normcdf_tail",
             "(exp(x^2 / 2) normcdf(-x)) (x + 5) = p((x - 5)/(x + 5)), 0.7 <= x <= 14.6",
             lambda u: erfcx(5 * (1 + u) / (1 - u) / mp.sqrt(2)) * 5 / (1 - u),
             tail_u(5, 0.699), tail_u(5, 14.6), ONE_F32),
    relative("normcdf_center", "normcdf(x) = 1/2 + x p(x^2), |x| <= 0.7",
             lambda z: mp.erf(mp.sqrt(z / 2)) / mp.sqrt(4 * z) if z else 1 / mp.sqrt(2 * mp.pi),
             0, 0.4901, ONE_F32),
    relative("erfinv_center", "erfinv(x) = x p(x^2), |x| <= 1/2", erfinv_ratio, 0, 0.2501),
    relative("erfcinv_tail", "erfcinv(exp(-w^2)) = w p((w - 3)/(w + 3)), 0.83 <= w <= 10.2",
             partial(erfcinv_ratio, 3), tail_u(3, 0.8325), tail_u(3, 10.2), ONE_F32),
    relative("erfcinv_tail", "erfcinv(exp(-w^2)) = w p((w - 5)/(w + 5)), 0.83 <= w <= 27.3",
             partial(erfcinv_ratio, 5), tail_u(5, 0.8325), tail_u(5, 27.3), ONE_F64),
    relative("i0_near", "I0(x) = p((x/8)^2), |x| <= 8",
             lambda t: modified_near(0, 64 * t), 0, 1.0001),
    relative("i1_near", "I1(x) = x p((x/8)^2), |x| <= 8",
             lambda t: modified_near(1, 64 * t), 0, 1.0001),
    relative("i0_far", "I0(x) = exp(x) p(16/x - 1) / sqrt(x), x >= 8",
             lambda s: modified_far(0, (1 + s) / 16), -1, 1.0001),
    relative("i1_far", "I1(x) = exp(x) p(16/x - 1) / sqrt(x), x >= 8",
             lambda s: modified_far(1, (1 + s) / 16), -1, 1.0001),
    Fit("j0_center", "J0(x) = 1 - x^2/4 + x^4 p(x^2), |x| <= 1", j0_center, 0, 1.0001,
        lambda z: z * z / mp.besselj(0, mp.sqrt(z))),
    relative("j0_near", "J0(x) = p(x^2/8 - 1) (x^2 - a^2), a its first zero, |x| <= 4",
             lambda s: j_near(0, 8 * (1 + s)), -1, 1.0001),
    relative("j1_near", "J1(x) = x p(0.08 x^2 - 1) (x^2 - a^2), a its first zero, |x| <= 5",
             lambda s: j_near(1, mp.mpf("12.5") * (1 + s)), -1, 1.0001),
    relative("j0_second", "J0(x) = (x - a) p(x - 6), a the second zero, 4 <= x <= 8",
             partial(j_between, 0, 6.0), -2.001, 2.001),
    relative("j1_second", "J1(x) = (x - a) p(x - 6.5), a the second zero, 5 <= x <= 8",
             partial(j_between, 1, 6.5), -1.501, 1.501),
    absolute("cosine_part_0", "the P of J0 and Y0 for x >= 8 (DLMF 10.17.3) is p(1/x^2)",
             partial(cosine_part, 0), lambda t: mp.mpf(1)),
    absolute("sine_part_0", "the Q of J0 and Y0 for x >= 8 (DLMF 10.17.3) is p(1/x^2) / x",
             partial(sine_part, 0), mp.sqrt),
    absolute("cosine_part_1", "the P of J1 and Y1 for x >= 8 (DLMF 10.17.3) is p(1/x^2)",
             partial(cosine_part, 1), lambda t: mp.mpf(1)),
    absolute("sine_part_1", "the Q of J1 and Y1 for x >= 8 (DLMF 10.17.3) is p(1/x^2) / x",
             partial(sine_part, 1), mp.sqrt),
    Fit("y0_near", "Y0(x) = (2/pi) log(x/a) J0(x) + p(x^2) (x^2 - a^2), x <= 2.2",
        partial(y_near, 0), 0, 4.8401, partial(y_near_weight, 0)),
    Fit("y1_near", "Y1(x) = (2/pi) log(x/a) J1(x) + p(x^2) (x^2 - a^2)/x, x <= 3.5",
        partial(y_near, 1), 0, 12.2501, partial(y_near_weight, 1)),
    relative("y0_second", "Y0(x) = (x - a) p(x - 3.6), a the second zero, 2.2 <= x <= 5",
             partial(y_between, 0, 2, 3.6), -1.401, 1.401),
    relative("y0_third", "Y0(x) = (x - a) p(x - 6.5), a its third zero, 5 <= x <= 8",
             partial(y_between, 0, 3, 6.5), -1.501, 1.501),
    relative("y1_second", "Y1(x) = (x - a) p(x - 5.75), a the second zero, 3.5 <= x <= 8",
             partial(y_between, 1, 2, 5.75), -2.251, 2.251),
)  # fmt: skip

if __name__ == "__main__":
    written(FITS, OUTPUT, TITLE, "tools/fit_special_functions.py", sys.argv[1:])
