"""Functions of the library that the kernel language does not name: bounds and exact results."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tests.support import math_references as references
from tests.support.kernel_shim import Arithmetic, run
from treadle.lang.math import FURTHER, FURTHER_BOUNDS, library

INF, NAN = math.inf, math.nan
MODES = {
    "ieee": Arithmetic(),
    "sloppy and contracted": Arithmetic(sloppy=True, contract=True),
    "flushed": Arithmetic(flush=True),
}
OF_ORDERS = ("jn", "yn")
MEASURED = [name for name, bounds in FURTHER_BOUNDS.items() if bounds["f32"]]
MEASURED = [name for name in MEASURED if name not in OF_ORDERS]
INVERSES = ("erfinv", "erfcinv", "normcdfinv")


def arguments_of(name: str, type: str, step: int, dense: int) -> tuple[Any, ...]:
    found = references.arguments(name, FURTHER[name].arity, type, step, dense)
    if name in ("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1") and type == "f64":
        return (found[0][::31],)  # mpmath takes its time
    if len(found) > 2 and type == "f64":
        return tuple(argument[::5] for argument in found)
    if name not in INVERSES:
        return found
    rng = np.random.default_rng(1)  # close to 0, 1 and 2 too
    near = [2.0 ** rng.uniform(-149 if type == "f32" else -1070, 0, dense)]
    near += [at - 2.0 ** rng.uniform(-24, 0, dense) for at in (1.0, 2.0)]
    with np.errstate(all="ignore"):  # converting signalling patterns
        x = np.concatenate([found[0].astype(np.float64), *near])
        return (x.astype(found[0].dtype),)


def worst(name: str, type: str, got: Any, arguments: tuple[Any, ...], flush: bool) -> str | None:
    high, low = references.reference(name, type, *arguments)
    errors = references.ulp_errors(got, high, low, references.scale(name, high, *arguments))
    if flush:
        errors = np.where(references.flushed(got, high, *arguments), 0.0, errors)
    at = int(np.argmax(errors))
    if errors[at] <= FURTHER_BOUNDS[name][type]:
        return None
    where = ", ".join(repr(argument[at]) for argument in arguments)
    return f"{name}({where}) = {got[at]!r}, not {high[at]!r}: {errors[at]:.2f} ULP"


@pytest.mark.parametrize("name", MEASURED)
def test_float32(name: str) -> None:
    function = FURTHER[name]
    arguments = arguments_of(name, "f32", step=65_537 * 9, dense=2000)
    for mode in MODES.values():
        got = run(function.versions["f32"], *arguments, mode=mode)
        assert got.dtype == np.float32
        assert worst(name, "f32", got, arguments, mode.flush) is None, mode


@pytest.mark.parametrize("name", MEASURED)
def test_float64(name: str) -> None:
    function = FURTHER[name]
    arguments = arguments_of(name, "f64", step=2**26, dense=20)
    for mode in (MODES["ieee"], MODES["sloppy and contracted"]):
        got = run(function.versions["f64"], *arguments, mode=mode)
        assert got.dtype == np.float64
        assert worst(name, "f64", got, arguments, False) is None, mode


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", OF_ORDERS)
def test_bessel_functions_of_any_order(name: str, type: str) -> None:
    rng = np.random.default_rng(4)
    dtype = references.NUMPY[type]
    x = [rng.uniform(0, 30, 90), rng.uniform(0, 300, 40), 10.0 ** rng.uniform(-18, 3, 40)]
    x = np.concatenate(x).astype(dtype)
    n = rng.integers(0, 40, x.size).astype(np.int32)
    got = run(FURTHER[name].versions[type], x, n).astype(np.float64)
    in_mpmath = mp.besselj if name == "jn" else mp.bessely
    with mp.workdps(30):
        true = [float(in_mpmath(int(k), mp.mpf(float(v)))) for k, v in zip(n, x, strict=True)]
    limit, tiny = float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)
    high = np.clip(true, -limit, limit)
    waves = np.where(x > n, np.sqrt(2 / np.pi / x.astype(np.float64)), 0)
    size = np.clip(np.maximum(np.abs(high), waves), tiny, limit / 2)
    unit = np.spacing(size.astype(dtype))
    errors = np.abs(np.clip(got, -limit, limit) - high) / unit
    assert errors.max() <= FURTHER_BOUNDS[name][type], (x[errors.argmax()], n[errors.argmax()])


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "x", "n", "expected"),
    [
        ("jn", 0.0, 0, 1.0), ("jn", 0.0, 5, 0.0), ("jn", 1.0, -1, NAN), ("jn", INF, 3, 0.0),
        ("jn", NAN, 3, NAN), ("jn", 1.0, 2**31 - 1, 0.0), ("jn", -0.0, 1, -0.0),
        ("yn", 0.0, 3, -INF), ("yn", -1.0, 2, NAN), ("yn", INF, 2, 0.0), ("yn", 1.0, -1, NAN),
        ("yn", 0.5, 2**31 - 1, -INF), ("yn", 0.0, 0, -INF),
    ],
)  # fmt: skip
def test_special_values_of_orders(name: str, x: float, n: int, expected: float, type: str) -> None:
    dtype = references.NUMPY[type]
    got = run(FURTHER[name].versions[type], np.array([x], dtype), np.array([n], np.int32))
    same(got, np.array([expected], dtype))


def same(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_exponents_and_fractions(type: str) -> None:
    x = references.sweep(type, step=2**19, dense=100)
    fraction, exponent = np.frexp(x)
    ordinary = np.isfinite(x)
    same(run(FURTHER["frexp_fraction"].versions[type], x), fraction)
    same(
        run(FURTHER["frexp_exponent"].versions[type], x),
        np.where(ordinary, exponent, 0).astype(np.int32),
    )
    whole = np.where(x == 0, -(2**31), np.where(np.isnan(x), -(2**31), exponent - 1))
    whole = np.where(np.isinf(x), 2**31 - 1, whole).astype(np.int32)
    same(run(FURTHER["ilogb"].versions[type], x), whole)
    expected = np.where(x == 0, -INF, np.where(ordinary, exponent - 1.0, np.abs(x)))
    same(run(FURTHER["logb"].versions[type], x), expected.astype(x.dtype))


@pytest.mark.parametrize("type", ["f32", "f64"])
@np.errstate(all="ignore")
def test_ldexp_rounds_once(type: str) -> None:
    x = references.sweep(type, step=2**19, dense=100)
    rng = np.random.default_rng(3)
    reach = 300 if type == "f32" else 2200
    n = rng.integers(-reach, reach, x.size).astype(np.int32)
    n[::3] = -np.frexp(x)[1][::3] - (140 if type == "f32" else 1060)  # denormal results
    n[:4] = (2**31 - 1, -(2**31), 0, 1)
    same(run(FURTHER["ldexp"].versions[type], x, n), np.ldexp(x, n))


def _remquo(x: float, y: float) -> tuple[float, int]:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return NAN, 0
    if math.isinf(y):
        return x, 0
    from fractions import Fraction

    n = round(Fraction(x) / Fraction(y))
    return math.remainder(x, y), n


@pytest.mark.parametrize("type", ["f32", "f64"])
@np.errstate(all="ignore")
def test_remainders_are_exact(type: str) -> None:
    rng = np.random.default_rng(11)
    x, y = references.arguments("remainder", 2, type, step=2**23, dense=30)
    close = rng.integers(-40, 41, (2, 400)) / 4.0  # ties
    x = np.concatenate([x, close[0]]).astype(x.dtype)
    y = np.concatenate([y, close[1]]).astype(x.dtype)
    expected = [_remquo(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    same(
        run(FURTHER["remainder"].versions[type], x, y), np.array([e[0] for e in expected], x.dtype)
    )
    got = run(FURTHER["remainder_quotient"].versions[type], x, y)
    for quotient, (_, n), a, b in zip(got.tolist(), expected, x, y, strict=True):
        assert abs(quotient) % 8 == abs(n) % 8, (a, b)
        assert quotient * n >= 0


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("sinpi", (1.0,), 0.0), ("sinpi", (-2.0,), -0.0), ("sinpi", (0.5,), 1.0),
        ("sinpi", (1.5,), -1.0), ("sinpi", (-0.0,), -0.0), ("sinpi", (INF,), NAN),
        ("cospi", (0.5,), 0.0), ("cospi", (-1.5,), 0.0), ("cospi", (1.0,), -1.0),
        ("cospi", (1e30,), 1.0), ("cospi", (-INF,), NAN),
        ("rcbrt", (-8.0,), -0.5), ("rcbrt", (-0.0,), -INF), ("rcbrt", (INF,), 0.0),
        ("exp10", (2.0,), 100.0), ("exp10", (-INF,), 0.0), ("exp10", (INF,), INF),
        ("rhypot", (0.0, -0.0), INF), ("rhypot", (NAN, -INF), 0.0),
        ("norm3d", (2.0, -3.0, 6.0), 7.0), ("norm3d", (NAN, 1.0, INF), INF),
        ("rnorm3d", (NAN, 1.0, 2.0), NAN), ("norm4d", (1.0, 1.0, 1.0, 1.0), 2.0),
        ("rnorm4d", (1.0, 1.0, -1.0, 1.0), 0.5),
        ("erfinv", (-0.0,), -0.0), ("erfinv", (-1.0,), -INF), ("erfinv", (1.5,), NAN),
        ("erfcinv", (1.0,), 0.0), ("erfcinv", (0.0,), INF), ("erfcinv", (2.0,), -INF),
        ("erfcinv", (-0.5,), NAN), ("erfcx", (INF,), 0.0), ("erfcx", (-INF,), INF),
        ("normcdf", (-INF,), 0.0), ("normcdf", (INF,), 1.0), ("normcdf", (0.0,), 0.5),
        ("normcdfinv", (0.5,), 0.0), ("normcdfinv", (0.0,), -INF), ("normcdfinv", (1.0,), INF),
        ("normcdfinv", (1.5,), NAN), ("cyl_bessel_i0", (0.0,), 1.0),
        ("cyl_bessel_i0", (-INF,), INF), ("cyl_bessel_i1", (-INF,), -INF),
        ("cyl_bessel_i1", (-0.0,), -0.0), ("j0", (0.0,), 1.0), ("j0", (-INF,), 0.0),
        ("j1", (-0.0,), -0.0), ("j1", (INF,), 0.0), ("y0", (0.0,), -INF), ("y0", (-1.0,), NAN),
        ("y1", (0.0,), -INF), ("y1", (-INF,), NAN), ("y1", (INF,), 0.0),
    ],
)  # fmt: skip
def test_special_value(name: str, arguments: tuple[float, ...], expected: float, type: str) -> None:
    dtype = np.float32 if type == "f32" else np.float64
    got = run(FURTHER[name].versions[type], *(np.array([v], dtype) for v in arguments))
    if expected == 100.0:
        assert got == pytest.approx(100.0, rel=2e-7)
    else:
        same(got, np.array([expected], dtype))


def test_bytes_are_picked() -> None:
    rng = np.random.default_rng(2)
    x, y, s = rng.integers(0, 2**32, (3, 500), dtype=np.uint64).astype(np.uint32)
    eight = np.stack([x, y], axis=1).view(np.uint8)
    expected = np.stack([eight[np.arange(500), (s >> 4 * i) & 7] for i in range(4)], axis=1)
    same(run(library()["byte_perm_u32"], x, y, s), expected.copy().view(np.uint32)[:, 0])


def test_every_function_has_both_types_and_a_bound() -> None:
    assert set(FURTHER) == set(FURTHER_BOUNDS)
    for name, function in FURTHER.items():
        assert set(function.versions) == set(FURTHER_BOUNDS[name]) == {"f32", "f64"}, name
