"""Parallel loops in lanes: whatever lanes do apart gives what the plain evaluator says.

Every kernel runs one turn at a time (which LLVM may vectorize) and in 4 and 16 lanes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support import ir_evaluator
from tests.support.cpu_kernels import run
from tests.support.printing import print_llvm
from treadle.codegen.llvm import LlvmOptions
from treadle.ir import nodes as n
from treadle.ir.parser import from_text

LANES = [1, 4, 16]
COUNT = 45  # not a multiple of any number of lanes


def agree(text: str, arrays: dict[str, np.ndarray], lanes: int, grid: int = 1, **parameters):
    """Run a kernel on the device and in the evaluator; every array must be the same."""
    kernel = from_text(text)
    expected = {name: array.copy() for name, array in arrays.items()}
    threads = as_threads(kernel)
    once = 1 if threads is kernel else None
    ir_evaluator.run(threads, grid, expected, parameters, invocations=once)
    values = [parameters[p.name] for p in kernel.parameters]
    private = frozenset(m.name for m in kernel.memories if m.name.startswith("own"))
    ordered = [arrays[buffer.name] for buffer in kernel.buffers]
    results = run(kernel, ordered, values, grid, LlvmOptions(lanes=lanes, private=private))
    for buffer, result in zip(kernel.buffers, results, strict=True):
        np.testing.assert_allclose(result, expected[buffer.name], rtol=2e-6, err_msg=buffer.name)
    return expected


def as_threads(kernel: n.Kernel) -> n.Kernel:
    """A kernel that is one parallel loop, as threads again."""
    (loop, *more) = kernel.body
    if more or not isinstance(loop, n.For):
        return kernel
    thread = n.Declare(loop.variable, n.Builtin("thread_idx"))
    return replace(kernel, body=(thread, *loop.body))


def lines(text: str) -> str:
    """One statement a line, as the parser wants it."""
    return re.sub(r"(?<=[{}]) (?!else|update)", "\n", text.replace("  ", "\n"))


def kernel(body: str, buffers: str = "buffer x: i32\nbuffer y: i32", more: str = "") -> str:
    return f"""kernel test block({COUNT}, 1, 1) {{
      {buffers}
      parameter n: i32 from ("size", "x")
      {more}
      for t: i32 in range(0, {COUNT}, 1) parallel {{
        {lines(body)}
      }}
    }}"""


def numbers(seed: int = 3, low: int = 0, high: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, COUNT, dtype=np.int32)


BODIES = {
    "if": "if (x[t] < 7) { y[t] = 1 }",
    "if and else": "if (x[t] < 7) { y[t] = x[t] * 3 } else { y[t] = 0 - x[t] }",
    "assignment under a branch": """
        var v: i32 = t
        if ((x[t] % 3) == 0) { v = v + 100 } else { if ((x[t] % 3) == 1) { v = 7 } }
        y[t] = v""",
    "return": "if (x[t] > 10) { return }\n y[t] = x[t] + 1",
    "return twice": """
        y[t] = 1
        if (x[t] > 15) { return }
        y[t] = 2
        if (x[t] > 5) { y[t] = 3  return }
        y[t] = y[t] + 10""",
    "uniform loop": """
        var sum: i32 = 0
        for j: i32 in range(0, n, 1) { sum = sum + (x[j] * t) }
        y[t] = sum""",
    "loop of different lengths": """
        var sum: i32 = 0
        for j: i32 in range(0, x[t], 1) { sum = sum + j }
        y[t] = sum""",
    "loop from different starts": """
        var sum: i32 = 0
        for j: i32 in range(t, 40, 3) { sum = (sum * 3) + j }
        y[t] = sum""",
    "loop downward": """
        var sum: i32 = 0
        for j: i32 in range(x[t], -3, -2) { sum = (sum * 5) + j }
        y[t] = sum""",
    "while": """
        var v: i32 = x[t] + 1
        var steps: i32 = 0
        while (v != 1) {
          if ((v % 2) == 0) { v = v / 2 } else { v = (v * 3) + 1 }
          steps = steps + 1
        }
        y[t] = steps""",
    "while with update": """
        var v: i32 = 0
        var i: i32 = 0
        while (i < x[t]) { if ((i % 4) == 2) { continue } v = v + i } update { i = i + 1 }
        y[t] = v""",
    "break": """
        var found: i32 = -1
        for j: i32 in range(0, n, 1) { if (x[j] == x[t]) { found = j  break } }
        y[t] = found""",
    "break for all": """
        var sum: i32 = 0
        for j: i32 in range(0, n, 1) { if (j == 5) { break } sum = sum + (x[j] + t) }
        y[t] = sum""",
    "continue": """
        var sum: i32 = 0
        for j: i32 in range(0, n, 1) { if (x[j] > x[t]) { continue } sum = sum + x[j] }
        y[t] = sum""",
    "break after continue": """
        var sum: i32 = 0
        for j: i32 in range(0, n, 1) {
          if (x[j] > x[t]) { continue }
          if (sum > 40) { break }
          sum = sum + (x[j] + 1)
        }
        y[t] = sum""",
    "continue or break for every lane": """
        var sum: i32 = 0
        for j: i32 in range(0, n, 1) {
          sum = sum + 1
          if (x[j] > x[t]) { continue } else { break }
        }
        y[t] = sum""",
    "return from a loop": """
        for j: i32 in range(0, n, 1) { if ((x[j] * 2) < x[t]) { y[t] = j  return } }
        y[t] = -7""",
    "return from nested loops": """
        y[t] = -1
        for j: i32 in range(0, 6, 1) {
          for k: i32 in range(0, x[t], 1) {
            if ((j * k) == 12) { y[t] = (j * 100) + k  return }
            if (k > 8) { break }
          }
          if ((j == 4) && (x[t] > 11)) { return }
        }
        y[t] = -2""",
    "nested loops": """
        var sum: i32 = 0
        for j: i32 in range(0, x[t], 1) {
          var inner: i32 = 0
          for k: i32 in range(j, x[t], 2) { inner = inner + k  if (inner > 30) { break } }
          sum = (sum * 2) + inner
        }
        y[t] = sum""",
    "uniform variable": """
        var j: i32 = 0
        var sum: i32 = 0
        while (j < 5) { j = j + 1  sum = sum + (x[t] * j) }
        y[t] = sum + j""",
    "uniform variable that parts": """
        var j: i32 = 0
        while (j < 10) { j = j + 1  if (j == x[t]) { break } }
        y[t] = j""",
    "gather": "y[t] = x[x[t]] + x[44 - t]",
    "scatter": "y[44 - t] = x[t]",
    "checked gather": "y[t] = x[(x[t] * 3) - 5; (x[t] * 3) - 5 in n]",
    "checked scatter": "y[(t * 2) - 9; (t * 2) - 9 in n] = t",
    "checked strided": "y[t; t in n] = x[(t * 2) + 1; (t * 2) + 1 in n]",
    "one place for all": "if (x[t] > 3) { y[0] = 5 }\n y[1] = n",
    "last of all in one place": "y[x[3]] = t",
    "checked one place": "y[t] = x[n; n in n] + x[3; 3 in n]",
    "check that differs, place that does not": "y[t] = x[5; t in 20]",
    "short circuit": """
        if (((t > 2) && (x[t - 3] > 9)) || (x[t] == 0)) { y[t] = 1 } else { y[t] = 2 }""",
    "select": "y[t] = select((x[t] > 9), t, -t)",
    "rows of whole strips": """
        var row: i32 = t // 16
        var column: i32 = t %% 16
        y[(row * 16) + (15 - column); (row * 16) + (15 - column) in n] = x[row] + column""",
    "rows by shifts": """
        var v: i32 = t >> 4
        if ((t & 31) < 20) { v = v + 1 }
        if ((t / 16) == 1) { v = v * 10 }
        y[t] = v + x[t % 32]""",
    "rows that are left": """
        for k: i32 in range(0, 5, 1) {
          if (k == (t // 16)) { break }
          y[t] = y[t] + (x[t] * (k + 1))
        }
        if ((t // 32) == 0) { return }
        y[t] = 0 - y[t]""",
    "rows that end within strips": "y[t] = ((t // 8) * 100) + (x[t %% 24] + ((t // 2) & 7))",
    "rows of rows": """
        var row: i32 = (t + 5) // 16
        y[t] = (x[(t %% 32) // 16] + (x[(t %% 32) %% 16] * 50)) + row""",
    "variable set twice": "var v: i32 = x[t]\n var w: i32 = v\n v = v + w\n y[t] = v - (w * 2)",
}


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", list(BODIES))
def test_control_flow(name, lanes):
    agree(kernel(BODIES[name]), {"x": numbers(), "y": np.zeros(COUNT, np.int32)}, lanes, n=COUNT)


@pytest.mark.parametrize("lanes", LANES)
def test_own_memory_with_any_index(lanes):
    body = """
        for j: i32 in range(0, 8, 1) { own[j] = x[t] * j }
        own[x[t] % 8] = -1
        var sum: i32 = 0
        for j: i32 in range(0, 8, 1) { sum = (sum * 3) + own[7 - j] }
        y[t] = sum + own[(x[t] + 1) % 8]"""
    text = kernel(body, more="local own: i32[8]")
    agree(text, {"x": numbers(), "y": np.zeros(COUNT, np.int32)}, lanes, n=COUNT)


@pytest.mark.parametrize("lanes", LANES)
def test_memory_seen_as_another_type_keeps_to_one_turn(lanes):
    body = """
        own[0] = x[t]
        own@u8[1] = u8(t)
        y[t] = own[0]"""
    text = kernel(body, more="local own: i32[2]")
    agree(text, {"x": numbers(), "y": np.zeros(COUNT, np.int32)}, lanes, n=COUNT)


@pytest.mark.parametrize("lanes", LANES)
def test_values_kept_across_loops(lanes):
    text = f"""kernel test block({COUNT}, 1, 1) {{
      buffer x: i32
      buffer y: i32
      shared s: i32[{COUNT}]
      local kept: i32[{COUNT}]
      for t: i32 in range(0, {COUNT}, 1) parallel {{
        kept[t] = x[t] * 2
        s[{COUNT - 1} - t] = x[t]
      }}
      for t2: i32 in range(0, {COUNT}, 1) parallel {{
        if ((t2 % 2) == 0) {{ y[t2] = s[t2] + kept[t2] }}
      }}
    }}"""
    agree(text, {"x": numbers(), "y": np.zeros(COUNT, np.int32)}, lanes)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("space", ["y", "s"])
def test_atomics_return_every_old_value_once(lanes, space):
    text = f"""kernel test block(64, 1, 1) {{
      buffer x: i32
      buffer y: i32
      shared s: i32[4]
      for z: i32 in range(0, 4, 1) parallel {{
 s[z] = 0
 }}
      for t: i32 in range(0, 50, 1) parallel {{
        var old: i32
        if ((t % 5) != 3) {{
          old = atomic add {space}[t % 4], t
        }}
        x[t] = old
      }}
      for z2: i32 in range(0, 4, 1) parallel {{
 y[z2 + 4] = {space}[z2]
 }}
    }}"""
    arrays = {"x": np.zeros(64, np.int32), "y": np.zeros(8, np.int32)}
    agree(text, arrays, lanes)


FUNCTIONS = lines("""function decide(a: i32, b: i32) -> i32 {
      if (a > b) { return a - b }
      var v: i32 = a
      for j: i32 in range(0, b, 1) {
        v = v + j
        if (v > 30) { return v * 2 }
      }
      return v
    }
    """)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("call", ["@decide(x[t], t)", "@decide(x[t], 9)", "@decide(3, n)"])
def test_function(lanes, call):
    body = f"if (x[t] != 4) {{ y[t] = {call} + {call} }}"
    text = FUNCTIONS + kernel(body)
    agree(text, {"x": numbers(), "y": np.zeros(COUNT, np.int32)}, lanes, n=COUNT)


@pytest.mark.parametrize("lanes", LANES)
def test_vectors_and_structs(lanes):
    text = f"""struct Particle {{
      position: vec3<f32>
      mass: f64
      flags: array<u8, 3>
    }}
    kernel test block({COUNT}, 1, 1) {{
      buffer x: vec4<f32>
      buffer p: Particle
      buffer y: f32
      buffer z: vec4<f32>
      for t: i32 in range(0, {COUNT}, 1) parallel {{
        var v: vec4<f32> = x[t]
        if (v->x > 0.0) {{
          v->y = v->y * 2.0
        }}
        y[t] = dot(v, x[{COUNT - 1} - t]) + p[t]->position->z
        p[t]->position = vec3<f32>{{v->x, v->y, v->z}}
        p[t]->flags[t % 3] = u8(t)
        p[t]->mass = f64(v->w)
        z[t]->w = 1.5
      }}
    }}"""
    random = np.random.default_rng(1)
    particle = np.dtype(
        [("position", np.float32, 3), ("mass", np.float64), ("flags", np.uint8, 3)], align=True
    )
    p = np.zeros(COUNT, particle)
    p["position"] = random.normal(size=(COUNT, 3))
    x = random.normal(size=(COUNT, 4)).astype(np.float32)
    built = from_text(text)
    arrays = {"x": x, "p": p, "y": np.zeros(COUNT, np.float32), "z": x.copy()}
    expected = {name: array.copy() for name, array in arrays.items()}
    ir_evaluator.run(built, 1, expected, {}, invocations=1)
    results = run(built, list(arrays.values()), options=LlvmOptions(lanes=lanes))
    np.testing.assert_allclose(results[2], expected["y"], rtol=1e-5)
    for name in particle.names:
        np.testing.assert_array_equal(results[1][name], expected["p"][name])
    np.testing.assert_array_equal(results[3], expected["z"])


@pytest.mark.parametrize("lanes", LANES)
def test_rows_of_a_loop_that_starts_late(lanes):
    text = """kernel late block(1, 1, 1) {
      buffer x: i32
      buffer y: i32
      for t: i32 in range(3, 45, 1) parallel {
        y[t] = x[t // 16] + (t %% 16)
      }
    }"""
    x, t = numbers(), np.arange(3, COUNT)
    y = run(text, [x, np.zeros(COUNT, np.int32)], options=LlvmOptions(lanes=lanes))[1]
    np.testing.assert_array_equal(y[3:], x[t // 16] + t % 16)


def test_rows_are_the_same_for_all_lanes_and_columns_lie_side_by_side():
    body = "y[((t // 16) * 16) + (t %% 16)] = x[t // 16] + x[t %% 32]"
    source = print_llvm(from_text(kernel(body))).source
    assert "gather" not in source
    assert "scatter" not in source
    assert "gather" in print_llvm(from_text(kernel(body.replace("16", "8")))).source


def test_lanes_are_vectors():
    code = print_llvm(from_text(kernel(BODIES["while"])))
    assert "<16 x i32>" in code.source
    code = print_llvm(from_text(kernel(BODIES["while"])), LlvmOptions(lanes=1))
    assert "<16 x" not in code.source
