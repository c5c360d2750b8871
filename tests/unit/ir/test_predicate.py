"""Returns before barriers become flags; everything else stays as it was."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.predicate import negate, predicate_returns, remove_returns
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.printer import expression_text, to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

HEAD = """\
kernel k block(8, 1, 1) {
  buffer x: i32
  buffer y: i32
  parameter n: i32 from ("value", "n")
  shared s: i32[8]

  var i: i32 = thread_idx.x
"""


def outcome(kernel: n.Kernel, number: int) -> list[int]:
    y = np.full(8, -1, np.int32)
    run(kernel, 1, {"x": np.arange(10, 18, dtype=np.int32), "y": y}, {"n": number})
    return y.tolist()


def predicated(body: str, numbers: tuple[int, ...] = (0, 3, 8)) -> n.Kernel:
    """The kernel without early returns, after it was seen to do the same and to be accepted."""
    kernel = from_text(HEAD + body + "}\n")
    verify(kernel)
    result = predicate_returns(kernel)
    verify(result)
    check_barriers(result)
    assert not any(isinstance(node, n.Return) for node in walk(result.body))
    for number in numbers:
        assert outcome(result, number) == outcome(kernel, number)
    return result


def lines(kernel: n.Kernel) -> str:
    text = to_text(kernel)
    return text[text.index("  var i: i32") :]


def test_the_common_guard_becomes_a_flag() -> None:
    result = predicated(
        "  if (i >= n) {\n    return\n  }\n  s[i] = x[i]\n  barrier block\n"
        "  y[i] = s[(n - 1) - i]\n",
        (3, 8),
    )
    assert lines(result) == (
        "  var i: i32 = thread_idx.x\n"
        "  var active: bool = i < n\n"
        "  if (active) {\n    s[i] = x[i]\n  }\n"
        "  barrier block\n"
        "  if (active) {\n    y[i] = s[(n - 1) - i]\n  }\n"
        "}\n"
    )


def test_a_uniform_return_wraps_the_rest() -> None:
    result = predicated(
        "  if (n == 3) {\n    y[i] = 5\n    return\n  }\n  s[i] = i\n"
        "  barrier block\n  y[i] = s[7 - i]\n"
    )
    assert "active" not in to_text(result)
    assert "} else {\n    s[i] = i\n    barrier block\n" in to_text(result)


@pytest.mark.parametrize(
    "body",
    [
        "  if (i >= n) {\n    return\n  }\n  y[i] = x[i]\n",
        "  s[i] = x[i]\n  barrier block\n  if (i > n) {\n    return\n  }\n  y[i] = s[7 - i]\n",
    ],
)
def test_kernels_that_skip_no_barrier_are_left_alone(body: str) -> None:
    kernel = from_text(HEAD + body + "}\n")
    assert predicate_returns(kernel) is kernel
    removed = remove_returns(kernel)
    verify(removed)
    assert not any(isinstance(node, n.Return) for node in walk(removed.body))
    for number in (0, 3, 8):
        assert outcome(removed, number) == outcome(kernel, number)


RETURN_IN_A_LOOP = """\
  var total: i32 = 0
  for k: i32 in range(0, 4) {
    s[i] = k + i
    barrier block
    total = total + s[7 - i]
    if (total > (n + i)) {
      y[i] = total
      return
    }
    barrier block
  }
  y[i] = 100 + total
"""

RETURN_DEEP_IN_LOOPS = """\
  for k: i32 in range(0, 3) {
    for m: i32 in range(0, 5) {
      if (((k * m) + i) > n) {
        y[i] = (k * 10) + m
        return
      }
    }
    s[i] = k
    barrier block
    y[i] = s[7 - i]
    barrier block
  }
"""

UNIFORM_AND_DIVERGENT = """\
  if (i == 2) {
    return
  }
  if (n == 3) {
    y[i] = 77
    return
  }
  s[i] = x[i]
  barrier block
  y[i] = s[i] + n
"""

UNIFORM_VALUES_SET_AFTER_A_RETURN = """\
  if (i == n) {
    y[i] = -5
    return
  }
  var stride: i32 = 4
  s[i] = x[i]
  if (n > 5) {
    stride = 2
    y[i] = 3
  }
  barrier block
  while (stride > 0) {
    if (i < stride) {
      s[i] = s[i] + s[i + stride]
    }
    barrier block
    stride = stride // 2
  }
  y[i] = s[0]
"""

UNIFORM_RETURN_IN_A_LOOP = """\
  for k: i32 in range(0, 4) {
    s[i] = k + i
    barrier block
    y[i] = s[7 - i]
    if (k == n) {
      return
    }
    if ((k + i) == 4) {
      y[i] = -3
      return
    }
    barrier block
  }
  y[i] = y[i] + 100
"""

BOTH_KINDS_IN_AN_INNER_LOOP = """\
  for k: i32 in range(0, 3) {
    s[i] = k
    barrier block
    for m: i32 in range(0, 4) {
      if (m == n) {
        y[i] = 50 + m
        return
      }
      if ((m + k) > (i + 1)) {
        y[i] = 60 + m
        return
      }
    }
    barrier block
  }
  y[i] = s[7 - i]
"""

RETURNS_IN_BOTH_BRANCHES = """\
  if (i < n) {
    if (i == 1) {
      return
    }
    y[i] = 1
  } else {
    y[i] = 2
    if (i == 6) {
      return
    }
  }
  s[i] = 5
  barrier block
  y[i] = y[i] + s[i]
"""

DECLARED_UNDER_GUARD_USED_AFTER_BARRIER = """\
  if (i >= n) {
    return
  }
  var mine: i32 = x[i; i in 8]
  s[i] = mine
  barrier block
  var other: i32 = s[((n - 1) - i) & 7]
  barrier block
  y[i] = mine + other
"""


@pytest.mark.parametrize(
    "body",
    [
        RETURN_IN_A_LOOP,
        RETURN_DEEP_IN_LOOPS,
        UNIFORM_AND_DIVERGENT,
        UNIFORM_VALUES_SET_AFTER_A_RETURN,
        UNIFORM_RETURN_IN_A_LOOP,
        BOTH_KINDS_IN_AN_INNER_LOOP,
        RETURNS_IN_BOTH_BRANCHES,
        DECLARED_UNDER_GUARD_USED_AFTER_BARRIER,
    ],
)
def test_returns_anywhere_keep_their_meaning(body: str) -> None:
    predicated(body, (-9, 0, 2, 3, 8, 30))


@pytest.mark.parametrize(
    ("op", "operand"),
    [
        ("sum", "x[i]"),
        ("min", "x[i]"),
        ("max", "0 - x[i]"),
        ("prefix_sum", "x[i]"),
        ("vote_all", "x[i] > 11"),
        ("vote_any", "x[i] > 15"),
        ("ballot", "x[i] > 11"),
    ],
)
def test_threads_that_returned_take_no_part_in_subgroup_operations(op: str, operand: str) -> None:
    kind = {"vote_all": "bool", "vote_any": "bool", "ballot": "u32"}.get(op, "i32")
    predicated(
        f"  if ((i & 1) == (n & 1)) {{\n    return\n  }}\n  var r: {kind}\n"
        f"  r = subgroup {op} {operand}\n  y[i] = i32(r)\n"
    )


def test_a_load_that_trusts_its_index_is_not_made_by_threads_that_returned() -> None:
    predicated(
        "  if (i >= n) {\n    return\n  }\n  var v: i32 = x[(8 * (i // 8)) + i]\n"
        "  if (i < 3) {\n    v = x[i + 5]\n  }\n  barrier block\n  y[i] = v\n"
    )


def test_a_loop_that_only_returns_end_is_refused() -> None:
    body = "  while (true) {\n    if (x[i] > n) {\n      return\n    }\n    barrier block\n  }\n"
    with pytest.raises(CompileError, match="only `return` ends this loop") as caught:
        predicate_returns(from_text(HEAD + body + "}\n"))
    assert caught.value.line == HEAD.count("\n") + 1


@pytest.mark.parametrize(
    ("condition", "opposite"),
    [
        ("a < 3", "a >= 3"),
        ("a == 3", "a != 3"),
        ("!(a > 3)", "a > 3"),
        ("(a < 3) && (a != 1)", "(a >= 3) || (a == 1)"),
        ("f < 3.0", "!(f < 3.0)"),  # not the same as f >= 3.0 if f is NaN
        ("true", "false"),
    ],
)
def test_negation_is_exact(condition: str, opposite: str) -> None:
    text = (
        f"kernel k block(1, 1, 1) {{\n  var a: i32 = 1\n  var f: f32\n"
        f"  if ({condition}) {{\n  }}\n}}\n"
    )
    statement = from_text(text).body[2]
    assert isinstance(statement, n.If)
    assert expression_text(negate(statement.condition)) == opposite
    assert negate(statement.condition).type == t.BOOL
