"""Exact arithmetic against NumPy (and ml_dtypes for bfloat16) on random and special values."""

from __future__ import annotations

import math
import operator
import random
import struct
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from treadle.ir import arithmetic
from treadle.ir import types as t

NUMPY: dict[str, Any] = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32,
    "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGERS = [type for type in t.SCALARS.values() if type.is_integer]
FLOATS = [t.F16, t.BF16, t.F32, t.F64]


def integers(type: t.Scalar, count: int = 60) -> list[int]:
    low, high = arithmetic.lowest(type), arithmetic.highest(type)
    drawn = random.Random(type.name)
    some = [drawn.randint(low, high) for _ in range(count)]
    small = [max(low, drawn.randint(-9, 9)) for _ in range(count)]
    return [low, low + 1, 0, 1, 2, high, high - 1, *some, *small]


def floats(type: t.Scalar, count: int = 60) -> list[float]:
    drawn = random.Random(type.name)
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, 1e-45, 65504.0, 3e38]
    bits = [arithmetic.from_bits(drawn.getrandbits(type.bits), type) for _ in range(count)]
    near = [drawn.uniform(-10, 10) for _ in range(count)]
    return [arithmetic.round_float(value, type) for value in (*special, *bits, *near)]


def pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    drawn = random.Random(len(values))
    edges = [(a, b) for a in values[:11] for b in values[:11]]
    return edges + [(drawn.choice(values), drawn.choice(values)) for _ in range(400)]


def same(ours: float, theirs: Any) -> bool:
    theirs = float(theirs)
    if math.isnan(theirs):
        return math.isnan(ours)
    return struct.pack("<d", ours) == struct.pack("<d", theirs)


INTEGER_OPERATIONS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide,
    "mod": np.remainder, "rem": np.fmod, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "lt": np.less, "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("op", INTEGER_OPERATIONS)
def test_integers_wrap_as_numpys_do(op: str, type: t.Scalar) -> None:
    make = NUMPY[type.name]
    for a, b in pairs(integers(type)):
        with np.errstate(all="ignore"):
            expected = INTEGER_OPERATIONS[op](make(a), make(b))
        if b == 0 and op in ("floordiv", "mod", "rem"):
            expected = 0
        assert arithmetic.binary(op, a, b, type) == expected, (a, b)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_division_truncates(type: t.Scalar) -> None:
    for a, b in pairs(integers(type)):
        expected = int(Fraction(a, b)) if b else 0
        assert arithmetic.binary("div", a, b, type) == arithmetic.wrap(expected, type), (a, b)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_shifts_of_the_width_or_more(type: t.Scalar) -> None:
    for a in integers(type, 20):
        for by in (0, 1, type.bits - 1, type.bits, type.bits + 1, 100):
            left = arithmetic.binary("shl", a, by, type)
            assert left == (arithmetic.wrap(a * 2**by, type) if by < type.bits else 0)
            assert arithmetic.binary("shr", a, by, type) == (a // 2**by)
    assert arithmetic.binary("shl", 1, -1, t.I32) == 0
    assert arithmetic.binary("shr", -1, -1, t.I32) == -1


FLOAT_OPERATIONS: dict[str, Any] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_OPERATIONS)
def test_floats_round_as_numpys_do(op: str, type: t.Scalar) -> None:
    make = NUMPY[type.name]
    for a, b in pairs(floats(type)):
        with np.errstate(all="ignore"):
            expected = FLOAT_OPERATIONS[op](make(a), make(b))
        assert same(float(arithmetic.binary(op, a, b, type)), expected), (a, b)


@pytest.mark.parametrize("type", [t.F16, t.F32, t.F64], ids=str)
@pytest.mark.parametrize(
    ("op", "theirs"), [("rem", np.fmod), ("mod", np.remainder), ("floordiv", np.floor_divide)]
)
def test_float_remainders_are_numpys(op: str, theirs: Any, type: t.Scalar) -> None:
    make = NUMPY[type.name]
    for a, b in pairs(floats(type)):
        with np.errstate(all="ignore"):
            expected = theirs(make(a), make(b))
        ours = float(arithmetic.binary(op, a, b, type))
        assert same(ours, expected) or (ours == expected == 0), (a, b, ours, expected)


FLOAT_FUNCTIONS: dict[str, Any] = {
    "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "rint": np.rint, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "signbit": np.signbit,
}  # fmt: skip


@pytest.mark.parametrize("type", FLOATS, ids=str)
@pytest.mark.parametrize("op", FLOAT_FUNCTIONS)
def test_float_functions_are_numpys(op: str, type: t.Scalar) -> None:
    for a in floats(type):
        with np.errstate(all="ignore"):
            expected = FLOAT_FUNCTIONS[op](NUMPY[type.name](a))
        assert same(float(arithmetic.intrinsic(op, (a,), type)), expected), a


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
def test_min_and_max_keep_nan(type: t.Scalar) -> None:
    for a, b in pairs(floats(type)):
        for op, theirs in (("min", np.minimum), ("max", np.maximum)):
            ours = float(arithmetic.intrinsic(op, (a, b), type))
            expected = theirs(NUMPY[type.name](a), NUMPY[type.name](b))
            assert same(ours, expected) or ours == expected == 0, (op, a, b)
    assert same(float(arithmetic.intrinsic("min", (0.0, -0.0), t.F32)), -0.0)
    assert same(float(arithmetic.intrinsic("max", (-0.0, 0.0), t.F32)), 0.0)


def test_fma_rounds_once() -> None:
    a = 1.0 + 2.0**-12
    # a*a is 1 + 2^-11 + 2^-24: the last bit is lost when the product is rounded first.
    assert arithmetic.intrinsic("fma", (a, a, -(1.0 + 2.0**-11)), t.F32) == 2.0**-24
    assert arithmetic.intrinsic("fma", (2.0**-30, 2.0**-30, 1.0), t.F32) == 1.0
    assert same(float(arithmetic.intrinsic("fma", (-1.0, 0.0, 0.0), t.F32)), 0.0)
    assert same(float(arithmetic.intrinsic("fma", (-1.0, 0.0, -0.0), t.F32)), -0.0)
    assert math.isnan(float(arithmetic.intrinsic("fma", (math.inf, 0.0, 1.0), t.F32)))
    assert arithmetic.intrinsic("fma", (-1e300, 1e300, 1.0), t.F64) == -math.inf
    # A tie in float32 that only the exact sum can break.
    tie = arithmetic.intrinsic("fma", (2.0**-40, 2.0**-40, 1.0 + 2.0**-24), t.F64)
    assert tie == 1.0 + 2.0**-24
    assert arithmetic.intrinsic("fma", (2.0**-40, 2.0**-40, 1.0), t.F32) == 1.0


@pytest.mark.parametrize("type", INTEGERS, ids=str)
def test_counting_bits(type: t.Scalar) -> None:
    for a in integers(type, 20):
        text = format(a % 2**type.bits, f"0{type.bits}b")
        assert arithmetic.intrinsic("popcount", (a,), type) == text.count("1")
        assert arithmetic.intrinsic("clz", (a,), type) == len(text) - len(text.lstrip("0"))
        assert arithmetic.intrinsic("ctz", (a,), type) == len(text) - len(text.rstrip("0"))
        reversed_bits = arithmetic.wrap(int(text[::-1], 2), type)
        assert arithmetic.intrinsic("reverse_bits", (a,), type) == reversed_bits
        assert arithmetic.intrinsic("abs", (a,), type) == arithmetic.wrap(abs(a), type)


def test_high_half_of_a_product() -> None:
    assert arithmetic.intrinsic("mul_high", (2**31, 4), t.U32) == 2
    assert arithmetic.intrinsic("mul_high", (-1, 1), t.I32) == -1
    assert arithmetic.intrinsic("mul_high", (-(2**31), -(2**31)), t.I32) == 2**30


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("target", [*INTEGERS, *FLOATS], ids=str)
def test_casts(source: t.Scalar, target: t.Scalar) -> None:
    values = integers(source) if source.is_integer else floats(source)
    for value in values:
        ours = arithmetic.cast(value, source, target)
        if source.is_float and target.is_integer:  # NumPy leaves this undefined: ours saturates
            low, high = arithmetic.lowest(target), arithmetic.highest(target)
            expected: Any = 0 if math.isnan(value) else (low if value < 0 else high)
            if math.isfinite(value):
                expected = min(max(int(value), low), high)
            assert ours == expected
        elif target.is_float and target.name != "bf16":
            with np.errstate(all="ignore"):
                assert same(float(ours), NUMPY[source.name](value).astype(NUMPY[target.name]))
        elif target.is_integer:
            assert ours == NUMPY[source.name](value).astype(NUMPY[target.name])
        elif math.isfinite(value):
            assert same(float(ours), _nearest_bfloat(value)), value


def _nearest_bfloat(value: float) -> float:
    """By search: the closest of the bfloats around, the even one of two."""
    exact = Fraction(value)
    with np.errstate(all="ignore"):
        guess = float(np.float32(value).astype(ml_dtypes.bfloat16))
    if math.isinf(guess):
        guess = math.copysign(float(ml_dtypes.finfo(ml_dtypes.bfloat16).max), guess)
    bits = arithmetic.to_bits(abs(guess), t.BF16)
    around = [b for b in (bits - 1, bits, bits + 1) if b >= 0]

    def number(b: int) -> Fraction:
        return Fraction(2) ** 128 if b == 0x7F80 else Fraction(arithmetic.from_bits(b, t.BF16))

    best = min(around, key=lambda b: (abs(number(b) - abs(exact)), b & 1))
    return math.copysign(float(arithmetic.from_bits(best, t.BF16)), value)


def test_a_cast_to_bool_asks_for_nonzero() -> None:
    for value, source in ((0.5, t.F32), (math.nan, t.F32), (-3, t.I8)):
        assert arithmetic.cast(value, source, t.BOOL) is True
    assert arithmetic.cast(-0.0, t.F32, t.BOOL) is False
    assert arithmetic.cast(True, t.BOOL, t.F32) == 1.0


@pytest.mark.parametrize("type", [*INTEGERS, *FLOATS], ids=str)
def test_bits_there_and_back(type: t.Scalar) -> None:
    for value in integers(type) if type.is_integer else floats(type):
        bits = arithmetic.to_bits(value, type)
        assert 0 <= bits < 2**type.bits
        assert same(float(arithmetic.from_bits(bits, type)), value)
    assert arithmetic.bitcast(1.0, t.F32, t.U32) == 0x3F800000
    assert arithmetic.bitcast(-1, t.I32, t.U32) == 0xFFFFFFFF
    assert arithmetic.bitcast(0x3F80, t.U16, t.BF16) == 1.0
