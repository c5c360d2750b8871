"""Lowering: checks that are needless, and blocks that are laid out in one row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from tests.support.ir_evaluator import run
from treadle.codegen.pipeline import lower, print_code
from treadle.codegen.records import Options, Target
from treadle.codegen.wgsl.arrange import flattened
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.traverse import walk

TEXT = """
kernel k {
  buffer x: f32
  buffer y: f32
  parameter x.size: i32 from ("size", "x")
  parameter y.size: i32 from ("size", "y")
  shared tile: f32[64]
  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  tile[thread_idx.x; thread_idx.x in 64] = 2.0
  if (i >= y.size) {
    return
  }
  y[i; i in y.size] = x[i; i in x.size] * tile[thread_idx.x; thread_idx.x in 64]
}
"""


SMALL = Limits(1024, Dim3(1024, 1024, 64), max_shared_memory=1 << 14, subgroup_size=32)


def test_only_what_no_guard_covers_is_checked() -> None:
    options = Options(Dim3(64), (("x", 0), ("y", 1)))
    for language, dialect in (("llvm", ""), ("wgsl", "naga")):
        lowered = lower(from_text(TEXT), options, Target(language, dialect)).kernel
        checks = [node for node in walk(lowered.body) if isinstance(node, n.Check)]
        bounds = {node.bound.name for node in checks if isinstance(node.bound, n.Variable)}
        assert len(checks) >= 1
        assert bounds == {"x.size"}, (language, bounds)


@pytest.mark.parametrize("language", ["llvm", "wgsl", "msl", "ptx", "cuda"])
@pytest.mark.parametrize("checking", [False, True])
def test_a_trusting_kernel_is_guarded_where_nothing_else_would(
    language: str, checking: bool
) -> None:
    text = TEXT.replace("kernel k {", "kernel k trusting {")
    options = Options(Dim3(64), (("x", 0), ("y", 1)), check=checking)
    dialect = {"wgsl": "tint", "ptx": "sm_70", "cuda": "sm_70"}.get(language, "")
    lowered = lower(from_text(text), options, Target(language, dialect, SMALL))
    checks = [node for node in walk(lowered.kernel.body) if isinstance(node, n.Check)]
    as_cuda = language in ("ptx", "cuda") and not checking
    assert bool(checks) is not as_cuda
    assert bool(lowered.sites) is checking  # what an access beyond an array is reported by


def test_a_thread_that_returned_has_returned_where_barriers_count_the_others() -> None:
    text = """
    kernel k trusting {
      buffer x: i32
      buffer y: i32
      parameter x.size: i32 from ("size", "x")
      parameter y.size: i32 from ("size", "y")
      parameter at: i32 from ("value", "at")
      if (thread_idx.x >= y.size) {
        return
      }
      var shared_by_all: i32 = x[at; at in x.size]
      barrier block
      y[thread_idx.x; thread_idx.x in y.size] = shared_by_all
    }
    """
    options = Options(Dim3(64), (("x", 0), ("y", 1)))
    branch, load, barrier, store = lower(
        from_text(text), options, Target("ptx", "sm_70", SMALL)
    ).kernel.body
    assert isinstance(branch, n.If)
    assert isinstance(branch.then[0], n.Return)
    assert isinstance(load, n.Declare)
    assert barrier == n.Barrier("block")
    assert isinstance(store, n.Assign)
    assert not store.place.checks  # type: ignore[union-attr]


NUMBERED = """
kernel k {
  buffer out: i32
  var at: i32 = ((thread_idx.z * 12) + (thread_idx.y * 4)) + thread_idx.x
  var mine: i32 = lane
  out[at] = (((thread_idx.x * 100) + thread_idx.y) * 100) + thread_idx.z
}
"""


def test_a_block_in_one_row_has_the_same_threads() -> None:
    kernel = replace(from_text(NUMBERED), block=Dim3(4, 3, 2))
    flat = flattened(kernel)
    assert flat.block == Dim3(24)
    found = [np.full(24, -1, np.int32) for _ in range(2)]
    for one, out in zip((kernel, flat), found, strict=True):
        run(one, 1, {"out": out})
    z, y, x = np.indices((2, 3, 4))
    for out in found:
        np.testing.assert_array_equal(out.reshape(2, 3, 4), (x * 100 + y) * 100 + z)


def test_own_subgroups_get_blocks_in_one_row() -> None:
    limits = Limits(max_threads_per_block=256, subgroup_size=32)
    target = Target("wgsl", "naga", limits, frozenset({"subgroups"}))
    options = Options(Dim3(8, 4), (("out", 0),))
    lowered = lower(from_text(NUMBERED), options, target)
    assert lowered.workgroup == Dim3(32)
    source = print_code(lowered, options, target).source
    assert "@workgroup_size(32, 1, 1)" in source
    assert "subgroup_invocation_id" in source


@pytest.mark.parametrize("language", ["ptx", "cuda"])
@pytest.mark.parametrize("block", [Dim3(1025), Dim3(32, 33), Dim3(1, 1, 65)])
def test_blocks_that_a_device_cannot_run_are_refused(language, block) -> None:
    limits = Limits(1024, Dim3(1024, 1024, 64))
    target = Target(language, "sm_70", limits)
    options = Options(block, (("out", 0),))
    with pytest.raises(CompileError, match="at most 1024 threads a block and 1024 x 1024 x 64"):
        lower(from_text(NUMBERED), options, target)
    lower(from_text(NUMBERED), replace(options, block=Dim3(32, 32)), target)


@pytest.mark.parametrize("target", ["ptx", "cuda"])
def test_parameters_that_cuda_does_not_hand_over(target):
    def kernel(count):
        names = [f"x{i}: td.Array[td.f32]" for i in range(count)]
        return td.kernel(source=f"def many({', '.join(names)}):\n    x0[0] = 1.0\n")

    assert "many" in kernel(511).source(target, block=32)
    with pytest.raises(UnsupportedOnTarget, match=r"513 arrays and \d+ numbers, \d+ bytes"):
        kernel(513).source(target, block=32)


@pytest.mark.parametrize("target", ["ptx", "cuda", "msl", "wgsl"])
def test_a_kernel_with_another_name_on_a_target_says_so(target):
    text = "def {}(x: td.Array[td.f32]):\n    x[0] = 1.0\n"
    shown = td.kernel(source=text.format("main")).source(target, block=32)
    entry = "main" if target in ("ptx", "wgsl") else "main_"
    assert f"{entry}(" in shown
    assert shown.startswith("// main: " if entry == "main" else "// main, here main_: ")
