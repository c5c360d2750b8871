"""The Tint checker itself: it must accept what is right and refuse what only Tint refuses."""

from tests.support.tint import tint_error

HALVES = """
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read_write> b: array<f16>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) { b[g.x] = f16(subgroupAdd(f32(b[g.x]))); }
"""

DIVERGENT = """
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) l: vec3u) { if (l.x < 3u) { workgroupBarrier(); } }
"""


def test_accepts_float16_and_subgroups():
    assert tint_error(HALVES) is None


def test_refuses_a_barrier_in_divergent_flow():
    error = tint_error(DIVERGENT)
    assert error is not None
    assert "uniform control flow" in error


def test_refuses_a_syntax_error():
    error = tint_error("@compute @workgroup_size(1) fn main() { x }")
    assert error is not None
    assert "expected" in error
