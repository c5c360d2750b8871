"""Small kernels and the Metal they become, so that a change of the text is seen in review."""

from __future__ import annotations

import pytest

from tests.support import shown_kernels as shown
from tests.support.cpp_programs import printed
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir.parser import from_text

SAXPY = """\
// saxpy: blocks of 256 x 1 x 1 threads
// array 0: x
// array 1: y (written)
// parameters: a, x.size, y.size
// Compile without fast math: it takes for granted that there is no NaN.

#include <metal_stdlib>
using namespace metal;

struct Parameters {
    float a;
    int x_size;
    int y_size;
};

// The element at an index, or zero where there is none.
inline float load(device const float* array, int index, int size) {
    if ((uint)index < (uint)size) {
        return array[index];
    }
    return 0.0f;
}

[[max_total_threads_per_threadgroup(256)]]
kernel void saxpy(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    constant Parameters& parameters [[buffer(2)]],
    uint3 block_idx [[threadgroup_position_in_grid]],
    uint3 thread_idx [[thread_position_in_threadgroup]]
) {
    int i = block_idx.x * 256 + thread_idx.x;
    if (i < parameters.y_size) {
        y[i] += parameters.a * load(x, i, parameters.x_size);
    }
}
"""

BLOCK_SUM = """\
// block_sum: blocks of 64 x 1 x 1 threads
// array 0: x
// array 1: total (written)
// parameters: x.size
// Compile without fast math: it takes for granted that there is no NaN.

#include <metal_stdlib>
using namespace metal;

struct Parameters {
    int x_size;
};

// The element at an index, or zero where there is none.
inline half load(device const half* array, int index, int size) {
    if ((uint)index < (uint)size) {
        return array[index];
    }
    return 0.0h;
}

// NaN if an operand is, and the zeros in order, which the built-in ones do not promise.
inline float maximum(float a, float b) {
    if (a != a || b != b) {
        return a + b;
    }
    return a > b || (a == b && signbit(b)) ? a : b;
}

// Exchanges the bits until no other thread comes between.
inline float atomic_max(device float* place, float value) {
    device atomic_uint* word = (device atomic_uint*)place;
    uint seen = atomic_load_explicit(word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        word, &seen, as_type<uint>(maximum(as_type<float>(seen), value)),
        memory_order_relaxed, memory_order_relaxed)) {
    }
    return as_type<float>(seen);
}

[[max_total_threads_per_threadgroup(64)]]
kernel void block_sum(
    device const half* x [[buffer(0)]],
    device float* total [[buffer(1)]],
    constant Parameters& parameters [[buffer(2)]],
    uint3 thread_idx [[thread_position_in_threadgroup]],
    uint3 block_idx [[threadgroup_position_in_grid]]
) {
    threadgroup float part[64];
    int t = thread_idx.x;
    part[t] = float(load(x, (int)block_idx.x * 64 + t, parameters.x_size));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int stride = 32;
    for (; stride > 0; stride >>= 1) {
        if (t < stride) {
            part[t] += part[t + stride];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 0) {
        atomic_max(&total[0], part[0]);
    }
}
"""

WARPS = """\
// warps: blocks of 40 x 1 x 1 threads
// array 0: x (written)
// parameters: n
// Compile without fast math: it takes for granted that there is no NaN.

#include <metal_stdlib>
using namespace metal;

struct Parameters {
    int n;
};

// A lane's value; the thread's own where there is no such lane.
inline int shuffle(int value, uint source, uint size) {
    ushort from = min(source, size - 1);
    int moved = simd_shuffle(value, from);
    return source < size ? moved : value;
}

// Integers wrap where they overflow; C++ says nothing of signed ones that do.
inline int wrap_add(int a, int b) {
    return (int)((uint)a + (uint)b);
}

// The remainder that has the divisor's sign; of a division by 0 it is 0.
inline int floor_mod(int a, int b) {
    if (b == 0 || b == -1) {
        return 0;
    }
    int remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

inline int wrap_mul(int a, int b) {
    return (int)((uint)a * (uint)b);
}

[[max_total_threads_per_threadgroup(40)]]
kernel void warps(
    device int* x [[buffer(0)]],
    constant Parameters& parameters [[buffer(1)]],
    uint3 thread_idx [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint thread_number [[thread_index_in_threadgroup]]
) {
    int t = thread_idx.x;
    int v = x[t];
    int s = shuffle(v, lane + 1u, min(32u, 40u - (thread_number - lane)));
    v = simd_sum(wrap_add(v, s));
    x[t] = wrap_add(floor_mod(v, parameters.n), wrap_mul(v, parameters.n) >> 3);
}
"""


@pytest.mark.parametrize(
    ("kernel", "text"),
    [(shown.SAXPY, SAXPY), (shown.BLOCK_SUM, BLOCK_SUM), (shown.WARPS, WARPS)],
    ids=["saxpy", "block_sum", "warps"],
)
def test_the_text_of_small_kernels(kernel, text):
    assert printed(from_text(kernel), "msl").source == text


def main_of(kernel: str) -> str:
    """The kernel itself, without what stands above it."""
    source = printed(from_text(kernel), "msl").source
    return source[source.index("kernel void") :]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x[0] = f32(f64(x[1]) + 1.0:f64)", "float64"),
        ("fence device", "two kernels|second kernel"),
        ("atomic add wide[0], 1:i64", "64 bits"),
        ("s = subgroup sum s", "reduce with shuffles"),
    ],
)
def test_what_metal_lacks_is_refused_with_a_way_out(line, words):
    text = (
        "kernel k block(32, 1, 1) {\n  buffer x: f32\n  buffer wide: i64\n"
        f"  var s: i64 = wide[thread_idx.x]\n  {line}\n  wide[0] = s\n}}\n"
    )
    with pytest.raises(UnsupportedOnTarget, match=words) as caught:
        printed(from_text(text), "msl")
    assert caught.value.span.line == 5


def test_a_fence_for_the_block_is_a_barrier_where_all_threads_come_by():
    fence = "  fence block\n"
    for inside, alone in ((fence, False), (f"  if (thread_idx.x < 3) {{\n  {fence}  }}\n", True)):
        text = f"kernel k block(32, 1, 1) {{\n  buffer x: f32\n\n{inside}  x[0] = 1.0\n}}\n"
        if alone:
            with pytest.raises(UnsupportedOnTarget, match="sync_threads"):
                printed(from_text(text), "msl")
        else:
            assert "threadgroup_barrier" in printed(from_text(text), "msl").source


def test_vectors_of_three_are_packed_in_memory():
    main = main_of("""
kernel k block(1, 1, 1) {
  buffer x: vec3<f32>

  var v: vec3<f32> = x[0]
  x[1]->y = v->z
  x[2] = v * x[3]
}
""")
    assert "device packed_float3* x [[buffer(0)]]" in main
    assert "float3 v = float3(x[0]);\n    x[1].y = v.z;\n    x[2] = v * float3(x[3]);" in main


def test_barriers_wait_for_device_memory_only_where_it_is_read_back():
    text = """
kernel k block(8, 1, 1) {{
  buffer x: i32
  buffer y: i32

  x[thread_idx.x] = 1
  barrier block
  y[thread_idx.x] = {read}[7 - thread_idx.x]
}}
"""
    assert "mem_device" in main_of(text.format(read="x"))
    assert "mem_device" not in main_of(
        text.format(read="z").replace("  buffer y", "  buffer z: i32\n  buffer y")
    )
