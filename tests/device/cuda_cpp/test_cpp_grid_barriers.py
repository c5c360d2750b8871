"""Barriers of the grid in CUDA C++: what threads and blocks keep across them, loops and branches
around them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import LaunchError

SOURCE = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ float total(const float *parts)
{
    float sum = 0;
    for (int k = 0; k < gridDim.x * gridDim.y; k++) sum += parts[k];
    return sum;
}

// As reductionMultiBlockCG of NVIDIA's samples: shared memory, and a sum that each thread keeps.
__global__ void normalize(const float *x, float *parts, float *y, int n)
{
    cg::grid_group grid = cg::this_grid();
    extern __shared__ float s[];
    __shared__ int seen[2];
    int t = cg::this_thread_block().thread_rank(), size = cg::this_thread_block().size();
    int block = blockIdx.x + gridDim.x * blockIdx.y;
    if (t < 2) seen[t] = t + 10 * block;
    float sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += x[i];
    s[t] = sum;
    __syncthreads();
    for (int k = size / 2; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) parts[block] = s[0];
    grid.sync();
    float all = total(parts);
    for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i] / all;
    y[n + grid.thread_rank()] = sum + 1000 * seen[t % 2] + 100000 * grid.is_valid();
    if (t == 0) y[n + grid.size() + block] = s[0];
}

// Steps whose number the host knows, and a value that changes with them.
__global__ void relax(float *a, float *b, float *last, int n, int steps)
{
    auto grid = cg::this_grid();
    float kept[3] = {0, 0, 0};
    for (int s = 0; s < steps; s++) {
        for (int i = grid.thread_rank() + 1; i < n - 1; i += grid.size())
            b[i] = 0.5f * (a[i - 1] + a[i + 1]);
        cg::sync(grid);
        kept[s % 3] += b[grid.thread_rank() % n];
        if (s % 2 == 1) grid.sync();
        for (int i = grid.thread_rank() + 1; i < n - 1; i += grid.size()) a[i] = b[i];
        grid.sync();
    }
    last[grid.thread_rank()] = kept[0] + kept[1] + kept[2];
}

// Steps until the data say so, with threads that have returned.
__global__ void until(float *a, float *b, int *error, int n, int limit, int *steps)
{
    auto grid = cg::this_grid();
    int i = (int)grid.thread_rank() + 1, k = 0;
    if (i >= n - 1 && i != 1) return;
    if (i == 1) *error = 1 << 30;
    grid.sync();
    while (*error > limit) {
        grid.sync();
        if (i == 1) *error = 0;
        grid.sync();
        b[i] = 0.5f * (a[i - 1] + a[i + 1]);
        atomicMax(error, (int)(1e6f * fabsf(b[i] - a[i])));
        k++;
        grid.sync();
        if (*error <= limit) { steps[1] = k; break; }
        a[i] = b[i];
        if (k == 50) return;
        if (k % 5 == 0) { grid.sync(); continue; }
        grid.sync();
    }
    if (i == 1) steps[0] = k;
}

__global__ void divided(int *x)
{
    if (x[threadIdx.x]) cg::this_grid().sync();
    x[threadIdx.x] = 7;
}

struct Pair { short s; float2 f; bool b; };

// All kinds of values in variables, local and shared memory.
__global__ void kinds(const int *x, WIDE *out, int rounds)
{
    __shared__ WIDE wide[5];
    __shared__ unsigned char bytes[7];
    __shared__ Pair pairs[3];
    int t = threadIdx.x;
    WIDE big = 0x123456789abcdefll * (t + 1), negative = -(WIDE)x[t] * 0x100000007ll;
    signed char small = (signed char)x[t];
    bool odd = x[t] & 1;
    __half h = __float2half(x[t] / 8.0f);
    Pair mine = {(short)-x[t], make_float2(x[t], -0.0f), !odd};
    Pair array[2] = {mine, {1, {2, 3}, true}};
    if (t < 5) wide[t] = negative + t;
    if (t < 7) bytes[t] = (unsigned char)(200 + t);
    if (t < 3) pairs[t] = mine;
    int count = 0;
    for (int r = rounds; r > 0; r -= 2) {
        BARRIER;
        count += r;
        small++;
        odd = !odd;
        array[r & 1].f.x += 1;
        if (r == 3) { BARRIER; big ^= 1; }
    }
    out[t] = big + negative + wide[t % 5] + bytes[t % 7] * 3 + count;
    out[t + 32] = small * 1000 + odd * 100 + (int)(__half2float(h) * 8) + mine.b * 5;
    out[t + 32] += pairs[t % 3].s;
    out[t + 64] = (int)(array[0].f.x * 4 + array[1].f.x) + pairs[t % 3].f.x + array[1].b
        + (__float_as_uint(mine.f.y) >> 31) * 7 + mine.s;
}
"""


@cache
def opened(barrier="cg::this_grid().sync()", wide="long long"):
    return td.cuda_module(SOURCE, defines={"BARRIER": barrier, "WIDE": wide})


def test_what_threads_and_blocks_keep(device):
    n, grid, block = 1013, (3, 2), (8, 4)
    x = np.random.default_rng(1).random(n, np.float32)
    parts, y = np.zeros(6, np.float32), td.zeros(n + 6 * 32 + 6, device=device)
    parts = td.zeros(6, device=device)
    opened().normalize[grid, block, 32 * 4](td.asarray(x, device=device), parts, y, n)
    found = y.numpy()
    assert np.allclose(found[:n], x / x.sum(dtype=np.float64), rtol=1e-5)
    threads = np.arange(6 * 32)
    sums = np.array([x[t :: 6 * 32].sum(dtype=np.float64) for t in threads])
    seen = threads % 32 % 2 + 10 * (threads // 32)
    assert np.allclose(found[n : n + 6 * 32], sums + 1000 * seen + 100000, rtol=1e-5)
    assert np.allclose(found[n + 6 * 32 :], sums.reshape(6, 32).sum(1), rtol=1e-5)


@pytest.mark.parametrize("steps", [0, 5])
def test_steps_that_the_host_counts(device, steps):
    n = 131
    a = np.random.default_rng(2).random(n, np.float32)
    expected, kept = a.astype(np.float64), np.zeros((3, 64))
    for s in range(steps):
        new = expected.copy()
        new[1:-1] = 0.5 * (expected[:-2] + expected[2:])
        kept[s % 3] += new[np.arange(64) % n]
        expected = new
    on_device = td.asarray(a, device=device)
    last = td.full(64, -1.0, dtype=td.float32, device=device)
    other = td.asarray(a, device=device)
    opened().relax[2, 32](on_device, other, last, n, steps)
    assert np.allclose(on_device.numpy(), expected, atol=1e-6)
    assert np.allclose(last.numpy(), kept.sum(0), atol=1e-5)


@pytest.mark.parametrize(("n", "limit"), [(40, 20000), (40, -1), (3, -1)])
def test_steps_that_the_data_decide(device, n, limit):
    a = np.random.default_rng(n).random(n, np.float32)
    arrays = [td.asarray(a, device=device) for _ in range(2)]
    error = td.zeros(1, dtype=td.int32, device=device)
    steps = td.zeros(2, dtype=td.int32, device=device)
    opened().until[2, 32](*arrays, error, n, limit, steps)
    expected, k = a.astype(np.float64), 0
    while True:
        new = expected.copy()
        new[1:-1] = 0.5 * (expected[:-2] + expected[2:])
        k += 1
        if 1e6 * np.abs(new - expected).max() <= limit:
            assert steps.tolist() == [k, k]
            break
        expected = new
        if k == 50:
            assert steps.tolist() == [0, 0]
            break
    assert np.allclose(arrays[0].numpy(), expected, atol=1e-6)


def test_kinds_of_values_are_those_of_one_block(device):
    wide, dtype = ("long long", td.int64) if "int64" in device.features else ("int", td.int32)
    x = td.asarray(np.random.default_rng(4).integers(0, 100, 32).astype(np.int32), device=device)
    found = []
    for barrier in ("cg::this_grid().sync()", "__syncthreads()"):
        out = td.zeros(96, dtype=dtype, device=device)
        opened(barrier, wide).kinds[1, 32](x, out, 5)
        found.append(out.tolist())
    assert found[0] == found[1]


def test_a_grid_that_is_divided_is_an_error(device):
    x = td.asarray(np.arange(32) % 2, dtype=td.int32, device=device)
    with pytest.raises(LaunchError, match="not all threads of the grid go the same way at line"):
        opened().divided[2, 16](x)
    same = td.ones(32, dtype=td.int32, device=device)
    opened().divided[1, 32](same)
    assert same.tolist() == [7] * 32


def test_arrays_of_numpy_are_copied_once(device):
    a = np.random.default_rng(5).random(50, np.float32)
    b, last = a.copy(), np.zeros(32, np.float32)
    with td.use_device(device):
        opened().relax[1, 32](a, b, last, 50, 1)
    assert np.allclose(a[1:-1], b[1:-1])
    assert last.any()


ARRIVALS = """
#include <cooperative_groups.h>
__global__ void arrivals(unsigned *barrier, unsigned *out)
{
    unsigned before, now;
    volatile unsigned *arrived = barrier;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before)
                 : _CG_ASM_PTR_CONSTRAINT((unsigned *)arrived), "r"(0x80000001u) : "memory");
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now)
                 : _CG_ASM_PTR_CONSTRAINT((unsigned *)arrived) : "memory");
    out[0] = before; out[1] = now;
    out[2] = cooperative_groups::details::bar_has_flipped(before, now);
    out[3] = cooperative_groups::details::bar_has_flipped(now, now + 5);
}
"""


def test_barriers_that_a_kernel_makes_of_cudas_own_parts(device):
    barrier, out = (td.zeros(4, dtype=td.uint32, device=device) for _ in range(2))
    kernel = td.cuda_module(ARRIVALS).arrivals[1, 1]
    if "device_fences" not in device.features and device.backend == "webgpu":
        with pytest.raises(td.errors.UnsupportedOnTarget, match="no memory fence for the device"):
            kernel(barrier, out)
        return
    kernel(barrier, out)
    assert out.tolist() == [0, 0x80000001, 1, 0]
