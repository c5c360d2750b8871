"""Short loops written out: what they compute stays, and what is long stays a loop."""

from __future__ import annotations

import pytest

from tests.support.ir_programs import outputs, random_kernel
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold
from treadle.ir.passes.inline import inline
from treadle.ir.passes.scalarize import scalarize
from treadle.ir.passes.unroll import unroll
from treadle.ir.passes.unroll_short import unroll_short
from treadle.ir.printer import to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify


def written_out(text: str) -> n.Kernel:
    kernel = from_text(text)
    verify(kernel)
    result = fold(unroll(unroll_short(kernel)))
    verify(result)
    return result


def loops(kernel: n.Kernel) -> int:
    return sum(isinstance(node, (n.For, n.While)) for node in walk(kernel.body))


TREE = """
kernel tree block(256, 1, 1) {
  buffer x: f32
  shared part: f32[256]

  var t: i32 = thread_idx.x
  part[t] = x[t]
  barrier block
  var step: i32 = 128
  while (step > 0) {
    if (t < step) {
      part[t] = part[t] + part[t + step]
    }
    barrier block
    step = step >> 1
  }
  x[t] = part[0] + f32(step)
}
"""


def test_a_tree_of_halving_steps_becomes_its_steps():
    kernel = written_out(TREE)
    assert loops(kernel) == 0
    text = to_text(kernel)
    assert [f"part[t + {1 << k}]" in text for k in range(9)] == [True] * 8 + [False]
    assert text.count("barrier block") == 9
    assert "step = 0" in text


@pytest.mark.parametrize(
    "change",
    [
        ("step > 0", "step > t"),  # not alone in the condition
        ("var step: i32 = 128", "var step: i32 = t"),  # starts with nothing known
        ("barrier block\n    step", "if (t > 9) {\n      break\n    }\n    step"),
        ("barrier block\n    step", "step = step - 1\n    step"),
        ("step >> 1", "step - 1"),  # too many turns
        ("step >> 1", "step + 0"),  # without end
    ],
)
def test_another_loop_stays(change):
    assert change[0] in TREE
    assert loops(written_out(TREE.replace(*change))) == 1


ARRAY = """
kernel sums_of block(64, 1, 1) {
  buffer x: f32
  local sums: f32[16]

  for i: i32 in range(0, 4) {
    for j: i32 in range(0, 4) {
      sums[(i * 4) + j] = x[i] * x[j]
    }
  }
  for k: i32 in range(0, 16) {
    x[k] = sums[k]
  }
}
"""


def test_an_array_of_a_thread_becomes_registers():
    kernel = scalarize(written_out(ARRAY))
    assert loops(kernel) == 0
    assert kernel.memories == ()
    many = ARRAY.replace("4)", "400)").replace("[16]", "[160000]").replace("16)", "160000)")
    assert loops(written_out(many)) == 3


FORCES = """
kernel forces block(64, 1, 1) {
  buffer x: f32
  buffer y: f32
  parameter n: i32 from ("value", "n")

  var total: f32 = 0.0
  for j: i32 in range(0, n) {
    var d: f32 = x[j; j in n] - 0.5
    total = total + (1.0 / d)
  }
  y[0] = total
}
"""


def test_four_turns_become_one_where_an_assembler_would_not_repeat():
    kernel = written_out(FORCES)
    assert loops(kernel) == 2
    text = to_text(kernel)
    assert text.count("1.0 / ") == 5
    assert text.count(", 4) {") == 1
    assert loops(written_out(FORCES.replace("1.0 / d", "1.0 * d"))) == 1
    assert loops(written_out(FORCES.replace("range(0, n)", "range(n, 9)"))) == 1


SHARED = """
kernel doubled block(2, 1, 1) {
  buffer x: f32

  var t: i32 = thread_idx.x
  for i: i32 in range(t, 6, 2) {
    var twice: f32 = x[i; i in 6] * 2.0
    x[i; i in 6] = twice
  }
}
"""


def test_a_loop_of_all_threads_becomes_each_ones_iterations():
    kernel = written_out(SHARED)
    assert loops(kernel) == 0
    assert to_text(kernel).count("* 2.0") == 3
    assert outputs(kernel) == outputs(from_text(SHARED))
    assert loops(written_out(SHARED.replace("range(t, 6,", "range(t, 5,"))) == 1


def test_a_long_array_that_is_only_filled_in_a_loop_becomes_registers():
    filled = """
kernel filled block(64, 1, 1) {
  buffer x: f32
  local sums: f32[128]

  for item: i32 in range(0, 128) {
    sums[item; item in 128] = 0.5
  }
  x[0] = sums[3] + sums[127]
}
"""
    assert scalarize(written_out(filled)).memories == ()
    assert loops(written_out(filled.replace("128", "300"))) == 1


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_the_same(seed):
    kernel = inline(random_kernel(seed))
    assert outputs(fold(unroll(unroll_short(kernel)))) == outputs(kernel)
