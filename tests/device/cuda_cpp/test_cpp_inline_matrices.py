"""Inline PTX of tensor cores: ldmatrix, stmatrix, movmatrix and mma.sync beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
#include <cuda_fp16.h>
// C (16 x 8) = A (16 x 16) B (16 x 8), all in rows, with ldmatrix for both.
__global__ void halves(const half *a, const half *b, float *c, half *narrow)
{
    __shared__ alignas(16) half left[16 * 16], right[16 * 8];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += 32) left[i] = a[i];
    for (int i = lane; i < 128; i += 32) right[i] = b[i];
    __syncwarp();
    unsigned x[4], y[2];
    unsigned from = (unsigned)__cvta_generic_to_shared(left + lane % 16 * 16 + lane / 16 * 8);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from));
    const half *row = right + lane % 16 * 8;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1]) : "l"(row));
    float d[4] = {1, 2, 3, 4};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    for (int i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
    unsigned s[2], zero = 0;
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %5};"
        : "=r"(s[0]), "=r"(s[1]) : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(zero));
    unsigned to = (unsigned)__cvta_generic_to_shared(left + lane % 16 * 8);
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :: "r"(to), "r"(s[0]), "r"(s[1]));
    __syncwarp();
    for (int i = lane; i < 128; i += 32) narrow[i] = left[i];
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(s[1]) : "r"(x[0]));
    *(unsigned *)(narrow + 128 + lane * 2) = s[1];
}
// A (16 x 32) and B (32 x 8), the columns of B in rows.
__global__ void bytes(const int *a, const int *b, int *c)
{
    int lane = threadIdx.x, row = lane / 4, at = lane % 4;
    int d[4] = {0, 0, 0, 0}, e[2] = {0, 0};
    int x[4] = {a[row * 8 + at], a[(row + 8) * 8 + at], a[row * 8 + at + 4],
                a[(row + 8) * 8 + at + 4]};
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(b[row * 8 + at]),
          "r"(b[row * 8 + at + 4]));
    for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + at * 2 + i % 2] = d[i];
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32{%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+r"(e[0]), "+r"(e[1]) : "r"(x[0]), "r"(b[row * 8 + at]));
    for (int i = 0; i < 2; i++) c[128 + row * 8 + at * 2 + i] = e[i];
}
__global__ void others(const unsigned *a, const unsigned *b, float *c)
{
    int lane = threadIdx.x;
    float d[4] = {0, 0, 0, 0}, e[4] = {0, 0, 0, 0};
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[lane]), "r"(a[lane + 32]), "r"(a[lane + 64]), "r"(a[lane + 96]), "r"(b[lane]),
          "r"(b[lane + 32]));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6},"
        "{%0, %1, %2, %3};"
        : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3])
        : "r"(a[lane + 128]), "r"(a[lane + 160]), "r"(b[lane + 64]));
    for (int i = 0; i < 4; i++) {
        int at = (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
        c[at] = d[i];
        c[128 + at] = e[i];
    }
}
"""


@pytest.fixture(scope="module")
def module():
    return td.cuda_module(SOURCE)


def test_halves(device, module):
    rng = np.random.default_rng()
    a, b = rng.integers(-8, 9, (16, 16)), rng.integers(-8, 9, (16, 8))
    out = td.zeros((16, 8), device=device)
    narrow = td.zeros(192, dtype=td.float16, device=device)
    arrays = [td.asarray(one.astype(np.float16), device=device) for one in (a, b)]
    module.halves[1, 32](*arrays, out, narrow)
    first = np.array([[1, 2] * 4] * 8 + [[3, 4] * 4] * 8)
    np.testing.assert_array_equal(out.numpy(), a @ b + first)
    found = narrow.numpy()
    np.testing.assert_array_equal(found[:128].reshape(16, 8), a[:, :8] @ b[:8])
    np.testing.assert_array_equal(found[128:].reshape(8, 8), a[:8, :8].T)


def test_bytes(device, module):
    rng = np.random.default_rng()
    a, b = (rng.integers(-128, 128, (rows, 32)).astype(np.int8) for rows in (16, 8))
    out = td.zeros(192, dtype=td.int32, device=device)
    module.bytes[1, 32](*(td.asarray(one.view(np.int32), device=device) for one in (a, b)), out)
    a, b, found = a.astype(int), b.astype(int), out.numpy()
    np.testing.assert_array_equal(found[:128].reshape(16, 8), a @ b.T)
    np.testing.assert_array_equal(found[128:].reshape(8, 8), a[:8, :16] @ b[:, :16].T)


def words(matrix, per):
    """A matrix with rows of 4 words as the lanes hold it, in parts of 8 rows."""
    bits = matrix.astype(np.float32).view(np.uint32)
    if per == 2:
        bits = (bits >> 16).astype(np.uint16)
    rows = bits.shape[0]
    packed = np.ascontiguousarray(bits).view(np.uint32).reshape(rows // 8, 8, -1, 4)
    return packed.transpose(2, 0, 1, 3).reshape(-1)


def test_other_types(device, module):
    rng = np.random.default_rng()
    a, b = rng.integers(-9, 10, (2, 16, 8)), rng.integers(-9, 10, (2, 8, 8))
    left = np.concatenate((words(a[0], 1), words(a[1], 2)))
    right = np.concatenate((words(b[0].T, 1), words(b[1].T, 2)))
    out = td.zeros((2, 16, 8), device=device)
    module.others[1, 32](*(td.asarray(one, device=device) for one in (left, right)), out)
    np.testing.assert_array_equal(out.numpy(), a @ b)


# C = A B, A (m x k) and B (k x n) in rows, in two stages: copies of the next tiles go on beside the
# products. Blocks of DOWN x ACROSS warps, each with HIGH x WIDE products of 16 x 8.
TILED = r"""
#include <cuda_fp16.h>
#define ROWS (DOWN * HIGH * 16)
#define COLUMNS (ACROSS * WIDE * 8)
#define LEFT (INNER + 8)
#define RIGHT (COLUMNS + 8)
#define THREADS (DOWN * ACROSS * 32)
__device__ __forceinline__ void copy(void *to, const void *from)
{
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from));
}
extern "C" __global__ void __launch_bounds__(THREADS)
product(const half *__restrict__ a, const half *__restrict__ b, float *__restrict__ c, int m, int n,
        int k)
{
    __shared__ __align__(16) half left[2][ROWS * LEFT];
    __shared__ __align__(16) half right[2][INNER * RIGHT];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS;
    int down = warp / ACROSS * HIGH * 16, across = warp % ACROSS * WIDE * 8;
    float sums[HIGH][WIDE][4] = {};
    auto begin = [&](int stage, int at) {
        for (int i = t; i < ROWS * INNER / 8; i += THREADS)
            copy(&left[stage][i / (INNER / 8) * LEFT + i % (INNER / 8) * 8],
                 a + (row + i / (INNER / 8)) * k + at + i % (INNER / 8) * 8);
        for (int i = t; i < INNER * COLUMNS / 8; i += THREADS)
            copy(&right[stage][i / (COLUMNS / 8) * RIGHT + i % (COLUMNS / 8) * 8],
                 b + (at + i / (COLUMNS / 8)) * n + column + i % (COLUMNS / 8) * 8);
        asm volatile("cp.async.commit_group;");
    };
    begin(0, 0);
    for (int at = 0, stage = 0; at < k; at += INNER, stage ^= 1) {
        if (at + INNER < k) {
            begin(stage ^ 1, at + INNER);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_all;");
        }
        __syncthreads();
#pragma unroll
        for (int inner = 0; inner < INNER; inner += 16) {
            unsigned x[HIGH][4], y[WIDE][2];
#pragma unroll
            for (int i = 0; i < HIGH; i++) {
                unsigned from = (unsigned)__cvta_generic_to_shared(
                    &left[stage][(down + i * 16 + lane % 16) * LEFT + inner + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                    : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3]) : "r"(from));
            }
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                unsigned from = (unsigned)__cvta_generic_to_shared(
                    &right[stage][(inner + lane % 16) * RIGHT + across + j * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                    : "=r"(y[j][0]), "=r"(y[j][1]) : "r"(from));
            }
#pragma unroll
            for (int i = 0; i < HIGH; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(sums[i][j][0]), "+f"(sums[i][j][1]), "+f"(sums[i][j][2]),
                          "+f"(sums[i][j][3])
                        : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j][0]),
                          "r"(y[j][1]));
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < HIGH; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++)
#pragma unroll
            for (int half_ = 0; half_ < 2; half_++) {
                int at = (row + down + i * 16 + lane / 4 + half_ * 8) * n
                    + column + across + j * 8 + lane % 4 * 2;
                *(float2 *)&c[at] = make_float2(sums[i][j][2 * half_], sums[i][j][2 * half_ + 1]);
            }
}
"""
SMALL = {"DOWN": 2, "ACROSS": 1, "HIGH": 1, "WIDE": 2, "INNER": 16}


def test_tiles_in_two_stages(device):
    kernel = td.cuda_module(TILED, defines=SMALL).product
    rng = np.random.default_rng()
    a, b = rng.integers(-8, 9, (64, 48)), rng.integers(-8, 9, (48, 32))
    arrays = [td.asarray(one.astype(np.float16), device=device) for one in (a, b)]
    out = td.zeros((64, 32), device=device)
    kernel[(2, 2), 64](*arrays, out, 64, 32, 48)
    np.testing.assert_array_equal(out.numpy(), a @ b)


def test_cards_have_instructions_for_tiles():
    kernel = td.cuda_module(TILED, defines=SMALL).product
    words = ("cp.async.cg", "cp.async.wait_group 1", "m8n8.x4.shared", "m8n8.x2.trans", "m16n8k16")
    text = kernel.source("ptx", sm="sm_80", block=64)
    assert all(word in text for word in words)
    assert "shfl" not in text
    assert "st.shared" not in text
    assert not any(word in kernel.source("ptx", sm="sm_70", block=64) for word in words)


# Rows of one or two matrices: the other lanes' addresses may be anything.
FEWER = """
__global__ void rows(const unsigned short *x, unsigned *out)
{
    __shared__ alignas(16) unsigned short s[8 * 8], others[16 * 8];
    int lane = threadIdx.x;
    for (int i = lane; i < 64; i += 32) s[i] = x[i];
    for (int i = lane; i < 128; i += 32) others[i] = x[i];
    __syncwarp();
    unsigned one = lane < 8 ? (unsigned)__cvta_generic_to_shared(s + 8 * lane) : 0xfffffff0u;
    unsigned two = lane < 16 ? (unsigned)__cvta_generic_to_shared(others + 8 * lane) : 1u << 30;
    unsigned a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(one));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(b) : "r"(one));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(c), "=r"(d) : "r"(two));
    out[lane] = a; out[32 + lane] = b; out[64 + lane] = c; out[96 + lane] = d;
}
"""


@pytest.mark.parametrize("updated", ["", "atomicAdd((unsigned *)others, 0u);"])
def test_one_or_two_matrices(device, updated):
    """An array that is updated by atomics is a memory of its own."""
    source = FEWER.replace("__syncwarp();", f"__syncwarp(); {updated}")
    x = np.random.default_rng().integers(0, 1 << 16, (16, 8)).astype(np.uint16)
    out = td.zeros(128, dtype=td.uint32, device=device)
    td.cuda_module(source).rows[1, 32](td.asarray(x, device=device), out)
    found = out.numpy().view(np.uint16).reshape(4, 8, 8)
    np.testing.assert_array_equal(found, [x[:8], x[:8].T, x[:8], x[8:]])


NARROW = """
// A (16 x 32) in rows and B (32 x 8) in columns, of bytes; and 8 x 4 by 4 x 8 doubles.
__global__ void small(const unsigned *a, const unsigned *b, float *c)
{
    int lane = threadIdx.x, row = lane / 4, at = lane % 4;
    float d[4] = {1, 2, 3, 4};
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[row * 8 + at]), "r"(a[(row + 8) * 8 + at]), "r"(a[row * 8 + at + 4]),
          "r"(a[(row + 8) * 8 + at + 4]), "r"(b[row * 8 + at]), "r"(b[row * 8 + at + 4]));
    for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + at * 2 + i % 2] = d[i];
}
__global__ void doubles(const double *a, const double *b, double *c)
{
    int lane = threadIdx.x;
    double first = 1, second = 2;
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(first), "+d"(second) : "d"(a[lane]), "d"(b[lane % 4 * 8 + lane / 4]));
    c[2 * lane] = first;
    c[2 * lane + 1] = second;
}
"""


def small_floats(bits, exponent, bias):
    """The values of floats of 8 bits."""
    mantissa = 7 - exponent
    sign = np.where(bits >> 7, -1.0, 1.0)
    size = bits & 127
    power, rest = size >> mantissa, size & (1 << mantissa) - 1
    plain = (1 + rest / 2.0**mantissa) * 2.0 ** (power - bias)
    return sign * np.where(power, plain, rest * 2.0 ** (1 - bias - mantissa))


def test_floats_of_8_bits(device):
    if device.backend == "webgpu" and "float16" not in device.features:
        return
    rng = np.random.default_rng()
    a = rng.integers(0, 127, (16, 32)) | rng.integers(0, 2, (16, 32)) << 7
    b = rng.integers(0, 72, (8, 32)) | rng.integers(0, 2, (8, 32)) << 7  # no infinities
    out = td.full((16, 8), -77.0, device=device)
    words = [td.asarray(one.astype(np.uint8).view(np.uint32), device=device) for one in (a, b)]
    td.cuda_module(NARROW).small[1, 32](*words, out)
    expected = small_floats(a, 4, 7) @ small_floats(b, 5, 15).T + np.tile([[1, 2]], (16, 4))
    expected[8:] += 2
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5, atol=1e-2)


def test_doubles(device):
    if device.backend == "webgpu" and "float64" not in device.features:
        return
    a, b = np.random.default_rng().normal(size=(2, 32))
    out = td.full((8, 8), -77.0, dtype=td.float64, device=device)
    td.cuda_module(NARROW).doubles[1, 32](*(td.asarray(x, device=device) for x in (a, b)), out)
    expected = a.reshape(8, 4) @ b.reshape(4, 8) + np.tile([[1, 2]], (8, 4))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
