"""Kernels without 64-bit integers compute what those with them do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support import ir_programs, operations
from tests.support.ir_evaluator import run
from tests.support.printing import print_wgsl
from tests.support.tint import tint_error
from tests.support.wgsl import naga_error, options
from treadle.codegen.wgsl import WgslOptions
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold
from treadle.ir.passes.inline import inline
from treadle.ir.passes.wide import pair_words
from treadle.ir.passes.wide.layout import PAIR, holds_wide, paired
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

TINT = WgslOptions("tint", frozenset({"float16", "subgroups"}), Limits(subgroup_size=32))
WIDE = (t.I64, t.U64)
NARROW = (t.BOOL, t.I8, t.U8, t.I16, t.U16, t.I32, t.U32, t.F16, t.BF16, t.F32)
EDGES = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 1000, 65535, 65536, (1 << 31) - 1, 1 << 31,
         (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 33) - 1, (1 << 53) + 1, (1 << 62) + 12345,
         (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 2, (1 << 64) - 33, (1 << 64) - 1000,
         # What two roundings get wrong: half of a last place of a float, and a little more.
         (1 << 24) + 1, (1 << 40) + (1 << 16), (1 << 40) + (1 << 16) + 1, (1 << 40) + (3 << 16),
         (1 << 15) + (1 << 4) + 1, 65520, 65519, (1 << 63) + (1 << 39), (1 << 63) + (1 << 39) + 1,
         (1 << 64) - (1 << 39), (1 << 64) - (1 << 39) - 1]  # fmt: skip


def samples(type: t.Scalar) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng(5)
    numbers = [np.uint64(edge) for edge in EDGES]
    numbers += [
        np.uint64(int(drawn.integers(0, 1 << 63)) * 2 + 1 >> int(drawn.integers(0, 64)))
        for _ in range(14)
    ]
    return np.array(numbers, np.uint64).view(operations.DTYPES[type.name])


def pairs(type: t.Scalar) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Each sample with several others, and with itself."""
    values = samples(type)
    shifted = [np.roll(values, by) for by in (0, 1, 5, 13, 22, 31, 40)]
    return np.tile(values, len(shifted)), np.concatenate(shifted)


def with_known_parameters(kernel: n.Kernel, given: dict[str, int]) -> n.Kernel:
    """The kernel with what parameters of 64 bits are, in two words, in place of them."""
    known = [
        n.Declare(n.Variable(p.name, PAIR), n.Construct(
            (n.Constant(given[p.name] & 0xFFFFFFFF, t.U32),
             n.Constant(given[p.name] >> 32 & 0xFFFFFFFF, t.U32)), PAIR))
        for p in kernel.parameters if p.type in WIDE
    ]  # fmt: skip
    others = tuple(p for p in kernel.parameters if p.type not in WIDE)
    return replace(kernel, parameters=others, body=(*known, *kernel.body))


def narrow_kernel(kernel: n.Kernel, **given: int) -> n.Kernel:
    """The kernel without 64-bit integers, valid and free of them."""
    result = with_known_parameters(pair_words(kernel), given)
    verify(result)
    for block in (result.body, *(function.body for function in result.functions)):
        for node in walk(block):
            assert not hasattr(node, "type") or not holds_wide(node.type), node
    return result


def outcome(
    kernel: n.Kernel, grid: int, buffers: dict[str, np.ndarray[Any, Any]], **given: Any
) -> dict[str, np.ndarray[Any, Any]]:
    copies = {name: array.copy() for name, array in buffers.items()}
    run(kernel, grid, copies, **given)
    return copies


def assert_same(kernel: n.Kernel, grid: int, buffers: Any, **given: Any) -> Any:
    """Both kernels leave the same bytes; those are given."""
    wanted = outcome(kernel, grid, buffers, **given)
    got = outcome(narrow_kernel(kernel), grid, buffers, **given)
    for name in buffers:
        assert got[name].tobytes() == wanted[name].tobytes(), name
    return got


def calls(kernel: n.Kernel) -> set[str]:
    return {node.function for node in walk(kernel.body) if isinstance(node, n.Call)}


# --- operations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("type", WIDE, ids=str)
def test_every_operation(type):
    left, right = pairs(type)
    found = list(operations.exact_operations(type, (*WIDE, *NARROW)))
    kernel = operations.operations_kernel(type, found)
    buffers = {"left": left, "right": right}
    where = operations.rows(found)
    for (name, _), expression in zip(where, found, strict=True):
        count = len(left) * sum(other == name for other, _ in where)
        buffers[name] = np.zeros(count, operations.DTYPES[expression.type.name])
    with np.errstate(all="ignore"):
        got = outcome(narrow_kernel(kernel), len(left), buffers)
    rows = list(zip(left.tolist(), right.tolist(), strict=True))
    for (name, row), expression in zip(where, found, strict=True):
        wanted = [operations.expected_value(expression, {"a": a, "b": b, "c": a}) for a, b in rows]
        part = got[name][row * len(left) : (row + 1) * len(left)]
        same = operations.same_bits(part, wanted, expression.type)
        assert same.all(), (expression, [
            (rows[i], part[i], wanted[i]) for i in np.flatnonzero(~same)[:3]
        ])  # fmt: skip


@pytest.mark.parametrize("source", NARROW, ids=str)
def test_casts_to_64_bits(source):
    values = operations.samples(source)
    if source.is_float:
        big = [2.0**62, -(2.0**62), 2.0**63, -(2.0**63), 2.0**64, 1e19, 2.0**33 + 2.0**12, -0.75]
        with np.errstate(over="ignore"):
            values = np.concatenate([values, np.array(big, values.dtype)])
    for target in WIDE:
        found: list[n.Expression] = [n.Cast(n.Variable("a", source), target)]
        kernel = operations.operations_kernel(source, found)
        buffers = {"left": values, "right": values}
        buffers[f"out.{target}"] = np.zeros(len(values), operations.DTYPES[target.name])
        got = outcome(narrow_kernel(kernel), len(values), buffers)[f"out.{target}"]
        wanted = [operations.expected_value(found[0], {"a": value}) for value in values.tolist()]
        np.testing.assert_array_equal(got, np.array(wanted, got.dtype))


@pytest.mark.parametrize("type", WIDE, ids=str)
def test_vectors(type):
    left, right = pairs(type)
    left, right = left[:30], right[60:90]
    targets = (t.U64, t.I64, t.I32, t.F32)
    for number, expression in enumerate(operations.exact_operations(type, targets)):
        operands = isinstance(expression, (n.Binary, n.Unary, n.Cast, n.Intrinsic))
        counts = isinstance(expression, n.Intrinsic) and expression.type != type
        if not operands or expression.type == t.BOOL or counts:
            continue
        count = 2 + number % 3
        kernel = operations.operations_kernel(type, [expression], count)
        rows = len(left) // count
        out = np.zeros(len(left), operations.DTYPES[expression.type.name])
        assert_same(kernel, rows, {"left": left, "right": right, f"out.{expression.type}": out})


# --- layout --------------------------------------------------------------------------------------


def test_structs_keep_their_layout():
    three = t.Vector(t.I64, 3)
    inner = t.Struct("Inner", (t.Field("small", t.U8), t.Field("long", t.I64)))
    fields = (
        t.Field("a", t.I32), t.Field("b", t.Vector(t.U64, 2)), t.Field("c", t.F32),
        t.Field("d", t.Array(inner, 2)), t.Field("e", three), t.Field("f", t.Vector(t.I64, 4)),
        t.Field("g", t.U16),
    )  # fmt: skip
    whole = t.Struct("Whole", fields)
    changed = paired(whole)
    assert t.size_of(changed) == t.size_of(whole)
    for field in fields:
        assert t.field_offset(changed, field.name) == t.field_offset(whole, field.name)
        assert t.size_of(changed.field_type(field.name)) == t.size_of(field.type)


def test_struct_values_come_and_go():
    kernel = from_text("""
struct Item {
  key: i32
  place: vec2<i64>
  counts: array<u64, 3>
}
kernel items block(4) {
  buffer x: Item
  buffer y: i64
  var i: i32 = (block_idx.x * 4) + thread_idx.x
  var item: Item = x[i]
  item->place->y = (item->place->x * 3:i64) - y[i]
  item->counts[2] = x[i]->counts[i % 3] + u64(item->key)
  var other: Item = Item{i, vec2<i64>{y[i], -5:i64}, item->counts}
  x[i] = select(y[i] > 0:i64, item, other)
  x[i]->counts[1] = u64(y[i]) << 40:u64
  y[i] = x[i]->place->x ^ item->place->y
}
""")
    drawn = np.random.default_rng(2)
    x = drawn.integers(0, 255, (8, 64), dtype=np.uint8)
    x[:, 4:16] = x[:, 56:] = 0  # padding, which may be written
    y = drawn.integers(-(1 << 62), 1 << 62, 8)
    assert_same(kernel, 2, {"x": x, "y": y})


def test_parameters_functions_and_shared_memory():
    kernel = from_text("""
function mix(a: u64, b: i64, times: i32) -> u64 {
  var total: u64 = a
  for k: i64 in range(b, b + i64(times)) {
    total = (total * 6364136223846793005:u64) + u64(k)
  }
  return total
}
kernel mixed block(8) {
  buffer out: u64
  parameter seed: u64 from ("value", "seed")
  parameter far: i64 from ("value", "far")
  shared part: u64[8]
  var t: i32 = thread_idx.x
  part[t] = @mix(seed, far, t)
  barrier block
  var moved: u64
  moved = subgroup shuffle_xor part[(t + 1) % 8], 3
  out[t] = moved ^ part[7 - t]
}
""")
    given = {"seed": (1 << 63) + 12345, "far": -(1 << 40) - 7}
    out = np.zeros(8, np.uint64)
    left = outcome(kernel, 1, {"out": out}, parameters=given)
    right = outcome(narrow_kernel(kernel, **given), 1, {"out": out})
    np.testing.assert_array_equal(left["out"], right["out"])


# --- loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, -1, 3, -7])
@pytest.mark.parametrize("type", WIDE, ids=str)
def test_loops_end_where_they_should(type, step):
    """At the ends of the type, too, where one more step would wrap."""
    low, high = (-(1 << 63), (1 << 63) - 1) if type == t.I64 else (0, (1 << 64) - 1)
    starts = [0, 5, low, high - 20, high - 2, low + 9, high, 1 << 33]
    stops = [20, 4, low + 20, high, high - 1, low, low + 1, (1 << 33) + 11]
    if step < 0:
        starts, stops = stops, starts
    kernel = from_text(f"""
kernel counted block(1) {{
  buffer start: {type}
  buffer stop: {type}
  buffer out: {type}
  var i: i32 = block_idx.x
  var turns: {type} = 0:{type}
  for k: {type} in range(start[i], stop[i], {step}) {{
    if ((k & 3:{type}) == 2:{type}) {{
      continue
    }}
    turns = turns + ((k ^ 1:{type}) << 3:{type})
  }}
  out[i] = turns
}}
""")
    dtype = operations.DTYPES[type.name]
    buffers = {"start": np.array(starts, dtype), "stop": np.array(stops, dtype)}
    assert_same(kernel, len(starts), buffers | {"out": np.zeros(len(starts), dtype)})


# --- what stays narrow ---------------------------------------------------------------------------


def test_indices_cost_nothing():
    kernel = from_text("""
kernel plain block(64) {
  buffer x: f32
  buffer y: f32
  parameter x.size: i32 from ("size", "x")
  parameter width: i32 from ("value", "width")
  var i: u64 = (u64(block_idx.x) * 64:u64) + u64(thread_idx.x)
  var row: i64 = i64(width) * 2:i64
  var at: i64 = row + i64(i)
  if (i < u64(x.size)) {
    y[i32(i)] = x[at; i64(i) in i64(x.size)]
  }
  for k: i64 in range(0:i64, 100:i64) {
    y[k] = y[k] + f32(k)
  }
  var j: i64 = 0:i64
  while (j < 10:i64) {
    y[(j * j) + 1:i64] = 0.0
  } update {
    j = j + 1:i64
  }
}
""")
    narrow = narrow_kernel(kernel)
    assert not calls(narrow) - {"prelude.widen_i32", "prelude.mul_u64", "prelude.add_u64"}
    types = {node.variable.name: node.variable.type for node in walk(narrow.body)
             if isinstance(node, (n.Declare, n.For))}  # fmt: skip
    assert types["i"] == types["k"] == types["j"] == t.I32
    x = np.arange(300, dtype=np.float32)
    assert_same(kernel, 2, {"x": x, "y": x[::-1].copy()}, parameters={"width": 7})


def test_an_index_beyond_32_bits_is_outside():
    kernel = from_text("""
kernel far block(1) {
  buffer x: i32
  buffer at: i64
  buffer bound: i64
  buffer out: i32
  parameter x.size: i32 from ("size", "x")
  var i: i32 = block_idx.x
  var k: i64 = at[i]
  out[i * 2] = x[k; k in i64(x.size)]
  out[(i * 2) + 1] = x[k & 7:i64; k in bound[i]]
  x[k; k in i64(x.size)] = i + 10
}
""")
    at = np.array([3, -1, (1 << 32) + 3, 1 << 31, -(1 << 32), (1 << 63) - 1, 7, 8, 1 << 40])
    bound = np.array([4, 4, (1 << 32) + 4, 1 << 31, 5, (1 << 63) - 1, 8, 8, (1 << 40) + 1])
    x = np.arange(10, 18, dtype=np.int32)
    out = np.full(18, -1, np.int32)
    got = assert_same(kernel, 9, {"x": x, "at": at, "bound": bound, "out": out})
    assert got["out"][:6].tolist() == [13, 13, 0, 0, 0, 10]


def test_kernels_of_32_bits_are_left_alone():
    kernel = from_text("kernel plain block(1) {\n  buffer x: i32\n  x[0] = x[1] * 3\n}\n")
    assert pair_words(kernel) is kernel


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("atomic add x[0], 1:i64", "atomics on i64 need the feature 'int64_atomics'"),
        ("y[0] = f64(x[0])", "no 64-bit integers.*float64"),
        ("x[0] = i64(y[0])", "no 64-bit integers.*float64"),
        ("x[0] = bitcast<i64>(y[0])", "no 64-bit integers.*float64"),
        ("y[0] = bitcast<f64>(x[0])", "no 64-bit integers.*float64"),
        ("a = subgroup sum x[0]", "subgroup sum of i64"),
    ],
)
def test_refusals(line, message):
    kernel = from_text(f"""
kernel refused block(1) {{
  buffer x: i64
  buffer y: f64
  var a: i64 = x[1]
  {line}
}}
""")
    with pytest.raises(UnsupportedOnTarget, match=message) as raised:
        pair_words(kernel)
    assert raised.value.span.line == 6


# --- whole programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels(monkeypatch, seed):
    numbers = (t.I64, t.U64, t.I64, t.I32, t.U32, t.F32, t.I8)
    monkeypatch.setattr(ir_programs, "NUMBERS", numbers)
    kernel = ir_programs.random_kernel(seed, size=16)
    narrow = narrow_kernel(inline(fold(kernel)))
    assert ir_programs.outputs(narrow) == ir_programs.outputs(kernel)


# --- as WGSL -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("type", WIDE, ids=str)
def test_compilers_take_every_operation(type, count):
    kernel = operations.all_operations(type, count)
    assert tint_error(print_wgsl(kernel, TINT).source) is None
    code = print_wgsl(kernel, options("float16"))
    assert naga_error(code.source, code.entry) is None
    assert not re.search(r"\b[iu]64\b", code.source)


def test_tint_takes_shuffles_loops_and_barriers():
    """A barrier in a loop over 64 bits: all threads reach it, and Tint sees that."""
    kernel = from_text("""
kernel shuffled block(64) {
  buffer x: u64
  parameter n: u64 from ("value", "n")
  shared part: u64[64]
  var t: i32 = thread_idx.x
  for k: u64 in range(0:u64, n, 3) {
    part[t] = x[t] + k
    barrier block
    var moved: u64
    moved = subgroup shuffle_down part[63 - t], 2
    x[t] = moved
    barrier block
    var last: u64 = part[5]
    if (last > n) {
      barrier block
      x[t] = 0:u64
    }
  }
}
""")
    code = print_wgsl(kernel, TINT)
    assert tint_error(code.source) is None
    assert code.source.count("= shuffle_u32(") == 2


def test_threads_may_be_counted_otherwise_than_in_the_block():
    """A block of 8 by 8 that runs as a row of 64: what few threads do counts, too."""
    kernel = from_text("""
kernel row block(8, 8) {
  buffer out: u64
  var i: i32 = thread_idx.x
  var far: u64 = u64(i)
  if (i > 40) {
    far = 1099511627776:u64
  }
  out[i] = far
}
""")
    options = WgslOptions("tint", workgroup=Dim3(64))
    assert "var far: vec2<u32>" in print_wgsl(kernel, options).source
    assert "var far: vec2<u32>" not in print_wgsl(kernel, replace(options, workgroup=None)).source
