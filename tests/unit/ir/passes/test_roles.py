"""Copies to stages apart from everything else: the two slices of a kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.roles import APART, FIRST, copiers_of, with_roles
from treadle.ir.traverse import statements_in, walk

SUMS = ", ".join(f"sums[{at}]" for at in range(8))
KERNEL = """\
kernel product block(128, 1, 1) {
  buffer a: f16
  buffer out: f32
  parameter rows: i32
  shared left: f16[4096]
  shared right: f16[4096]
  shared barriers: u64[4]
  local sums: vec4<f32>[8]

  staged prepare [2, 1, 1, 1] barriers[0]
  var first: i32 = rows * 2
  var scale: f32 = f32(rows)
  var deep: i32 = 0
  for step: i32 in range(0, rows) {
    if (step == first) {
      continue
    }
    staged claim [16384] barriers[0] from 1
    staged copy [64, 1, 1] left[0], barriers[0] from a[0], 64, rows, 1, 64, 0, deep, first, 0
    staged copy [64, 1, 1] right[0], barriers[0] from a[0], 64, rows, 1, 64, 0, deep, 0, 0
    deep = deep + 64
    staged wait [] barriers[0] from 0
    staged multiply [1, 0] SUMS from left[0], right[0]
    staged settle [0]
    staged release [] barriers[0]
    BETWEEN
  }
  out[thread_idx.x] = (sums[0])->x * scale
}
""".replace("SUMS", SUMS)


def _kernel(between: str = "", old: str = "", new: str = "") -> n.Kernel:
    assert old in KERNEL
    return from_text(KERNEL.replace(old, new, 1).replace("BETWEEN", between))


def _operations(block: n.Block) -> list[str]:
    return [node.op for node in statements_in(block) if isinstance(node, n.Staged)]


def test_each_part_has_its_own_steps_and_what_they_need():
    kernel = _kernel()
    assert copiers_of(kernel) == 32
    prepare, both = with_roles(kernel).body
    assert isinstance(prepare, n.Staged)
    assert isinstance(both, n.If)
    assert both.condition == APART
    assert _operations(both.then) == ["claim", "copy", "copy"]
    assert _operations(both.otherwise) == ["wait", "multiply", "settle", "release"]
    names = [
        {node.name for node in walk(part) if isinstance(node, n.Variable)}
        for part in (both.then, both.otherwise)
    ]
    assert names[0] == {"copier.first", "copier.deep", "copier.step", "rows"}
    assert names[1] == {"first", "scale", "step", "rows"}
    assert any(isinstance(node, n.Continue) for node in statements_in(both.then))
    assert not any(isinstance(node, n.Assign) and isinstance(node.place, n.Element)
                   for node in statements_in(both.then))  # fmt: skip


def test_all_threads_alike_unless_the_kernel_says_so():
    assert not copiers_of(_kernel(old="[2, 1, 1, 1] barriers", new="[2, 1, 1, 0] barriers"))


WRONG = [
    ("barrier block", "", "", "do not come to a barrier"),
    ("", "var first: i32 = rows * 2", "var first: i32 = thread_idx.x", "the thread's number"),
    ("", "var first: i32 = rows * 2", "var first: i32 = i32(out[0])", "without memory"),
    ("", "if (step == first)", "if (i32((sums[0])->x) == first)", "without memory"),
]


@pytest.mark.parametrize(("between", "old", "new", "message"), WRONG)
def test_what_copies_may_not_depend_on(between, old, new, message):
    with pytest.raises(CompileError, match=message):
        with_roles(_kernel(between, old, new))


def test_a_group_that_copies_gives_up_registers():
    kernel = _kernel(old="[2, 1, 1, 1] barriers", new="[2, 1, 1, 240] barriers")
    assert copiers_of(kernel) == 128
    _, both = with_roles(replace(kernel, block=Dim3(256))).body
    assert isinstance(both, n.If)
    fewer, first = both.then
    assert isinstance(fewer, n.Staged)
    assert fewer.numbers == (24, 0)  # three groups begin with 168
    assert isinstance(first, n.If)
    assert first.condition == FIRST
    assert isinstance(both.otherwise[0], n.Staged)
    assert both.otherwise[0].numbers == (240, 1)
    with pytest.raises(CompileError, match="3 groups of 128 threads with 240 registers"):
        with_roles(replace(kernel, block=Dim3(384)))
    with pytest.raises(CompileError, match="begin with 256"):
        with_roles(_kernel(old="[2, 1, 1, 1] barriers", new="[2, 1, 1, 240] barriers"))
