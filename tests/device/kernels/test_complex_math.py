"""The complex functions on every device: near the true value, and what they give at the edges."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

import treadle as td
from tests.support import complex_references as references
from tests.support.graphics import may_rearrange
from treadle.lang.math.complex import COMPLEX_BOUNDS

NAMES = tuple(references.UNARY)
# Several functions to a kernel: compiling takes longer than running.
GROUPS = [NAMES[start : start + 4] for start in range(0, len(NAMES), 4)]


def has(device: td.Device, type: str) -> bool:
    return type == "c64" or "float64" in device.features


def check(
    name: str, got: references.Numbers, *arguments: references.Numbers, rearranged: bool = False
) -> None:
    """Within the function's bound, or of float64s where a driver rearranges sums to nine digits."""
    wanted = references.reference(name, *arguments)
    found = references.errors(got, wanted)
    if name == "pow":  # the error of an exponent becomes one of the power
        z, w = arguments
        with np.errstate(all="ignore"):
            found = np.where(z == 0, 0.0, found / (1 + np.abs(w * np.log(z))))
    if name == "exp2":  # as is that of the angle
        found = found / (1 + np.abs(arguments[0].imag))
    at = int(np.argmax(found))
    bound = 1e-9 / np.finfo(np.float64).eps if rearranged else COMPLEX_BOUNDS[name]
    assert found[at] <= bound, (
        f"{name}({', '.join(repr(a[at]) for a in arguments)}) = {got[at]!r}, not {wanted[at]!r}"
    )


@pytest.mark.parametrize("type", ["c64", "c128"])
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_near_the_true_value(device, rng, names, type):
    if has(device, type):
        z = references.points(type, 60, rng)
        for name, got in zip(names, references.launch(names, type, z), strict=True):
            check(name, got, z, rearranged=type == "c128" and may_rearrange(device))


@pytest.mark.parametrize("type", ["c64", "c128"])
def test_products_quotients_and_powers(device, rng, type):
    if not has(device, type):
        return
    z = references.points(type, 60, rng)
    w = rng.permutation(z)
    limits = np.finfo(z.dtype)
    product, quotient = references.launch(("mul", "div"), type, z, w)
    sizes = [np.abs(part).astype(np.longdouble) for part in (z.real, z.imag, w.real, w.imag)]
    fits = np.maximum(sizes[0], sizes[1]) * np.maximum(sizes[2], sizes[3]) < limits.max / 2
    loose = type == "c128" and may_rearrange(device)
    check("mul", product[fits], z[fits], w[fits], rearranged=loose)
    check("div", quotient[w != 0], z[w != 0], w[w != 0], rearranged=loose)
    whole = rng.random(w.size) < 0.5
    w = np.where(whole, np.clip(np.rint(w.real), -20, 20), w).astype(z.dtype)
    small = np.abs(w) < 50
    (power,) = references.launch(("pow",), type, z[small], w[small])
    check("pow", power, z[small], w[small], rearranged=loose)


def test_whole_powers_of_whole_numbers_are_exact(device):
    z = np.array([1 + 2j, 2 - 3j, -1 + 1j, 3, 1j, 2, 0, 0], np.complex64)
    w = np.array([2, 3, -2, 4, -3, 10, 0, 2], np.complex64)
    (got,) = references.launch(("pow",), "c64", z, w)
    assert got.tolist() == [-3 + 4j, -46 - 9j, 0.5j, 81, 1j, 1024, 1, 0]


def test_real_and_logical_results(device):
    z = references.pairs(
        [3, 0, -0.0, 1, math.inf, math.nan, math.nan], [-4, -1, 0.0, math.nan, 1, 1, -math.inf],
        "c64",
    )  # fmt: skip
    size, angle = references.launch(("abs", "angle"), "c64", z, result="f32")
    np.testing.assert_allclose(size, [5, 1, 0, math.nan, math.inf, math.nan, math.inf])
    np.testing.assert_allclose(angle[:3], [math.atan2(-4, 3), -math.pi / 2, math.pi], rtol=1e-6)
    tests = references.launch(("isnan", "isinf", "isfinite"), "c64", z, result="bool")
    assert tests[0].tolist() == [False] * 3 + [True, False, True, True]
    assert tests[1].tolist() == [False] * 4 + [True, False, True]
    assert tests[2].tolist() == [True] * 3 + [False] * 4
    conj, sign = references.launch(("conj", "sign"), "c64", z)
    assert conj[:2].tolist() == [3 + 4j, 1j]
    np.testing.assert_allclose(sign[:3], [0.6 - 0.8j, -1j, 0], rtol=1e-6)
    assert sign[4] == 1
    assert np.isnan(sign[3])


# Which of the functions Python has too, as C99's Annex G wants them.
STANDARD = (
    "sqrt", "exp", "log", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
)  # fmt: skip
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", STANDARD)
def test_special_values(device, name):
    """Signs of zeros too: they choose the side of a branch cut."""
    z = references.pairs(*np.meshgrid(EDGES, EDGES), "c64")
    (got,) = references.launch((name,), "c64", z)
    for number, value in zip(z.tolist(), got.tolist(), strict=True):
        try:
            wanted = getattr(cmath, name)(number)
        except ValueError:  # a pole, or no number: Python has no value for it
            pole = number in (0, 1, -1, 1j, -1j)
            assert cmath.isinf(value) if pole else cmath.isnan(value), (number, value)
            continue
        if math.isnan(wanted.real) and math.isnan(wanted.imag):  # one part may still be known
            assert cmath.isnan(value), (number, value)
            continue
        if name == "tanh" and math.isinf(number.real):  # with sin 2y in place of y in C99
            wanted = complex(wanted.real, math.copysign(0.0, number.imag))
        # Far out, or beside a NaN, the standard leaves signs open.
        finite = math.isfinite(number.real) or math.isfinite(number.imag)
        vague = cmath.isnan(wanted) or not finite
        for one, other in ((value.real, wanted.real), (value.imag, wanted.imag)):
            if other == one == 0 and may_rearrange(device):  # one zero is the other there
                continue
            assert same(one, other, vague), (number, value, wanted)


def test_zeros_without_a_sign(device):
    """What the Array API wants of functions that C99 does not have."""
    z = references.pairs([0.0, -0.0, 0.0, -0.0], [0.0, 0.0, -0.0, -0.0], "c64")
    less_one, sign = references.launch(("expm1", "sign"), "c64", z)
    assert not np.signbit(less_one.real).any()
    assert np.signbit(less_one.imag).tolist() == [False, False, True, True]
    assert not np.signbit(sign.view(np.float32)).any()
    assert not less_one.any()
    assert not sign.any()


def same(value: float, wanted: float, vague: bool) -> bool:
    if math.isnan(wanted):
        return math.isnan(value)
    if vague:
        value, wanted = abs(value), abs(wanted)
    near = value == wanted or math.isclose(value, wanted, rel_tol=1e-6)
    return near and math.copysign(1, value) == math.copysign(1, wanted)


def test_division_by_zero_and_infinity(device):
    inf = math.inf
    z = references.pairs([1, 1, -2, inf, 0, 3], [2, -1, 0, 1, 0, 4], "c64")
    w = references.pairs([0, -0.0, inf, 2, 0, -inf], [0, 0, 1, 0, 0, inf], "c64")
    (got,) = references.launch(("div",), "c64", z, w)
    assert got[:3].tolist() == [complex(inf, inf), complex(-inf, inf), 0]
    assert got[3].real == inf
    assert cmath.isnan(got[4])
    assert got[5] == 0
