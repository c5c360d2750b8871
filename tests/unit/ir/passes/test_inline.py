"""Inlining keeps what a kernel does, whatever its functions do on the way."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from tests.support.ir_programs import outputs, random_kernel
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold
from treadle.ir.passes.inline import inline, needs_inlining
from treadle.ir.printer import to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_give_the_same(seed: int) -> None:
    kernel = random_kernel(seed)
    after = inline(kernel)
    verify(after)
    expected = outputs(kernel)
    assert outputs(after) == expected
    assert not any(isinstance(node, n.CallStatement) for node in walk(after.body))
    assert outputs(fold(inline(fold(kernel)))) == expected


def inlined(text: str) -> str:
    """The text of the kernel after inlining, from its body on."""
    kernel = inline(from_text(text))
    verify(kernel)
    return to_text(kernel)


PURE = """\
function square(v: f32) -> f32 {
  return v * v
}

"""


def test_pure_functions_stay_even_when_called_by_a_statement() -> None:
    text = PURE + "kernel k {\n  buffer y: f32\n\n  var r: f32\n  %s\n  y[0] = r\n}\n"
    assert inlined(text % "r = call square(2.0)") == text % "r = @square(2.0)"
    assert "square" not in inlined(text % "call square(2.0)")


def test_memory_goes_by_name_and_constants_by_value() -> None:
    text = """
    function put(to: &f32, at: i32, v: f32) -> void {
      to[at] = v
    }
    kernel k {
      buffer y: f32
      shared tile: f32[4]
      var i: i32 = lane
      call put(&tile, 0, 1.0)
      call put(&y, i, tile[0])
    }
    """
    assert (
        inlined(text)
        == """\
kernel k {
  buffer y: f32
  shared tile: f32[4]

  var i: i32 = lane
  tile[0] = 1.0
  var at: i32 = i
  var v: f32 = tile[0]
  y[at] = v
}
"""
    )


def test_each_call_has_its_own_memory_and_names() -> None:
    text = """
    function through(v: i32) -> i32 {
      shared box: i32[2]
      local mine: i32[1]
      var twice: i32 = v + v
      box[lane] = twice
      mine[0] = twice
      barrier block
      return box[1 - lane]
    }
    kernel k block(2) {
      buffer x: i32
      var r: i32
      var box: i32
      r = call through(lane)
      box = call through(r + 1)
      x[lane] = r + (10 * box)
    }
    """
    kernel = inline(from_text(text))
    verify(kernel)
    assert [memory.name for memory in kernel.memories] == ["box.2", "mine", "box.3", "mine.2"]
    assert kernel.functions == ()
    x = np.zeros(2, dtype=np.int32)
    run(kernel, buffers={"x": x})
    assert x.tolist() == [2 + 10 * 2, 0 + 10 * 6]


def test_early_returns_become_structure_without_flags() -> None:
    text = """
    function classify(to: &i32, v: i32) -> i32 {
      if (v < 0) {
        return -1
      }
      to[0] = v
      if (v == 0) {
        return 0
      } else {
        to[1] = v
      }
      return 1
    }
    kernel k {
      buffer x: i32
      parameter p: i32
      var r: i32
      r = call classify(&x, p)
      x[2] = r
    }
    """
    assert (
        inlined(text)
        == """\
kernel k {
  buffer x: i32
  parameter p: i32

  var r: i32
  var v: i32 = p
  if (v < 0) {
    r = -1
  } else {
    x[0] = v
    if (v == 0) {
      r = 0
    } else {
      x[1] = v
      r = 1
    }
  }
  x[2] = r
}
"""
    )


RETURN_IN_LOOPS = """
function find(x: &i32, wanted: i32) -> i32 {
  for a: i32 in range(0, 2) {
    var b: i32
    while (b < 3) {
      if (x[(a * 3) + b] == wanted) {
        return (a * 10) + b
      }
    } update {
      b = b + 1
    }
    if (wanted == (a + 100)) {
      return a
    }
  }
  print "not found"
  return -1
}
kernel k {
  buffer x: i32
  buffer out: i32
  parameter wanted: i32
  var r: i32
  r = call find(&x, wanted)
  out[0] = r
}
"""


@pytest.mark.parametrize(
    ("wanted", "expected"), [(0, 0), (2, 2), (3, 10), (5, 12), (7, -1), (101, 1), (100, 0)]
)
def test_a_return_deep_in_loops_leaves_all_of_them(wanted: int, expected: int) -> None:
    kernel = inline(from_text(RETURN_IN_LOOPS))
    verify(kernel)
    x, out = np.arange(6, dtype=np.int32), np.zeros(1, dtype=np.int32)
    outcome = run(kernel, 1, {"x": x, "out": out}, {"wanted": wanted})
    assert out[0] == expected
    assert outcome.printed == (["not found"] if expected == -1 else [])


def test_bodies_do_not_multiply() -> None:
    returns = "\n".join(f"if (v == {i}) {{\n x[{i}] = v\n return {i}\n}}" for i in range(12))
    text = f"""
    function many(x: &i32, v: i32) -> i32 {{
      {returns}
      return 99
    }}
    kernel k {{
      buffer x: i32
      parameter p: i32
      var r: i32
      r = call many(&x, p)
    }}
    """
    assert to_text(inline(from_text(text))).count("x[") == 12


LOADS = """
function at(x: &i32, i: i32) -> i32 {
  return x[i]
}
kernel k {
  buffer x: i32
  buffer out: i32
  parameter p: i32
  %s
}
"""


def test_a_call_stays_where_it_is_guarded() -> None:
    # x has 3 elements: an unguarded x[p] with p = 5 would be an error of the evaluator.
    kernel = inline(from_text(LOADS % "if ((p < 3) && (@at(&x, p) > 0)) {\nout[0] = 1\n}"))
    verify(kernel)
    for p, expected in ((5, 0), (0, 0), (2, 1)):
        out = np.zeros(1, dtype=np.int32)
        run(kernel, 1, {"x": np.arange(3, dtype=np.int32), "out": out}, {"p": p})
        assert out[0] == expected
    kernel = inline(from_text(LOADS % "out[0] = i32((p >= 3) || (@at(&x, p) > 0))"))
    for p, expected in ((5, 1), (0, 0), (2, 1)):
        run(kernel, 1, {"x": np.arange(3, dtype=np.int32), "out": out}, {"p": p})
        assert out[0] == expected


def test_a_call_in_a_loop_condition_runs_every_time() -> None:
    loop = """
    var i: i32
    while (@at(&x, i) < 2) {
      if (i == p) {
        continue
      }
      out[0] = out[0] + 10
    } update {
      i = i + 1
    }
    out[1] = @at(&x, @at(&x, 1)) + @at(&x, 2)"""
    kernel = inline(from_text(LOADS % loop))
    verify(kernel)
    assert kernel.functions == ()
    x, out = np.array([0, 1, 2], dtype=np.int32), np.zeros(2, dtype=np.int32)
    run(kernel, 1, {"x": x, "out": out}, {"p": 0})
    assert out.tolist() == [10, 3]


def test_which_functions_need_it() -> None:
    text = """
    function pure(v: i32) -> i32 {
      return v + 1
    }
    function reads(x: &i32) -> i32 {
      return x[0]
    }
    function owns(v: i32) -> i32 {
      local m: i32[1]
      m[0] = v
      return m[0]
    }
    function prints(v: i32) -> i32 {
      print v
      return v
    }
    function through(v: i32) -> i32 {
      return @pure(@owns(v))
    }
    function harmless(v: i32) -> i32 {
      var r: i32
      r = call pure(v)
      return r
    }
    kernel k {
    }
    """
    functions = from_text(text).functions
    needing = {f.name for f in functions if needs_inlining(f, functions)}
    assert needing == {"reads", "owns", "prints", "through"}
