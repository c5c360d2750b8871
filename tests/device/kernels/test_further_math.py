"""The library's functions that only other front ends name, through real kernels on every device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support import math_references as references
from treadle.lang.math import FURTHER, FURTHER_BOUNDS

# Several functions to a kernel: compiling takes longer than running.
GROUPS = [
    ["exp10", "rcbrt", "sinpi", "cospi"],
    ["erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv"],
    ["cyl_bessel_i0", "cyl_bessel_i1", "j0", "j1", "y0", "y1"],
]


def launch(names: list[str], *arguments: Any) -> Any:
    """Results of the functions, a row for each."""
    given = ", ".join(f"a{i}: td.Array[td.f32]" for i in range(len(arguments)))
    values = ", ".join(f"a{i}[i]" for i in range(len(arguments)))
    lines = [f"def apply({given}, out: td.Array[td.f32, 2]):", "    i = td.grid(1)"]
    lines += ["    if i < a0.size:"]
    lines += [f"        out[{row}, i] = td.f32({name}({values}))" for row, name in enumerate(names)]
    source = "\n".join(lines) + "\n"
    namespace: dict[str, Any] = {"td": td, "source": source}
    namespace |= {name: FURTHER[name].versions["f32"] for name in names}
    kernel = eval("td.kernel(source=source)", namespace)  # where it finds the functions
    out = td.zeros((len(names), arguments[0].size), dtype=td.f32)
    kernel.launch(arguments[0].size, *(td.asarray(argument) for argument in arguments), out)
    return out.numpy()


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_float32_stays_within_its_bounds(device: td.Device, names: list[str]) -> None:
    arguments = references.arguments("", 1, "f32", step=65_537 * 9, dense=1000)
    if "erfinv" in names:
        rng = np.random.default_rng(6)
        near = 1 - 2.0 ** rng.uniform(-24, 0, 500)
        arguments = (np.concatenate([arguments[0], near.astype(np.float32)]),)
    wrong = []
    for name, got in zip(names, launch(names, *arguments), strict=True):
        high, low = references.reference(name, "f32", *arguments)
        errors = references.ulp_errors(got, high, low, references.scale(name, high, *arguments))
        if device.backend == "webgpu":
            errors = np.where(references.flushed(got, high, *arguments), 0.0, errors)
        at = int(np.argmax(errors))
        if errors[at] > FURTHER_BOUNDS[name]["f32"]:
            x = arguments[0][at]
            wrong.append(f"{name}({x!r}) = {got[at]!r}, not {high[at]!r}: {errors[at]:.2f} ULP")
    assert wrong == []


def test_several_arguments(device: td.Device) -> None:
    rng = np.random.default_rng(3)
    a, b, c, d = (rng.uniform(-4, 4, 300).astype(np.float32) for _ in range(4))
    squares = [v.astype(np.float64) ** 2 for v in (a, b, c, d)]
    cases: list[tuple[str, tuple[Any, ...], Any]] = [
        ("rhypot", (a, b), (squares[0] + squares[1]) ** -0.5),
        ("norm3d", (a, b, c), sum(squares[:3]) ** 0.5),
        ("rnorm4d", (a, b, c, d), sum(squares) ** -0.5),
    ]
    for name, arguments, expected in cases:
        np.testing.assert_allclose(launch([name], *arguments)[0], expected, rtol=4e-7)
    got = launch(["remainder"], a, b)[0]
    expected = [math.remainder(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got, expected)


def test_exponents(device: td.Device) -> None:
    x = np.array([1.0, -6.5, 3e38, 1e-37, 0.0, np.inf, -0.75], np.float32)
    fraction, exponent, least = launch(["frexp_fraction", "frexp_exponent", "logb"], x)
    ordinary = np.isfinite(x)
    np.testing.assert_array_equal(fraction, np.frexp(x)[0])
    np.testing.assert_array_equal(exponent[ordinary], np.frexp(x)[1][ordinary])
    np.testing.assert_array_equal(least, [0, 2, 127, -123, -np.inf, np.inf, -1])
