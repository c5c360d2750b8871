"""Every operation on every type, run on the software adapter against exact arithmetic."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.printing import print_wgsl
from tests.support.wgsl import options, run, same_float
from treadle.ir import arithmetic, rules
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import Builder, global_index, load

NUMPY: dict[str, Any] = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGERS = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
SMALLEST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}


TWICE_ROUNDED = (0x01010001, (0x0101 << 32) + 1)  # wrong as bfloat16 by way of float32


def values(type: t.Scalar) -> list[Any]:
    drawn = random.Random(type.name)
    if type.kind == "bool":
        return [False, True]
    if type.is_integer:
        low, high = arithmetic.lowest(type), arithmetic.highest(type)
        some = [drawn.randint(low, high) for _ in range(6)]
        some += [value for value in TWICE_ROUNDED if value <= high]
        return sorted({low, low + 1, 0, 1, 2, 3, 5, 8, 31, high - 1, high, *some, max(-1, low)})
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 7.25, -1000.0, 65504.0, 1e-3, 127.5]
    numbers += [-129.0, 1e-6, 1 + 2**-8 + 2**-40, -(1 + 2**-11 + 2**-40)]
    numbers += [math.inf, -math.inf, math.nan, 3e9, -3e9, 1e19, -1e19]
    numbers += [drawn.uniform(-10, 10) for _ in range(4)]
    return [arithmetic.round_float(value, type) for value in numbers]


def compute(
    expression: Any,
    result: t.Scalar,
    columns: list[list[Any]],
    types: list[t.Scalar],
    *features: str,
) -> list[Any]:
    """`expression(a, b, …)` for each row of the columns, on the device."""
    b = Builder("operation", block=64)
    inputs = [b.buffer(name, type) for name, type in zip("abc", types, strict=False)]
    output = b.buffer("result", result)
    size = b.parameter("result.size", t.I32, "size", "result")
    i = b.let("i", global_index())
    with b.when(n.Binary("lt", i, size, t.BOOL)):
        b.store(output, i, expression(*(load(buffer, i) for buffer in inputs)))
    code = print_wgsl(b.kernel(), options(*features))
    rows = len(columns[0])
    buffers = {
        name: np.array(column, dtype=NUMPY[type.name])
        for name, column, type in zip("abc", columns, types, strict=False)
    }
    buffers["result"] = np.zeros(rows, dtype=NUMPY[result.name])
    run(code, -(-rows // 64), buffers)
    found = buffers["result"]
    return (found.astype(np.float64) if result.is_float else found).tolist()


def assert_same(got: list[Any], wanted: list[Any], type: t.Scalar, rows: list[Any]) -> None:
    for number, want, row in zip(got, wanted, rows, strict=True):
        if type.is_float:
            assert same_float(number, want, SMALLEST_NORMAL[type.name]), (row, number, want)
        else:
            assert number == want, (row, number, want)


def binary_rows(type: t.Scalar) -> list[tuple[Any, Any]]:
    return list(itertools.product(values(type), repeat=2))


def check_binary(op: str, type: t.Scalar, *features: str) -> None:
    rows = binary_rows(type)
    if op in ("shl", "shr"):
        amounts = [0, 1, type.bits - 1, type.bits, type.bits + 3]
        rows = [(a, s) for a in values(type) for s in amounts]
    comparison = op in n.COMPARISONS or op in n.LOGICAL
    result = t.BOOL if comparison else type
    columns = [list(column) for column in zip(*rows, strict=True)]
    got = compute(lambda a, b: n.Binary(op, a, b, result), result, columns, [type, type], *features)
    wanted = [arithmetic.binary(op, a, b, type) for a, b in rows]
    assert_same(got, wanted, result, rows)


@pytest.mark.parametrize("op", [*n.ARITHMETIC, *n.BITWISE, *n.COMPARISONS])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name, op):
    check_binary(op, t.SCALARS[name])


NO_HALVES = ("float64", "int64")  # float16 is then computed in float32
HALVES = [("f16", ()), ("f16", NO_HALVES), ("bf16", ()), ("f32", ()), ("f64", ())]


@pytest.mark.parametrize("op", [*n.ARITHMETIC, *n.COMPARISONS])
@pytest.mark.parametrize(("name", "features"), HALVES)
def test_floats(name, features, op):
    check_binary(op, t.SCALARS[name], *features)


@pytest.mark.parametrize("op", n.BITWISE[:3])
def test_bools(op):
    check_binary(op, t.BOOL)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_negation(name):
    check_unary("neg", t.SCALARS[name])


@pytest.mark.parametrize("name", INTEGERS)
def test_inversion(name):
    check_unary("invert", t.SCALARS[name])


def check_unary(op: str, type: t.Scalar) -> None:
    rows = values(type)
    got = compute(lambda a: n.Unary(op, a, type), type, [rows], [type])
    assert_same(got, [arithmetic.unary(op, a, type) for a in rows], type, rows)


INTEGER_INTRINSICS = ["abs", "min", "max", "popcount", "clz", "ctz", "reverse_bits", "mul_high"]
FLOAT_INTRINSICS = ["abs", "sqrt", "floor", "ceil", "trunc", "rint", "min", "max"]
TESTS = ["isnan", "isinf", "isfinite", "signbit"]


def check_intrinsic(op: str, type: t.Scalar, *features: str) -> None:
    rows: list[Any] = [(value,) for value in values(type)]
    if n.INTRINSICS[op] == 2:
        rows = list(itertools.product(values(type), repeat=2))
        if type.is_float and op in ("min", "max"):
            rows = [row for row in rows if row[0] or row[1]]  # which zero is not promised
    result = rules.intrinsic_type(op, type)
    assert isinstance(result, t.Scalar)
    columns = [list(column) for column in zip(*rows, strict=True)]
    got = compute(
        lambda *operands: n.Intrinsic(op, operands, result),
        result,
        columns,
        [type] * len(columns),
        *features,
    )
    wanted = [arithmetic.intrinsic(op, row, type) for row in rows]
    assert_same(got, wanted, result, rows)


@pytest.mark.parametrize("op", INTEGER_INTRINSICS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_intrinsics(name, op):
    check_intrinsic(op, t.SCALARS[name])


@pytest.mark.parametrize("name", ["i32", "u32"])
def test_mul_high_without_64_bits(name):
    check_intrinsic("mul_high", t.SCALARS[name], "none")


@pytest.mark.parametrize("op", [*FLOAT_INTRINSICS, *TESTS])
@pytest.mark.parametrize(("name", "features"), HALVES)
def test_float_intrinsics(name, features, op):
    check_intrinsic(op, t.SCALARS[name], *features)


@pytest.mark.parametrize("target", list(t.SCALARS))
@pytest.mark.parametrize("source", list(t.SCALARS))
def test_casts(source, target):
    check_cast(t.SCALARS[source], t.SCALARS[target])


@pytest.mark.parametrize("other", [name for name in t.SCALARS if name != "f16"])
def test_casts_of_emulated_halves(other):
    check_cast(t.F16, t.SCALARS[other], *NO_HALVES)
    check_cast(t.SCALARS[other], t.F16, *NO_HALVES)


def check_cast(old: t.Scalar, new: t.Scalar, *features: str) -> None:
    rows = values(old)
    got = compute(lambda a: n.Cast(a, new), new, [rows], [old], *features)
    assert_same(got, [arithmetic.cast(a, old, new) for a in rows], new, rows)


SAME_SIZE = [
    (old.name, new.name)
    for old in t.SCALARS.values()
    for new in t.SCALARS.values()
    if old.bits == new.bits and old != new and t.BOOL not in (old, new)
]


@pytest.mark.parametrize(("old", "new"), SAME_SIZE)
def test_bitcasts(old, new):
    source, target = t.SCALARS[old], t.SCALARS[new]
    rows = [value for value in values(source) if value == value]  # a NaN's payload may change
    rows = [a for a in rows if not _is_nan(arithmetic.bitcast(a, source, target))]
    got = compute(lambda a: n.Bitcast(a, target), target, [rows], [source])
    assert_same(got, [arithmetic.bitcast(a, source, target) for a in rows], target, rows)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
