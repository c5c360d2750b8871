"""Small kernels and the CUDA C++ they become, so that a change of the text is seen in review."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support import shown_kernels as shown
from tests.support.cpp_programs import printed
from treadle.ir.parser import from_text

SAXPY = """\
// saxpy: blocks of 256 x 1 x 1 threads
// array 0: x
// array 1: y (written)
// parameters: a, x.size, y.size

// The element at an index, or zero where there is none.
__device__ inline float load(const float* array, int index, int size) {
    if ((unsigned int)index < (unsigned int)size) {
        return array[index];
    }
    return 0.0f;
}

extern "C" __global__ void __launch_bounds__(256) saxpy(
    const float* __restrict__ x, float* __restrict__ y, float a, int x_size, int y_size
) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < y_size) {
        y[i] += a * load(x, i, x_size);
    }
}
"""

BLOCK_SUM = """\
// block_sum: blocks of 64 x 1 x 1 threads
// array 0: x
// array 1: total (written)
// parameters: x.size

// A float16, which is computed with in float32.
struct half {
    unsigned short bits;
};

__device__ inline float to_float(half value) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
}

__device__ inline half to_half(float value) {
    half result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}

// The element at an index, or zero where there is none.
__device__ inline half load(const half* array, int index, int size) {
    if ((unsigned int)index < (unsigned int)size) {
        return array[index];
    }
    return to_half(0.0f);
}

// NaN if an operand is; the hardware's would give the other one.
__device__ inline float maximum(float a, float b) {
    return a != a || b != b ? a + b : fmaxf(a, b);
}

// Exchanges the bits until no other thread comes between.
__device__ inline float atomic_max(float* place, float value) {
    unsigned int* bits = (unsigned int*)place;
    unsigned int seen = *bits, old;
    do {
        old = seen;
        seen = atomicCAS(bits, old, __float_as_uint(maximum(__uint_as_float(old), value)));
    } while (seen != old);
    return __uint_as_float(seen);
}

extern "C" __global__ void __launch_bounds__(64) block_sum(
    const half* __restrict__ x, float* __restrict__ total, int x_size
) {
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = to_float(load(x, (int)blockIdx.x * 64 + t, x_size));
    __syncthreads();
    int stride = 32;
    for (; stride > 0; stride >>= 1) {
        if (t < stride) {
            part[t] += part[t + stride];
        }
        __syncthreads();
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

// Of the last warp of a block, which is not full. The lanes that have a thread.
__device__ inline unsigned int warp_mask() {
    return threadIdx.x < 32 ? 0xffffffff : 0xff;
}

__device__ inline int from_lane(int value, int source) {
    return __shfl_sync(warp_mask(), value, source & 31);
}

// Of the last warp of a block, which is not full. The number of its threads.
__device__ inline unsigned int warp_size() {
    return threadIdx.x < 32 ? 32u : 8u;
}

// A lane's value; the thread's own where there is no such lane.
__device__ inline int shuffle(int value, int source) {
    int moved = from_lane(value, source);
    return (unsigned int)source < warp_size() ? moved : value;
}

__device__ inline unsigned int lane() {
    return threadIdx.x % 32;
}

__device__ inline int shuffle_down(int value, int delta) {
    return shuffle(value, (int)(lane() + (unsigned int)delta));
}

// Integers wrap where they overflow; C++ says nothing of signed ones that do.
__device__ inline int wrap_add(int a, int b) {
    return (int)((unsigned int)a + (unsigned int)b);
}

__device__ inline int warp_sum(int value) {
    for (unsigned int delta = 16; delta > 0; delta /= 2) {
        int other = from_lane(value, lane() + delta);
        value = lane() + delta < warp_size() ? wrap_add(value, other) : value;
    }
    return from_lane(value, 0);
}

// The remainder that has the divisor's sign; of a division by 0 it is 0.
__device__ inline int floor_mod(int a, int b) {
    if (b == 0 || b == -1) {
        return 0;
    }
    int remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

__device__ inline int wrap_mul(int a, int b) {
    return (int)((unsigned int)a * (unsigned int)b);
}

extern "C" __global__ void __launch_bounds__(40) warps(int* __restrict__ x, int n) {
    int t = threadIdx.x;
    int v = x[t];
    int s = shuffle_down(v, 1);
    v = warp_sum(wrap_add(v, s));
    x[t] = wrap_add(floor_mod(v, n), wrap_mul(v, n) >> 3);
}
"""


@pytest.mark.parametrize(
    ("kernel", "text"),
    [(shown.SAXPY, SAXPY), (shown.BLOCK_SUM, BLOCK_SUM), (shown.WARPS, WARPS)],
    ids=["saxpy", "block_sum", "warps"],
)
def test_the_text_of_small_kernels(kernel, text):
    assert printed(from_text(kernel), "cuda").source == text


def main_of(kernel: str) -> str:
    """The kernel itself, without what stands above it."""
    source = printed(from_text(kernel), "cuda").source
    return source[source.index("__global__") :]


def body(lines: str, *, head: str = "") -> str:
    """The body of a kernel of one thread's integers a, b and floats f, which stores into `out`."""
    main = main_of(f"""
kernel shown block(64, 1, 1) {{
  buffer x: i32
  buffer out: i32
  parameter x.size: i32 from ("size", "x")
  parameter a: i32 from ("value", "a")
  parameter b: i32 from ("value", "b")
  parameter u: u32 from ("value", "u")
  parameter f: f32 from ("value", "f")
{head}
{lines}
}}
""")
    return main[main.index("{") + 1 : main.rindex("}")].strip()


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        # Nothing is known of a and b: the helpers say what C++ does not.
        ("a + b", "wrap_add(a, b)"),
        ("a // b", "floor_div(a, b)"),
        ("a << b", "shift_left(a, b)"),
        ("-a", "wrap_sub(0, a)"),
        # Of these the ranges are known.
        ("(a & 255) * (b & 1023)", "(a & 255) * (b & 1023)"),
        ("(a & 255) // 10", "(a & 255) / 10"),
        ("(a & 255) %% ((b & 7) + 1)", "(a & 255) % ((b & 7) + 1)"),
        ("a // 16", "a >> 4"),
        ("a %% 16", "a & 15"),
        ("a / 7", "a / 7"),
        ("i32((u * u) + 1:u32)", "(int)(u * u + 1u)"),
        ("thread_idx.x * 3", "threadIdx.x * 3"),
        ("abs(thread_idx.x * a)", "wrap_abs(wrap_mul((int)threadIdx.x, a))"),
        ("(a & 3) - ((b & 3) - 1)", "(a & 3) - ((b & 3) - 1)"),
        ("select((a < b) && ((b > 0) || (a == 3)), 1, 2)",
         "a < b && (b > 0 || a == 3) ? 1 : 2"),
        ("bitcast<i32>(f * 2.0)", "__float_as_int(f * 2.0f)"),
        ("i32(f < inf)", "(int)(f < __int_as_float(0x7f800000))"),
    ],
)  # fmt: skip
def test_operators_are_plain_where_they_are_safe(expression, text):
    assert body(f"  out[0] = {expression}") == f"out[0] = {text};"


def test_a_position_in_two_axes_is_plain_where_each_index_is_checked():
    main = main_of("""
kernel k block(8, 8, 1) {
  buffer x: f32
  parameter x.shape.0: i32 from ("shape", "x", 0)
  parameter x.shape.1: i32 from ("shape", "x", 1)
  parameter a: i32 from ("value", "a")

  var i: i32 = thread_idx.x
  x[(a * x.shape.1) + i; a in x.shape.0, i in x.shape.1] = 1.0
}
""")
    assert (
        "if (inside(a, x_shape_0) && i < x_shape_1) {\n        x[a * x_shape_1 + i] = 1.0f" in main
    )


def test_loops_keep_their_form():
    assert (
        body("""
  for k: i32 in range(0, x.size, 16) unroll {
    out[0] = out[0] | k
  }
  for k2: i32 in range(a, b, -3) {
    out[1] = k2
  }
""")
        == """#pragma unroll
    for (int k = 0; k < x_size; k += 16) {
        out[0] |= k;
    }
    unsigned int trips = b < a ? ((unsigned int)a - (unsigned int)b - 1u) / 3u + 1u : 0u;
    for (unsigned int trip = 0u; trip < trips; trip++) {
        int k2 = (int)((unsigned int)a - trip * 3u);
        out[1] = k2;
    }"""
    )


def test_bounds_of_loops_are_taken_once():
    assert (
        body("""
  var n: i32 = a
  for k: i32 in range(0, n, 1) {
    n = n ^ k
  }
  out[0] = n
""")
        == """int n = a;
    int stop = n;
    for (int k = 0; k < stop; k++) {
        n ^= k;
    }
    out[0] = n;"""
    )


def test_names_give_way_to_the_language():
    main = main_of("""
kernel float block(8, 1, 1) {
  buffer x.y: i32
  buffer x_y: i32
  parameter threadIdx: i32 from ("value", "threadIdx")
  parameter __a: i32 from ("value", "__a")

  var load: i32 = x.y[thread_idx.x]
  load = load ^ threadIdx
  x_y[0] = load | __a
}
""")
    assert " float_(" in main
    assert "const int* __restrict__ x_y, int* __restrict__ x_y_2, int threadIdx_, int n_a" in main
    assert "int load_ = x_y[(int)threadIdx.x];" in main
    assert "load_ ^= threadIdx_;" in main
    assert "x_y_2[0] = load_ | n_a;" in main


def test_a_variable_may_have_the_name_of_a_struct():
    main = main_of("""
struct Pair {
  a: i32
}

kernel k block(1, 1, 1) {
  buffer x: i32

  var Pair: i32 = x[0]
  var p: Pair
  p->a = Pair
  x[Pair & 1] = p->a + 0
}
""")
    assert "int Pair = x[0];\n    Pair_2 p = Pair_2{};\n    p.a = Pair;" in main


def test_much_shared_memory_is_asked_for_at_launch():
    kernel = """
kernel k block(64, 1, 1) {
  buffer out: f32
  shared first: f32[5]
  shared tile: vec4<f32>[4096]

  tile[thread_idx.x] = vec4<f32>{1.0, 2.0, 3.0, 4.0}
  first[0] = 1.0
  barrier block
  out[0] = (tile[3])->x + first[0]
}
"""
    code = printed(from_text(kernel), "cuda")
    assert (code.shared_bytes, code.dynamic_shared) == (65568, 65568)
    assert "    extern __shared__ __align__(16) unsigned char shared_memory[];\n" in code.source
    assert "    float4* tile = (float4*)(shared_memory + 32);\n" in code.source
    small = printed(from_text(kernel.replace("4096", "64")), "cuda")
    assert (small.shared_bytes, small.dynamic_shared) == (1056, 0)


@td.kernel
def commented(x: td.Array[td.i32]):
    # two lines
    # above it
    x[0] = 1  # behind it \\
    x[1] = 1
    if x.size > 2:
        # inside
        x[2] = 1


def test_comments_of_the_source_are_kept():
    source = commented.source("cuda", block=1)
    main = source[source.index("__global__") :]
    assert "    // two lines\n    // above it\n    // behind it \n    if (0 < x_size) {" in main
    assert "        // inside\n        x[2] = 1;" in main
    assert main.count("//") == 4
