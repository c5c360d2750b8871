"""Kernels that see a memory as another type than its own, for each pair of types and each space.

Every thread has a part of 96 bytes, which all sizes divide. What is stored as one type is loaded as
the other and back, in another order, and where the memory is shared by other threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text

PART = 96
THREADS = 16
PACKED = t.Struct(
    "Packed",
    (
        t.Field("a", t.U8), t.Field("b", t.I8), t.Field("c", t.U16), t.Field("d", t.F32),
        t.Field("e", t.Vector(t.I32, 2)),
    ),
)  # fmt: skip
_DECLARED = "struct Packed {\n  a: u8\n  b: i8\n  c: u16\n  d: f32\n  e: vec2<i32>\n}\n"
SPACES = ("global", "shared", "local", "lane")  # a thread's own: across barriers, and without any

_GLOBAL = """
kernel views block({threads}) {{
  buffer source: {a}
  buffer other: {b}
  buffer out: {a}
  buffer out_other: {b}
  var t: i32 = (block_idx.x * {threads}) + thread_idx.x
  for j1: i32 in range(0, {n}) {{
    out@{b}[(t * {n}) + j1] = source@{b}[(t * {n}) + ({n} - (1 + j1))]
  }}
  for j2: i32 in range(0, {m}) {{
    out_other@{a}[(t * {m}) + ((j2 * 5) % {m})] = out[(t * {m}) + j2]
  }}
  out@{b}[(t * {n}) + 1] = other[t * {n}]
  out[t * {m}] = other@{a}[(t * {m}) + 1]
}}
"""
_OWNED = """
kernel views block({threads}) {{
  buffer source: {a}
  buffer other: {b}
  buffer out: {a}
  buffer out_other: {b}
  {space} part: {a}[{length}]
  var l: i32 = {mine}
  var near: i32 = {near}
  var t: i32 = (block_idx.x * {threads}) + thread_idx.x
  for j3: i32 in range(0, {m}) {{
    part[(l * {m}) + j3] = source[(t * {m}) + j3]
  }}
  barrier block
  for j4: i32 in range(0, {n}) {{
    out_other[(t * {n}) + j4] = part@{b}[(near * {n}) + ({n} - (1 + j4))]
  }}
  barrier block
  for j5: i32 in range(0, {n}) {{
    part@{b}[(l * {n}) + ((j5 * 5) % {n})] = other[(t * {n}) + j5]
  }}
  part[l * {m}] = source[t * {m}]
  barrier block
  for j6: i32 in range(0, {m}) {{
    out[(t * {m}) + j6] = part[(near * {m}) + j6]
  }}
}}
"""


def view_kernel(a: t.Type, b: t.Type, space: str) -> n.Kernel:
    """A memory of `a` in a space, seen as `b`."""
    m, count = PART // t.size_of(a), PART // t.size_of(b)
    shared = space == "shared"
    text = _GLOBAL if space == "global" else _OWNED
    if space == "lane":
        text, space = text.replace("  barrier block\n", ""), "local"
    text = text.format(
        a=a, b=b, m=m, n=count, threads=THREADS, space=space,
        length=m * (THREADS if shared else 1),
        mine="thread_idx.x" if shared else "0",
        near=f"(thread_idx.x + 3) % {THREADS}" if shared else "0",
    )  # fmt: skip
    return from_text(_DECLARED + text)


def view_buffers(a: t.Type, b: t.Type, blocks: int) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays of bytes of which all floats are ordinary numbers; 0 and 1 where either has bools."""
    drawn = np.random.default_rng(7)
    low, high = (0, 2) if any(_has_bools(type) for type in (a, b)) else (16, 100)
    size = PART * THREADS * blocks
    return {
        "source": drawn.integers(low, high, size, dtype=np.uint8),
        "other": drawn.integers(low, high, size, dtype=np.uint8),
        "out": np.zeros(size, np.uint8),
        "out_other": np.zeros(size, np.uint8),
    }


def _has_bools(type: t.Type) -> bool:
    return any(leaf == t.BOOL for _, leaf in t.leaves(type))
