"""Arithmetic rounded in a direction, against fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support import math_references as references
from tests.support.exact_rounding import rounded
from tests.support.kernel_shim import Arithmetic, run
from treadle.ir import types as t
from treadle.lang.math import FURTHER
from treadle.lang.math.directed import DOWN, UP, ZERO

DIRECTIONS = {"rz": ZERO, "ru": UP, "rd": DOWN}
COUNT = 300
OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


@np.errstate(all="ignore")
def numbers(type: str, seed: int) -> Any:
    """Patterns from everywhere, numbers of like sizes, small whole ones and denormal ones."""
    rng = np.random.default_rng(seed)
    dtype, unsigned = references.NUMPY[type], references.INTEGER[type]
    patterns = rng.integers(0, 2**64, COUNT, dtype=np.uint64).astype(unsigned).view(dtype)
    plain = rng.normal(size=COUNT).astype(dtype)
    whole = (rng.integers(-40, 40, COUNT) * 2.0 ** rng.integers(-3, 3, COUNT)).astype(dtype)
    tiny = rng.integers(1, 2**20, COUNT).astype(unsigned).view(dtype) * np.sign(plain)
    scaled = plain * dtype(2) ** rng.integers(-30, 30, COUNT).astype(dtype)
    return np.choose(rng.integers(0, 5, COUNT), [patterns, plain, whole, tiny, scaled])


def expected(name: str, values: list[float], type: t.Scalar, mode: str) -> float:
    """The exact result, rounded; of an exact 0 with its sign."""
    exact = OPERATIONS[name](*map(Fraction, values))
    if exact:
        return math.copysign(rounded(exact, type, mode), 1 if exact > 0 else -1)
    signs = [math.copysign(1, value) for value in values]
    if name in ("mul", "div"):
        return math.copysign(0.0, signs[0] * signs[1])
    terms = signs if name == "add" else [signs[0] * signs[1], signs[2]]
    if terms[0] == terms[1]:
        return math.copysign(0.0, terms[0])
    return -0.0 if mode == "rd" else 0.0


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
@np.errstate(all="ignore")
def test_results_are_rounded_once(name: str, type: t.Scalar) -> None:
    function = FURTHER[f"{name}_directed"]
    arguments = [numbers(type.name, seed) for seed in range(function.arity - 1)]
    arguments[1][1::5] = -arguments[0][1::5]
    if name == "fma":  # cancelling
        arguments[2][::4] = -(arguments[0] * arguments[1])[::4]
    for mode, direction in DIRECTIONS.items():
        modes = np.full(COUNT, direction, np.int32)
        got = run(function.versions[type.name], *arguments, modes, mode=Arithmetic(sloppy=True))
        for index in range(COUNT):
            values = [float(argument[index]) for argument in arguments]
            if not all(map(math.isfinite, values)) or (name == "div" and values[1] == 0):
                continue
            true, found = expected(name, values, type, mode), float(got[index])
            same = found == true and math.copysign(1, found) == math.copysign(1, true)
            assert same, f"{name}_{mode}{values} = {found!r}, not {true!r}"


@pytest.mark.parametrize("type", ["f32", "f64"])
@np.errstate(all="ignore")
def test_roots_are_rounded_once(type: str) -> None:
    x = np.abs(numbers(type, 9))
    x = np.concatenate([x[np.isfinite(x) & (x > 0)], np.arange(1, 100).astype(x.dtype) ** 2])
    results = {
        mode: run(FURTHER["sqrt_directed"].versions[type], x, np.full(x.size, way, np.int32))
        for mode, way in DIRECTIONS.items()
    }
    np.testing.assert_array_equal(results["rz"], results["rd"])
    for value, low, high in zip(x, results["rd"], results["ru"], strict=True):
        assert Fraction(float(low)) ** 2 <= Fraction(float(value)) <= Fraction(float(high)) ** 2
        exact = Fraction(float(low)) ** 2 == Fraction(float(value))
        assert high == (low if exact else np.nextafter(low, np.inf, dtype=x.dtype))


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("direction", DIRECTIONS.values())
@np.errstate(all="ignore")
def test_special_values_are_those_of_plain_arithmetic(direction: int, type: str) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], references.NUMPY[type])
    x, y = np.repeat(special, 7), np.tile(special, 7)
    modes = np.full(49, direction, np.int32)
    plain = {"add": x + y, "mul": x * y, "div": x / y, "sqrt": np.sqrt(x)}
    cancelled = (x + y == 0) & (np.signbit(x) != np.signbit(y)) & (direction == DOWN)
    plain["add"] = np.where(cancelled, -0.0, plain["add"])
    for name, true in plain.items():
        given = (x,) if name == "sqrt" else (x, y)
        got = run(FURTHER[f"{name}_directed"].versions[type], *given, modes)
        np.testing.assert_array_equal(got, true)
        known = ~np.isnan(true)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(true)[known])
