"""Small kernels and the text they become, so that a change of the text is seen in review."""

from __future__ import annotations

from tests.support.printing import print_wgsl
from tests.support.tint import tint_error
from tests.support.wgsl import naga_error
from treadle.codegen.wgsl import WgslOptions
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import (
    Builder,
    add,
    binary,
    builtin,
    check,
    constant,
    element,
    equal,
    global_index,
    less,
    load,
    member,
    mul,
)  # fmt: skip

SAXPY = """\
// saxpy: blocks of 256 x 1 x 1 threads
// group 0, binding 0: x
// group 0, binding 1: y (written)
// group 1, binding 0: 16 bytes of parameters: a, x.size, y.size

struct Parameters {
    a: f32,
    x_size: i32,
    y_size: i32,
}

@group(1) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

fn load_x(index: i32, bound: i32) -> f32 {
    var result: f32 = 0.0;
    if (u32(index) < u32(bound)) {
        result = x[index];
    }
    return result;
}

@compute @workgroup_size(256, 1, 1)
fn saxpy(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(local_invocation_id) local_id: vec3<u32>,
) {
    let thread_idx = vec3<i32>(local_id);
    let block_idx = vec3<i32>(workgroup_id);
    let i = block_idx.x * 256 + thread_idx.x;
    if (i < parameters.y_size) {
        y[i] = parameters.a * load_x(i, parameters.x_size) + y[i];
    }
}
"""


BLOCK_SUM = """\
// block_sum: blocks of 64 x 1 x 1 threads
// group 0, binding 0: x
// group 0, binding 1: total (written)

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> total: array<atomic<u32>>;
var<workgroup> partial_: array<f32, 64>;

fn atomic_add_total(word: i32, value: f32) -> f32 {
    var old = atomicLoad(&total[word]);
    loop {
        let old_value = bitcast<f32>(old);
        let attempt = atomicCompareExchangeWeak(&total[word], old, bitcast<u32>(old_value + value));
        if (attempt.exchanged) {
            break;
        }
        old = attempt.old_value;
    }
    return bitcast<f32>(old);
}

@compute @workgroup_size(64, 1, 1)
fn block_sum(
    @builtin(local_invocation_id) local_id: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let thread_idx = vec3<i32>(local_id);
    let block_idx = vec3<i32>(workgroup_id);
    let thread = thread_idx.x;
    partial_[thread] = x[block_idx.x * 64 + thread_idx.x];
    workgroupBarrier();
    var stride: i32 = 32;
    for (; 0 < stride; stride = stride >> 1u) {
        if (thread < stride) {
            partial_[thread] = partial_[thread] + partial_[thread + stride];
        }
        workgroupBarrier();
    }
    if (thread == 0) {
        atomic_add_total(0, partial_[0]);
    }
}
"""


PARTICLES = """\
// age: blocks of 32 x 1 x 1 threads
// group 0, binding 0: x (written)

@group(0) @binding(0) var<storage, read_write> x: array<atomic<u32>>;

fn load_x_u8(word: i32) -> u32 {
    return extractBits(atomicLoad(&x[word]), 0u, 8u);
}

fn store_x_u8(word: i32, value: u32) {
    atomicAnd(&x[word], 0xffffff00u);
    atomicOr(&x[word], value);
}

fn load_x_vec2_f32(word: i32) -> vec2<f32> {
    return vec2<f32>(bitcast<f32>(atomicLoad(&x[word])), bitcast<f32>(atomicLoad(&x[word + 1])));
}

fn store_x_vec2_f32(word: i32, value: vec2<f32>) {
    atomicStore(&x[word], bitcast<u32>(value.x));
    atomicStore(&x[word + 1], bitcast<u32>(value.y));
}

@compute @workgroup_size(32, 1, 1)
fn age(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(local_invocation_id) local_id: vec3<u32>,
) {
    let thread_idx = vec3<i32>(local_id);
    let block_idx = vec3<i32>(workgroup_id);
    let i = block_idx.x * 32 + thread_idx.x;
    store_x_u8(i * 4 + 2, ((load_x_u8(i * 4 + 2) + 1u) & 255u));
    store_x_vec2_f32(i * 4, load_x_vec2_f32(0));
}
"""


def saxpy() -> n.Kernel:
    b = Builder("saxpy", block=256)
    x, y = b.buffer("x", t.F32), b.buffer("y", t.F32)
    a = b.parameter("a", t.F32)
    x_size = b.parameter("x.size", t.I32, "size", "x")
    y_size = b.parameter("y.size", t.I32, "size", "y")
    i = b.let("i", global_index())
    with b.when(less(i, y_size)):
        product = mul(a, load(x, i, (check(i, x_size),)))
        b.store(y, i, add(product, load(y, i)))
    return b.kernel()


def block_sum() -> n.Kernel:
    b = Builder("block_sum", block=64)
    x, total = b.buffer("x", t.F32), b.buffer("total", t.F32)
    partial = b.memory("shared", "partial", t.F32, 64)
    lane = b.let("thread", builtin("thread_idx"))
    b.store(partial, lane, load(x, global_index()))
    b.emit(n.Barrier())
    stride = b.let("stride", constant(32, t.I32))
    halve = n.Assign(stride, binary("shr", stride, 1))
    with b.repeat(less(0, stride), [halve]):
        with b.when(less(lane, stride)):
            other = load(partial, add(lane, stride))
            b.store(partial, lane, add(load(partial, lane), other))
        b.emit(n.Barrier())
    with b.when(equal(lane, 0)):
        b.emit(n.Atomic("add", element(total, 0), (load(partial, 0),)))
    return b.kernel()


def particles() -> n.Kernel:
    particle = t.Struct("Particle", (t.Field("place", t.Vector(t.F32, 2)), t.Field("kind", t.U8)))
    b = Builder("age", block=32)
    x = b.buffer("x", particle)
    i = b.let("i", global_index())
    kind = member(element(x, i), "kind")
    b.assign(kind, add(load(kind), constant(1, t.U8)))
    b.assign(member(element(x, i), "place"), load(member(element(x, 0), "place")))
    return b.kernel()


def assert_text(kernel: n.Kernel, text: str) -> None:
    naga = print_wgsl(kernel, WgslOptions("naga"))
    assert naga.source == text
    assert naga_error(naga.source, naga.entry) is None
    assert tint_error(print_wgsl(kernel, WgslOptions("tint")).source) is None


def test_an_elementwise_kernel():
    assert_text(saxpy(), SAXPY)


def test_a_reduction_in_shared_memory():
    assert_text(block_sum(), BLOCK_SUM)


def test_structs_of_bytes_and_words():
    assert_text(particles(), PARTICLES)


def test_the_code_says_what_a_driver_needs():
    code = print_wgsl(block_sum(), WgslOptions())
    assert (code.target, code.dialect, code.entry, code.shared_bytes) == (
        "wgsl", "naga", "block_sum", 256,
    )  # fmt: skip
    assert [(binding.buffers, binding.writes) for binding in code.bindings] == [
        (("x",), False),
        (("total",), True),
    ]
    assert code.layout.size == 0
    assert code.requires == frozenset()
    assert print_wgsl(saxpy(), WgslOptions()).layout.format == "<fiixxxx"


def test_subgroups_are_enabled_where_the_compiler_asks_for_it():
    b = Builder("total", block=32)
    out = b.buffer("out", t.F32)
    result = b.variable("result", t.F32)
    b.emit(n.Subgroup("sum", (load(out, builtin("thread_idx")),), result))
    b.store(out, 0, result)
    features = frozenset({"subgroups"})
    naga = print_wgsl(b.kernel(), WgslOptions("naga", features))
    tint = print_wgsl(b.kernel(), WgslOptions("tint", features))
    assert "enable" not in naga.source
    assert tint.source.startswith("enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n")
    assert naga.requires == tint.requires == features
