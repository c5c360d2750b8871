"""Functions of the library that the kernel language does not name: bounds and exact results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.support import math_references as references
from tests.support.kernel_shim import Arithmetic, run
from treadle.lang.math import FURTHER, FURTHER_BOUNDS, LIBRARY

INF, NAN = math.inf, math.nan
MODES = {
    "ieee": Arithmetic(),
    "sloppy and contracted": Arithmetic(sloppy=True, contract=True),
    "flushed": Arithmetic(flush=True),
}
MEASURED = [name for name, bounds in FURTHER_BOUNDS.items() if bounds["f32"]]


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
    arguments = references.arguments(name, function.arity, "f32", step=65_537 * 9, dense=2000)
    for mode in MODES.values():
        got = run(function.versions["f32"], *arguments, mode=mode)
        assert got.dtype == np.float32
        assert worst(name, "f32", got, arguments, mode.flush) is None, mode


@pytest.mark.parametrize("name", MEASURED)
def test_float64(name: str) -> None:
    function = FURTHER[name]
    arguments = references.arguments(name, function.arity, "f64", step=2**24, dense=40)
    for mode in (MODES["ieee"], MODES["sloppy and contracted"]):
        got = run(function.versions["f64"], *arguments, mode=mode)
        assert got.dtype == np.float64
        assert worst(name, "f64", got, arguments, False) is None, mode


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
    same(run(LIBRARY["byte_perm_u32"], x, y, s), expected.copy().view(np.uint32)[:, 0])


def test_every_function_has_both_types_and_a_bound() -> None:
    assert set(FURTHER) == set(FURTHER_BOUNDS)
    for name, function in FURTHER.items():
        assert set(function.versions) == set(FURTHER_BOUNDS[name]) == {"f32", "f64"}, name
