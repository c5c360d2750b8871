"""Lowering leaves no check that a guard, a tile or the block's extent makes needless."""

from __future__ import annotations

from treadle.codegen.lowering import lower
from treadle.codegen.records import Options, Target
from treadle.core.dim3 import Dim3
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


def test_only_what_no_guard_covers_is_checked() -> None:
    options = Options(Dim3(64), (("x", 0), ("y", 1)))
    for language, dialect in (("llvm", ""), ("wgsl", "naga")):
        lowered = lower(from_text(TEXT), options, Target(language, dialect)).kernel
        checks = [node for node in walk(lowered.body) if isinstance(node, n.Check)]
        bounds = {node.bound.name for node in checks if isinstance(node.bound, n.Variable)}
        assert len(checks) >= 1
        assert bounds == {"x.size"}, (language, bounds)
