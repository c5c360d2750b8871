"""cuda::barrier of some of a block's threads, and pipelines whose threads have roles."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

HEADERS = """
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
"""
# As in NVIDIA's guide: a warp fills stages, the other warps read them, two barriers for each stage.
ROLES = (
    HEADERS
    + """
__device__ void produce(barrier ready[], barrier filled[], float *stage, const float *x, int tiles)
{
    for (int i = 0; i < tiles; ++i) {
        ready[i % 2].arrive_and_wait();
        for (int k = threadIdx.x; k < 64; k += 32) stage[i % 2 * 64 + k] = x[i * 64 + k];
        barrier::arrival_token token = filled[i % 2].arrive();
    }
}
__device__ void consume(barrier ready[], barrier filled[], const float *stage, float *y, int tiles)
{
    int t = threadIdx.x - 32;
    auto first = ready[0].arrive();
    auto second = ready[1].arrive();
    for (int i = 0; i < tiles; ++i) {
        filled[i % 2].arrive_and_wait();
        y[i * 64 + t] = 2 * stage[i % 2 * 64 + 63 - t];
        auto token = ready[i % 2].arrive();
    }
}
__global__ void roles(const float *x, float *y, int tiles)
{
    __shared__ float stage[128];
    __shared__ barrier bar[4];
    auto block = cg::this_thread_block();
    if (block.thread_rank() < 4)
        init(bar + block.thread_rank(), block.size());
    block.sync();
    int at = blockIdx.x * tiles * 64;
    if (block.thread_rank() < 32)
        produce(bar, bar + 2, stage, x + at, tiles);
    else
        consume(bar, bar + 2, stage, y + at, tiles);
}
__global__ void pipe(const float *x, float *y, int tiles)
{
    __shared__ float stage[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    MAKE
    int t = threadIdx.x, at = blockIdx.x * tiles * 64;
    if (t < 32) {
        for (int i = 0; i < tiles; i++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[i % 2][2 * t], x + at + i * 64 + 2 * t, 8, pipe);
            pipe.producer_commit();
        }
    } else {
        for (int i = 0; i < tiles; i++) {
            pipe.consumer_wait();
            y[at + i * 64 + t - 32] = 2 * stage[i % 2][95 - t];
            pipe.consumer_release();
        }
    }
}
"""
)
MAKERS = {
    "count": "auto pipe = cuda::make_pipeline(block, &state, 32);",
    "role": "auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : "
    "cuda::pipeline_role::consumer; auto pipe = cuda::make_pipeline(block, &state, role);",
}


@pytest.mark.parametrize(
    ("kernel", "maker"), [("roles", "count"), ("pipe", "count"), ("pipe", "role")]
)
def test_roles(device, kernel, maker):
    x = np.random.default_rng().normal(size=(2 * 5, 64)).astype(np.float32)
    y = td.full((10, 64), np.nan, device=device)
    launched = getattr(td.cuda_module(ROLES.replace("MAKE", MAKERS[maker])), kernel)[2, 96]
    given = td.asarray(x, device=device)
    if device.backend != "cuda":
        with pytest.raises(td.errors.CompileError, match="other threads wait elsewhere"):
            launched(given, y, 5)
        return
    launched(given, y, 5)
    np.testing.assert_array_equal(y.numpy(), 2 * x[:, ::-1])


PARTS = (
    HEADERS
    + """
struct Count {
    int *phases; const int *s;
    __device__ void operator()() const { phases[0] = phases[0] * 100 + s[0] + s[33]; }
};
__global__ void some(const int *x, int *out)
{
    __shared__ int s[64], phases[1];
    __shared__ barrier half, every;
    __shared__ cuda::barrier<cuda::thread_scope_block, Count> counted;
    int t = threadIdx.x;
    s[t] = 0;
    if (t == 0) {
        phases[0] = 0;
        init(&half, 32);
        init(&every, 64);
        init(&counted, 64, Count{phases, s});
    }
    __syncthreads();
    if (t < 32) {  // one warp waits for itself
        s[t] = x[t];
        half.arrive_and_wait();
        out[t] = s[31 - t];
    }
    __syncthreads();
    if (t >= 32) half.arrive(1);  // the other for nobody, and all for it
    half.wait_parity(1);
    s[t] = t;
    counted.arrive_and_wait();
    s[t] = 2;
    counted.wait(counted.arrive());
    out[32 + t] = phases[0];
    if (t % 2) {
        every.arrive_and_drop();
    } else {
        auto token = every.arrive();
        while (!every.try_wait(token)) {}
        every.arrive_and_wait();  // without those that have dropped out
        out[96 + t / 2] = every.try_wait_parity(1) + 10 * every.try_wait_parity(0);
    }
}
__global__ void bytes(const int *x, int *out)
{
    __shared__ alignas(16) int s[64];
    __shared__ barrier bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, 64);
    __syncthreads();
    barrier::arrival_token token;
    if (t == 0) {
        token = cuda::device::barrier_arrive_tx(bar, 1, 256);
        cuda::device::memcpy_async_tx(s, x, cuda::aligned_size_t<16>(256), bar);
    } else {
        token = bar.arrive();
    }
    bar.wait(token);
    out[t] = s[63 - t];
    __syncthreads();
    if (t == 0) {
        cuda::device::experimental::cp_async_bulk_global_to_shared(s, x + 64, 256, bar);
        cuda::device::barrier_expect_tx(bar, 256);
    }
    cuda::memcpy_async(&s[t], &x[t], 0, bar);
    bar.arrive_and_wait();
    out[64 + t] = s[63 - t];
}
__global__ void turns(const int *x, int *out, int tiles)
{
    __shared__ int s[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = threadIdx.x;
    for (int next = 0, i = 0; i < tiles; ++i) {
        for (; next < tiles && next < i + 2; ++next) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[next % 2], x + 64 * next, 256, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[64 * i + t] = s[i % 2][63 - t];
        pipe.consumer_release();
    }
    bool last = pipe.quit();
}
"""
)


def test_some_of_the_threads(device):
    x = np.random.default_rng().integers(-99, 99, 32).astype(np.int32)
    out = td.full((128,), -77, dtype=td.int32, device=device)
    td.cuda_module(PARTS).some[1, 64](td.asarray(x, device=device), out)
    found = out.numpy()
    assert (found[:32] == x[::-1]).all()
    assert (found[32:96] == 33 * 100 + 4).all()
    assert (found[96:] == 1).all()


@pytest.mark.parametrize("kernel", ["bytes", "turns"])
def test_copies(device, kernel):
    x = np.random.default_rng().integers(-99, 99, (5, 64)).astype(np.int32)
    out = td.full((5, 64), -77, dtype=td.int32, device=device)
    count, more = (2, ()) if kernel == "bytes" else (5, (5,))
    getattr(td.cuda_module(PARTS), kernel)[1, 64](td.asarray(x, device=device), out, *more)
    assert (out.numpy()[:count] == x[:count, ::-1]).all()
