"""<cuda/atomic>, <cuda/barrier>, <cuda/pipeline>, and scans and copies of cooperative groups."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
#define RELAXED cuda::memory_order_relaxed

__global__ void counters(int *out)
{
    __nv_atomic_fetch_add(&out[0], 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    cuda::atomic_ref<int, cuda::thread_scope_device> shared_by_all(out[1]);
    shared_by_all.fetch_add(3, RELAXED);
    shared_by_all.fetch_max(40, RELAXED);
    __shared__ cuda::atomic<int, cuda::thread_scope_block> counter;
    if (threadIdx.x == 0)
        counter.store(10, RELAXED);
    __syncthreads();
    counter.fetch_sub(1, RELAXED);
    __syncthreads();
    if (threadIdx.x == 0) {
        out[2] = counter.load(RELAXED);
        int expected = 5;
        out[3] = counter.compare_exchange_strong(expected, 7, RELAXED, RELAXED);
        out[4] = expected;
        out[5] = counter.compare_exchange_weak(expected, 7, RELAXED, RELAXED);
        out[6] = counter.exchange(8, RELAXED);
        out[7] = __nv_atomic_load_n(&out[0], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
        out[8] = 1;
        out[9] = __nv_atomic_compare_exchange_n(&out[8], &expected, 9, false, __NV_ATOMIC_RELAXED,
                                                __NV_ATOMIC_RELAXED) * 100 + expected;
    }
}

__global__ void copies(const int *x, int *out)
{
    __shared__ int s[64];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    if (block.thread_rank() == 0)
        init(&barrier, block.size());
    block.sync();
    cuda::memcpy_async(block, s, x, sizeof(int) * 64, barrier);
    barrier.wait(barrier.arrive());
    *(out + t) = s[63 - t];
    auto token = barrier.arrive();
    while (!barrier.try_wait(token)) {}
    cg::memcpy_async(block, s, x, cuda::aligned_size_t<4>(256));
    cg::wait(block);
    out[64 + t] = s[(t + 1) % 64];
    block.sync();
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&s[t], &x[63 - t], sizeof(int), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    out[128 + t] = s[t];
    __pipeline_memcpy_async(&s[t], &x[t], sizeof(int));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[192 + t] = s[t];
    pipe.consumer_release();
}

__global__ void parts(const int *x, int *out)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto odd = cg::binary_partition(warp, x[threadIdx.x] % 2);
    int value = x[threadIdx.x];
    out[threadIdx.x] = cg::inclusive_scan(odd, value);
    out[32 + threadIdx.x] = odd.shfl_up(value, 1) + 1000 * odd.ballot(value > 50);
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    out[64 + threadIdx.x] = cg::exclusive_scan(tile, value);
    out[96 + threadIdx.x] = cg::inclusive_scan(tile, value, cg::greater<int>());
    out[128 + threadIdx.x] = tile.match_any(value % 4);
}
"""


def test_atomics_of_libcu(device):
    out = td.zeros(10, dtype=td.int32, device=device)
    td.cuda_module(SOURCE).counters[1, 33](out)
    counted = out.tolist()
    assert counted[0] == 66
    assert counted[1] >= 40 + 0 and counted[1] <= 40 + 3 * 33  # noqa: PT018 - in any order
    assert counted[2:8] == [10 - 33, 0, 10 - 33, 1, 7, 66]
    assert counted[8:] == [1, 1]


def test_copies_and_barriers(device):
    x = np.random.default_rng().integers(0, 99, 64).astype(np.int32)
    out = td.full((256,), -77, dtype=td.int32, device=device)
    td.cuda_module(SOURCE).copies[1, 64](td.asarray(x, device=device), out)
    assert (out.numpy().reshape(4, 64) == [x[::-1], np.roll(x, -1), x[::-1], x]).all()


def test_scans_of_tiles_and_parts():
    x = np.random.default_rng().integers(0, 99, 32).astype(np.int32)
    out = td.full((160,), -77, dtype=td.int32, device="cpu")
    td.cuda_module(SOURCE).parts[1, 32](td.asarray(x, device="cpu"), out)
    tiles = x.reshape(2, 16)
    same = (tiles[:, :, None] % 4 == tiles[:, None] % 4) @ (1 << np.arange(16))
    expected = np.zeros((5, 32), int)
    expected[2] = (tiles.cumsum(1) - tiles).ravel()
    expected[3] = np.maximum.accumulate(tiles, 1).ravel()
    expected[4] = same.ravel()
    for odd in (0, 1):
        lanes = np.flatnonzero(x % 2 == odd)
        own = x[lanes]
        expected[0, lanes] = own.cumsum()
        above = ((own > 50) << np.arange(own.size)).sum()
        expected[1, lanes] = np.concatenate([own[:1], own[:-1]]) + 1000 * above
    assert (out.numpy().reshape(5, 32) == expected.astype(np.int32)).all()


# As threadFenceReduction of NVIDIA's samples: the block that comes last adds up the blocks' sums.
LAST_BLOCK = """
__device__ unsigned int count = 0;
__global__ void sum(const float *x, volatile float *parts, float *out, int n)
{
    __shared__ float s[64];
    __shared__ bool last;
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) v += x[i];
    s[t] = v;
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0) {
        parts[blockIdx.x] = s[0];
        __threadfence();
        unsigned int ticket = atomicInc(&count, gridDim.x - 1);
        last = ticket == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (int i = t; i < gridDim.x; i += blockDim.x) sum += parts[i];
        s[t] = sum;
        __syncthreads();
        for (int k = 32; k > 0; k /= 2) {
            if (t < k) s[t] += s[t + k];
            __syncthreads();
        }
        if (t == 0) *out = s[0];
    }
}
"""


def test_the_last_block_sees_what_others_wrote(device):
    kernel = td.cuda_module(LAST_BLOCK).sum
    x = np.random.default_rng(6).random(5003, np.float32)
    given, out = td.asarray(x, device=device), td.zeros(1, device=device)
    if "device_fences" not in device.features and device.backend == "webgpu":
        with pytest.raises(td.errors.UnsupportedOnTarget, match="no memory fence for the device"):
            kernel[37, 64](given, td.zeros(37, device=device), out, x.size)
        return
    for _ in range(3):
        parts = td.full(37, -1.0, device=device)
        kernel[37, 64](given, parts, out, x.size)
        assert np.isclose(out.item(), x.sum(dtype=np.float64), rtol=1e-5)


WAITS = """
#include <cuda/atomic>
#include <cuda/latch>
#include <new>
#define RELAXED cuda::std::memory_order_relaxed
#define IS(...) *out++ = (__VA_ARGS__);
__global__ void numbers(int *out)
{
    __shared__ cuda::std::atomic<int> a;
    __shared__ cuda::std::atomic_flag flag;
    __shared__ int y;
    a.store(3, RELAXED); IS(a.load(RELAXED)) IS(a.fetch_add(1, RELAXED)) IS(a.fetch_sub(2, RELAXED))
    a.fetch_or(5, RELAXED); IS(a.fetch_and(6, RELAXED)) IS(a.fetch_xor(1, RELAXED))
    int expected = 7; IS(a.compare_exchange_strong(expected, 9, RELAXED)) IS(expected)
    y = 4;
    cuda::std::atomic_ref<int> r(y);
    r.fetch_add(3, cuda::memory_order_relaxed); IS(y)
    IS(a.is_lock_free()) IS(a.exchange(2, RELAXED))
    flag.clear(RELAXED); IS(flag.test_and_set(RELAXED)) IS(flag.test(RELAXED))
    IS(flag.test_and_set(RELAXED))
}
__global__ void waits(int *out)
{
    __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
    __shared__ cuda::latch<cuda::thread_scope_block> ready;
    __shared__ int value, parts[64];
    int t = threadIdx.x;
    if (t == 0) {
        flag.store(6);
        new (&ready) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    }
    __syncthreads();
    if (t == 40) {
        value = 7;
        flag &= 4;
        flag |= 8;
        flag ^= 5;
        flag.notify_all();
    }
    flag.wait(6, cuda::memory_order_acquire);
    parts[t] = t;
    ready.arrive_and_wait();
    out[t] = value + 10 * flag.load() + 1000 * parts[63 - t] + 100000 * ready.try_wait();
}
"""


def test_atomic_numbers_of_the_standard_library(device):
    expected = [3, 3, 4, 7, 6, 1, 7, 7, 1, 9, 0, 1, 1]
    out = td.zeros(len(expected), dtype=td.int32, device=device)
    td.cuda_module(WAITS).numbers[1, 1](out)
    assert out.tolist() == expected


def test_waits_for_atomic_numbers_and_latches(device):
    out = td.zeros(64, dtype=td.int32, device=device)
    td.cuda_module(WAITS).waits[1, 64](out)
    assert out.tolist() == [7 + 10 * 9 + 1000 * (63 - t) + 100000 for t in range(64)]
