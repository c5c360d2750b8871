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
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
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
