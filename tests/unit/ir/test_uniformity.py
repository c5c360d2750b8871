"""What is the same for all threads, and what a barrier in divergent flow is told."""

from __future__ import annotations

import pytest

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.uniformity import (
    Level,
    analyze,
    check_barriers,
    uniform_shared_loads,
)

HEAD = """\
kernel k block({block}) {{
  buffer x: i32
  buffer y: i32
  parameter n: i32 from ("value", "n")
  shared s: i32[64]
  local m: i32[4]
"""
BODY_LINE = HEAD.count("\n") + 1  # the line of the first statement of a body


def kernel(body: str, block: str = "64, 1, 1") -> n.Kernel:
    return from_text(HEAD.format(block=block) + body + "}\n")


def level(value: str, before: str = "", block: str = "64, 1, 1") -> Level:
    analysis = analyze(kernel(f"{before}\n  var v: i32 = {value}\n  y[0] = v\n", block))
    return analysis.variables["v"].level


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("n + (block_idx.x * grid_dim.y)", Level.BLOCK),
        ("block_dim.x", Level.BLOCK),
        ("x[n]", Level.BLOCK),
        ("x[n; n in 4]", Level.BLOCK),
        ("y[n]", Level.THREAD),  # written
        ("s[0]", Level.THREAD),
        ("m[0]", Level.THREAD),
        ("x[thread_idx.x]", Level.THREAD),
        ("x[n; thread_idx.x in 4]", Level.THREAD),
        ("thread_idx.x", Level.THREAD),
        ("lane", Level.THREAD),
        ("subgroup_size", Level.BLOCK),
        ("select(n > 0, thread_idx.x, 0)", Level.THREAD),
    ],
)
def test_levels_of_values(value: str, expected: Level) -> None:
    assert level(value) == expected


@pytest.mark.parametrize(
    ("value", "block", "expected"),
    [
        ("thread_idx.x // 32", "64, 1, 1", Level.WARP),
        ("thread_idx.x >> 5", "64, 1, 1", Level.WARP),
        ("thread_idx.x // 16", "64, 1, 1", Level.THREAD),
        ("thread_idx.x // 64", "64, 1, 1", Level.WARP),
        ("(thread_idx.x // 32) + n", "64, 1, 1", Level.WARP),
        ("((block_idx.x * block_dim.x) + thread_idx.x) / 32", "64, 1, 1", Level.WARP),
        ("((block_idx.x * block_dim.x) + thread_idx.x) // 32", "48, 1, 1", Level.THREAD),
        ("((n * 32) + thread_idx.x) // 32", "64, 1, 1", Level.WARP),
        # Rounding towards zero, a negative n would part a warp.
        ("((n * 32) + thread_idx.x) / 32", "64, 1, 1", Level.THREAD),
        ("thread_idx.y", "32, 4, 1", Level.WARP),
        ("thread_idx.y", "16, 4, 1", Level.THREAD),
        ("thread_idx.z", "8, 4, 2", Level.WARP),
        ("(thread_idx.x + (thread_idx.y * 16)) // 32", "16, 4, 1", Level.WARP),
        ("thread_idx.x & 31", "64, 1, 1", Level.THREAD),
        ("thread_idx.x & 32", "64, 1, 1", Level.WARP),
        ("select(thread_idx.x < 32, 1, 0)", "64, 1, 1", Level.WARP),
        ("select(thread_idx.x < 33, 1, 0)", "64, 1, 1", Level.THREAD),
    ],
)
def test_indices_that_agree_within_warps(value: str, block: str, expected: Level) -> None:
    assert level(value, block=block) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("sum", Level.WARP),
        ("ballot", Level.WARP),
        ("prefix_sum", Level.THREAD),
        ("shuffle", Level.THREAD),
    ],
)
def test_results_of_subgroup_operations(op: str, expected: Level) -> None:
    operand = {"ballot": "n > 0", "shuffle": "n, 0"}.get(op, "n")
    kind = "u32" if op == "ballot" else "i32"
    body = f"  var r: {kind}\n  r = subgroup {op} {operand}\n"
    assert analyze(kernel(body)).variables["r"].level == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("  var a: i32 = 1\n  if (n > 0) {\n    a = 2\n  }", Level.BLOCK),
        ("  var a: i32 = 1\n  if (thread_idx.x > 0) {\n    a = 2\n  }", Level.THREAD),
        ("  var a: i32 = 1\n  if (thread_idx.x > 31) {\n    a = 2\n  }", Level.WARP),
        ("  var a: i32 = 0\n  while (a < n) {\n    a = a + 1\n  }", Level.BLOCK),
        ("  var a: i32 = 0\n  while (a < thread_idx.x) {\n    a = a + 1\n  }", Level.THREAD),
        # Set again in uniform flow, it is uniform again from there on.
        ("  var a: i32 = thread_idx.x\n  a = n", Level.BLOCK),
        (
            "  var a: i32 = 0\n  for i: i32 in range(0, 4) {\n    if (thread_idx.x > i) {\n"
            "      break\n    }\n    a = i\n  }",
            Level.THREAD,
        ),
        ("  var a: i32\n  a = atomic add y[0], 1", Level.THREAD),
        ("  if (thread_idx.x > 0) {\n    return\n  }\n  var a: i32 = 0", Level.THREAD),
        ("  if (n > 0) {\n    return\n  }\n  var a: i32 = 0", Level.BLOCK),
        # A swap that needs a second round of the loop to be seen.
        (
            "  var a: i32 = 0\n  var b: i32 = thread_idx.x\n  for i: i32 in range(0, 4) {\n"
            "    a = b\n    b = n\n  }",
            Level.THREAD,
        ),
    ],
)
def test_levels_of_variables(before: str, expected: Level) -> None:
    assert level("a", before) == expected


def test_a_buffer_written_under_another_name_is_not_uniform() -> None:
    body = "  var v: i32 = x[0]\n"
    assert analyze(kernel(body)).variables["v"].level == Level.BLOCK
    analysis = analyze(kernel(body), also_written=frozenset({"x"}))
    assert analysis.variables["v"].level == Level.THREAD


def test_functions_that_ask_for_threads_are_not_uniform() -> None:
    text = "function f(a: i32) -> i32 {\n  return a + thread_idx.x\n}\n"
    text += HEAD.format(block="64, 1, 1") + "  var v: i32 = @f(1)\n}\n"
    assert analyze(from_text(text)).variables["v"].level == Level.THREAD


def test_the_record_answers_for_expressions_and_places() -> None:
    k = kernel("  var a: i32 = n\n  if (thread_idx.x > 3) {\n    a = n\n    y[a] = 1\n  }\n")
    analysis = analyze(k)
    assert analysis.is_uniform(n.Variable("n", t.I32))
    assert not analysis.is_uniform(n.Variable("a", t.I32))
    branch = k.body[1]
    assert isinstance(branch, n.If)
    assert analysis.flow(branch).level == Level.BLOCK
    assert analysis.flow(branch.then[1]).level == Level.THREAD


# --- refusals: the body's first line is BODY_LINE ---


def refusal(body: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        check_barriers(kernel(body))
    return caught.value


def test_a_barrier_under_a_divergent_if() -> None:
    error = refusal(
        "  var i: i32 = thread_idx.x\n  if (i < n) {\n    s[i] = 1\n    barrier block\n  }\n"
    )
    assert error.line == BODY_LINE + 3
    assert f"the condition on line {BODY_LINE + 1} divides them" in error.message
    assert "thread_idx.x differs between threads" in error.message
    assert f"i, set on line {BODY_LINE}" in error.message
    assert "move it out of the `if`" in error.message


def test_a_barrier_in_a_loop_of_divergent_length() -> None:
    error = refusal("  for i: i32 in range(thread_idx.x, n) {\n    barrier block\n  }\n")
    assert error.line == BODY_LINE + 1
    assert f"the loop on line {BODY_LINE}" in error.message
    assert "the same number of iterations" in error.message


def test_a_barrier_before_a_divergent_break_in_the_same_loop() -> None:
    error = refusal(
        "  while (n > 0) {\n    barrier block\n    if (thread_idx.x > 3) {\n"
        "      break\n    }\n  }\n"
    )
    assert error.line == BODY_LINE + 1
    assert f"the `break` on line {BODY_LINE + 3}" in error.message
    assert f"the condition on line {BODY_LINE + 2}" in error.message


def test_a_barrier_that_depends_on_what_the_kernel_writes() -> None:
    error = refusal("  y[thread_idx.x] = 1\n  if (y[0] > 0) {\n    barrier block\n  }\n")
    assert "y is an array that this kernel writes" in error.message
    assert "pass it as a number" in error.message


def test_a_barrier_that_depends_on_shared_memory_is_told_the_way() -> None:
    error = refusal("  s[thread_idx.x] = 1\n  if (s[0] > 0) {\n    barrier block\n  }\n")
    assert "right after a sync_threads()" in error.message


def test_a_subgroup_operation_needs_its_warp_alone() -> None:
    warp = "  var r: i32\n  if ((thread_idx.x // 32) == 1) {\n    r = subgroup sum n\n  }\n"
    check_barriers(kernel(warp))
    error = refusal(warp.replace("subgroup sum n", "1\n    barrier block"))
    assert "it differs between warps" in error.message
    error = refusal(warp.replace("// 32", "// 16"))
    assert error.line == BODY_LINE + 2
    assert "all threads of its warp" in error.message


@pytest.mark.parametrize(
    "body",
    [
        "  for i: i32 in range(0, n) {\n    if (x[i] > 0) {\n      break\n"
        "    }\n    barrier block\n  }\n",
        "  if (n > 3) {\n    barrier block\n  } else {\n    barrier block\n  }\n",
        # Threads meet again after a loop that they left at different times.
        "  while (true) {\n    if (thread_idx.x > 3) {\n      break\n    }\n    break\n  }\n"
        "  barrier block\n",
        "  var g: u32\n  g = subgroup ballot n > 0\n  if (g > 0:u32) {\n"
        "    g = subgroup ballot n > 1\n  }\n",
        "  if (n > 0) {\n    return\n  }\n  barrier block\n",
    ],
)
def test_uniform_barriers_pass(body: str) -> None:
    check_barriers(kernel(body))


def test_a_shared_value_read_right_after_a_barrier_is_uniform() -> None:
    body = (
        "  s[thread_idx.x] = n\n  barrier block\n  var a: i32 = s[0]\n"
        "  var b: i32 = s[a; a in 64]\n"
        "  var c: i32 = b\n  var d: i32 = s[1]\n"
        "  while (a < b) {\n    barrier block\n    a = a + 1\n  }\n"
    )
    k = kernel(body)
    check_barriers(k)
    assert uniform_shared_loads(k) == (k.body[2], k.body[3])
    assert analyze(k).variables["d"].level == Level.THREAD
