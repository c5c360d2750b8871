"""Functions of Python, `math` and NumPy in kernels: on every device as in Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import treadle as td
from tests.support.kernels import agree

SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan, 1.0, -1.0]
# What gives floats of one number; the domain of each is where Python raises nothing.
OF_ONE = (
    math.acos, math.asinh, math.atan, math.cosh, math.degrees, math.erf, math.exp, math.expm1,
    math.fabs, math.gamma, math.log, math.log10, math.log1p, math.radians, math.sqrt, math.tanh,
    np.arcsin, np.arctanh, np.cbrt, np.ceil, np.deg2rad, np.fix, np.floor, np.negative, np.rint,
    np.round, np.sign, np.sin, np.square, np.trunc, abs,
)  # fmt: skip
OF_TWO = (
    math.atan2, math.copysign, math.fmod, math.hypot, math.pow, math.remainder, np.add, np.fmax,
    np.fmin, np.heaviside, np.logaddexp, np.maximum, np.minimum, np.mod, np.power,
)  # fmt: skip
TO_INTEGERS = (math.floor, math.ceil, math.trunc, round, int)


def drawn(count: int) -> np.ndarray:
    numbers = np.random.default_rng().normal(scale=3, size=count)
    return np.concatenate([SPECIAL, numbers]).astype(np.float32)


def in_python(function, *numbers) -> float:
    """What Python gives in float64; where it raises, the limit that devices have."""
    function = np.trunc if function is np.fix else function  # newer NumPy warns of its own name
    try:
        with np.errstate(all="ignore"):
            return float(function(*map(float, numbers)))
    except (ValueError, OverflowError, ZeroDivisionError):
        return math.nan


def close(found: np.ndarray, expected: np.ndarray, message: str) -> None:
    known = ~np.isnan(expected)
    np.testing.assert_allclose(found[known], expected[known], rtol=2e-6, atol=1e-6, err_msg=message)


def test_functions_of_one_number(device) -> None:
    functions, count = OF_ONE, len(OF_ONE)

    @td.kernel
    def compute(x: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        for k in td.static_range(count):
            out[k, i] = functions[k](x[i])

    x = drawn(31)
    out = td.asarray(np.full((count, x.size), 77, np.float32))
    compute.launch(x.size, td.asarray(x), out)
    for function, found in zip(functions, out.numpy(), strict=True):
        expected = np.array([in_python(function, each) for each in x])
        close(found, expected, function.__name__)


def test_functions_of_two_numbers(device) -> None:
    functions, count = OF_TWO, len(OF_TWO)

    @td.kernel
    def compute(x: td.Array[td.f32], y: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        for k in td.static_range(count):
            out[k, i] = functions[k](x[i], y[i])

    x, y = drawn(41), np.random.default_rng().permutation(drawn(41))
    y[0] = 0
    out = td.asarray(np.full((count, x.size), 77, np.float32))
    compute.launch(x.size, td.asarray(x), td.asarray(y), out)
    for function, found in zip(functions, out.numpy(), strict=True):
        expected = np.array([in_python(function, a, b) for a, b in zip(x, y, strict=True)])
        close(found, expected, function.__name__)


def test_functions_that_give_integers(device) -> None:
    functions, count = TO_INTEGERS, len(TO_INTEGERS)

    @td.kernel
    def compute(x: td.Array[td.f32], out: td.Array[td.i32, 2]):
        i = td.grid(1)
        for k in td.static_range(count):
            out[k, i] = functions[k](x[i])

    x = drawn(20)
    x = x[np.isfinite(x)]
    out = td.full((count, x.size), 77, dtype=td.int32)
    compute.launch(x.size, td.asarray(x), out)
    assert out.tolist() == [[function(float(each)) for each in x] for function in functions]


def test_integers_stay_integers(device) -> None:
    @td.kernel
    def compute(a: td.Array[td.i32], b: td.Array[td.i32], out: td.Array[td.i32, 2]):
        i = td.grid(1)
        out[0, i], out[1, i] = divmod(a[i], b[i])
        out[2, i] = math.gcd(a[i], b[i])
        out[3, i] = np.lcm(a[i], b[i])
        out[4, i] = pow(a[i], 2) + abs(b[i]) + round(a[i])
        out[5, i] = min((a[i], b[i], 3)) * 100 + max(a[i], b[i])
        out[6, i] = sum((a[i], b[i], 1)) + sum((a[i],), 2) + sum(())
        out[7, i] = int(any((a[i] > 0, b[i] > 0))) * 2 + int(all((a[i] > 0, b[i] > 0, True)))
        out[8, i] = np.int32(np.uint8(a[i])) + np.bitwise_and(a[i], b[i])

    a, b = np.random.default_rng().integers(-50, 50, (2, 37)).astype(np.int32)
    a[0], b[b == 0] = 0, 7
    out = td.full((9, a.size), 77, dtype=td.int32)
    compute.launch(a.size, td.asarray(a), td.asarray(b), out)
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    rows = [
        [x // y for x, y in pairs],
        [x % y for x, y in pairs],
        [math.gcd(x, y) for x, y in pairs],
        [math.lcm(x, y) for x, y in pairs],
        [x**2 + abs(y) + x for x, y in pairs],
        [min(x, y, 3) * 100 + max(x, y) for x, y in pairs],
        [2 * x + y + 3 for x, y in pairs],
        [2 * (x > 0 or y > 0) + (x > 0 and y > 0) for x, y in pairs],
        [x % 256 + (x & y) for x, y in pairs],
    ]
    assert out.tolist() == rows


def test_constants_and_the_interpreter() -> None:
    @td.kernel
    def compute(x: td.Array[td.f32], out: td.Array[td.f32]):
        room = td.local(round(3.7), td.f32)
        room[math.floor(2.5)] = math.sqrt(2) + np.log(2.0)
        i = td.grid(1)
        whole, part = math.modf(x[i])
        out[8 * i] = room[2] + whole + 10 * part
        out[8 * i + 1] = math.log(abs(x[i]) + 2, 3) + math.hypot(x[i], 2.0, 3.0)
        out[8 * i + 2] = float(math.isclose(x[i], x[i] + 1e-5, rel_tol=1e-3))
        out[8 * i + 3] = float(math.isclose(x[i], x[i] + 1))
        out[8 * i + 4] = np.where(x[i] > 0, x[i], 0.25) + np.clip(x[i], -1, 1)
        out[8 * i + 5] = sum(td.vec3[td.f32](x[i], 1, 2)) + max(td.vec2[td.f32](x[i], 0.5))
        out[8 * i + 6] = math.fmod(x[i], 2) + math.remainder(x[i], 2.0) + np.float32(i)
        out[8 * i + 7] = round(x[i]) + np.fmin(x[i], math.nan)

    x = np.random.default_rng().normal(scale=4, size=9).astype(np.float32)
    *_, out = agree(compute, 1, 9, x, np.zeros(72, np.float32))
    for at, value in enumerate(map(float, x)):
        part, whole = math.modf(value)
        expected = [
            math.sqrt(2) + math.log(2) + part + 10 * whole,
            math.log(abs(value) + 2, 3) + math.hypot(value, 2, 3),
            math.isclose(value, value + 1e-5, rel_tol=1e-3),
            False,
            (value if value > 0 else 0.25) + min(max(value, -1), 1),
            value + 3 + max(value, 0.5),
            math.fmod(value, 2) + math.remainder(value, 2) + at,
            round(value) + value,
        ]
        np.testing.assert_allclose(out[8 * at : 8 * at + 8], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("math.sqrt(-1)", r"math\.sqrt\(-1\): "),
        ("round(x[i], 2)", "round takes 1 argument, not 2"),
        ("math.fmod(x[i])", "math.fmod takes 2 arguments, not 1"),
        ("sum(x)", "can't be unpacked"),
        ("math.fmod(td.vec2[td.f32](1), 2)", "an argument of math.fmod is a number"),
        ("np.complex64(x[i])", "no complex numbers"),
        ("min(x[i])", "can't be unpacked"),
    ],
)
def test_a_wrong_call_is_refused_at_its_place(call: str, message: str) -> None:
    text = f"def kernel(x: td.Array[td.f32]):\n    i = td.grid(1)\n    x[i] = {call}\n"
    with pytest.raises(td.errors.CompileError, match=message) as caught:
        td.kernel(source=text).source("ir")
    assert (caught.value.line, caught.value.column) == (3, 12)
