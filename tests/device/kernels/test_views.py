"""Memory seen as another type than its own: `reinterpret_cast` of C++, on every device."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.ir_evaluator import run as evaluate
from tests.support.ir_launch import launch
from tests.support.view_kernels import PACKED, SPACES, view_buffers, view_kernel
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text

SCALARS = [*t.SCALARS.values()]
VECTORS = [
    t.Vector(t.F32, 2), t.Vector(t.F32, 3), t.Vector(t.F32, 4), t.Vector(t.U8, 4),
    t.Vector(t.U8, 3), t.Vector(t.I16, 2), t.Vector(t.F16, 4), t.Vector(t.U32, 4),
    t.Vector(t.F64, 2), t.Vector(t.I64, 4), t.Vector(t.BOOL, 2), PACKED,
]  # fmt: skip
OFTEN = [  # what CUDA code does most
    (t.F32, t.Vector(t.F32, 4)), (t.Vector(t.F32, 4), t.F32), (t.F32, t.Vector(t.F32, 2)),
    (t.U32, t.U8), (t.U8, t.U32), (t.F16, t.Vector(t.U32, 4)), (t.F32, t.U32), (t.F64, t.U32),
]  # fmt: skip


def check(
    device: td.Device, kernel: n.Kernel, grid: int, buffers: dict[str, Any], wanted: dict[str, Any]
) -> str:
    """What a device leaves is what the evaluator left, to the byte; gives the text."""
    code = launch(device, kernel, grid, buffers)
    for name, array in buffers.items():
        np.testing.assert_array_equal(array, wanted[name], f"{name}\n{code.source}")
    return code.source


def evaluated(kernel: n.Kernel, grid: int, buffers: dict[str, Any]) -> dict[str, Any]:
    left = {name: array.copy() for name, array in buffers.items()}
    evaluate(kernel, grid, left)
    return left


@cache
def left_by_views(own: t.Type, other: t.Type, space: str) -> dict[str, Any]:
    """Once for all devices: an evaluator in Python takes longer than any of them."""
    return evaluated(view_kernel(own, other, space), 2, view_buffers(own, other, 2))


@pytest.mark.parametrize("space", SPACES)
def test_views(device, rng, space):
    def has(type: t.Type) -> bool:
        floats = any(leaf == t.F64 for _, leaf in t.leaves(type))
        return not floats or "float64" in device.features

    drawn = [
        tuple((SCALARS + VECTORS)[k] for k in rng.integers(0, len(SCALARS + VECTORS), 2))
        for _ in range(1 if space in ("local", "lane") else 2)
    ]
    # Loops over a thread's own memory LLVM unrolls, for which it takes half a second each.
    often = OFTEN[::2] if space == "local" else OFTEN[1::2] if space == "lane" else OFTEN
    for own, other in (*often, *drawn):
        if has(own) and has(other):
            kernel, buffers = view_kernel(own, other, space), view_buffers(own, other, 2)
            check(device, kernel, 2, buffers, left_by_views(own, other, space))


UPDATES = """
kernel updates block(32) {{
  buffer x: {own}
  buffer out: u32
{declared}
  var t: i32 = thread_idx.x
{filled}
  atomic {op} {memory}@{other}[(t % 4) + 1], {value}
  barrier block
  out[t] = u32({memory}[t % {count}])
  {memory}[{count} + t] = {stored}
  barrier block
  out[t + 32] = {memory}@u32[t % 16]
}}
"""
SHARED_FILLED = """
  if (t < 8) {
    part@u32[t] = x@u32[t]
  }
  barrier block
"""


@pytest.mark.parametrize(
    ("own", "other", "op", "value", "stored"),
    [
        (t.F32, "u32", "add", "7:u32", "1.5"),
        (t.F32, "i32", "max", "t - 9", "1.5"),
        (t.U8, "u32", "add", "1048832:u32", "7:u8"),
        (t.U32, "f32", "add", "0.5", "9:u32"),
        (t.F16, "u32", "xor", "3:u32", "f16(1.5)"),
    ],
    ids=str,
)
def test_atomics_on_other_types(device, own, other, op, value, stored):
    for memory in ("x", "part"):
        count = 32 // t.size_of(own)  # the updates are in the first 32 bytes
        text = UPDATES.format(
            own=own, other=other, op=op, value=value, stored=stored, memory=memory, count=count,
            declared="" if memory == "x" else f"  shared part: {own}[{count + 64}]",
            filled="" if memory == "x" else SHARED_FILLED,
        )  # fmt: skip
        data = np.random.default_rng(1).integers(16, 64, 1024, dtype=np.uint8)
        kernel, buffers = from_text(text), {"x": data, "out": np.zeros(64, np.uint32)}
        check(device, kernel, 1, buffers, evaluated(kernel, 1, buffers))
