"""Conversions with a rounding in their name, against exact arithmetic on fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.cuda_builtins import apply, overload
from tests.support.exact_rounding import rounded
from treadle.ir import arithmetic
from treadle.ir import types as t

INF, NAN = math.inf, math.nan
MODES = ("rn", "rz", "ru", "rd")
FLOATS = {"float": t.F32, "double": t.F64, "half": t.F16, "bfloat16": t.BF16}
INTEGERS = {"short": t.I16, "ushort": t.U16, "int": t.I32, "uint": t.U32, "ll": t.I64, "ull": t.U64}


def whole(value: float, mode: str) -> int:
    exact = Fraction(value)
    return {"rn": round, "rz": math.trunc, "ru": math.ceil, "rd": math.floor}[mode](exact)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers(source: str, mode: str) -> None:
    for target, type in INTEGERS.items():
        if source in ("float", "double") and type.bits == 16:
            continue
        found = overload(f"__{source}2{target}_{mode}")
        for value in (0.5, 1.5, -2.5, -0.75, 2.25, 1000.0, -70000.0, 3e9, 1e30, -INF):
            value = arithmetic.round_float(value, FLOATS[source])
            bounds = arithmetic.lowest(type), arithmetic.highest(type)
            true = bounds[value > 0] if math.isinf(value) else whole(value, mode)
            assert apply(found, value) == max(bounds[0], min(bounds[1], true)), value
        lost = 0
        if type.bits == 64 or source == "double":
            lost = -(1 << (type.bits - 1)) if type.kind == "int" else 1 << (type.bits - 1)
        assert apply(found, NAN) == lost


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", FLOATS)
def test_integers_to_floats(target: str, mode: str) -> None:
    rng = np.random.default_rng(4)
    for source, type in INTEGERS.items():
        if target in ("float", "double") and type.bits == 16:
            continue
        if target == "double" and type.bits == 32 and mode != "rn":
            continue
        found = overload(f"__{source}2{target}_{mode}")
        low, high = arithmetic.lowest(type), arithmetic.highest(type)
        drawn = [int(low + (high - low) * share) for share in rng.random(4)]
        edges = [low, high, 0, 1, 2049, 257, high // 2 + 1, (1 << 15) - 9]
        for value in edges + drawn + [value >> type.bits // 2 for value in drawn]:
            true = rounded(Fraction(value), FLOATS[target], mode)
            assert apply(found, value) == true, f"{source} {value} to {target}_{mode}"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("source", "target"), [("double", "float"), ("float", "half"), ("float", "bfloat16")]
)
def test_floats_to_narrower_ones(source: str, target: str, mode: str) -> None:
    found = overload(f"__{source}2{target}_{mode}")
    rng = np.random.default_rng(8)
    values = [*rng.normal(size=10), 1 + 2**-20, 1e-45, 3e-46, -1e-46, 65519.0, 65520.0, -7e4]
    values += [1e300, -1e300, 3.4e38, -3.39e38, 1e-6, -1e-7, 3e-8, -2.9e-8, 0.1]
    for value in values:
        value = arithmetic.round_float(float(value), FLOATS[source])
        if math.isinf(value):
            continue
        got = apply(found, value)
        true = rounded(Fraction(value), FLOATS[target], mode)
        assert (got, math.copysign(1, got)) == (true, math.copysign(1, value)), value
    assert apply(found, INF) == INF
    assert apply(found, -INF) == -INF
    assert math.isnan(apply(found, NAN))


def test_bits() -> None:
    cases: dict[str, tuple[Any, Any]] = {
        "__float_as_int": (-1.0, -(2**31) + 0x3F800000),
        "__float_as_uint": (-1.0, 0xBF800000),
        "__int_as_float": (0x7F800000, INF),
        "__uint_as_float": (0x40490FDB, arithmetic.round_float(math.pi, t.F32)),
        "__double_as_longlong": (1.0, 0x3FF << 52),
        "__longlong_as_double": (-(2**63), -0.0),
        "__double2hiint": (-2.0, -(2**30)),
        "__double2loint": (math.pi, 0x54442D18),
        "__half_as_ushort": (-2.0, 0xC000),
        "__half_as_short": (-2.0, -0x4000),
        "__ushort_as_half": (0x3C00, 1.0),
        "__bfloat16_as_ushort": (1.0, 0x3F80),
        "__ushort_as_bfloat16": (0xC040, -3.0),
    }
    for name, (given, expected) in cases.items():
        assert repr(apply(overload(name), given)) == repr(expected)
    assert apply(overload("__hiloint2double"), 0x400921FB, 0x54442D18) == math.pi
    (expected,) = np.array([0xC0000000FFFFFFFF], np.uint64).view(np.float64)
    assert apply(overload("__hiloint2double"), -(2**30), -1) == expected
