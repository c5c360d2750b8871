"""Every operation on every type: as one kernel for compilers, and with the values it must give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from treadle.core.dim3 import Dim3
from treadle.ir import arithmetic, rules
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import Builder, cast, constant, global_index, load
from treadle.ir.traverse import map_children

DTYPES: dict[str, Any] = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def all_operations(type: t.Scalar, vector: int = 1) -> n.Kernel:
    """A kernel with every operation that a type has, on values that no compiler can foresee."""
    b = Builder("operations", block=64)
    x, out = b.buffer("x", type), b.buffer("out", type)
    i = b.let("i", global_index())
    wide: t.Type = type if vector == 1 else t.Vector(type, vector)

    def value(name: str, at: int) -> n.Variable:
        single = load(x, n.Binary("add", i, constant(at, t.I32), t.I32))
        return b.let(name, single if vector == 1 else n.Construct((single,) * vector, wide))

    left, right = value("left", 0), value("right", 1)
    count = 0

    def keep(result: n.Expression) -> None:
        nonlocal count
        if isinstance(result.type, t.Vector):
            result = n.Extract(result, "y", result.type.element)
        b.store(out, count, cast(result, type))
        count += 1

    for op in binary_operations(type, vector):
        keep(n.Binary(op, left, right, rules.binary_type(op, wide)))
    for op in unary_operations(type):
        keep(n.Unary(op, left, wide))
    for op in intrinsics(type):
        scalar = rules.COUNTS | rules.TESTS | rules.BYTE_DOTS
        if op in (scalar if vector > 1 else {"dot"}):
            continue
        operands = (left, right, left)[: n.INTRINSICS[op]]
        keep(n.Intrinsic(op, operands, rules.intrinsic_type(op, wide)))
    for other in t.SCALARS.values():
        if other.bits == 64:
            continue
        target: t.Type = other if vector == 1 else t.Vector(other, vector)
        keep(n.Cast(n.Cast(left, target), wide))
        if other.bits == type.bits and t.BOOL not in (other, type):
            keep(n.Bitcast(n.Bitcast(left, target), wide))
    return b.kernel()


def binary_operations(type: t.Scalar, vector: int) -> list[str]:
    if type == t.BOOL:
        return [*n.BITWISE[:3], *n.LOGICAL, "eq", "ne"] if vector == 1 else []
    found = [*n.ARITHMETIC, *(n.BITWISE if type.is_integer else ())]
    return found + ([*n.COMPARISONS] if vector == 1 else [])


def unary_operations(type: t.Scalar) -> list[str]:
    if type == t.BOOL:
        return ["not"]
    return ["neg", "invert"] if type.is_integer else ["neg"]


def intrinsics(type: t.Scalar) -> list[str]:
    if type == t.BOOL:
        return []
    of_integers = rules.INTEGER_INTRINSICS | rules.NUMBER_INTRINSICS
    if type.is_integer:
        dots = rules.BYTE_DOTS if type == t.I32 else frozenset()
        return [op for op in n.INTRINSICS if op in of_integers | dots]
    others = rules.INTEGER_INTRINSICS | rules.BYTE_DOTS | rules.NEAR
    return [op for op in n.INTRINSICS if op not in others]


# --- values --------------------------------------------------------------------------------------


def samples(type: t.Scalar) -> np.ndarray[Any, Any]:
    """Special values of a type, and some ordinary ones."""
    dtype = DTYPES[type.name]
    rng = np.random.default_rng(11)
    if type == t.BOOL:
        return np.array([False, True])
    if type.is_integer:
        info = np.iinfo(dtype)
        special = [0, 1, 2, 3, 7, 33, info.max, info.max - 1, info.min, info.min + 1, info.bits,
                   info.bits - 1]  # fmt: skip
        if type.bits >= 32:  # what two roundings would get wrong in bfloat16
            special += [(1 << 24) + (1 << 16) + 1, (1 << 30) + (1 << 22) + 1]
        special += [-1, -2, -7, -33] if type.is_signed else []
        ordinary = rng.integers(info.min, info.max, 8, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(special, dtype), ordinary])
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        math.inf,
        -math.inf,
        math.nan,
        3.0,
        65504.0,
        -100.25,
        1e30,
        1e-40,
        7e-6,
        2147483648.0,
        -129.0,
        1.00390625 + 2**-40,
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([special, rng.normal(size=7) * 10]).astype(dtype)  # fmt: skip


def pairs(type: t.Scalar) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Every sample with every other."""
    values = samples(type)
    a, b = np.meshgrid(values, values)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def exact_operations(type: t.Scalar, targets: tuple[t.Scalar, ...]) -> Iterator[n.Expression]:
    """The operations on variables a, b and c of a type whose results are known to the last bit."""
    a, b, c = (n.Variable(name, type) for name in "abc")
    for op in binary_operations(type, 1):
        yield n.Binary(op, a, b, rules.binary_type(op, type))
    for op in unary_operations(type):
        yield n.Unary(op, a, type)
    for op in intrinsics(type):
        if op != "dot" and not op.startswith("fast_"):
            operands = (a, b, c)[: n.INTRINSICS[op]]
            yield n.Intrinsic(op, operands, rules.intrinsic_type(op, type))
    for other in targets:
        yield n.Cast(a, other)
        if other.bits == type.bits and t.BOOL not in (other, type):
            yield n.Bitcast(a, other)
    if type != t.BOOL:
        yield n.Select(n.Binary("lt", a, b, t.BOOL), a, b, type)


def as_vectors(node: Any, count: int) -> Any:
    """An operation on scalars as one on vectors."""
    if isinstance(node, n.Variable):
        return replace(node, type=t.Vector(node.type, count))
    return replace(map_children(node, lambda child: as_vectors(child, count)),
                   type=t.Vector(node.type, count))  # fmt: skip


def operations_kernel(type: t.Scalar, expressions: list[n.Expression], count: int = 1) -> n.Kernel:
    """Each thread takes a pair of values, and stores what each expression gives of it into the
    buffer of its type (`out.f32`), those of one expression together, in the order of `rows`. With
    a count, they are vectors of as many, in arrays of scalars."""
    if count > 1:
        return _vector_kernel(type, expressions, count)
    i = n.Variable("i", t.I32)
    body: list[n.Statement] = [n.Declare(i, global_index())]
    sources = {"a": "left", "b": "right", "c": "left"}
    for name, source in sources.items():
        body.append(n.Declare(n.Variable(name, type), n.Load(n.Element(source, i, type), type)))
    buffers = {name: n.Buffer(name, type) for name in ("left", "right")}
    for (name, row), expression in zip(rows(expressions), expressions, strict=True):
        buffers[name] = n.Buffer(name, expression.type)
        start = n.Binary("mul", n.Builtin("grid_dim"), n.Constant(row, t.I32), t.I32)
        place = n.Element(name, n.Binary("add", start, i, t.I32), expression.type)
        body.append(n.Assign(place, expression))
    return n.Kernel(f"all_{type}", tuple(buffers.values()), (), tuple(body), block=Dim3(1))


def rows(expressions: list[n.Expression]) -> list[tuple[str, int]]:
    """The buffer and the row in it where each expression's results lie."""
    found: list[tuple[str, int]] = []
    for expression in expressions:
        name = f"out.{expression.type}"
        found.append((name, sum(other == name for other, _ in found)))
    return found


def _vector_kernel(type: t.Scalar, expressions: list[n.Expression], count: int) -> n.Kernel:
    scalars = operations_kernel(type, expressions)

    def change(node: Any) -> Any:
        if isinstance(node, n.Declare) and node.variable.name in ("a", "b", "c"):
            wide = t.Vector(type, count)
            assert isinstance(node.value, n.Load)
            place = replace(node.value.place, type=wide)
            return n.Declare(replace(node.variable, type=wide), n.Load(place, wide))
        if isinstance(node, n.Assign):
            value = as_vectors(node.value, count)
            return n.Assign(replace(node.place, type=value.type), value)
        return node

    return replace(scalars, body=tuple(change(node) for node in scalars.body))


def expected_value(node: n.Expression, values: dict[str, Any]) -> Any:
    """What an expression on variables gives, exactly."""
    match node:
        case n.Variable():
            return values[node.name]
        case n.Binary():
            parts = (expected_value(node.left, values), expected_value(node.right, values))
            return arithmetic.binary(node.op, *parts, node.left.type)  # type: ignore[arg-type]
        case n.Unary():
            value = expected_value(node.operand, values)
            return arithmetic.unary(node.op, value, node.type)  # type: ignore[arg-type]
        case n.Cast() | n.Bitcast():
            convert = arithmetic.cast if isinstance(node, n.Cast) else arithmetic.bitcast
            value = expected_value(node.operand, values)
            return convert(value, node.operand.type, node.type)  # type: ignore[arg-type]
        case n.Intrinsic():
            operands = tuple(expected_value(operand, values) for operand in node.operands)
            return arithmetic.intrinsic(node.op, operands, node.operands[0].type)  # type: ignore[arg-type]
        case n.Select():
            chosen = expected_value(node.condition, values)
            return expected_value(node.if_true if chosen else node.if_false, values)
    raise AssertionError(node)


def same_bits(got: np.ndarray[Any, Any], wanted: list[Any], type: t.Scalar) -> np.ndarray[Any, Any]:
    """Where an array has the values that are wanted: the same number, any NaN for NaN."""
    if not type.is_float:
        return got == np.array(wanted, DTYPES[type.name])
    found, exact = got.astype(np.float64), np.array(wanted, np.float64)
    same = (found == exact) & (np.signbit(found) == np.signbit(exact))
    return same | (np.isnan(found) & np.isnan(exact))
