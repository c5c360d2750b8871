"""Fits every polynomial of the math library and writes src/treadle/lang/math/polynomials.py.

Each fit is a minimax fit by Remez's exchange algorithm (E. Ya. Remez, 1934; see J.-M. Muller,
"Elementary Functions", ch. 3) in 45-digit arithmetic. The error that is made small is the one that
the *function* built on the polynomial sees: `weight` says how much of an error of the polynomial
arrives there, relative to the function's value. The number of coefficients is the smallest that
reaches TARGET. Coefficients are rounded to the type one after the other, from the constant term
up, and the rest is fitted again each time, so that a later coefficient absorbs the rounding of an
earlier one.

Run: python tools/fit_polynomials.py            writes the module (about a minute)
     python tools/fit_polynomials.py NAME...    prints these fits only
Needs mpmath (and nothing of treadle).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import mpmath as mp
import numpy as np

mp.mp.dps = 45
OUTPUT = Path(__file__).parent.parent / "src/treadle/lang/math/polynomials.py"
# The largest relative error a polynomial may bring, in bits, and the rounding of its coefficients.
TARGET = {"f32": 27.5, "f64": 57.0}
Real = mp.mpf
RealFunction = Callable[[Real], Real]


@dataclass(frozen=True)
class Fit:
    """`function(x)` on [low, high] as a polynomial in x; see the module's text for `weight`."""

    name: str
    says: str
    function: RealFunction
    low: float | Real
    high: float | Real
    weight: RealFunction
    types: tuple[str, ...] = ("f32", "f64")
    bits: float = 0  # asked for beyond TARGET


def near_zero(general: RealFunction, series: Callable[[int], Real]) -> RealFunction:
    """`general`, but below 1e-4 its power series: there the closed form cancels."""

    def value(x: Real) -> Real:
        if abs(x) > mp.mpf("1e-4"):
            return general(x)
        return mp.fsum(series(k) * x**k for k in range(16))

    return value


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
LOG_LOW, LOG_HIGH = mp.sqrt(0.5) - 1 - mp.mpf("1e-6"), mp.sqrt(2) - 1 + mp.mpf("1e-6")
QUARTER = mp.pi / 4 * mp.mpf("1.0005")  # rounding may put an argument just past pi/4
S_MAX = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
LN2 = mp.log(2)


def log_ratio(scale: Real, minus: Real) -> RealFunction:
    """log(1 + f) * scale / f - minus."""
    return near_zero(
        lambda f: mp.log1p(f) * scale / f - minus,
        lambda k: scale * mp.mpf(-1) ** k / (k + 1) - (minus if k == 0 else 0),
    )


def log_weight(scale: Real) -> RealFunction:
    return near_zero(lambda f: f / (mp.log1p(f) * scale), lambda k: 1 / scale if k == 0 else 0)


def odd_tail(function: RealFunction, coefficient: Callable[[int], Real]) -> RealFunction:
    """For odd f with f(x) = x + x^3 p(x^2): p, as a function of z = x^2."""
    return near_zero(
        lambda z: (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda k: coefficient(k + 1)
    )


def odd_weight(function: RealFunction) -> RealFunction:
    def weight(z: Real) -> Real:
        return z if z < mp.mpf("1e-20") else z * mp.sqrt(z) / function(mp.sqrt(z))

    return weight


def bernoulli_tan(k: int) -> Real:
    """The coefficient of x^(2k+1) in tan x."""
    n = k + 1
    return abs(mp.bernoulli(2 * n)) * mp.mpf(4) ** n * (mp.mpf(4) ** n - 1) / mp.factorial(2 * n)


def asin_coefficient(k: int) -> Real:
    return mp.binomial(2 * k, k) / mp.mpf(4) ** k / (2 * k + 1)


def log2_tail(z: Real) -> Real:
    """log2((1 + s)/(1 - s)) = (2/ln 2) (s + s^3/3) + s^5 p(s^2)."""
    return mp.fsum(2 / LN2 * z**k / (2 * k + 5) for k in range(48))


ERFC_CENTER = 2  # u = (x - 2) / (x + 2) takes [1, 28] to an interval inside (-1, 1)


def erfc_scaled(u: Real) -> Real:
    """exp(x^2) erfc(x) (x + 2) where u = (x - 2) / (x + 2): nearly flat."""
    x = ERFC_CENTER * (1 + u) / (1 - u)
    return mp.exp(x * x) * mp.erfc(x) * (x + ERFC_CENTER)


def erfc_u(x: float) -> Real:
    return (mp.mpf(x) - ERFC_CENTER) / (mp.mpf(x) + ERFC_CENTER)


def lgamma_ratio(at: int, x: Real) -> Real:
    """The quotient log gamma(at + x) / x, where log gamma(at) = 0."""
    if abs(x) > mp.mpf("1e-12"):
        return mp.loggamma(at + x) / x
    return mp.digamma(at) + x * mp.polygamma(1, at) / 2


def stirling_tail(z: Real) -> Real:
    """The tail x * (log gamma(x) - (x - 1/2) log x + x - log(2 pi)/2), of z = 1/x^2."""
    if z < mp.mpf("1e-6"):
        return mp.fsum(
            mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) * z ** (k - 1) for k in range(1, 9)
        )
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


FITS = (
    Fit("exp_tail", "exp(r) = 1 + r + r^2 p(r), |r| <= ln(2)/2",
        near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, lambda k: 1 / mp.factorial(k + 2)),
        -HALF_LN2, HALF_LN2, lambda r: r if abs(r) < 1e-30 else r * r / mp.expm1(r)),
    Fit("exp2_tail", "2^r = 1 + r p(r), |r| <= 1/2",
        near_zero(lambda r: (mp.mpf(2) ** r - 1) / r,
                  lambda k: LN2 ** (k + 1) / mp.factorial(k + 1)),
        -0.5001, 0.5001, lambda r: r / mp.mpf(2) ** r),
    Fit("log_tail", "log(1 + f) = f + f p(f), 1 + f from sqrt(1/2) to sqrt(2)",
        log_ratio(mp.mpf(1), mp.mpf(1)), LOG_LOW, LOG_HIGH, log_weight(mp.mpf(1))),
    Fit("log2_tail", "log2(1 + f) = f + f p(f)",
        log_ratio(1 / LN2, mp.mpf(1)), LOG_LOW, LOG_HIGH, log_weight(1 / LN2)),
    Fit("log10_tail", "log10(1 + f) = 0.4375 f + f p(f)",
        log_ratio(1 / mp.log(10), mp.mpf("0.4375")), LOG_LOW, LOG_HIGH, log_weight(1 / mp.log(10))),
    Fit("log2_quotient_tail", "log2((1 + s)/(1 - s)) = (2/ln 2) (s + s^3/3) + s^5 p(s^2)",
        log2_tail, 0, S_MAX, lambda z: z * z * LN2 / 2, bits=9),
    Fit("sin_tail", "sin(r) = r + r^3 p(r^2), |r| <= pi/4",
        odd_tail(mp.sin, lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 1)),
        0, QUARTER**2, odd_weight(mp.sin)),
    Fit("cos_tail", "cos(r) = 1 - r^2/2 + r^4 p(r^2), |r| <= pi/4",
        near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
                  lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 4)),
        0, QUARTER**2, lambda z: z * z / mp.cos(mp.sqrt(z))),
    Fit("tan_tail", "tan(r) = r + r^3 p(r^2), |r| <= pi/4",
        odd_tail(mp.tan, bernoulli_tan), 0, QUARTER**2, odd_weight(mp.tan)),
    Fit("asin_tail", "asin(x) = x + x^3 p(x^2), |x| <= 1/2",
        odd_tail(mp.asin, asin_coefficient), 0, 0.2501, odd_weight(mp.asin)),
    Fit("atan_tail", "atan(x) = x + x^3 p(x^2), |x| <= 1",
        odd_tail(mp.atan, lambda k: mp.mpf(-1) ** k / (2 * k + 1)), 0, 1.0001, odd_weight(mp.atan)),
    Fit("sinh_tail", "sinh(x) = x + x^3 p(x^2), |x| <= 1",
        odd_tail(mp.sinh, lambda k: 1 / mp.factorial(2 * k + 1)), 0, 1.0001, odd_weight(mp.sinh)),
    Fit("tanh_tail", "tanh(x) = x + x^3 p(x^2), |x| <= 0.8",
        odd_tail(mp.tanh, lambda k: mp.mpf(-1) ** k * bernoulli_tan(k)),
        0, 0.6401, odd_weight(mp.tanh)),
    Fit("erf_tail", "erf(x) = x + x p(x^2), |x| <= 1",
        near_zero(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
                  lambda k: 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** k / (mp.factorial(k) * (2 * k + 1))
                  - (1 if k == 0 else 0)),
        0, 1.0001, lambda z: mp.sqrt(mp.pi) / 2 if z < 1e-20 else mp.sqrt(z) / mp.erf(mp.sqrt(z))),
    Fit("erfc_exponent", "erfc(x) = exp(-p(x)), 1 <= x <= 4, good to an error relative to erf(x)",
        lambda x: -mp.log(mp.erfc(x)), 0.9999, 4.0, lambda x: mp.erfc(x) / mp.erf(x), ("f32",)),
    Fit("erfc_scaled", "exp(x^2) erfc(x) (x + 2) = p((x - 2)/(x + 2)), 1 <= x <= 10.1",
        erfc_scaled, erfc_u(0.9999), erfc_u(10.1), lambda u: 1 / erfc_scaled(u), ("f32",)),
    Fit("erfc_scaled", "exp(x^2) erfc(x) (x + 2) = p((x - 2)/(x + 2)), 1 <= x <= 27.3",
        erfc_scaled, erfc_u(0.9999), erfc_u(27.3), lambda u: 1 / erfc_scaled(u), ("f64",)),
    Fit("gamma_middle", "gamma(1.5 + u) = p(u), -0.5 <= u <= 0.5",
        lambda u: mp.gamma(1.5 + u), -0.5, 0.5, lambda u: 1 / mp.gamma(1.5 + u)),
    Fit("lgamma_near_one", "log gamma(1 + t) = t p(t), -0.5 <= t <= 0.5",
        lambda t: lgamma_ratio(1, t), -0.5001, 0.5001, lambda t: 1 / lgamma_ratio(1, t)),
    Fit("lgamma_near_two", "log gamma(2 + t) = t p(t), -0.5 <= t <= 1",
        lambda t: lgamma_ratio(2, t), -0.5001, 1.0001, lambda t: 1 / lgamma_ratio(2, t)),
    Fit("stirling_tail", "log gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + p(1/x^2)/x, x >= 3",
        stirling_tail, 0, 1 / mp.mpf("8.9"), mp.sqrt, ("f32",)),
    Fit("stirling_tail", "log gamma(x) = (x - 1/2) log x - x + log(2 pi)/2 + p(1/x^2)/x, x >= 6",
        stirling_tail, 0, 1 / mp.mpf("35.9"), mp.sqrt, ("f64",)),
    Fit("sinpi_tail", "sin(pi r) = pi (r + r^3 p(r^2)), |r| <= 1/2",
        near_zero(lambda z: (mp.sinpi(mp.sqrt(z)) / mp.sqrt(z) / mp.pi - 1) / z,
                  lambda k: mp.mpf(-1) ** (k + 1) * mp.pi ** (2 * k + 2) / mp.factorial(2 * k + 3)),
        0, 0.2501, lambda z: z if z < 1e-20 else z * mp.sqrt(z) * mp.pi / mp.sinpi(mp.sqrt(z))),
)  # fmt: skip


def rounded(value: Real, type: str) -> Real:
    """`value` rounded to the floating type (through digits, so that it is rounded once)."""
    if type == "f64":
        return mp.mpf(float(value))
    mantissa, exponent = mp.frexp(value)
    return mp.ldexp(mp.nint(mp.ldexp(mantissa, 24)), exponent - 24) if value else mp.mpf(0)


def horner(coefficients: list[Real], x: Real) -> Real:
    total = mp.mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


class Grid:
    """The function and weight of a fit, sampled once where the extrema are looked for."""

    def __init__(self, fit: Fit, points: int) -> None:
        low, high = mp.mpf(fit.low), mp.mpf(fit.high)
        # Chebyshev spacing: extrema crowd at the ends.
        self.x = [
            low + (high - low) * (1 - mp.cos(mp.pi * k / points)) / 2 for k in range(points + 1)
        ]
        self.f = [fit.function(x) for x in self.x]
        self.w = [fit.weight(x) for x in self.x]


def remez(grid: Grid, fixed: list[Real], count: int, reach: float = 0.0) -> tuple[list[Real], Real]:
    """The minimax polynomial whose first coefficients are `fixed`: coefficients, largest error."""
    free, start = count - len(fixed), len(fixed)
    # What is left is x^start q(x) against f - fixed: q against their quotient, weighted with
    # |w x^start|, which is a proper weight (positive, but for a zero where nothing is asked).
    weight = [abs(w * x**start) for w, x in zip(grid.w, grid.x, strict=True)]
    # Where x^start is nearly zero, the rounding of the fixed ones is there to stay.
    least = max(abs(at) for at in grid.x) * reach
    inside = [i for i, w in enumerate(weight) if w > 0 and abs(grid.x[i]) >= least]
    x = [grid.x[i] for i in inside]
    w = [weight[i] for i in inside]
    f = [(grid.f[i] - horner(fixed, grid.x[i])) / grid.x[i] ** start for i in inside]
    chosen = [round(k * (len(inside) - 1) / free) for k in range(free + 1)]
    free_coefficients: list[Real] = []
    error = mp.mpf(0)
    for _ in range(25):
        matrix = mp.matrix(free + 1, free + 1)
        right = mp.matrix(free + 1, 1)
        for row, i in enumerate(chosen):
            for column in range(free):
                matrix[row, column] = x[i] ** column
            matrix[row, free] = mp.mpf(-1) ** row / w[i]
            right[row] = f[i]
        solution = mp.lu_solve(matrix, right)
        free_coefficients = [solution[k] for k in range(free)]
        errors = [
            (horner(free_coefficients, at) - value) * weight_here
            for at, value, weight_here in zip(x, f, w, strict=True)
        ]
        error = max(abs(e) for e in errors)
        found = alternating_extrema(errors, free + 1)
        if found is None or found == chosen or error < abs(solution[free]) * mp.mpf("1.02"):
            break
        chosen = found
    return fixed + free_coefficients, error


def alternating_extrema(errors: list[Real], wanted: int) -> list[int] | None:
    """The places of the largest errors of alternating sign, `wanted` of them in a row."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if e == 0:
            continue
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    if len(runs) < wanted:
        return None
    while len(runs) > wanted:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs


def fit_for(fit: Fit, type: str) -> tuple[list[Real], float]:
    """The rounded coefficients from the constant term up, and the bits they are good to."""
    wanted = TARGET[type] + fit.bits
    grid = Grid(fit, 150 if type == "f32" else 250)
    count, before, bits = 2, 0.0, 0.0
    while True:
        coefficients, error = remez(grid, [], count)
        before, bits = bits, float(-mp.log(error, 2))
        if bits >= wanted:
            break
        # Skip ahead where the bits gained by a coefficient promise that it is safe.
        gained = max(bits - before, 1.0) if count > 2 else 100.0
        step = max(1, int((wanted - bits) / gained * 0.6))
        bits -= gained * (step - 1)
        count += step
    # Which rounding is best depends on where the weight vanishes: take the best of these.
    candidates = [[rounded(coefficient, type) for coefficient in coefficients]]
    for reach in (0.0, 0.05):
        fixed: list[Real] = []
        refitted = coefficients
        for _ in range(min(count - 1, 3)):
            fixed.append(rounded(refitted[len(fixed)], type))
            refitted, _ = remez(grid, fixed, count, reach)
        candidates.append([rounded(coefficient, type) for coefficient in refitted])
    good = [(float(-mp.log(worst_error(grid, each), 2)), each) for each in candidates]
    bits, best = max(good, key=lambda pair: pair[0])
    return best, bits


def worst_error(grid: Grid, coefficients: list[Real]) -> Real:
    return max(
        abs((horner(coefficients, x) - f) * w)
        for x, f, w in zip(grid.x, grid.f, grid.w, strict=True)
    )


def literal(value: Real, type: str) -> str:
    """The shortest decimal that reads back as the same number of that type."""
    return str(np.float32(float(value))) if type == "f32" else repr(float(value))


@dataclass(frozen=True)
class Fitted:
    """The coefficients of a fit in one type, from the constant term up, as they are written."""

    says: str
    type: str
    bits: float
    digits: tuple[str, ...]


def fitted(fit: Fit, type: str) -> Fitted:
    coefficients, bits = fit_for(fit, type)
    digits = tuple(literal(each, type) for each in coefficients)
    print(f"{fit.name} in {type}: {len(digits)} coefficients, {bits:.1f} bits", file=sys.stderr)
    return Fitted(fit.says, type, bits, digits)


def polynomial_text(name: str, found: list[Fitted]) -> str:
    """A polynomial as a definition of Python: what it stands for, and its coefficients."""
    same = len({each.says for each in found}) == 1
    says = [found[0].says] if same else [f"{each.type}: {each.says}" for each in found]
    lines = [f"# {each}" for each in says] + [f"{name} = Polynomial(", f'    "{name}",']
    for each in found:
        digits, good = ", ".join(each.digits), f"# good to {each.bits:.1f} bits"
        line = f"    {each.type}=({digits}),  {good}"
        if len(line) <= 100:
            lines.append(line)
        else:
            parts = [f"        {part}" for part in wrap(f"{digits},", 92)]
            lines += [f"    {each.type}=(  {good}", *parts, "    ),"]
    return "\n".join([*lines, ")"])


HEADER = '''
"""{title}, written by {tool}:
change that, not this.

Each is a minimax fit of one smooth piece; the functions around them do the range reduction. Above a
polynomial stands what it is for, beside its coefficients, which go from the constant term up, how
good the piece built on it is.
"""
# fmt: off

from __future__ import annotations

from treadle.lang.math.horner import Polynomial
'''


def written(fits: tuple[Fit, ...], output: Path, title: str, tool: str, names: list[str]) -> None:
    """Write the module of all fits; or print those of the names that were given."""
    found: dict[str, list[Fitted]] = {}
    for fit in fits:
        if not names or fit.name in names:
            found.setdefault(fit.name, []).extend(fitted(fit, type) for type in fit.types)
    text = "\n\n".join(polynomial_text(*each) for each in found.items())
    if names:
        print(text)
    else:
        header = HEADER.lstrip().format(title=title, tool=tool)
        output.write_text(header + "\n" + text + "\n")


if __name__ == "__main__":
    title = "Polynomials of the math library"
    written(FITS, OUTPUT, title, "tools/fit_polynomials.py", sys.argv[1:])
