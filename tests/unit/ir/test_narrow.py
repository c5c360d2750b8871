"""Guards become the ends of loops where that is exact, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ir_evaluator import run
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.fission import fission
from treadle.ir.printer import to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify

HEAD = """\
kernel k block({block}) {{
  buffer y: i32
  parameter n: i32 from ("value", "n")
  parameter wide: i64 from ("value", "wide")
  parameter plain: u32 from ("value", "plain")

  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  var j: i32 = (block_idx.y * block_dim.y) + thread_idx.y
"""
HIT = "y[((j * 32) + i); i in 32] = y[((j * 32) + i)] + (i + 1)"


def split(body: str, block: str = "8, 1, 1") -> tuple[n.Kernel, n.Kernel]:
    kernel = from_text(HEAD.format(block=block) + body + "}\n")
    verify(kernel)
    result = fission(kernel).kernel
    verify(result)
    return kernel, result


def outcome(kernel: n.Kernel, lanes: int | None, number: int, grid: tuple[int, int]) -> list[int]:
    y = np.zeros(4 * 32, np.int32)
    numbers = {"n": number, "wide": number, "plain": abs(number)}
    run(kernel, grid, {"y": y}, numbers, invocations=lanes)
    return y.tolist()


def innermost(kernel: n.Kernel) -> n.For:
    return [node for node in walk(kernel.body) if isinstance(node, n.For) and node.parallel][-1]


def is_narrowed(kernel: n.Kernel) -> bool:
    return not isinstance(innermost(kernel).stop, n.Constant)


GUARDS = [
    "i < n",
    "n > i",
    "i <= n",
    "i64(i) < wide",
    "u32(i) < plain",
    "i < (n - 3)",
    "(j < n) && (i < 20)",
    "(i < n) && (i != 5)",
    "(i < n) && (i <= 17)",
    "thread_idx.x < n",
]


@settings(max_examples=settings.default.max_examples // 4)
@given(st.sampled_from(GUARDS), st.integers(-3, 40), st.sampled_from(["8, 1, 1", "8, 2, 1"]))
def test_a_guard_keeps_its_meaning_as_the_end_of_the_loop(
    guard: str, number: int, block: str
) -> None:
    kernel, result = split(f"  if ({guard}) {{\n    {HIT}\n  }}\n", block)
    assert is_narrowed(result)
    for grid in ((1, 1), (4, 2)):
        assert outcome(result, 1, number, grid) == outcome(kernel, None, number, grid)


def test_a_narrowed_loop_has_no_guard_left() -> None:
    _, result = split(f"  if (i < n) {{\n    {HIT}\n  }}\n")
    assert not any(isinstance(node, n.If) for node in walk(result.body))


def test_an_early_return_is_a_guard_too() -> None:
    kernel, result = split(
        f"  if ((i >= n) || (j >= 2)) {{\n    return\n  }}\n  {HIT}\n", "8, 4, 1"
    )
    loop = innermost(result)
    assert is_narrowed(result)
    assert not any(isinstance(node, n.If) for node in walk(loop.body))
    for number in (0, 5, 8, 9, 100):
        assert outcome(result, 1, number, (2, 1)) == outcome(kernel, None, number, (2, 1))


def test_two_guards_in_a_row_both_end_the_loop() -> None:
    body = "  if (i >= n) {\n    return\n  }\n  var k: i32 = i + 1\n"
    body += f"  if (i < 11) {{\n    {HIT}\n  }}\n"
    kernel, result = split(body)
    assert not any(isinstance(node, n.If) for node in walk(result.body))
    for number in (0, 10, 11, 12):
        assert outcome(result, 1, number, (2, 1)) == outcome(kernel, None, number, (2, 1))


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31), -1, 0])
def test_extreme_bounds_do_not_overflow(number: int) -> None:
    for guard in ("i < n", "i <= n", "i64(i) < wide"):
        kernel, result = split(f"  if ({guard}) {{\n    {HIT}\n  }}\n")
        assert outcome(result, 1, number, (4, 1)) == outcome(kernel, None, number, (4, 1))


@pytest.mark.parametrize(
    "body",
    [
        f"  if ((i * 2) < n) {{\n    {HIT}\n  }}\n",
        f"  if ((n + i) < 20) {{\n    {HIT}\n  }}\n",  # might overflow
        f"  if (i < y[0]) {{\n    {HIT}\n  }}\n",  # might change on the way
        f"  if (i < (n - thread_idx.x)) {{\n    {HIT}\n  }}\n",
        f"  if (i < n) {{\n    {HIT}\n  }} else {{\n    y[0; i in 3] = 1\n  }}\n",
        f"  if (i < n) {{\n    {HIT}\n  }}\n  y[i; i in 2] = 9\n",
        f"  i = i ^ 1\n  if (i < n) {{\n    {HIT}\n  }}\n",
        f"  if (i > n) {{\n    {HIT}\n  }}\n",
        f"  if (f32(i) < 3.5) {{\n    {HIT}\n  }}\n",
    ],
)
def test_other_guards_stay(body: str) -> None:
    kernel, result = split(body)
    assert not is_narrowed(result), to_text(result)
    for number in (0, 3, 50):
        assert outcome(result, 1, number, (1, 1)) == outcome(kernel, None, number, (1, 1))
