"""<mma.h>: products of matrices by the warps of CUDA C++, beside float64."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
#include <mma.h>
using namespace nvcuda;
__global__ void product(const half *a, const half *b, float *c, int M, int N, int K, float scale)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize * 16;
    int column = (blockIdx.y * blockDim.y + threadIdx.y) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < K; k += 16)
        if (row < M && column < N) {
            wmma::load_matrix_sync(left, a + row * K + k, K);
            wmma::load_matrix_sync(right, b + column * K + k, K);
            wmma::mma_sync(sums, left, right, sums);
        }
    if (row < M && column < N) {
        for (int i = 0; i < sums.num_elements; i++)
            sums.x[i] *= scale;
        wmma::store_matrix_sync(c + row * N + column, sums, N, wmma::mem_row_major);
    }
}
template <class T, class S, int m, int n, int k, class U>
__global__ void one(const T *a, const T *b, S *c)
{
    wmma::fragment<wmma::matrix_a, m, n, k, U, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, m, n, k, U, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, m, n, k, S> sums;
    wmma::load_matrix_sync(left, a, k);
    wmma::load_matrix_sync(right, b, n);
    wmma::load_matrix_sync(sums, c, n, wmma::mem_row_major);
    wmma::mma_sync(sums, left, right, sums);
    wmma::store_matrix_sync(c, sums, n, wmma::mem_row_major);
}
"""
# The types of factors, sums and fragments, the shape, and NumPy's types and the largest factor.
KINDS = [
    ("half", "float", "half", (32, 8, 16), np.float16, np.float32, 8),
    ("half", "half", "half", (16, 16, 16), np.float16, np.float16, 8),
    ("float", "float", "nvcuda::wmma::precision::tf32", (16, 16, 8), np.float32, np.float32, 8),
    ("signed char", "int", "signed char", (16, 16, 16), np.int8, np.int32, 127),
    ("half", "float", "half", (8, 32, 16), np.float16, np.float32, 8),
    ("signed char", "int", "signed char", (8, 32, 16), np.int8, np.int32, 127),
    ("double", "double", "double", (8, 8, 4), np.float64, np.float64, 999),
]


def has_halves(device):
    return device.backend != "webgpu" or "float16" in device.features


def test_a_product_by_tiles(device):
    if not has_halves(device):
        return
    rng = np.random.default_rng()
    a, b = (rng.normal(size=(rows, 48)).astype(np.float16) for rows in (32, 16))
    out = td.full((32, 16), -77.0, device=device)
    given = (td.asarray(one, device=device) for one in (a, b))
    # Three warps, of which the last one has nothing to do.
    td.cuda_module(SOURCE).product[(1, 1), (96, 1)](*given, out, 32, 16, 48, 0.5)
    expected = 0.5 * (a.astype(float) @ b.astype(float).T)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-4)


def named(kind):
    return f"{kind[0]}-{kind[1]}-{kind[3][0]}"


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_fragments_of_each_type(device, kind):
    factor, sums, written, (m, n, k), dtype, sum_dtype, most = kind
    if factor == "half" and not has_halves(device):
        return
    if factor == "double" and device.backend == "webgpu" and "float64" not in device.features:
        return
    rng = np.random.default_rng()
    a, b = (rng.integers(-most, most, size).astype(dtype) for size in ((m, k), (k, n)))
    c = rng.integers(-9, 9, (m, n)).astype(sum_dtype)
    out = td.asarray(c, device=device)
    kernel = td.cuda_module(SOURCE).kernel("one", factor, sums, m, n, k, written)
    kernel[1, 32](td.asarray(a, device=device), td.asarray(b, device=device), out)
    assert (out.numpy() == a.astype(float) @ b.astype(float) + c).all()


def test_fragments_of_other_sizes_are_refused():
    with pytest.raises(td.errors.CompileError, match="this size"):
        td.cuda_module(SOURCE).kernel("one", "half", "float", 8, 20, 16, "half").source("ptx")
