"""Who touches which memory, how, and as what."""

from __future__ import annotations

from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.ir.passes.access import Access, buffer_access

TEXT = """
struct P {
  at: vec3<f32>
  id: i16
}
function bump(c: &u32, by: u32) -> void {
  atomic add c[0], by
}
function twice(c: &u32, unused: &f32) -> void {
  call bump(&c, 2:u32)
}
function peek(y: &f32, i: i32) -> f32 {
  return y[i]
}
kernel k {
  buffer read: f32
  buffer written: vec4<f32>
  buffer counts: u32
  buffer points: P
  buffer untouched: f64
  buffer seen: f32
  shared tile: f32[8]
  var i: i32 = lane
  if (read[i] > 0.0) {
    written[i]->y = @peek(&seen, i32(read@u32[i]))
  }
  points[i] = points[i + 1]
  call twice(&counts, &untouched)
  tile[i32(points[0]->id)] = 1.0
}
"""


def test_access() -> None:
    point = from_text(TEXT).buffers[3].element
    vec4 = t.Vector(t.F32, 4)
    found = buffer_access(from_text(TEXT))
    assert found == {
        "read": Access(True, False, False, frozenset({t.F32, t.U32}), frozenset({t.F32, t.U32})),
        "written": Access(False, True, False, frozenset({t.F32}), frozenset({vec4})),
        "counts": Access(True, True, True, frozenset({t.U32}), frozenset({t.U32})),
        "points": Access(True, True, False, frozenset({point, t.I16}), frozenset({point})),
        "untouched": Access(),
        "seen": Access(True, False, False, frozenset({t.F32}), frozenset({t.F32})),
        "tile": Access(False, True, False, frozenset({t.F32}), frozenset({t.F32})),
    }
    assert found["points"].scalars == {t.F32, t.I16}
    assert found["points"].sizes == {2, 4}
