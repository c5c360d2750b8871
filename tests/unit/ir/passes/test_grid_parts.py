"""Kernels with barriers of the grid as parts, and the steps that the host does."""

from __future__ import annotations

import pytest

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir.builder import constant
from treadle.ir.parser import from_text
from treadle.ir.passes.grid_parts import Ask, Count, Decide, Launch, grid_parts, steps_for, value_of
from treadle.ir.passes.grid_state import KEPT
from treadle.ir.printer import to_text
from treadle.ir.types import I32
from treadle.ir.verify import verify

BLOCK = Dim3(8)


def parts_of(body: str, memories: str = ""):
    found = grid_parts(
        from_text(f"""
kernel steps {{
  buffer x: i32
  parameter n: i32 from ("value", "n")
{memories}
{body}
}}
"""),
        BLOCK,
    )
    for part in found.parts:
        verify(part)
    return found


def test_what_no_later_part_reads_is_not_kept():
    parts = parts_of(
        """
  var i: i32 = thread_idx.x
  var old: i32 = x[i]
  var sum: i32 = x[i + 1]
  x[i] = old
  barrier grid
  x[i] = sum
"""
    )
    assert [type(step) for step in parts.steps] == [Launch, Launch]
    assert parts.thread_words == 1
    assert parts.words(Dim3(3), BLOCK, 0) == 2 + 3 * 8
    first, second = map(to_text, parts.parts)
    assert f"{KEPT}[" in first
    assert "old" in first
    assert "old" not in second
    assert "thread_idx.x" in second  # which is computed again


def test_the_host_counts_where_it_knows_the_bounds():
    parts = parts_of(
        """
  for s: i32 in range(0, n, 2) {
    x[s] = s
    barrier grid
  }
"""
    )
    assert not parts.asks
    known, at, launched = {"n": constant(5, I32)}, parts.first, 0
    steps = steps_for(parts.steps, Dim3(1))
    while at is not None:
        match steps[at]:
            case Launch(_, at):
                launched += 1
            case Count(name, value, at):
                known[name] = value_of(value, known)
            case Decide(condition, then, otherwise):
                at = then if value_of(condition, known).value else otherwise
    assert launched == 3


def test_threads_are_asked_where_data_decide():
    parts = parts_of(
        """
  while (x[0] > n) {
    x[thread_idx.x] = 1
    barrier grid
  }
"""
    )
    assert parts.asks
    assert sum(isinstance(step, Ask) for step in parts.steps) == 2  # before the loop and in it


def test_shared_memory_is_kept_for_each_block():
    parts = parts_of(
        """
  s[thread_idx.x] = x[thread_idx.x]
  barrier grid
  x[thread_idx.x] = s[7 - thread_idx.x]
""",
        "  shared s: i32[8]\n",
    )
    assert (parts.thread_words, parts.block_words) == (0, 8)
    assert parts.words(Dim3(2, 2), BLOCK, 0) == 2 + 4 * 8


def test_no_target_is_given_a_barrier_of_the_grid():
    with pytest.raises(CompileError, match="compiled in parts"):
        verify(from_text("kernel one {\n  barrier grid\n}\n"))
