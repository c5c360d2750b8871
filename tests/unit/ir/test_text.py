"""Printing and parsing are inverses, and the parser says where it stumbled."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import pytest

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.printer import expression_text, to_text
from treadle.ir.traverse import walk

EVERYTHING = """\
struct Inner {
  at: vec3<f32>
  `while`: array<array<u16, 2>, 3>
}

struct Pair {
  inner: Inner
  weight: f64
}

struct Pair~2 {
  x: i32
}

struct `odd name` {
  x: i32
}

struct matrix.sums {
  left: vec4<f32>
  right: vec4<f32>
}

function fill(to: &f32, value: f32) -> void {
  local scratch: f32[4]
  scratch[0] = value
  to[0] = scratch[0]
  return
}

function square(v: f32) -> f32 {
  return v * v
}

kernel `<lambda>` block(8, 4, 1) fastmath trusting {
  buffer x: f32
  buffer pairs: Pair
  buffer other: Pair~2
  buffer odd: `odd name`
  buffer counts: i32
  buffer lanes.buffer: u32
  parameter x.size: i32 from ("size", "x")
  parameter p.inner.0: f32 from ("leaf", "p", "inner", 0)
  parameter bare: u64
  shared tile: f32[256]
  shared barriers: u64[2]
  shared rest: vec4<f32>[?]
  local mine: i64[3]

  var `if`: i32 = (block_idx.x * block_dim.x) + thread_idx.y
  var unset: vec2<f32>
  var p: Pair = pairs[`if`; `if` in x.size]
  var old: i32
  var got: f32
  var lanes: u32
  var bare.copy: u64
  x[0] = 1.0
  x[`if`; `if` in x.size, axis 0: 3 in 4 of "a part"] = -0.0
  x@u32[lane] = 7:u32
  pairs[1]->inner->`while`[2; 2 in 3][1] = 65535:u16
  p->inner->at->x = f32((pairs[2])->weight == 0.5:f64)
  p->weight = -p->weight
  got = (pairs[2]->inner->at)->y
  unset = vec2<f32>{got, -(1.5)}
  other[0] = Pair~2{-1}
  odd[0] = `odd name`{-(1)}
  got = @square(@square(got) + f32(`if`))
  got = bitcast<f32>(bitcast<u32>(got) >> 1:u32)
  got = select(!(got < 0.0), fma(got, 2.0, inf), -inf)
  unset = bitcast<vec2<f32>>(unset)
  mine[subgroup_size] = ~mine[0] ^ -9223372036854775808:i64
  if ((got <= nan) || true) {
    got = 1.0
  } else if (got != nan(0xfff8000000000001)) {
    if (false) {
      return
    }
  } else {
    got = 2.0
    p->weight = 5e-324:f64
  }
  for k: i32 in range(0, x.size, -2) unroll parallel {
    continue
  }
  for j: i64 in range(0:i64, 9:i64) {
  }
  while (old < 3) {
    break
  } update {
    old = old + 1
  }
  while (true) {
  }
  barrier block
  barrier block part 1:u32, 64:u32
  barrier subgroup
  fence block
  fence device
  fence system
  barrier subgroup mask 15:u32
  lanes = subgroup active
  lanes = subgroup match_any got mask lanes
  `if` = subgroup xor `if`, lanes
  lanes = atomic inc lanes.buffer[0], 7:u32
  old = atomic add counts[0; 0 in 1], 5
  atomic cas counts[3], 1, 2
  lanes = subgroup ballot got > 1.0
  got = subgroup shuffle_xor got, 1
  bare.copy = clock
  copies left 1
  var sums: matrix.sums
  sums = subgroup opaque_fill 0.5
  opaque columns tile[4], 16, sums
  staged prepare [1, 1, 1, 0] barriers[0]
  staged settle [0]
  staged claim [96] barriers[0] from `if`
  call fill(&tile, 1.0)
  got = call square(got)
  print "a \\"quoted\\" b", got, "c"
  print
  print end ""
  print "%5.1f"(got), "%*.*e"(3, `if`, got), `if`, "\\n%" end "\\n\\n"
  assert got == got, "never `nan`"
  assert got > 0.0, "got > 0" always
  assert got < 9.0, "got < 9" always in "square"
  assert got < 9.0, "got is not below 9" fault
  return
}
"""


def test_text_is_the_same_after_a_round_trip() -> None:
    kernel = from_text(EVERYTHING)
    assert to_text(kernel) == EVERYTHING


def test_every_kind_of_node_is_in_the_text() -> None:
    kernel = from_text(EVERYTHING)
    seen = {type(node) for body in (kernel, *kernel.functions) for node in walk(body.body)}
    kinds = set(n.Expression.__args__) | set(n.Statement.__args__) | set(n.Place.__args__)
    assert kinds | {n.Check, n.MemoryReference} <= seen


def test_kernel_is_equal_after_a_round_trip() -> None:
    text = EVERYTHING.replace("nan(0xfff8000000000001)", "0.0").replace("nan", "0.0")
    kernel = from_text(text)
    assert from_text(to_text(kernel)) == kernel
    assert kernel.block == Dim3(8, 4, 1)
    assert kernel.parameters[1].origin == ("leaf", "p", "inner", 0)


@pytest.mark.parametrize("op", [*n.ARITHMETIC, *n.BITWISE, *n.COMPARISONS, *n.LOGICAL])
def test_every_binary_operation_is_itself_again(op: str) -> None:
    operand = n.Variable("a", t.BOOL if op in n.LOGICAL else t.I32)
    assert _again(n.Binary(op, operand, operand, _binary(op))).op == op


def _binary(op: str) -> t.Type:
    return t.BOOL if op in n.COMPARISONS + n.LOGICAL else t.I32


def _again(expression: n.Expression) -> n.Expression:
    declared = [n.Declare(n.Variable("a", t.I32))]
    if isinstance(expression, n.Binary):
        declared = [n.Declare(n.Variable("a", expression.left.type))]
    result = n.Declare(n.Variable("r", expression.type), expression)
    kernel = n.Kernel("k", (), (), (*declared, result))
    again = from_text(to_text(kernel))
    assert again == kernel or isinstance(expression, n.Constant)
    value = again.body[1].value
    assert value is not None
    return value


@pytest.mark.parametrize("type", [t.F16, t.BF16, t.F32, t.F64])
@pytest.mark.parametrize(
    "value", [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 0.1, 1e300, -3.0, 1e16]
)
def test_floats_keep_every_bit(value: float, type: t.Scalar) -> None:
    again = _again(n.Constant(value, type))
    assert struct.pack("<d", again.value) == struct.pack("<d", value)
    assert again.type == type


def test_a_negated_number_is_not_a_negative_number() -> None:
    negated = n.Unary("neg", n.Constant(3, t.I32), t.I32)
    assert _again(negated) == negated
    assert _again(n.Constant(-3, t.I32)) == n.Constant(-3, t.I32)


@pytest.mark.parametrize(
    "name", ["x.size", "if", "thread_idx.x", "a b", "`", "nan", "i~2", "ü", "\\"]
)
def test_any_name_will_do(name: str) -> None:
    variable = n.Variable(name, t.I32)
    kernel = n.Kernel("k", (), (), (n.Declare(variable, n.Constant(1, t.I32)),))
    assert from_text(to_text(kernel)) == kernel


def test_field_of_a_load_and_load_of_a_field_differ() -> None:
    kernel = "kernel k {\n  buffer s: S\n  var v: f32 = s[0]->a\n  v = (s[0])->a\n}"
    declare, assign = from_text("struct S {\n  a: f32\n}\n" + kernel).body
    assert isinstance(declare.value, n.Load)
    assert isinstance(assign.value, n.Extract)


def test_spans_are_written_only_when_asked_and_read_back() -> None:
    place = Span("my file.py", 3, 5, 9)
    body = (n.If(n.TRUE, (n.Return(span=place),), (), place), n.Barrier())
    kernel = n.Kernel("k", (), (), body, span=Span("a.py", 1, 2, 3))
    assert "!" not in to_text(kernel)
    again = from_text(to_text(kernel, spans=True))
    assert again.span == Span("a.py", 1, 2, 3)
    assert again.body[0].span == place
    assert again.body[0].then[0].span == place
    assert again.body[1].span == NOWHERE


def test_without_spans_a_node_is_where_its_text_is() -> None:
    kernel = from_text("kernel k {\n\n  barrier block\n}\n", file="k.ir")
    assert kernel.body[0].span == Span("k.ir", 3, 3, 10)


@pytest.mark.parametrize(
    ("body", "line", "column", "message"),
    [
        ("var a: i32 = b", 2, 14, "'b' is not declared"),
        ("var a: i33", 2, 8, "'i33' is not a type declared above"),
        ("var a: i32 = (1 + 2) + 3 + 4", 2, 26, "write parentheses around the inner operation"),
        ("var a: i32 = 1 2", 2, 16, "expected the end of the statement, found '2'"),
        ("if true {", 2, 4, "expected '(', found 'true'"),
        ("var a: i32 = $", 2, 14, "'$' has no meaning here"),
        ("var if: i32", 2, 5, "expected the name of a variable, found 'if'"),
        ("var a: i32 = @f(1)", 2, 15, "'f' is not a function declared above"),
        ("barrier world", 2, 9, "a barrier's scope is one of block, subgroup, grid, not 'world'"),
        ("var a: vec2<f32> = vec2<f32>{1.0, 2.0}->z", 2, 41, "vec2<f32> has no 'z'"),
        ("var a: i32 =", 2, 13, "expected a value, found 'the end of the line'"),
    ],
)  # fmt: skip
def test_faults_have_a_place(body: str, line: int, column: int, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        from_text(f"kernel k {{\n{body}\n}}")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.message == message
    assert body in str(caught.value)


def test_one_expression_for_messages() -> None:
    index = n.Binary("add", n.Variable("i", t.I32), n.Constant(1, t.I32), t.I32)
    assert expression_text(n.Load(n.Element("x", index, t.F32), t.F32)) == "x[i + 1]"


def test_registers_that_are_enough_stand_in_the_text() -> None:
    text = "kernel k block(64, 1, 1) fastmath registers(64) {\n  return\n}\n"
    kernel = from_text(text)
    assert kernel.registers == 64
    assert to_text(kernel) == text
    assert from_text(to_text(replace(kernel, registers=0))).registers == 0
