"""Small kernels about memory, in IR text: layout, reinterpretation, checks, atomics, bools.

`CASES` has each with the arrays and scalars it gets; the reference evaluator says what must come
out. Kernels that use types which a language lacks are marked with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

STRUCTS = """
struct Inner {
  at: vec3<f32>
  `while`: array<array<u16, 2>, 3>
}

struct Pair {
  flag: bool
  inner: Inner
  small: i8
  weight: f16
  spot: vec2<f32>
  alive: vec2<bool>
  count: i64
}

kernel layout block(3, 1, 1) {
  buffer pairs: Pair
  buffer seen: i32
  buffer whole: Pair
  parameter pairs.size: i32 from ("size", "pairs")

  var i: i32 = thread_idx.x
  var p: Pair = pairs[i - 1; i - 1 in pairs.size]
  seen[(i * 8) + 0] = i32(p->flag)
  seen[(i * 8) + 1] = i32(p->inner->at->y * 2.0)
  seen[(i * 8) + 2] = i32(pairs[i]->inner->`while`[i; i in 3][1])
  seen[(i * 8) + 3] = i32(p->small)
  seen[(i * 8) + 4] = i32(f32(p->weight) * 4.0)
  seen[(i * 8) + 5] = i32((p->spot)->y)
  seen[(i * 8) + 6] = i32(p->alive->y)
  seen[(i * 8) + 7] = i32(pairs[i]->count >> 33:i64)
  p->inner->at->x = 7.5
  p->inner->`while`[2][0] = 9:u16
  p->flag = i == 1
  p->alive->x = !(p->alive->x)
  whole[i] = p
  whole[i]->inner->at = vec3<f32>{1.0, f32(i), -2.0}
  whole[i]->inner->`while`[i; i in 2][0] = 12:u16
}
"""

REINTERPRETED = """
kernel reinterpreted block(2, 1, 1) {
  buffer x: f32
  buffer out: u32
  parameter n: i32 from ("value", "n")
  shared bytes: u8[64]
  local own: u16[4]

  var i: i32 = thread_idx.x
  bytes@vec4<f32>[i] = x@vec4<f32>[i; i in n]
  barrier block
  own@u32[0] = bytes@u32[7 - i]
  own@u32[1] = u32(bytes[(i * 16) + 3])
  out@u8[i * 16] = 200:u8
  out@vec2<u32>[(i * 2) + 1] = vec2<u32>{own@u32[0], u32(own[2])}
  out@u16[(i * 8) + 1] = own[0]
  out@i8[(i * 16) + 1] = -5:i8
}
"""

CHECKED = """
kernel checked block(6, 1, 1) {
  buffer x: i32
  buffer wide: i64
  buffer out: i32
  parameter x.size: i32 from ("size", "x")
  parameter far: i64 from ("value", "far")

  var i: i32 = thread_idx.x - 2
  var old: i32 = 5
  out[i + 2] = x[x[i; i in x.size]; x[i; i in x.size] in x.size]
  x[i * 2; i * 2 in x.size] = -1
  old = atomic add x[i + 1; i + 1 in x.size], 100
  out[i + 8] = old
  out[14] = i32(wide[far; far in 4:i64])
  out[15] = i32(wide[i64(i) + far; i64(i) + far in 4:i64])
}
"""

BOOLS = """
kernel bools block(5, 1, 1) {
  buffer mask: bool
  buffer out: bool
  buffer total: i32
  parameter invert: bool from ("value", "invert")
  shared seen: bool[5]

  var i: i32 = thread_idx.x
  var b: bool = mask[i] ^ invert
  seen[i] = b
  barrier block
  out[i] = (seen[4 - i] && b) || (i == 3)
  out[5 + i] = mask@bool[i; i in 3]
  atomic add total[0], i32(!(b == seen[0]))
}
"""


def atomics(element: str, space: str, integers: bool) -> str:
    """Every update of one place, each thread in turn, in a memory of `space`."""
    ops = ["add", "sub", "min", "max", "exchange"] + (["and", "or", "xor"] if integers else [])
    kind = "shared cells" if space == "shared" else "local cells" if space == "local" else ""
    suffix = "" if element in ("i32", "f32") else f":{element}"
    number = "5" if integers else "5.5"
    start = "12" if integers else "12.25"
    lines = [f"kernel updates block(1, 1, 1) {{\n  buffer out: {element}"]
    lines.append(f"  {kind}: {element}[2]\n" if kind else f"  buffer cells: {element}\n")
    lines.append(f"  var old: {element}")
    for number_of, op in enumerate(ops):
        lines += [
            f"  cells[1] = {start}{suffix}",
            f"  old = atomic {op} cells[1], {number}{suffix}",
            f"  out[{3 * number_of}] = old",
            f"  atomic {op} cells[1], -(1{'' if integers else '.0'}{suffix})"
            if element[0] != "u"
            else f"  atomic {op} cells[1], 4294967295{suffix}",
            f"  out[{3 * number_of + 1}] = cells[1]",
        ]
    last = 3 * len(ops)
    lines += [
        f"  old = atomic cas cells[1], {start}{suffix}, {number}{suffix}",
        f"  out[{last}] = old",
        f"  cells[1] = {start}{suffix}",
        f"  old = atomic cas cells[1], {start}{suffix}, {number}{suffix}",
        f"  out[{last + 1}] = cells[1]\n}}",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Case:
    """A kernel with what it is launched with."""

    text: str
    arrays: dict[str, np.ndarray[Any, Any]]
    parameters: dict[str, Any] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()  # types that not every language has


def _pairs() -> np.ndarray[Any, Any]:
    """Three of the structs, of any bytes; bools are 0 or 1, as every store leaves them."""
    data = np.random.default_rng(3).integers(0, 100, (3, _PAIR)).astype(np.uint8)
    data[:, [0, 40, 41]] &= 1
    return data.reshape(-1).view(f"V{_PAIR}")


_PAIR = 56  # bytes of a Pair
_NUMBERS = {"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
            "f32": np.float32, "f64": np.float64}  # fmt: skip

CASES: dict[str, Case] = {
    "structs": Case(
        STRUCTS,
        {
            "pairs": _pairs(),
            "seen": np.zeros(24, np.int32),
            "whole": np.zeros(3, f"V{_PAIR}"),
        },
    ),
    "reinterpreted": Case(
        REINTERPRETED,
        {"x": np.arange(8, dtype=np.float32) + 0.5, "out": np.zeros(8, np.uint32)},
        {"n": 1},
    ),
    "checked": Case(
        CHECKED,
        {
            "x": np.array([3, 0, 7, -1, 2], np.int32), "wide": np.arange(4, dtype=np.int64) * 11,
            "out": np.zeros(16, np.int32),
        },
        {"far": 1 << 40},
    ),
    "bools": Case(
        BOOLS,
        {
            "mask": np.array([1, 0, 2, 0, 255], np.uint8).view(np.bool_),
            "out": np.zeros(10, np.bool_), "total": np.zeros(1, np.int32),
        },
        {"invert": True},
    ),
    **{
        f"atomics on {element} in {space} memory": Case(
            atomics(element, space, element[0] in "iu"),
            {"out": np.zeros(32, dtype)} | (
                {"cells": np.zeros(2, dtype)} if space == "global" else {}
            ),
            needs=frozenset() if element[1:] == "32" else frozenset({element}),
        )
        for element, dtype in _NUMBERS.items()
        for space in ("global", "shared", "local")
    },
}  # fmt: skip
