"""Kernels that launch kernels, which are queued behind them."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import LaunchError

MODULE = td.cuda_module("""
template <class T>
__global__ void fill(T *x, T value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}
struct Range { short low; float2 by; };
__device__ int total[3];
__global__ void add(int *x, Range r, const float *none)
{
    x[threadIdx.x] += r.low + (int)r.by.y + (none == nullptr);
    extern __shared__ int spare[];
    spare[threadIdx.x] = 1;
}
__global__ void parent(int *x, float *y, int n)
{
    int t = threadIdx.x;
    if (t < 4) fill<<<(n + 31) / 32, 32>>>(x + t * n, t + 1, n);
    if (t == 5) {
        dim3 grid(2), block(16);
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        fill<float><<<grid, block, 0, stream>>>(y, 0.5f, 20);
        cudaStreamDestroy(stream);
        fill<<<1, 2>>>(total + 1, 7, 2);
    }
    if (t == 6) {
        Range r = {-100, make_float2(0.5f, 7.5f)};
        add<<<1, n, n * sizeof(int)>>>(x, r, nullptr);
    }
}
__global__ void quick(int *x, int low, int high)
{
    if (threadIdx.x) return;
    atomicAdd(&total[0], 1);
    int pivot = x[(low + high) / 2], i = low, j = high - 1;
    while (i <= j) {
        while (x[i] < pivot) i++;
        while (x[j] > pivot) j--;
        if (i <= j) { int kept = x[i]; x[i++] = x[j]; x[j--] = kept; }
    }
    if (j > low) quick<<<1, 1>>>(x, low, j + 1);
    if (i < high - 1) quick<<<1, 1>>>(x, i, high);
}
__global__ void none(int *x) {}
__global__ void many(int *x) { none<<<1, 1>>>(x); }
""")


@pytest.mark.parametrize("on_device", [False, True])
def test_children_run_after_their_parent(device, rng, on_device):
    make = td.asarray if on_device else np.asarray
    x, y = make(np.zeros(40, np.int32)), make(np.zeros(32, np.float32))
    MODULE.constants["total"] = [0, 0, 0]
    MODULE.parent[1, 32](x, y, 10)
    wanted = np.repeat(np.arange(1, 5), 10)
    wanted[:10] += -100 + 7 + 1
    np.testing.assert_array_equal(np.asarray(x), wanted)
    np.testing.assert_array_equal(np.asarray(y), [0.5] * 20 + [0] * 12)
    assert MODULE.constants.on(device)["total"].tolist() == [0, 7, 7]
    given = rng.integers(0, 100, 30).astype(np.int32)
    ordered = make(given.copy())
    MODULE.quick[1, 1](ordered, 0, 30)
    np.testing.assert_array_equal(np.asarray(ordered), np.sort(given))
    assert MODULE.constants.on(device)["total"][0] > 10


def test_a_full_queue_is_an_error(device):
    if device.backend not in ("cpu", "cuda"):  # which take long for so many
        return
    with pytest.raises(LaunchError, match=r"launched 16,500 kernels, and 16,384 fit its queue"):
        MODULE.many[165, 100](np.zeros(1, np.int32))
    MODULE.many[1, 1](np.zeros(1, np.int32))
