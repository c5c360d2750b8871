"""Warps that part around operations with masks meet again, and compute the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from tests.support.ir_kernels import ir_kernel
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.converge import converge, has_masks
from treadle.ir.passes.fission import FissionOptions, fission
from treadle.ir.passes.fold import fold
from treadle.ir.passes.predicate import predicate_returns
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

HEAD = """\
kernel k block({block}, 1, 1) {{
  buffer x: i32
  buffer y: i32
  parameter n: i32 from ("value", "n")

  var i: i32 = thread_idx.x
  var v: i32 = x[i]
  var w: i32 = 0
  var m: u32 = 0:u32
  var p: bool = false
"""


def results(kernel: n.Kernel, block: int, workgroup: Dim3 | None = None) -> list[int]:
    x = np.random.default_rng(5).integers(-9, 9, block).astype(np.int32)
    y = np.full(block, -1, np.int32)
    run(kernel, 1, {"x": x, "y": y}, {"n": 21}, invocations=workgroup)
    return y.tolist()


def converged(body: str, block: int = 40) -> n.Kernel:
    """The kernel without masks, after it was seen to do the same, as warps and as loops."""
    kernel = from_text(HEAD.format(block=block) + body + "  y[i] = (v * 31) + w\n}\n")
    verify(kernel)
    assert has_masks(kernel)
    expected = results(kernel, block)
    result = fold(converge(kernel))
    verify(result)
    assert not has_masks(result)
    assert results(result, block) == expected
    ready = predicate_returns(result)
    verify(ready)
    check_barriers(ready)
    assert results(ready, block) == expected
    for lanes in (1, 2):
        looped = fission(ready, FissionOptions(lanes))
        verify(looped.kernel)
        assert results(looped.kernel, block, looped.workgroup) == expected
    return result


ALL = "4294967295:u32"


def test_flow_that_a_warp_shares_stays() -> None:
    result = converged(f"  if (i < 32) {{\n    v = subgroup shuffle_down v, 3 mask {ALL}\n  }}\n")
    text = to_text(result)
    assert "if (i < 32) {\n    v = subgroup shuffle_down v, 3\n  }" in text


@pytest.mark.parametrize(
    "body",
    [
        "  if (i < n) {\n    w = 1\n    v = subgroup sum v mask M\n    w = w + v\n  }\n",
        "  if ((i & 1) == 0) {\n    m = subgroup ballot v > 0 mask M\n    w = i32(m)\n"
        "  } else {\n    v = subgroup max v mask M\n    w = subgroup min i mask M\n  }\n",
        "  while (v > 0) {\n    p = subgroup vote_any v == 4 mask M\n    if (p) {\n"
        "      w = w + 1\n    }\n    v = v - 2\n  }\n",
        "  for k: i32 in range(i & 3, v, 2) {\n    m = subgroup active mask M\n"
        "    w = (w * 3) + (i32(m) ^ k)\n    if (k == 3) {\n      break\n    }\n  }\n",
        "  for k: i32 in range(v, i & 7, -1) {\n    if ((k & 3) == 2) {\n      continue\n    }\n"
        "    p = subgroup vote_all k < 5 mask M\n    w = w + i32(p)\n  }\n",
        "  for k: i32 in range(0, 6) {\n    if ((k ^ i) == 5) {\n      continue\n    }\n"
        "    if (v == k) {\n      m = subgroup match_any k & 1 mask M\n      w = w ^ i32(m)\n"
        "    }\n  }\n",
        "  for k: i32 in range(0, 6) {\n    if (k == (v & 7)) {\n      y[i] = 77\n      return\n"
        "    }\n    m = subgroup active mask M\n    w = w + i32(m)\n  }\n",
        "  if (i >= n) {\n    return\n  }\n  m = subgroup ballot true mask M\n"
        "  v = subgroup sum v mask M\n  w = i32(m)\n",
        "  if (v < 0) {\n    for k: i32 in range(0, 9) {\n      if (k > (i & 7)) {\n"
        "        y[i] = k\n        return\n      }\n    }\n    w = subgroup sum 1 mask M\n  }\n"
        "  w = w + 100\n",
        "  while (true) {\n    m = subgroup match_all v & 1 mask M\n    w = w + i32(m & 255:u32)\n"
        "    if (v <= 0) {\n      break\n    }\n    v = v - 1\n    while (true) {\n"
        "      if ((v & 1) == 0) {\n        break\n      }\n      v = v - 1\n"
        "      p = subgroup vote_any v > 3 mask M\n      if (p) {\n        w = w + 1\n      }\n"
        "    }\n  }\n",
        "  if (i < n) {\n    barrier subgroup mask M\n    var deep: i32 = v + 1\n"
        "    if (v > 0) {\n      var deeper: i32 = deep * 2\n      w = subgroup xor deeper mask M\n"
        "      w = (w + deep) + deeper\n    }\n  }\n",
    ],
)
@pytest.mark.parametrize("mask", [ALL, "subset", "parity"])
def test_warps_that_part_do_the_same(body: str, mask: str) -> None:
    if mask == "subset":  # the same for all, and all that are here must be in it
        body = f"  if ((i & 7) != 5) {{\n{body}  }}\n"
        body = body.replace(" M", " 3755991007:u32")
    elif mask == "parity":  # two groups, at once
        groups = "select((i & 1) == 0, 1431655765:u32, 2863311530:u32)"
        body = body.replace(" M", f" {groups}")
    for block in (40, 7):
        converged(body.replace(" M", f" {ALL}"), block)


def test_a_loop_that_all_count_alike_needs_no_votes() -> None:
    result = converged(
        "  if (i < n) {\n    var by: i32 = 16\n    while (by > 0) {\n"
        "      w = subgroup shuffle_xor v, by mask 2097151:u32\n"
        "      v = v + select((i ^ by) < n, w, 0)\n    } update {\n      by = by >> 1\n    }\n"
        "    w = 0\n  }\n"
    )
    text = to_text(result)
    assert "vote_any" not in text
    assert "while (by > 0) {" in text
    assert "update {\n    by = by >> 1\n" in text.replace("      ", "    ")


def test_a_barrier_of_the_block_that_some_threads_reach_is_refused() -> None:
    body = f"  if (v > 0) {{\n    p = subgroup vote_any p mask {ALL}\n    barrier block\n  }}\n"
    kernel = from_text(HEAD.format(block=40) + body + "}\n")
    with pytest.raises(CompileError, match=r"sync_threads\(\) must be reached by all threads"):
        converge(kernel)


class _Drawn:
    """A random body that parts warps around operations."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        self.count = 0

    def condition(self) -> str:
        return self.random.choice(
            ["(i & 3) == 1", "v > 0", "w < 20", "i < n", "((v + i) & 1) == 0", "i < 32", "p"]
        )

    def operation(self) -> str:
        mask = self.random.choice(
            [ALL, ALL, "select((i & 1) == 0, 1431655765:u32, 2863311530:u32)"]
        )
        op = self.random.choice(["ballot", "vote", "reduce", "match", "active", "barrier"])
        if op == "ballot":
            return f"m = subgroup ballot {self.condition()} mask {mask}\nw = w ^ i32(m)"
        if op == "vote":
            kind = self.random.choice(["vote_any", "vote_all"])
            return f"p = subgroup {kind} {self.condition()} mask {mask}"
        if op == "reduce":
            kind = self.random.choice(["sum", "min", "max", "xor", "or", "and"])
            return f"w = subgroup {kind} v mask {mask}"
        if op == "match":
            kind = self.random.choice(["match_any", "match_all"])
            return f"m = subgroup {kind} v & 3 mask {mask}\nv = v + i32(m & 3:u32)"
        if op == "active":
            return f"m = subgroup active mask {mask}\nw = w + i32(m)"
        return f"barrier subgroup mask {mask}"

    def block(self, depth: int, inside: str) -> str:
        lines = [self.statement(depth, inside) for _ in range(self.random.randrange(1, 4))]
        return "\n".join(lines)

    def statement(self, depth: int, inside: str) -> str:
        kind = self.random.choice(["op", "op", "work", "if", "if", "for", "while", "jump"])
        if kind == "op" or (depth > 3 and kind in ("if", "for", "while")):
            return self.operation()
        if kind == "if":
            text = f"if ({self.condition()}) {{\n{self.block(depth + 1, inside)}\n}}"
            if self.random.random() < 0.4:
                text += f" else {{\n{self.block(depth + 1, inside)}\n}}"
            return text
        if kind == "for":
            self.count += 1
            bounds = self.random.choice(
                ["0, 3", "0, v & 3", "w & 1, 4, 2", "v & 3, 0, -1", "-1, 2"]
            )
            return (
                f"for k{self.count}: i32 in range({bounds}) {{\n{self.block(depth + 1, 'loop')}\n}}"
            )
        if kind == "while":
            self.count += 1
            turn = f"t{self.count}"
            first = self.random.choice(["v & 3", "3", "4"])
            head = f"var {turn}: i32 = {first}\nwhile ({turn} > 0) {{\n{turn} = {turn} - 1\n"
            return f"{head}{self.block(depth + 1, 'loop')}\n}}"
        if kind == "jump" and depth > 0:
            jump = "return" if self.random.random() < 0.3 else "break"
            if inside == "loop":
                jump = self.random.choice(["break", "continue", "return"])
            elif jump == "break":
                return "v = v + 1"
            return f"if ({self.condition()}) {{\nv = v - 1\n{jump}\n}}"
        return self.random.choice(["v = v + 1", "w = w * 3", "v = v ^ (i & 5)", "y[i] = w"])


@pytest.mark.parametrize("seed", range(16))
def test_random_flow(seed: int) -> None:
    drawn = _Drawn(seed)
    body = drawn.block(0, "") + "\n" + drawn.operation()
    converged(body + "\n", drawn.random.choice([40, 7]))


def test_targets_of_cuda_keep_their_masks() -> None:
    text = HEAD.format(block=64) + (
        f"  if (v > 0) {{\n    m = subgroup active\n    v = subgroup sum v mask m\n"
        f"    w = subgroup shuffle_down v, 2 mask m\n    m = subgroup match_any v mask {ALL}\n"
        f"    barrier subgroup mask {ALL}\n  }}\n  y[i] = (w + v) + i32(m)\n}}\n"
    )
    kernel = ir_kernel(text)
    ptx, cuda = kernel.source("ptx", block=64), kernel.source("cuda", block=64)
    assert "activemask.b32" in ptx
    assert "match.any.sync.b32" in ptx
    assert "bar.warp.sync -1" in ptx
    assert "vote.sync.any" not in ptx  # the warp stays diverged
    assert "shuffle_down(m, v, 2)" in cuda
    assert "__syncwarp(0xffffffffu)" in cuda or "__syncwarp(4294967295u)" in cuda
    for target in ("wgsl", "msl"):
        assert "match" not in kernel.source(target, block=64).replace("match_", "")
