"""Special values, one by one: what IEEE 754 and C say, where they say it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.kernel_shim import run
from treadle.lang.math import FUNCTIONS

INF, NAN = math.inf, math.nan

# (function, arguments, result)
CASES = [
    ("exp", (INF,), INF), ("exp", (-INF,), 0.0), ("exp", (-0.0,), 1.0), ("exp", (1e6,), INF),
    ("exp2", (10.0,), 1024.0), ("exp2", (-3.0,), 0.125), ("exp2", (-INF,), 0.0),
    ("expm1", (-0.0,), -0.0), ("expm1", (-INF,), -1.0), ("expm1", (INF,), INF),
    ("sigmoid", (0.0,), 0.5), ("sigmoid", (INF,), 1.0), ("sigmoid", (-INF,), 0.0),
    ("sinh", (-0.0,), -0.0), ("sinh", (-INF,), -INF), ("cosh", (-INF,), INF),
    ("cosh", (0.0,), 1.0), ("tanh", (-0.0,), -0.0), ("tanh", (-INF,), -1.0),
    ("log", (1.0,), 0.0), ("log", (-0.0,), -INF), ("log", (-1.0,), NAN), ("log", (INF,), INF),
    ("log2", (8.0,), 3.0), ("log2", (0.0,), -INF), ("log2", (-INF,), NAN),
    ("log10", (1.0,), 0.0), ("log10", (0.0,), -INF),
    ("log1p", (-0.0,), -0.0), ("log1p", (-1.0,), -INF), ("log1p", (-2.0,), NAN),
    ("log1p", (INF,), INF),
    ("logaddexp", (-INF, -INF), -INF), ("logaddexp", (INF, -INF), INF),
    ("logaddexp", (INF, INF), INF), ("logaddexp", (-INF, 2.0), 2.0),
    ("asinh", (-0.0,), -0.0), ("asinh", (-INF,), -INF), ("acosh", (1.0,), 0.0),
    ("acosh", (0.5,), NAN), ("acosh", (INF,), INF), ("acosh", (-INF,), NAN),
    ("atanh", (-1.0,), -INF), ("atanh", (-0.0,), -0.0), ("atanh", (1.5,), NAN),
    ("sin", (-0.0,), -0.0), ("sin", (INF,), NAN), ("cos", (-INF,), NAN), ("cos", (0.0,), 1.0),
    ("tan", (-0.0,), -0.0), ("tan", (INF,), NAN),
    ("asin", (-0.0,), -0.0), ("asin", (1.5,), NAN), ("acos", (1.0,), 0.0), ("acos", (-2.0,), NAN),
    ("atan", (-0.0,), -0.0), ("atan", (INF,), math.pi / 2), ("atan", (-INF,), -math.pi / 2),
    ("atan2", (0.0, 0.0), 0.0), ("atan2", (-0.0, 0.0), -0.0), ("atan2", (0.0, -0.0), math.pi),
    ("atan2", (-0.0, -1.0), -math.pi), ("atan2", (1.0, 0.0), math.pi / 2),
    ("atan2", (INF, INF), math.pi / 4), ("atan2", (-INF, -INF), -3 * math.pi / 4),
    ("atan2", (1.0, -INF), math.pi), ("atan2", (-1.0, INF), -0.0),
    ("pow", (NAN, 0.0), 1.0), ("pow", (1.0, NAN), 1.0), ("pow", (NAN, 3.0), NAN),
    ("pow", (-1.0, 3.0), -1.0), ("pow", (-2.0, 3.0), -8.0), ("pow", (-2.0, 0.5), NAN),
    ("pow", (-0.0, 3.0), -0.0), ("pow", (-0.0, -3.0), -INF), ("pow", (-0.0, -2.0), INF),
    ("pow", (0.0, 0.5), 0.0), ("pow", (-1.0, INF), 1.0), ("pow", (0.5, INF), 0.0),
    ("pow", (0.5, -INF), INF), ("pow", (2.0, -INF), 0.0), ("pow", (-INF, 3.0), -INF),
    ("pow", (-INF, -3.0), -0.0), ("pow", (-INF, 0.5), INF), ("pow", (INF, -1.0), 0.0),
    ("pow", (3.0, 2.0), 9.0), ("pow", (10.0, -2.0), 0.01), ("pow", (2.0, 1e9), INF),
    ("rsqrt", (0.0,), INF), ("rsqrt", (-0.0,), -INF), ("rsqrt", (INF,), 0.0),
    ("rsqrt", (-1.0,), NAN), ("rsqrt", (4.0,), 0.5),
    ("cbrt", (-27.0,), -3.0), ("cbrt", (-0.0,), -0.0), ("cbrt", (-INF,), -INF),
    ("hypot", (3.0, -4.0), 5.0), ("hypot", (NAN, -INF), INF), ("hypot", (NAN, 1.0), NAN),
    ("hypot", (-0.0, 0.0), 0.0),
    ("erf", (-0.0,), -0.0), ("erf", (-INF,), -1.0), ("erf", (9.0,), 1.0),
    ("erfc", (INF,), 0.0), ("erfc", (-INF,), 2.0), ("erfc", (0.0,), 1.0),
    ("gamma", (5.0,), 24.0), ("gamma", (0.0,), INF), ("gamma", (-0.0,), -INF),
    ("gamma", (-3.0,), NAN), ("gamma", (INF,), INF), ("gamma", (-INF,), NAN),
    ("lgamma", (1.0,), 0.0), ("lgamma", (2.0,), 0.0), ("lgamma", (-3.0,), INF),
    ("lgamma", (0.0,), INF), ("lgamma", (-INF,), INF),
    ("nextafter", (1.0, NAN), NAN), ("nextafter", (-0.0, 0.0), 0.0),
]  # fmt: skip


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_special_value(name: str, arguments: tuple[float, ...], expected: float, type: str) -> None:
    dtype = np.float32 if type == "f32" else np.float64
    values = [np.array([argument], dtype) for argument in arguments]
    (got,) = run(FUNCTIONS[name].versions[type], *values)
    if math.isnan(expected):
        assert np.isnan(got)
        return
    assert got == pytest.approx(expected, rel=float(4 * np.finfo(dtype).eps), abs=0)
    assert np.signbit(got) == np.signbit(expected)
    if expected == np.rint(expected):
        assert got == expected  # whole results, 0 and infinity come out exactly


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.arity == 1])
def test_nan_stays_nan(name: str, type: str) -> None:
    bits = {
        "f32": (np.uint32, 0x7FC00000, 0xFF800001),
        "f64": (np.uint64, 0x7FF8 << 48, 0xFFF0000000000001),
    }[type]
    patterns = np.array(bits[1:], bits[0])
    x = patterns.view(np.float32 if type == "f32" else np.float64)
    assert np.isnan(run(FUNCTIONS[name].versions[type], x)).all()
