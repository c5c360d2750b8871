"""Unrolling, and local arrays that become variables: the same results in registers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import (
    Builder,
    add,
    builtin,
    cast,
    check,
    constant,
    element,
    equal,
    load,
    member,
    mul,
)  # fmt: skip
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll, unroll_around_views
from treadle.ir.traverse import walk
from treadle.ir.verify import verify


def registers(kernel: n.Kernel) -> n.Kernel:
    result = scalarize(fold(unroll(kernel)))
    verify(result)
    return result


def assert_same(kernel: n.Kernel, changed: n.Kernel, size: int = 16) -> None:
    before = {"x": np.arange(1, size + 1, dtype=np.float32)}
    after = {"x": before["x"].copy()}
    run(kernel, 1, before)
    run(changed, 1, after)
    assert before["x"].tobytes() == after["x"].tobytes()
    assert before["x"].tolist() != list(range(1, size + 1))


def loops(kernel: n.Kernel) -> int:
    return sum(isinstance(node, n.For) for node in walk(kernel.body))


def test_nested_loops_and_arrays():
    b = Builder("tile", block=2)
    x = b.buffer("x", t.F32)
    acc = b.memory("local", "acc", t.F32, 6)
    i = b.let("i", builtin("thread_idx"))
    with b.loop("r", 0, 2, unroll=True) as r, b.loop("c", 2, -1, -1, unroll=True) as c:
        at = b.let("at", add(mul(r, 3), c))
        b.store(acc, at, mul(load(x, at), cast(at, t.F32)), (check(at, constant(6, t.I32)),))
    with b.loop("k", 0, 6) as k:
        b.store(x, add(mul(i, 6), k), load(acc, constant(4, t.I32)))
    changed = registers(b.kernel())
    assert changed.memories == ()
    assert loops(changed) == 1
    assert_same(b.kernel(), changed)


def test_loops_that_leave_stay_loops():
    b = Builder("search", block=1)
    x = b.buffer("x", t.F32)
    with b.loop("k", 0, 8, unroll=True) as k:
        with b.when(equal(k, 3)):
            b.emit(n.Break())
        with b.loop("j", 0, 4, unroll=True) as j:
            b.store(x, add(k, j), add(load(x, k), 1.0))
    changed = registers(b.kernel())
    assert loops(changed) == 1
    assert_same(b.kernel(), changed)


def test_a_break_of_an_inner_loop_does_not_keep_the_outer():
    b = Builder("search", block=1)
    x = b.buffer("x", t.F32)
    with b.loop("k", 0, 3, unroll=True) as k, b.loop("j", 0, 5) as j:
        with b.when(equal(j, k)):
            b.emit(n.Break())
        b.store(x, j, add(load(x, j), 1.0))
    changed = registers(b.kernel())
    assert loops(changed) == 3
    assert_same(b.kernel(), changed)


def test_loops_over_unknown_or_many_values_stay():
    b = Builder("long", block=1)
    x = b.buffer("x", t.F32)
    size = b.parameter("size", t.I32, "size", "x")
    with b.loop("k", 0, size, unroll=True) as k:
        b.store(x, k, mul(load(x, k), 2.0))
    with b.loop("many", 0, 5000, unroll=True) as k:
        b.store(x, 0, add(load(x, 0), cast(k, t.F32)))
    assert loops(unroll(b.kernel())) == 2


def test_vector_elements_and_their_components():
    vector = t.Vector(t.F32, 2)
    b = Builder("pairs", block=1)
    x = b.buffer("x", t.F32)
    pairs = b.memory("local", "pairs", vector, 2)
    with b.loop("k", 0, 2, unroll=True) as k:
        both = n.Construct((load(x, k), load(x, add(k, 2))), vector)
        b.store(pairs, k, both)
        b.assign(member(element(pairs, k), "y"), mul(load(member(element(pairs, k), "x")), 3.0))
    b.store(x, 0, load(member(element(pairs, 1), "y")))
    changed = registers(b.kernel())
    assert changed.memories == ()
    assert_same(b.kernel(), changed)


def test_what_is_indexed_by_a_variable_stays():
    b = Builder("arrays", block=2)
    x = b.buffer("x", t.F32)
    moving, viewed = (b.memory("local", name, t.F32, 4) for name in ("moving", "viewed"))
    i = b.let("i", builtin("thread_idx"))
    b.store(moving, 1, load(x, 0))
    b.store(moving, i, load(x, i))
    b.assign(element(viewed, 0, type=t.U32), n.Bitcast(load(x, i), t.U32))
    b.store(x, i, add(load(moving, i), load(viewed, 0)))
    changed = registers(b.kernel())
    assert [memory.name for memory in changed.memories] == ["moving"]
    assert_same(b.kernel(), changed)


# --- memories that hold structs, or are seen as several types ------------------------------------


def from_views(body: str, declared: str) -> n.Kernel:
    return from_text(f"""
struct Cell {{
  a: u8
  b: bool
  c: i16
  d: f32
  e: array<vec3<f32>, 2>
}}
kernel views block(2) {{
  buffer x: f32
{declared}
  var t: i32 = thread_idx.x
{body}
}}
""")


def names_of(kernel: n.Kernel) -> set[str]:
    return {node.variable.name for node in walk(kernel.body) if isinstance(node, n.Declare)}


def test_words_and_vectors_of_them_become_variables():
    kernel = from_views(
        """
  p@vec4<u32>[0] = x@vec4<u32>[t]
  for k: i32 in range(0, 4) {
    p[k] = p[k] * 2.0
  }
  p@vec2<f32>[1] = vec2<f32>{p[3], p[2] + f32(p@u32[0] >> 23:u32)}
  x@vec4<f32>[t] = p@vec4<f32>[0]
""",
        "  local p: f32[4]",
    )
    changed = scalarize(fold(unroll_around_views(kernel)))
    verify(changed)
    assert changed.memories == ()
    assert names_of(changed) >= {"p.0", "p.4", "p.8", "p.12"}
    assert_same(kernel, changed)


def test_narrow_numbers_are_cut_out_of_wide_ones():
    kernel = from_views(
        """
  p@vec2<u32>[0] = x@vec2<u32>[t]
  p@u8[1] = 7:u8
  p@i16[1] = i16(0 - t)
  p@f16[2] = f16(1.5)
  q@f64[0] = 0.75:f64
  q@u32[0] = u32(p@u8[1]) + u32(p@i16[1])
  x@vec4<u32>[t] = vec4<u32>{p@u32[0], p@u32[1], q@u32[0], q@u32[1]}
""",
        "  local p: u8[8]\n  local q: u32[2]",
    )
    changed = registers(kernel)
    assert changed.memories == ()
    types = {node.variable.name: str(node.variable.type) for node in walk(changed.body)
             if isinstance(node, n.Declare)}  # fmt: skip
    assert (types["p.0"], types["p.4"], types["q.0"]) == ("u32", "u32", "u64")
    assert_same(kernel, changed)


def test_structs_with_arrays_become_their_numbers():
    kernel = from_views(
        """
  s[0]->d = x[t]
  s[0]->e[1] = vec3<f32>{x[t + 2], 2.0, 3.0}
  s[0]->e[0]->y = s[0]->e[1]->x + s[0]->d
  s[0]->e[0]->x = 0.5
  s[0]->e[0]->z = 0.25
  s[0]->a = 9:u8
  s[0]->b = t == 0
  s[0]->c = i16(t)
  r[0] = s[0]
  x@vec3<f32>[t] = r[0]->e[0]
  x[t + 6] = f32(r[0]->a) + f32(s@u8[1])
""",
        "  local s: Cell[1]\n  local r: Cell[1]",
    )
    changed = registers(kernel)
    assert changed.memories == ()
    assert_same(kernel, changed)


@pytest.mark.parametrize(
    "line",
    [
        "p@u32[t] = 1:u32",  # where is not known
        "p@u16[t / 2] = 1:u16",
        "p@u32[0; t in 2] = 1:u32",  # nor whether
        "p@vec2<u16>[0] = vec2<u16>{1:u16, 2:u16}\n  q@u32[0] = 1:u32\n  q@u16[1] = 2:u16\n"
        "  atomic add p[0], 1:u32",
    ],
)
def test_what_is_not_known_stays_in_memory(line):
    changed = registers(
        from_views(
            f"  p[1] = 0:u32\n  {line}\n  x[t] = f32(p[0])", "  local p: u32[2]\n  local q: u32[2]"
        )
    )
    assert "p" in {memory.name for memory in changed.memories}


def test_short_loops_around_structs_are_written_out():
    kernel = from_views(
        """
  for k: i32 in range(0, 2) {
    s[0]->e[k] = vec3<f32>{x[k], f32(k), x[t]}
  }
  for far: i32 in range(0, 100) {
    x[t] = x[t] + 1.0
  }
  x[t + 4] = s[0]->e[1]->x + s[0]->e[0]->z
""",
        "  local s: Cell[1]",
    )
    changed = scalarize(fold(unroll_around_views(kernel)))
    assert changed.memories == ()
    assert loops(changed) == 1
    assert_same(kernel, changed)


def test_elements_have_names_that_nothing_else_has():
    kernel = from_views(
        "  own[0] = 1.0\n  own[1] = x[t]\n  var own.1: f32 = x[t + 1]\n  x[t] = own.1 - own[1]",
        "  local own: f32[2]",
    )
    changed = registers(kernel)
    assert changed.memories == ()
    assert_same(kernel, changed)
