"""Both compilers of WGSL accept what the printer writes: every operation on every type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tint import tint_error
from tests.support.wgsl import LIMITS, naga_error
from treadle.codegen.wgsl import WgslOptions, print_kernel
from treadle.ir import nodes as n
from treadle.ir import rules
from treadle.ir import types as t
from treadle.ir.builder import Builder, cast, constant, global_index, load

# The types that Tint has, and float16 both native and emulated.
CASES = [
    *((name, frozenset[str]()) for name in t.SCALARS if name not in ("i64", "u64", "f64")),
    ("f16", frozenset({"float16"})),
]


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

    for op in _binary_operations(type, vector):
        keep(n.Binary(op, left, right, rules.binary_type(op, wide)))
    for op in _unary_operations(type):
        keep(n.Unary(op, left, wide))
    for op in _intrinsics(type):
        if op in (rules.COUNTS | rules.TESTS if vector > 1 else {"dot"}):
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


def _binary_operations(type: t.Scalar, vector: int) -> list[str]:
    if type == t.BOOL:
        return [*n.BITWISE[:3], *n.LOGICAL, "eq", "ne"] if vector == 1 else []
    found = [*n.ARITHMETIC, *(n.BITWISE if type.is_integer else ())]
    return found + ([*n.COMPARISONS] if vector == 1 else [])


def _unary_operations(type: t.Scalar) -> list[str]:
    if type == t.BOOL:
        return ["not"]
    return ["neg", "invert"] if type.is_integer else ["neg"]


def _intrinsics(type: t.Scalar) -> list[str]:
    if type == t.BOOL:
        return []
    of_integers = rules.INTEGER_INTRINSICS | rules.NUMBER_INTRINSICS
    if type.is_integer:
        return [op for op in n.INTRINSICS if op in of_integers]
    return [op for op in n.INTRINSICS if op not in rules.INTEGER_INTRINSICS]


@pytest.mark.parametrize(("name", "features"), CASES)
def test_every_operation_is_accepted(name, features):
    kernel = all_operations(t.SCALARS[name])
    for_tint = print_kernel(kernel, WgslOptions("tint", features, LIMITS))
    assert tint_error(for_tint.source) is None
    for_naga = print_kernel(kernel, WgslOptions("naga", features, LIMITS))
    assert naga_error(for_naga.source, for_naga.entry) is None


VECTORS: list[Any] = [("i32", ()), ("u32", ()), ("f32", ()), ("f16", ("float16",)), ("f16", ()),
                      ("i8", ()), ("bf16", ())]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(("name", "features"), VECTORS)
def test_every_operation_on_vectors_is_accepted(name, features, count):
    kernel = all_operations(t.SCALARS[name], count)
    for_tint = print_kernel(kernel, WgslOptions("tint", frozenset(features), LIMITS))
    assert tint_error(for_tint.source) is None
    for_naga = print_kernel(kernel, WgslOptions("naga", frozenset(features), LIMITS))
    assert naga_error(for_naga.source, for_naga.entry) is None


@pytest.mark.parametrize("name", ["i64", "u64", "f64"])
def test_wide_types_are_accepted_by_naga(name):
    features = frozenset({"int64", "float64"})
    code = print_kernel(all_operations(t.SCALARS[name]), WgslOptions("naga", features, LIMITS))
    assert naga_error(code.source, code.entry) is None
