"""The reference evaluator itself, on kernels whose results are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import EvaluationError, run
from treadle.ir.parser import from_text

SAXPY = """
kernel saxpy block(4) {
  buffer x: f32
  buffer y: f32
  parameter a: f32 from ("value", "a")
  parameter y.size: i32 from ("size", "y")
  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  if (i >= y.size) {
    return
  }
  y[i] = (a * x[i]) + y[i]
}
"""


def test_saxpy() -> None:
    x, y = np.arange(10, dtype=np.float32), np.ones(10, dtype=np.float32)
    run(from_text(SAXPY), 3, {"x": x, "y": y}, {"a": 2.0})
    assert y.tolist() == [1 + 2.0 * i for i in range(10)]


def test_an_access_outside_is_an_error_unless_checked() -> None:
    x = np.ones(3, dtype=np.float32)
    with pytest.raises(EvaluationError, match="bytes 12 to 16 of 'x', which has 12"):
        run(from_text("kernel k {\n buffer x: f32\n x[3] = 1.0\n}"), buffers={"x": x})
    run(from_text("kernel k {\n buffer x: f32\n x[3; 3 in 3] = x[-1; -1 in 3]\n}"), 1, {"x": x})
    assert x.tolist() == [1, 1, 1]


REDUCE = """
kernel reduce block(8) {
  buffer x: i32
  buffer total: i32
  shared part: i32[8]
  part[thread_idx.x] = x[thread_idx.x]
  barrier block
  var step: i32 = 4
  while (step > 0) {
    if (thread_idx.x < step) {
      part[thread_idx.x] = part[thread_idx.x] + part[thread_idx.x + step]
    }
    barrier block
  } update {
    step = step / 2
  }
  if (thread_idx.x == 0) {
    atomic add total[0], part[0]
  }
}
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_barriers(reverse: bool) -> None:
    total = np.zeros(1, dtype=np.int32)
    x = np.arange(1, 9, dtype=np.int32)
    run(from_text(REDUCE), 2, {"x": x, "total": total}, reverse=reverse)
    assert total[0] == 72


def test_a_barrier_for_some_is_an_error() -> None:
    text = (
        "kernel k block(2) {\n if (lane == 0) {\n barrier block\n } else {\n barrier block\n }\n}"
    )
    with pytest.raises(EvaluationError, match="different barriers"):
        run(from_text(text))


def test_subgroups() -> None:
    text = """
    kernel k block(4) {
      buffer out: i32
      var v: i32
      var w: i32
      var b: u32
      v = subgroup prefix_sum lane + 1
      w = subgroup shuffle_down v, 2
      b = subgroup ballot lane > 1
      out[lane] = (w * 100) + i32(b)
    }
    """
    out = np.zeros(4, dtype=np.int32)
    run(from_text(text), buffers={"out": out})
    assert out.tolist() == [312, 612, 312, 612]


def test_structs_functions_and_reinterpreted_memory() -> None:
    text = """
    struct P {
      a: u8
      v: vec2<f32>
      items: array<i16, 2>
    }
    function twice(m: &P, by: i32) -> i32 {
      m[0]->items[1] = 7:i16
      return by * 2
    }
    kernel k {
      buffer p: P
      buffer out: i32
      var q: P = p[0]
      q->v->y = 5.0
      q->items[0] = 3:i16
      p[1] = q
      var r: i32
      r = call twice(&p, 21)
      out[0] = r
      out[1] = p@i32[3]
      print "r ", r
      assert r == 41, "not so"
    }
    """
    p = np.zeros(4 * 24, dtype=np.uint8)
    out = np.zeros(2, dtype=np.int32)
    outcome = run(from_text(text), buffers={"p": p, "out": out})
    assert out.tolist() == [42, 0]
    assert outcome.printed == ["r 42"]
    assert outcome.failed == ["not so"]
    words = p.view(np.float32)
    assert words[6 + 3] == 5.0
    assert p.view(np.int16)[8 + 1] == 7
    assert p.view(np.int16)[12 + 8] == 3
