"""What the math library is measured against: true values, arguments, errors in ULP.

A true value is a double and, for f64, the rest that a double can't hold: float32 results are
compared with the double functions of NumPy and Python, float64 results with mpmath's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special as sp

NUMPY = {"f32": np.float32, "f64": np.float64}
INTEGER = {"f32": np.uint32, "f64": np.uint64}
SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1.5, -2.5, 10.0, -171.5, 1e10, -1e10,
    math.inf, -math.inf, math.nan,
)  # fmt: skip


def _python(function: Callable[..., float], pole: float = math.nan) -> Callable[..., Any]:
    """A function of Python's on arrays; its exceptions become what IEEE 754 says."""

    def one(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.copysign(math.inf, x) if abs(x) < 1 else math.inf
        except ValueError:
            return math.copysign(math.inf, x) if x == 0 and math.isnan(pole) else pole

    return lambda x: np.array([one(v) for v in x.tolist()])


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def _half_turns(x: Any, quarter: int) -> Any:
    """sin(pi (|x| + quarter / 2)), from the nearest multiple of pi / 2."""
    r = np.abs(np.fmod(x, 2))
    n = np.rint(2 * r)
    angle = np.pi * (r - n / 2)
    turned = (np.where(np.isnan(n), 0, n).astype(np.int64) + quarter) & 3
    sine, cosine = np.sin(angle), np.cos(angle)
    return np.where(np.isnan(r), np.nan, np.choose(turned, [sine, cosine, -sine, -cosine]) + 0.0)


def _sinpi(x: Any) -> Any:
    value = _half_turns(x, 0)
    return np.where(np.signbit(x), -value, value)


def _erfcinv(x: Any) -> Any:
    """By Newton's method on the logarithm, from a double."""
    if x > 1:
        return -_erfcinv(2 - x)
    y = mp.mpf(float(sp.erfcinv(max(float(x), 1e-300))))
    for _ in range(6):
        error = mp.log(mp.erfc(y) / x)
        y += error * mp.sqrt(mp.pi) / 2 * mp.exp(y * y) * mp.erfc(y)
    return y


def _erfcinv_of_doubles(x: Any) -> Any:
    """SciPy's; of denormal numbers, where it has infinity, a number to say that it is finite."""
    return np.where((x > 0) & (x < 1e-300), 27.0, sp.erfcinv(x)) + 0.0


def _normcdf(x: Any) -> Any:
    """SciPy's; where the true value is denormal, and SciPy's 0, a number to say that it is not."""
    return np.where((x < -37) & (x > -38.46), 1e-310, sp.ndtr(x))


def _erfcx(x: Any) -> Any:
    if x < 1e4:
        return mp.exp(x * x) * mp.erfc(x)
    terms = ((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(9))
    return mp.fsum(terms) / (x * mp.sqrt(mp.pi))


def _modified(order: int) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        a = np.abs(x)
        value = (sp.i1e if order else sp.i0e)(a) * np.exp(a / 2) * np.exp(a / 2)
        value = np.where(np.isinf(a), a, value)
        return np.copysign(value, x) if order else value

    return function


def _wave(order: int, second: bool) -> Callable[[Any], Any]:
    """mpmath's J or Y; from 1000 on, where those take long, by DLMF 10.17.3."""

    def function(x: Any) -> Any:
        a = abs(x)
        if a < 1000:
            return (mp.bessely if second else mp.besselj)(order, x)
        terms = [mp.mpf(1)]
        for k in range(1, 16):
            terms.append(terms[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * a))
        p = mp.fsum((-1) ** k * term for k, term in enumerate(terms[::2]))
        q = mp.fsum((-1) ** k * term for k, term in enumerate(terms[1::2]))
        with mp.workdps(360):  # for the phase
            phase = a - (2 * order + 1) * mp.pi / 4
            sine, cosine = mp.sin(phase), mp.cos(phase)
        wave = p * sine + q * cosine if second else p * cosine - q * sine
        return mp.sqrt(2 / (mp.pi * a)) * (-wave if x < 0 and order else wave)

    return function


def _bessel(near: Callable[..., Any], order: int, second: bool) -> Callable[..., Any]:
    """SciPy's function up to 1000; beyond, where it loses the phase, by DLMF 10.17.3."""

    def function(x: Any) -> Any:
        a = np.abs(x)
        m = 4 * order * order
        p = 1 - (m - 1) * (m - 9) / 128 / a**2
        q = (m - 1) / (8 * a)
        shift = np.pi / 4 if order == 0 else 3 * np.pi / 4
        cosine = np.cos(a) * np.cos(shift) + np.sin(a) * np.sin(shift)
        sine = np.sin(a) * np.cos(shift) - np.cos(a) * np.sin(shift)
        wave = p * sine + q * cosine if second else p * cosine - q * sine
        far = np.where(np.isinf(a), 0.0, np.sqrt(2 / np.pi / a) * wave)
        far = np.where(x < 0, np.nan, far) if second else far
        far = np.where((x < 0) & (order == 1), -far, far)
        close = np.where((x == 0) & (order == 1) & (not second), x, near(x))
        return np.where(a > 1000, far, close)

    return function


def _norm(*x: Any) -> Any:
    result = x[0]
    for other in x[1:]:
        result = np.hypot(result, other)
    return np.hypot(result, 0.0)


# name: (on doubles, in mpmath)
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "exp": (np.exp, mp.exp),
    "exp2": (np.exp2, lambda x: mp.mpf(2) ** x),
    "expm1": (np.expm1, mp.expm1),
    "sigmoid": (_sigmoid, lambda x: 1 / (1 + mp.exp(-x))),
    "sinh": (np.sinh, mp.sinh),
    "cosh": (np.cosh, mp.cosh),
    "tanh": (np.tanh, mp.tanh),
    "log": (np.log, mp.log),
    "log2": (np.log2, lambda x: mp.log(x, 2)),
    "log10": (np.log10, mp.log10),
    "log1p": (np.log1p, mp.log1p),
    "logaddexp": (
        np.logaddexp, lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y)))),
    "asinh": (np.arcsinh, mp.asinh),
    "acosh": (np.arccosh, mp.acosh),
    "atanh": (np.arctanh, mp.atanh),
    "sin": (np.sin, mp.sin),
    "cos": (np.cos, mp.cos),
    "tan": (np.tan, mp.tan),
    "asin": (np.arcsin, mp.asin),
    "acos": (np.arccos, mp.acos),
    "atan": (np.arctan, mp.atan),
    "atan2": (np.arctan2, mp.atan2),
    "pow": (np.power, lambda x, y: mp.power(x, int(y) if y == int(y) else y)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x)),
    "cbrt": (np.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    "hypot": (np.hypot, mp.hypot),
    "erf": (_python(math.erf), mp.erf),
    "erfc": (_python(math.erfc), mp.erfc),
    "gamma": (_python(math.gamma), mp.gamma),
    "lgamma": (_python(math.lgamma, pole=math.inf), lambda x: mp.re(mp.loggamma(x))),
}  # fmt: skip
FUNCTIONS |= {  # those that only other front ends name
    "exp10": (lambda x: np.power(10.0, x), lambda x: mp.mpf(10) ** x),
    "rcbrt": (lambda x: 1 / np.cbrt(x), lambda x: mp.sign(x) / mp.cbrt(abs(x))),
    "sinpi": (_sinpi, mp.sinpi),
    "cospi": (lambda x: _half_turns(x, 1), mp.cospi),
    "erfinv": (lambda x: np.where(x == 0, x, sp.erfinv(x)), mp.erfinv),
    "erfcinv": (_erfcinv_of_doubles, _erfcinv),
    "erfcx": (sp.erfcx, _erfcx),
    "normcdf": (_normcdf, lambda x: mp.ncdf(x) if x < 40 else mp.mpf(1)),
    "normcdfinv": (lambda x: sp.ndtri(x) + 0.0, lambda x: -mp.sqrt(2) * _erfcinv(2 * x)),
    "cyl_bessel_i0": (_modified(0), lambda x: mp.besseli(0, x)),
    "cyl_bessel_i1": (_modified(1), lambda x: mp.besseli(1, x)),
    "j0": (_bessel(sp.j0, 0, False), _wave(0, False)),
    "j1": (_bessel(sp.j1, 1, False), _wave(1, False)),
    "y0": (_bessel(sp.y0, 0, True), _wave(0, True)),
    "y1": (_bessel(sp.y1, 1, True), _wave(1, True)),
    "norm3d": (_norm, lambda *x: mp.sqrt(mp.fsum(v * v for v in x))),
    "norm4d": (_norm, lambda *x: mp.sqrt(mp.fsum(v * v for v in x))),
    "rhypot": (lambda *x: 1 / _norm(*x), lambda *x: 1 / mp.sqrt(mp.fsum(v * v for v in x))),
    "rnorm3d": (lambda *x: 1 / _norm(*x), lambda *x: 1 / mp.sqrt(mp.fsum(v * v for v in x))),
    "rnorm4d": (lambda *x: 1 / _norm(*x), lambda *x: 1 / mp.sqrt(mp.fsum(v * v for v in x))),
}


@np.errstate(all="ignore")
def reference(name: str, type: str, *arguments: Any) -> tuple[Any, Any]:
    """The true values: doubles, and the rests to add to them (0 for f32)."""
    assert name in FUNCTIONS, f"add what {name} truly is to FUNCTIONS in {__name__}"
    on_doubles, _ = FUNCTIONS[name]
    doubles = [np.asarray(argument, np.float64) for argument in arguments]
    if type == "f64":
        high, low = _exact(name, *(each.tobytes() for each in doubles))
        return high.reshape(doubles[0].shape), low.reshape(doubles[0].shape)
    high = np.array(on_doubles(*doubles), np.float64)
    return high, np.zeros_like(high)


# The same arguments come for each device and each kind of arithmetic, and mpmath takes long.
@functools.lru_cache(64)
@np.errstate(all="ignore")
def _exact(name: str, *arguments: bytes) -> tuple[Any, Any]:
    on_doubles, in_mpmath = FUNCTIONS[name]
    doubles = [np.frombuffer(argument, np.float64) for argument in arguments]
    high = np.array(on_doubles(*doubles), np.float64)
    low = np.zeros_like(high)
    with mp.workdps(40):
        # At zeros of arguments or results doubles are exact, and know the sign of a zero.
        ordinary = np.isfinite(high) & (high != 0)
        for argument in doubles:
            ordinary &= np.isfinite(argument) & (argument != 0)
        for i in np.flatnonzero(ordinary):
            exact = in_mpmath(*(mp.mpf(float(argument[i])) for argument in doubles))
            high[i] = float(exact)
            low[i] = float(exact - mp.mpf(float(high[i]))) if np.isfinite(high[i]) else 0.0
    high.flags.writeable = low.flags.writeable = False
    return high, low


@np.errstate(all="ignore")
def scale(name: str, high: Any, *arguments: Any) -> Any:
    """The size that an error is judged by: the result's, but where a sum cancels its terms'.
    (Of Bessel functions from 8 on that of their waves.)"""
    size = np.abs(high)
    if name == "logaddexp":
        terms = np.maximum(*(np.asarray(argument, np.float64) for argument in arguments))
        return np.maximum(size, np.where(np.isfinite(terms), np.abs(terms), 0))
    if name == "lgamma":  # below 0 it is log(pi) - log|x| - log|sin(pi x)| - log gamma(|x|)
        x = np.asarray(arguments[0], np.float64)
        log_sine = np.abs(np.log(np.abs(np.sin(np.pi * (x - np.rint(x))))))
        terms = np.maximum(FUNCTIONS["lgamma"][0](np.abs(x)), log_sine)
        terms = np.maximum(np.maximum(terms, math.log(math.pi)), np.log(np.abs(x)))
        return np.where((x < 0) & np.isfinite(terms), np.maximum(size, terms), size)
    if name in ("j0", "j1", "y0", "y1"):
        x = np.asarray(arguments[0], np.float64)
        return np.where(np.abs(x) >= 8, np.sqrt(2 / np.pi / np.abs(x)), size)
    return size


@np.errstate(all="ignore")
def ulp_errors(got: Any, high: Any, low: Any, size: Any) -> Any:
    """Errors in units in the last place of numbers of that size; infinite for a wrong NaN or sign.

    An infinite result counts as the number after the largest finite one.
    """
    info = np.finfo(got.dtype)
    limit = 2.0 * 2.0 ** (info.maxexp - 1) if info.maxexp < 1000 else math.inf
    result = got.astype(np.float64)
    exponent = np.floor(np.log2(np.clip(size, float(info.tiny), float(info.max))))
    unit = (
        np.exp2(exponent - info.nmant)
        if got.dtype == np.float32
        else np.spacing(np.clip(size, float(info.tiny), float(info.max)))
    )
    capped = np.where(np.isinf(result), np.copysign(limit, result), result)
    true = np.where(np.abs(high) >= limit, np.copysign(limit, high), high)
    errors = np.abs((capped - true) - low) / unit
    errors = np.where(result == high, np.abs(low) / unit, errors)
    errors = np.where(np.isnan(result) & np.isnan(high), 0.0, errors)
    errors = np.where(np.isnan(errors), math.inf, errors)
    wrong_zero = (result == 0) & (high == 0) & (np.signbit(result) != np.signbit(high))
    return np.where(wrong_zero, math.inf, errors)


@np.errstate(all="ignore")
def flushed(got: Any, high: Any, *arguments: Any) -> Any:
    """Where flushed denormals excuse a result: it is off by less than the smallest normal number,
    or an argument is denormal."""
    tiny = float(np.finfo(got.dtype).tiny)
    result = np.abs(got.astype(np.float64) - high) <= tiny * 1.000001
    for argument in arguments:
        result |= (np.abs(argument) < tiny) & (np.asarray(argument) != 0)
    return result


@np.errstate(all="ignore")  # converting signalling patterns
def sweep(type: str, step: int, dense: int) -> Any:
    """Every `step`-th bit pattern (f64: as many drawn ones), ranges that matter, special values."""
    rng = np.random.default_rng(20240229)
    float_type = NUMPY[type]
    if type == "f32":
        bits = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    else:
        bits = rng.integers(0, 2**64, 2**32 // step, dtype=np.uint64)
    ranges = [
        rng.uniform(low, high, dense)
        for low, high in ((-1, 1), (-4, 4), (-12, 12), (-110, 110), (0.7, 1.45), (-1e4, 1e4))
    ]
    ranges += [1 + rng.uniform(-1, 1, dense) * 2.0 ** rng.integers(-24, 0, dense)]
    ranges += [rng.uniform(-760, 760, dense)] if type == "f64" else []
    # Both sides of where reductions change their mind.
    turns = np.arange(-260, 261) * (np.pi / 4)
    logs = np.arange(-300, 300) * (np.log(2) / 2)
    halves = np.arange(-60, 61) / 4
    edges = np.concatenate([turns, logs, halves, np.sqrt(0.5) * 2.0 ** np.arange(-20, 20)])
    edges = edges.astype(float_type)
    for _ in range(2):
        edges = np.concatenate([edges, np.nextafter(edges, float_type(np.inf))])
    info = np.finfo(float_type)
    ends = np.array([info.tiny, info.max, info.smallest_subnormal, 200.0, 1.6e6], float_type)
    special = np.array(SPECIAL, float_type)
    dense_values = np.concatenate(ranges).astype(float_type)
    return np.concatenate([bits.view(float_type), dense_values, edges, ends, -ends, special])


@np.errstate(all="ignore")
def arguments(name: str, arity: int, type: str, step: int, dense: int) -> tuple[Any, ...]:
    """The arguments that a function is swept over."""
    x = sweep(type, step, dense)
    if arity == 1:
        return (x,)
    rng = np.random.default_rng(5)
    special = np.array(SPECIAL, NUMPY[type])
    if arity > 2:
        mixed = [rng.permutation(x) for _ in range(arity)]
        near = [rng.uniform(-1, 1, x.size) * 2.0 ** rng.integers(-3, 3, x.size) for _ in mixed]
        drawn = rng.choice(special, (arity, 400))
        scales = (1e-44, 1e30, 1.0) if type == "f32" else (1e-320, 1e300, 1.0)
        return tuple(
            np.concatenate([m, drawn[i], *(v * scale for scale in scales)]).astype(NUMPY[type])
            for i, (m, v) in enumerate(zip(mixed, near, strict=True))
        )
    first = [x, np.repeat(special, special.size), rng.permutation(x)]
    second = [rng.permutation(x), np.tile(special, special.size), rng.permutation(x)]
    if name == "pow":  # most pairs of drawn numbers over- or underflow
        base = np.exp(rng.uniform(-5, 5, x.size)).astype(NUMPY[type])
        reach = 88 if type == "f32" else 708
        power = (rng.uniform(-reach, reach, x.size) / np.log(base)).astype(NUMPY[type])
        first += [base, -base]
        second += [power, np.round(power)]
    return np.concatenate(first), np.concatenate(second)
