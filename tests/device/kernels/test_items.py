"""Arrays in struct variables and components of vectors, chosen by numbers, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.ir_evaluator import run as evaluate
from tests.support.ir_launch import launch
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.array_variables import resolve_items
from treadle.ir.printer import to_text
from treadle.ir.traverse import root_of, walk
from treadle.ir.verify import verify

ITEMS = """
struct Inner {
  at: vec3<f32>
  cells: array<array<u16, 2>, 3>
}
struct Outer {
  flag: bool
  inner: array<Inner, 2>
  small: array<i8, 3>
  weights: array<f32, 5>
  spot: vec2<f32>
}
function pick(o: Outer, k: i32) -> f32 {
  var own: Outer = o
  own->weights[(k + 1) % 5] = 2.0
  return own->weights[k % 5] + own->inner[k % 2]->at[k % 3]
}
kernel items block(8) {
  buffer x: Outer
  buffer out: i32
  buffer v: vec4<f32>
  shared part: f32[8]
  var t: i32 = (block_idx.x * 8) + thread_idx.x
  var s: Outer = x[t]
  var empty: Outer
  s->weights[t % 5] = s->weights[(t + 2) % 5] + 1.5
  s->inner[t % 2]->cells[t % 3][1] = u16(t * 7)
  s->inner[(t + 1) % 2]->at[t % 3] = 4.5
  s->small[t; t in 3] = i8(0 - t)
  out[(t * 16) + 0] = i32(s->weights[t; t in 5] * 8.0)
  out[(t * 16) + 1] = i32(s->inner[t % 2]->cells[(t + 1) % 3][t % 2])
  out[(t * 16) + 2] = i32(s->inner[1]->at[(t * 2) % 3])
  out[(t * 16) + 3] = i32(s->small[(t * 3) % 3])
  part[thread_idx.x] = s->weights[(t * 3) % 5]
  barrier block
  out[(t * 16) + 4] = i32(part[7 - thread_idx.x] * 4.0)
  out[(t * 16) + 5] = i32(s->weights[(t + 4) % 5] * 2.0)
  var total: i32 = 0
  for k: i32 in range(0, 5) {
    var w: Outer = s
    w->weights[k] = f32(k)
    w->inner[k % 2] = s->inner[(k + 1) % 2]
    total = total + i32(w->weights[(k + t) % 5] + w->inner[k % 2]->at[k % 3])
  }
  out[(t * 16) + 6] = (total + i32(empty->weights[t % 5])) + i32(empty->flag)
  out[(t * 16) + 7] = i32(@pick(s, t) * 4.0)
  var q: vec4<f32> = v[t]
  q[t % 4] = q[(t + 1) % 4] * 2.0
  out[(t * 16) + 8] = i32(q[(t * 3) % 4] * 2.0)
  v[t][(t + 2) % 4; t in 6] = 9.0
  out[(t * 16) + 9] = i32(v[t][(t + 3) % 4] + q->x)
  out[(t * 16) + 10] = i32(q[t - 1; (t - 1) in 4] * 2.0)
  x[t]->inner[t % 2]->at[(t + 1) % 3] = 1.25
  out[(t * 16) + 11] = i32(x[t]->inner[t % 2]->at[(t + 2) % 3] * 4.0)
  x[t]->spot[t % 2] = x[t]->spot[(t + 1) % 2]
  var other: Outer = x[t]
  other = s
  other->weights[0] = 3.0
  out[(t * 16) + 12] = i32(other->weights[t % 5] + s->weights[0])
  x[t] = other
}
"""

COMPONENTS = """
struct Spot {
  at: vec3<i32>
  counts: array<vec2<u32>, 2>
}
function filled(k: i32, o: &i32) -> Spot {
  var made: Spot
  made->at[k % 3] = k
  made->counts[k % 2][(k / 2) % 2] = 5:u32
  o[k] = made->at[(k + 1) % 3]
  return made
}
kernel components block(8) {
  buffer x: Spot
  buffer y: vec4<i32>
  buffer out: i32
  shared part: vec4<i32>[8]
  var t: i32 = thread_idx.x
  part[t][t % 4] = t * 3
  part[t][(t + 1) % 4] = 7
  part[t][(t + 1) % 4; t in 5] = t
  part[t][(t + 2) % 4] = 1
  part[t][(t + 3) % 4] = 2
  barrier block
  out[t + 8] = part[7 - t][(t * 3) % 4] + part[t][t; t in 3]
  var s: Spot
  s = call filled(t, &out)
  s->at->y = s->at[t % 3] + 1
  var old: i32 = 0
  old = atomic add y[t / 2][t % 4], 10
  atomic max x[0]->at[t % 3], t * 100
  atomic add x[1]->counts[t % 2][(t / 2) % 2], 1:u32
  out[t + 16] = (s->at[(t + 1) % 3] + i32(s->counts[t % 2][(t / 2) % 2])) + s->at->y
  var longs: vec2<i64> = vec2<i64>{i64(t), 1099511627776:i64}
  longs[t % 2] = longs[(t + 1) % 2] * 3:i64
  out[t + 24] = i32(longs[t % 2] >> 20:i64)
}
"""


VIEWS = """
struct Packed {
  payload: array<bf16, 8>
}
struct Mixed {
  a: u8
  b: bool
  c: i16
  d: f32
  e: array<vec3<f32>, 2>
  f: i64
}
kernel packed block(16) {
  buffer x: bf16
  buffer y: bf16
  buffer m: Mixed
  buffer out: f32
  buffer words: u32
  local p: Packed[1]
  local q: f32[4]
  local r: f64[2]
  local s: Mixed[1]
  local own: u32[2]
  var t: i32 = (block_idx.x * 16) + thread_idx.x
  p@vec4<u32>[0] = x@vec4<u32>[t]
  for k: i32 in range(0, 8) unroll {
    p[0]->payload[k] = bf16(f32(p[0]->payload[k]) * 2.0)
  }
  y@vec4<u32>[t] = p@vec4<u32>[0]
  q@vec4<f32>[0] = vec4<f32>{f32(t), 1.5, -2.0, f32(p@bf16[3])}
  q@vec4<f32>[0] = vec4<f32>{q[3], q[2], q[1], q[0]}
  out@vec4<f32>[t] = q@vec4<f32>[0]
  own@u8[0] = 7:u8
  own@u8[1] = u8(t)
  own@i16[1] = i16(0 - t)
  own@f32[1] = 0.5
  words[t * 4] = own[0]
  words[(t * 4) + 1] = own@u32[1] + u32(own@u8[1])
  s[0] = m[t]
  s[0]->e[1]->y = s[0]->e[0]->z + 1.0
  s[0]->b = !(s[0]->b)
  s[0]->f = s[0]->f * 3:i64
  m[t] = s[0]
  barrier block
  words[(t * 4) + 2] = u32(s[0]->a) + own@u32[0]
  words[(t * 4) + 3] = u32(s@u8[1]) + u32(s@u16[1])
}
"""


def struct_bytes(type: t.Type, count: int) -> np.ndarray[Any, Any]:
    """Memory for values of a type: small numbers, and zeros in what lies between."""
    drawn = np.random.default_rng(3)
    data = np.zeros((count, t.size_of(type)), np.uint8)
    for at, leaf in t.leaves(type):
        kind = "f" if leaf.is_float else "u"
        numbers = drawn.integers(0, 2 if leaf == t.BOOL else 50, count)
        data[:, at : at + leaf.bits // 8] = (
            numbers.astype(f"{kind}{leaf.bits // 8}").view(np.uint8).reshape(count, -1)
        )
    return data.reshape(-1)


def check(device: td.Device, text: str, grid: int, **buffers: Any) -> None:
    kernel = from_text(text)
    assert from_text(to_text(kernel)) == kernel
    wanted = {name: array.copy() for name, array in buffers.items()}
    evaluate(kernel, grid, wanted)
    launch(device, kernel, grid, buffers)
    for buffer in kernel.buffers:
        got, right = (_numbers(buffer.element, held[buffer.name]) for held in (buffers, wanted))
        np.testing.assert_array_equal(got, right, buffer.name)


def _numbers(type: t.Type, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of an array that are part of a number: what lies between may be anything."""
    data = array.view(np.uint8).reshape(-1, t.size_of(type))
    kept = [at + k for at, leaf in t.leaves(type) for k in range(leaf.bits // 8)]
    return data[:, kept]


def test_items_of_variables(device):
    outer = from_text(ITEMS).buffers[0].element
    check(
        device, ITEMS, 2,
        x=struct_bytes(outer, 16), out=np.zeros(256, np.int32),
        v=np.arange(64, dtype=np.float32) * 0.5,
    )  # fmt: skip


def test_components_in_memory_and_in_variables(device):
    spot = from_text(COMPONENTS).buffers[0].element
    check(
        device, COMPONENTS, 1,
        x=struct_bytes(spot, 2), y=np.arange(16, dtype=np.int32), out=np.zeros(32, np.int32),
    )  # fmt: skip


def test_local_memories_that_are_seen_as_several_types(device):
    """Eight bfloat16s that come and go as four words, and structs with arrays."""
    mixed = from_text(VIEWS).buffers[2].element
    halves = (np.arange(256, dtype=np.float32) * 0.25).view(np.uint32) >> 16
    check(
        device, VIEWS, 2,
        x=halves.astype(np.uint16), y=np.zeros(256, np.uint16), m=struct_bytes(mixed, 32),
        out=np.zeros(128, np.float32), words=np.zeros(128, np.uint32),
    )  # fmt: skip


@pytest.mark.parametrize("text", [ITEMS, COMPONENTS], ids=["items", "components"])
def test_what_is_left_is_valid_and_in_memory(text):
    resolved = resolve_items(from_text(text))
    verify(resolved)
    for block in (resolved.body, *(function.body for function in resolved.functions)):
        for node in walk(block):
            if isinstance(node, n.Load):
                assert isinstance(root_of(node.place), n.Element)
            assert not isinstance(node, n.Item) or isinstance(node.base.type, t.Array)


def test_kernels_without_such_parts_are_left_alone():
    kernel = from_text("kernel plain block(1) {\n  buffer x: i32\n  x[0] = x[1]\n}\n")
    assert resolve_items(kernel) is kernel
