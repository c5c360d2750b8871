"""What a target lacks, replaced: the same results, and nothing more than needed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from treadle.codegen.legalize import MISSING, legalize
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import Builder, Operand, binary, global_index, load
from treadle.ir.prelude_names import is_prelude
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (5, 0), (-128, -1), (0, 3), (127, 1)]
FLOATS = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1.0, 0.0), (np.inf, 2.0), (-1.0, np.inf),
          (-0.0, 3.0), (1e30, 7.0), (5e-324, 3.0), (np.nan, 1.0), (6.0, -3.0)]  # fmt: skip


def kernel_of(op: str, type: t.Scalar, right: Operand | None = None) -> n.Kernel:
    b = Builder("operation", block=1)
    x, y, out = (b.buffer(name, type) for name in ("x", "y", "out"))
    i = b.let("i", global_index())
    b.store(out, i, binary(op, load(x, i), load(y, i) if right is None else right))
    return b.kernel()


def calls(kernel: n.Kernel) -> list[str]:
    return [node.function for node in walk(kernel.body) if isinstance(node, n.Call)]


@pytest.mark.parametrize("op", [*n.ARITHMETIC, "shl", "shr"])
@pytest.mark.parametrize(
    "type", [t.I8, t.I32, t.I64, t.U16, t.U32, t.F16, t.BF16, t.F32, t.F64], ids=str
)
def test_results_stay_the_same(type, op):
    if type.is_float and op in ("shl", "shr"):
        op = "floordiv"
    from tests.unit.codegen.test_wgsl_operations import NUMPY

    pairs = FLOATS if type.is_float else PAIRS
    with np.errstate(all="ignore"):
        x, y = (np.array(c).astype(NUMPY[type.name]) for c in zip(*pairs, strict=True))
    kernel = kernel_of(op, type)
    legal = legalize(kernel, MISSING)
    verify(legal)
    outcomes = []
    for version in (kernel, legal):
        out = np.zeros(len(pairs), dtype=x.dtype)
        run(version, len(pairs), {"x": x.copy(), "y": y.copy(), "out": out})
        outcomes.append(out.astype(np.float64) if type.is_float else out)
    np.testing.assert_array_equal(*outcomes)
    assert np.array_equal(np.signbit(outcomes[0]), np.signbit(outcomes[1])) or not type.is_float


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge"])
@pytest.mark.parametrize("right", [None, -3, 1 << 40], ids=str)
def test_order_of_signed_numbers_by_that_of_unsigned_ones(op, right):
    b = Builder("order", block=1)
    x, y, out = b.buffer("x", t.I64), b.buffer("y", t.I64), b.buffer("out", t.U32)
    i = b.let("i", global_index())
    other = load(y, i) if right is None else n.Constant(right, t.I64)
    b.store(out, i, n.Cast(binary(op, load(x, i), other), t.U32))
    legal = legalize(b.kernel(), frozenset({"wide_order"}))
    verify(legal)
    compared = [node for node in walk(legal.body) if isinstance(node, n.Binary) and node.op == op]
    assert [node.left.type for node in compared] == [t.U64]
    numbers = [0, 1, -1, -3, -(1 << 63), (1 << 63) - 1, 1 << 40]
    pairs = np.array([(a, c) for a in numbers for c in numbers], np.int64)
    found = np.zeros(len(pairs), np.uint32)
    run(legal, len(pairs), {"x": pairs[:, 0].copy(), "y": pairs[:, 1].copy(), "out": found})
    second = pairs[:, 1] if right is None else right
    compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[op]
    np.testing.assert_array_equal(found, compare(pairs[:, 0], second))


def test_twice_is_once_and_functions_are_made_once():
    b = Builder("several", block=1)
    x = b.buffer("x", t.F32)
    for k in range(3):
        b.store(x, k, binary("mod", load(x, k), binary("floordiv", load(x, 0), load(x, 1))))
    legal = legalize(b.kernel(), MISSING)
    names = [function.name for function in legal.functions]
    assert names == ["prelude.rem_f32", "prelude.floordiv_f32", "prelude.mod_f32"]
    assert all(map(is_prelude, names))
    assert legalize(legal, MISSING) == legal


@pytest.mark.parametrize(
    ("op", "type", "right", "becomes"),
    [
        ("floordiv", t.I32, 8, ("shr", 3)), ("floordiv", t.I32, 1, ("shr", 0)),
        ("mod", t.I32, 8, ("and", 7)), ("div", t.I32, 3, ("div", 3)),
        ("floordiv", t.U32, 3, ("div", 3)), ("shl", t.I32, 5, ("shl", 5)),
        ("shr", t.I32, 40, ("shr", 31)),
    ],
)  # fmt: skip
def test_safe_constants_need_no_function(op, type, right, becomes):
    kernel = legalize(kernel_of(op, type, right), MISSING)
    assert calls(kernel) == []
    (found,) = [node for node in walk(kernel.body) if isinstance(node, n.Assign)]
    assert isinstance(found.value, n.Binary)
    assert isinstance(found.value.right, n.Constant)
    assert (found.value.op, found.value.right.value) == becomes


def test_only_what_is_missing_is_replaced():
    assert calls(legalize(kernel_of("floordiv", t.I32), frozenset({"mod"}))) == []
    assert calls(legalize(kernel_of("floordiv", t.I32), frozenset({"floordiv"}))) == [
        "prelude.floordiv_i32"
    ]
    with pytest.raises(ValueError, match="knows no operation"):
        legalize(kernel_of("add", t.I32), frozenset({"sine"}))


def test_fastmath_takes_the_hardwares_minimum():
    b = Builder("least", block=1)
    x = b.buffer("x", t.F32)
    b.store(x, 0, n.Intrinsic("min", (load(x, 0), load(x, 1)), t.F32))
    assert calls(legalize(b.kernel(), MISSING)) == ["prelude.min_f32"]
    assert calls(legalize(b.kernel(fastmath=True), MISSING)) == []
