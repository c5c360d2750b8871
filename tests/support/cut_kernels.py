"""Kernels in CUDA C++ with barriers of the grid, which are printed as several kernels."""

from __future__ import annotations

LIFE = """
#include <cooperative_groups.h>
__global__ void life(int *a, int *b, int n)
{
    auto g = cooperative_groups::this_grid();
    int i = g.thread_rank();
    for (int k = 0; k < n; k++) {
        a[i] += b[i + 1] * k;
        g.sync();
        b[i] = a[i + 1] * 3;
        g.sync();
    }
    a[i]++;
}
"""
UNTIL = """
#include <cooperative_groups.h>
struct Pair { int least; float sum; };
__device__ float damped(float x, float by) { return x > 0 ? x / by : -x * by; }
template <typename T> __global__ void until(float *x, Pair *found, int *left, T limit)
{
    auto g = cooperative_groups::this_grid();
    int i = g.thread_rank();
    __shared__ float s[64];
    Pair own = {i, 0.5f};
    s[threadIdx.x] = damped(x[i], 3);
    while (left[0] > 0) {
        g.sync();
        own.sum += damped(x[i], own.sum) + s[(threadIdx.x + 1) % 64];
        own.least = min(own.least, (int)(x[i] * 100));
        if (i == 0) atomicSub(left, 1);
        g.sync();
    }
    found[i] = own;
    x[i] = limit + __shfl_xor_sync(0xffffffffu, own.sum, 1);
}
"""
