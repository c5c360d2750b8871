"""Every operation on every type, run on the software adapter against exact arithmetic."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.wgsl import options, run, same_float
from treadle.codegen.wgsl import print_kernel
from treadle.ir import arithmetic
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


def values(type: t.Scalar) -> list[Any]:
    drawn = random.Random(type.name)
    if type.kind == "bool":
        return [False, True]
    if type.is_integer:
        low, high = arithmetic.lowest(type), arithmetic.highest(type)
        some = [drawn.randint(low, high) for _ in range(6)]
        return sorted({low, low + 1, 0, 1, 2, 3, 5, 8, 31, high - 1, high, *some, max(-1, low)})
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 7.25, -1000.0, 65504.0, 1e-3, 127.5]
    numbers += [-129.0, 1e-6]
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
    code = print_kernel(b.kernel(), options(*features))
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


@pytest.mark.parametrize("op", [*n.ARITHMETIC, *n.COMPARISONS])
@pytest.mark.parametrize("name", FLOATS)
def test_floats(name, op):
    check_binary(op, t.SCALARS[name])
