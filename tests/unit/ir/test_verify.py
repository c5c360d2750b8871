"""One case for each kind of fault, with its message; and a kernel without any."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.ir.test_text import EVERYTHING
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.verify import verify

HEAD = """
struct Pair {
  a: f32
  items: array<i32, 2>
}
function square(v: f32) -> f32 {
  return v * v
}
function nothing(v: f32) -> void {
}
function fill(to: &f32, v: f32) -> f32 {
  to[0] = v
  return v
}
function prints(v: f32) -> f32 {
  print v
  return v
}
function through(v: f32) -> f32 {
  var r: f32
  r = call prints(v)
  return r
}
kernel k block(4) {
  buffer x: f32
  buffer p: Pair
  buffer c: u32
  buffer h: f16
  parameter size: i32 from ("size", "x")
  parameter big: i64
  shared tile: f32[8]
  var i: i32
  var f: f32
  var b: bool
  var u: u32
  var v: vec2<f32>
  var q: Pair
"""

FAULTS = {
    # names
    "i = 1\nvar i: i32": "'i' is declared twice",
    "var tile: i32": "'tile' is declared twice",
    "if (b) {\nvar w: i32\n}\ni = w": "'w' is used outside of the block it lives in",
    "while (b) {\nvar w: i32\n} update {\ni = w\n}": "'w' is used outside of the block it lives in",
    "for w: i32 in range(0, 3) {\n}\ni = w": "'w' is used outside of the block it lives in",
    # statements
    "f = 1": "the value assigned is i32, where f32 is needed",
    "var w: i32 = 1.0": "the value of 'w' is f32, where i32 is needed",
    "var w: void": "'w' cannot be of type void",
    "size = 1": "'size' is a parameter and cannot be changed: copy it first",
    "for w: i32 in range(0, 3) {\nw = 1\n}": (
        "'w' is a loop variable and cannot be changed: copy it first"
    ),
    "if (i) {\n}": "the condition of an if is i32, where bool is needed",
    "while (f) {\n}": "the condition of a while is f32, where bool is needed",
    "assert i, \"x\"": "the condition of an assert is i32, where bool is needed",
    "for w: f32 in range(0.0, 1.0) {\n}": "a for loop counts with an integer, not f32",
    "for w: i32 in range(0:i64, 3) {\n}": "the start of the loop is i64, where i32 is needed",
    "for w: i32 in range(0, big) {\n}": "the stop of the loop is i64, where i32 is needed",
    "for w: i32 in range(0, 3, 0) {\n}": "the step of a for loop is not 0",
    "for w: u32 in range(3:u32, 0:u32, -1) {\n}": "a loop over u32 cannot step downwards",
    "break": "break stands outside of a loop",
    "if (b) {\ncontinue\n}": "continue stands outside of a loop",
    "while (b) {\n} update {\nbreak\n}": "break stands in the update of a while",
    "while (b) {\n} update {\nreturn\n}": "return stands in the update of a while",
    "for w: i32 in range(0, 3) parallel {\nbreak\n}": "a parallel loop cannot be left with break",
    "for w: i32 in range(0, 3) parallel {\nreturn\n}": "a parallel loop cannot be left with return",
    "return 1": "a kernel returns no value",
    "atomic add h@i16[0], 1:i16": "atomics work on one of i32, u32, i64, u64, f32, f64, f16, bf16, "
    "u16, not on i16",
    "atomic xor x[0], 1.0": "an atomic xor works on integers, not on f32",
    "atomic add x[0], 1": "an operand of an atomic add is i32, where f32 is needed",
    "atomic add x[0], 1.0, 2.0": "an atomic add takes 1 operand, not 2",
    "atomic cas c[0], 1:u32": "an atomic cas takes 2 operands, not 1",
    "i = atomic add x[0], 1.0": "the atomic add gives f32, but 'i' is i32",
    "size = atomic add p[0]->items[0], 1": (
        "'size' is a parameter and cannot be changed: copy it first"
    ),
    "b = subgroup ballot b": "subgroup ballot gives u32, but 'b' is bool",
    "u = subgroup ballot i": "the operand of subgroup ballot is i32, where bool is needed",
    "f = subgroup shuffle f": "subgroup shuffle takes 2 operands, not 1",
    "f = subgroup shuffle f, f": "subgroup shuffle takes its lane as i32 or u32",
    "b = subgroup sum b": "subgroup sum works on one number, not on bool",
    "v = subgroup sum v": "subgroup sum works on one number, not on vec2<f32>",
    "i = subgroup sum i, i": "subgroup sum takes lanes as u32",
    "f = subgroup xor f": "subgroup xor works on integers, not on f32",
    "i = subgroup sum i mask i": "a mask of lanes is i32, where u32 is needed",
    "i = subgroup prefix_sum i mask u": "subgroup prefix_sum takes no mask",
    "i = subgroup sum i, u mask u": "subgroup sum takes 1 operand, not 2",
    "barrier subgroup mask b": "a mask of lanes is bool, where u32 is needed",
    "i = clock": "clock gives u64, but 'i' is i32",
    "f = atomic inc x[0], 1.0": "an atomic inc works on u32, not on f32",
    "call missing(f)": "there is no function 'missing'",
    "call square(f, f)": "'square' takes 1 argument, not 2",
    "call square(i)": "'v' of 'square' is i32, where f32 is needed",
    "call square(&x)": "'v' of 'square' is a value, but gets a memory",
    "call fill(f, f)": "'to' of 'fill' is a memory, but gets a value",
    "f = call nothing(f)": "'nothing' gives nothing to put into 'f'",
    "i = call square(f)": "'square' gives f32, but 'i' is i32",
    "print v": "print takes text and numbers, not vec2<f32>",
    # expressions
    "f = f + 1": "add of f32 and i32: both need one type",
    "i = i << 1:u32": "shl of i32 and u32: both need one type",
    "b = b + b": "add does not work on bool",
    "f = f & f": "and does not work on f32",
    "b = b << b": "shl does not work on bool",
    "b = b < b": "lt does not work on bool",
    "b = v == v": "eq does not work on vec2<f32>",
    "b = i && i": "logical_and does not work on i32",
    "b = -b": "neg does not work on bool",
    "i = !i": "not does not work on i32",
    "f = ~f": "invert does not work on f32",
    "f = select(i, f, f)": "the condition of a select is i32, where bool is needed",
    "f = select(b, f, 1)": "the second value of a select is i32, where f32 is needed",
    "f = f32(v)": "vec2<f32> cannot be cast to f32",
    "f = bitcast<f32>(big)": "the bits of i64 are not those of f32",
    "i = sqrt(i)": "sqrt does not work on i32",
    "f = popcount(f)": "popcount does not work on f32",
    "b = isnan(v)": "isnan does not work on vec2<f32>",
    "f = dot(f, f)": "dot does not work on f32",
    "f = min(f)": "min takes 2 operands, not 1",
    "f = fma(f, f, 1)": "an operand of fma is i32, where f32 is needed",
    "f = @nothing(f)": "'nothing' gives no value",
    "f = @fill(&x, f)": (
        "'fill' changes memory: call it in a statement of its own, not inside an expression"
    ),
    "f = @through(f)": (
        "'through' prints: call it in a statement of its own, not inside an expression"
    ),
    "v = vec2<f32>{f}": "vec2<f32> takes 2 operands, not 1",
    "v = vec2<f32>{f, 1}": "part 1 of vec2<f32> is i32, where f32 is needed",
    # places
    "f = x[u]": "an index is i32 or i64, not u32",
    "f = x[i; i in big]": "a check of i32 against i64: both are i32 or both i64",
    "i = p[0]->items[1:u32]": "an index is i32 or i64, not u32",
    "i = 3000000000": "3000000000 does not fit i32",
    "f = 0.1": "0.1 is not a value of f32: round it first",
}  # fmt: skip


@pytest.mark.parametrize("body", FAULTS)
def test_faults_of_statements(body: str) -> None:
    with pytest.raises(CompileError) as caught:
        verify(from_text(HEAD + body + "\n}", file="k.ir"))
    assert caught.value.message == FAULTS[body]
    first = HEAD.count("\n") + 1
    assert first <= caught.value.line <= first + body.count("\n")


def test_what_is_right_passes() -> None:
    verify(from_text(HEAD + "q->items[1] = 3\nq->a = tile[0]\nf = @square(f)\n}"))
    verify(from_text(EVERYTHING))


J, F = n.Variable("i", t.I32), n.Variable("f", t.F32)
STRUCT = t.Struct("Empty", ())


def _of(*statements: n.Statement, **parts: Any) -> n.Kernel:
    return n.Kernel("k", parts.pop("buffers", ()), (), statements, **parts)


def _let(value: n.Expression) -> n.Kernel:
    return _of(n.Declare(n.Variable("out", value.type), value))


BUILT = [
    ("'f' is not declared", _let(F)),
    ("'x' is a memory, not a value", _of(n.Declare(F, n.Variable("x", t.F32)),
                                         buffers=(n.Buffer("x", t.F32),))),
    ("'i' is i32, but is used as f32", _of(n.Declare(J), n.Declare(F, n.Variable("i", t.F32)))),
    ("there is no memory 'y'", _let(n.Load(n.Element("y", n.Constant(0, t.I32), t.F32), t.F32))),
    ("a place in memory is needed here, not a variable", _of(n.Declare(J), n.Declare(
        n.Variable("j", t.I32), n.Load(J, t.I32)))),  # type: ignore[arg-type]
    ("a constant of i32 is a Python int, not float", _let(n.Constant(1.0, t.I32))),
    ("a constant of bool is a Python bool, not int", _let(n.Constant(1, t.BOOL))),
    ("a constant of f32 is a Python float, not int", _let(n.Constant(1, t.F32))),
    ("there is no builtin 'warp'", _let(n.Builtin("warp"))),
    ("lane has no axis 1", _let(n.Builtin("lane", 1))),
    ("thread_idx gives i32, but its node says u32", _let(n.Builtin("thread_idx", 0, t.U32))),
    ("there is no unary operation 'plus'", _let(n.Unary("plus", n.Constant(1, t.I32), t.I32))),
    ("there is no binary operation 'pow'", _let(
        n.Binary("pow", n.Constant(1, t.I32), n.Constant(1, t.I32), t.I32))),
    ("add gives i32, but its node says f32", _let(
        n.Binary("add", n.Constant(1, t.I32), n.Constant(1, t.I32), t.F32))),
    ("there is no intrinsic 'sine'", _let(n.Intrinsic("sine", (n.Constant(1.0, t.F32),), t.F32))),
    ("isnan gives bool, but its node says f32", _let(
        n.Intrinsic("isnan", (n.Constant(1.0, t.F32),), t.F32))),
    ("i32 has no 'x'", _let(n.Extract(n.Constant(1, t.I32), "x", t.I32))),
    ("i32 is not made of parts", _let(n.Construct((n.Constant(1, t.I32),), t.I32))),
    ("'e' cannot be of type Empty", _of(n.Declare(n.Variable("e", STRUCT)))),
    ("only an array or a vector has items, not i32", _of(n.Declare(J), n.Assign(
        n.Item(J, n.Constant(0, t.I32), t.I32), n.Constant(0, t.I32)))),
    ("there is no atomic 'nand'", _of(n.Atomic("nand", n.Element("x", J, t.I32), ()))),
    ("there is no subgroup operation 'mix'", _of(n.Subgroup("mix", (), J))),
    ("only a subgroup's barrier has a mask", _of(n.Barrier("block", n.Constant(1, t.U32)))),
    ("a part is the number of a barrier of the block and its threads", _of(
        n.Barrier(part=(n.Constant(1, t.U32),)))),
    ("a barrier's scope is block or subgroup, not 'world'", _of(
        n.Barrier("world"))),  # type: ignore[arg-type]
    ("a kernel with a barrier of the grid is compiled in parts", _of(n.Barrier("grid"))),
    ("fences with a role are those of a block", _of(n.Fence("device", role="wait"))),
    ("a fence's scope is block, device or system, not 'world'", _of(
        n.Fence("world"))),  # type: ignore[arg-type]
    ("If is not an expression", _of(n.Return(n.If(n.TRUE, ())))),  # type: ignore[arg-type]
    ("Constant is not a statement", _of(n.TRUE)),  # type: ignore[arg-type]
    ("Constant is not a place", _of(n.Assign(n.TRUE, n.TRUE))),  # type: ignore[arg-type]
    ("there is no memory 'm'", _of(
        n.CallStatement("g", (n.MemoryReference("m"),)),
        functions=(n.Function("g", (n.Buffer("to", t.F32),), t.VOID, ()),))),
    ("the local memory 'm' needs a length", _of(memories=(n.Memory("m", "local", t.F32, None),))),
    ("the memory 'm' has no elements", _of(memories=(n.Memory("m", "shared", t.F32, 0),))),
    ("'b' cannot hold elements of type void", _of(buffers=(n.Buffer("b", t.VOID),))),
    ("a block has at least one thread in each direction, not (4, 0, 1)", _of(block=Dim3(4, 0))),
]  # fmt: skip


@pytest.mark.parametrize(("message", "kernel"), BUILT, ids=[message for message, _ in BUILT])
def test_faults_that_text_cannot_say(message: str, kernel: n.Kernel) -> None:
    with pytest.raises(CompileError) as caught:
        verify(kernel)
    assert caught.value.message == message


def _function(name: str, *body: n.Statement, result: t.Type = t.VOID) -> n.Function:
    return n.Function(name, (), result, body, span=Span("f.py", 7))


def test_functions_do_not_call_themselves_or_those_after_them() -> None:
    call = n.CallStatement("f", (), span=Span("f.py", 8, 3))
    with pytest.raises(CompileError, match="'f' calls itself: recursion does not exist") as caught:
        verify(_of(functions=(_function("f", call),)))
    assert caught.value.span == Span("f.py", 8, 3)
    with pytest.raises(CompileError, match="'f' is called before it is defined"):
        verify(_of(functions=(_function("g", call), _function("f"))))
    with pytest.raises(CompileError, match="two functions are named 'f'"):
        verify(_of(functions=(_function("f"), _function("f"))))


def test_a_function_gives_what_it_says_on_every_path() -> None:
    one = n.Return(n.Constant(1, t.I32))
    with pytest.raises(CompileError, match="'f' gives i32, but returns void here"):
        verify(_of(functions=(_function("f", n.Return(), result=t.I32),)))
    with pytest.raises(CompileError, match="'f' gives void, but returns i32 here"):
        verify(_of(functions=(_function("f", one),)))
    half = n.If(n.TRUE, (one,))
    with pytest.raises(CompileError, match="'f' gives i32, but may end without a return"):
        verify(_of(functions=(_function("f", half, result=t.I32),)))
    left = n.While(n.TRUE, (n.If(n.TRUE, (n.Break(),)), one))
    with pytest.raises(CompileError, match="may end without a return"):
        verify(_of(functions=(_function("f", left, result=t.I32),)))
    both = n.If(n.TRUE, (one,), (n.While(n.TRUE, (half,)),))
    verify(_of(functions=(_function("f", both, result=t.I32),)))


def test_nan_and_infinity_are_constants() -> None:
    for value in (math.nan, math.inf, -0.0):
        for type in (t.F16, t.BF16, t.F32, t.F64):
            verify(_let(n.Constant(value, type)))
