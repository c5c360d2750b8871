"""Every function of the math library stays within its stated error, whatever a target does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import math_references as references
from tests.support.kernel_shim import Arithmetic, run
from treadle.lang.math import FUNCTIONS, ULP_BOUNDS

MODES = {
    "ieee": Arithmetic(),
    "contracted": Arithmetic(contract=True),
    "sloppy": Arithmetic(sloppy=True),
    "sloppy and contracted": Arithmetic(sloppy=True, contract=True),
    "flushed": Arithmetic(flush=True),
}
MEASURED = [name for name in FUNCTIONS if name != "nextafter"]


def worst(name: str, type: str, got: Any, arguments: tuple[Any, ...], flush: bool) -> str | None:
    """The worst error, in words, if it is beyond the bound."""
    high, low = references.reference(name, type, *arguments)
    size = references.scale(name, high, *arguments)
    errors = references.ulp_errors(got, high, low, size)
    if flush:
        errors = np.where(references.flushed(got, high, *arguments), 0.0, errors)
    at = int(np.argmax(errors))
    if errors[at] <= ULP_BOUNDS[name][type]:
        return None
    where = ", ".join(repr(argument[at]) for argument in arguments)
    return f"{name}({where}) = {got[at]!r}, not {high[at]!r}: {errors[at]:.2f} ULP"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", MEASURED)
def test_float32(name: str, mode: str) -> None:
    function = FUNCTIONS[name]
    arguments = references.arguments(name, function.arity, "f32", step=65_537 * 3, dense=3000)
    got = run(function.versions["f32"], *arguments, mode=MODES[mode])
    assert got.dtype == np.float32
    assert worst(name, "f32", got, arguments, MODES[mode].flush) is None


@pytest.mark.parametrize("name", ["erf", "exp", "sigmoid", "tanh"])
def test_float32_with_near_functions(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = references.arguments(name, function.arity, "f32", step=65_537, dense=30_000)
    got = run(function.versions["f32"], *arguments, mode=Arithmetic(near=True, contract=True))
    assert worst(name, "f32", got, arguments, False) is None
    exact = run(function.versions["f32"], *arguments)
    assert (got != exact).any()  # so that it was another way


@pytest.mark.parametrize("name", MEASURED)
def test_float64(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = references.arguments(name, function.arity, "f64", step=2**23, dense=100)
    for mode in ("ieee", "contracted", "sloppy"):
        got = run(function.versions["f64"], *arguments, mode=MODES[mode])
        assert got.dtype == np.float64
        assert worst(name, "f64", got, arguments, flush=False) is None, mode


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_float32_closely(name: str) -> None:
    function = FUNCTIONS[name]
    arguments = references.arguments(name, function.arity, "f32", step=4099, dense=300_000)
    got = run(function.versions["f32"], *arguments)
    assert worst(name, "f32", got, arguments, flush=False) is None


def test_arguments_that_come_nearest_to_multiples_of_a_quarter_turn() -> None:
    """Reduction loses most bits there; found by continued fractions of 2^k / pi."""
    x = np.array([16367173.0 * 2.0**k for k in (72, 40, 10)] + [1e10, 3e38, 5.0706024e30])
    x = x.astype(np.float32)
    for name in ("sin", "cos", "tan"):
        got = run(FUNCTIONS[name].versions["f32"], x)
        assert worst(name, "f32", got, (x,), flush=False) is None
    far = np.array([6381956970095103.0 * 2.0**797, 1e22, 1e300, 1.6e6 + 0.5])
    for name in ("sin", "cos", "tan"):
        got = run(FUNCTIONS[name].versions["f64"], far)
        assert worst(name, "f64", got, (far,), flush=False) is None


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_nextafter_is_exact(type: str) -> None:
    x, y = references.arguments("nextafter", 2, type, step=2**18, dense=500)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    got = run(FUNCTIONS["nextafter"].versions[type], x, y)
    bits = references.INTEGER[type]
    assert ((got.view(bits) == expected.view(bits)) | np.isnan(expected)).all()
    assert np.isnan(got[np.isnan(expected)]).all()


def test_every_function_has_both_types_and_a_bound() -> None:
    assert set(FUNCTIONS) == set(ULP_BOUNDS)
    for name, function in FUNCTIONS.items():
        assert set(function.versions) == set(ULP_BOUNDS[name]) == {"f32", "f64"}, name
