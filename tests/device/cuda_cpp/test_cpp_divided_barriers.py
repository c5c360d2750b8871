"""Barriers in branches and loops that not all threads of a block take."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
__global__ void guarded(const int *in, int *out, int n) {
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        s[threadIdx.x] = in[i];
        int mine = in[i] * 2;
        __syncthreads();
        int other = s[threadIdx.x ^ 1];
        __syncthreads();
        s[threadIdx.x] = other + mine;
        __syncthreads();
        out[i] = s[(threadIdx.x + 2) % 64];
    }
}
__global__ void strided(const int *in, int *out, int n) {
    __shared__ int sum[1];
    int total = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        if (threadIdx.x == 0) sum[0] = 0;
        __syncthreads();
        if (in[i] < 0) continue;
        atomicAdd(&sum[0], in[i]);
        __syncthreads();
        total += sum[0];
        if (total > 100000) break;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
__global__ void queue(int *out, int *head, int n) {
    __shared__ int item;
    int tid = threadIdx.x, got = 0;
    if (tid == 0) item = atomicAdd(head, 1);
    __syncthreads();
    while (item < n) {
        if (item % 3 == 0) {
            __syncthreads();
            if (tid == 0) item = atomicAdd(head, 1);
            __syncthreads();
            continue;
        }
        got += item * (tid + 1);
        __syncthreads();
        if (tid == 0) item = atomicAdd(head, 1);
        __syncthreads();
    }
    out[tid] = got;
}
__global__ void until(const int *in, int *out) {
    __shared__ int same[64];
    int t = threadIdx.x, v = in[t], rounds = 0;
    same[t] = 0;
    do {
        same[t] = v;
        __syncthreads();
        if (same[0] >= 5) { break; }
        v += 1;
        rounds++;
        __syncthreads();
    } while (v < 100);
    out[t] = rounds * 1000 + v;
}
__global__ void nested(const int *in, int *out, int n)
{
    __shared__ int s[64];
    int t = threadIdx.x, x = 0;
    if (t < n) {
        for (int i = 0; i < 3; i++) {
            s[t] = in[t] + i;
            __syncthreads();
            if (in[0] > 0) {
                int y = s[(t + 1) % n];
                __syncthreads();
                x += y;
            }
            for (int j = t; j < n; j += n) {
                __syncthreads();
                if (j == 1 && i == 1) break;
                x += 1;
            }
            __syncthreads();
        }
    }
    out[t] = x;
}
__device__ int sum_of(int x, int t, int nt, int *s) {
    s[t] = x;
    for (nt /= 2, __syncthreads(); nt > 0; nt /= 2, __syncthreads())
        if (t < nt) s[t] += s[t + nt];
    return s[0];
}
__global__ void rows(const int *in, int *out, int *steps)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    for (int i = steps[0]; i < steps[1]; i++) {
        if (i == 2) continue;
        int sum = sum_of(in[i * 64 + t], t, 64, s);
        if (t == 0) out[i] = sum;
        __syncthreads();
    }
    if (t == 0) steps[2] = 1;
}
__global__ void one_warp_ends(const int *in, int *out)
{
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = in[t];
        __syncthreads();
        return;
    }
    __syncthreads();
    s[t] = s[t - 32] + in[t];
    __syncthreads();
    out[t - 32] = s[95 - t];
}
__global__ void shifted(const int *in, int *out, int *steps)
{
    __shared__ int last[2];
    int t = threadIdx.x, lane = t % 32, v = in[t];
    for (int i = 0; i < steps[1]; i++) {
        if (lane == 31) last[t / 32] = v;
        __syncthreads();
        if (t < steps[2]) {
            unsigned mask = __ballot_sync(__activemask(), t < steps[2]);
            int before = __shfl_sync(mask, v, lane - 1, 32);
            v += lane ? before : t ? last[t / 32 - 1] : 0;
        }
        __syncthreads();
    }
    out[t] = v;
    if (t == 0) steps[0] = 1;
}
"""


@pytest.fixture(scope="module")
def module():
    return td.cuda_module(SOURCE)


def array(device, values):
    return td.asarray(np.asarray(values, np.int32), device=device)


def test_in_a_guard(device, module):
    x = np.random.default_rng(1).integers(0, 50, 128)
    out = td.full((128,), -1, dtype=td.int32, device=device)
    module.guarded[2, 64](array(device, x), out, 128)
    block = x.reshape(2, 64)
    sums = block[:, np.arange(64) ^ 1] + 2 * block
    assert out.tolist() == sums[:, (np.arange(64) + 2) % 64].reshape(-1).tolist()
    out = td.full((128,), -1, dtype=td.int32, device=device)
    module.guarded[2, 64](array(device, x), out, 64)  # no thread of the second block
    assert out.tolist() == [*sums[0, (np.arange(64) + 2) % 64].tolist(), *[-1] * 64]


@pytest.mark.parametrize("n", [0, 1, 64, 150, 192])
def test_in_a_loop_over_parts(device, module, n):
    x = np.random.default_rng(n).integers(1, 50, 192)
    out = td.zeros(64, dtype=td.int32, device=device)
    module.strided[1, 64](array(device, x), out, n)
    expected = np.zeros(64, int)
    for start in range(0, n, 64):
        part = x[start : min(start + 64, n)]
        expected[: len(part)] += part.sum()
    assert out.tolist() == expected.tolist()


def test_in_a_queue_of_a_block(device, module):
    out, head = (td.zeros(k, dtype=td.int32, device=device) for k in (64, 1))
    module.queue[1, 64](out, head, 20)
    total = sum(i for i in range(20) if i % 3)
    assert out.tolist() == [total * (t + 1) for t in range(64)]


def test_in_a_loop_that_all_leave(device, module):
    out = td.zeros(64, dtype=td.int32, device=device)
    module.until[1, 64](array(device, np.ones(64)), out)
    assert out.tolist() == [4005] * 64


def test_in_nested_loops(device, module):
    n = 7
    x = np.arange(1, 65)
    out = td.zeros(64, dtype=td.int32, device=device)
    module.nested[1, 64](array(device, x), out, n)
    expected = np.zeros(64, int)
    for t in range(n):
        expected[t] = sum(x[(t + 1) % n] + i for i in range(3)) + 3 - (t == 1)
    assert out.tolist() == expected.tolist()


def test_between_the_iterations_of_a_loop(device, module):
    x = np.random.default_rng().integers(0, 1000, (4, 64))
    out, steps = array(device, [-1] * 4), array(device, [0, 4, 0])
    module.rows[1, 64](array(device, x), out, steps)
    assert out.tolist() == [x[0].sum(), x[1].sum(), -1, x[3].sum()]


def test_with_threads_that_end_earlier(device, module):
    x = np.random.default_rng().integers(0, 1000, 64)
    out = array(device, [-1] * 32)
    module.one_warp_ends[1, 64](array(device, x), out)
    assert out.tolist() == (x[:32] + x[32:])[::-1].tolist()


@pytest.mark.parametrize("n", [50, 64])
def test_with_exchanges_in_warps(device, module, n):
    x = np.random.default_rng().integers(0, 1000, 64)
    out = array(device, [-1] * 64)
    module.shifted[1, 64](array(device, x), out, array(device, [0, 3, n]))
    for _ in range(3):
        x[1:n] += x[: n - 1].copy()
    assert out.tolist() == x.tolist()


PARTS = """
__global__ void parts(const int *in, int *out)
{
    __shared__ int s[64], r[64];
    int t = threadIdx.x;
    if (t < 64) {
        s[t] = in[t];
        asm volatile("bar.sync 1, 64;" ::: "memory");
        int x = s[63 - t];
        for (int k = 0; k < 3; k++) {
            asm volatile("bar.sync %0, %1;" :: "r"(1), "n"(64) : "memory");
            s[t] = x + k;
            asm volatile("barrier.sync 1, 64;" ::: "memory");
            x = s[(t + 1) % 64];
        }
        out[t] = x;
    } else {
        r[t - 64] = in[t] * 2;
        asm volatile("bar.sync 2, 64;" ::: "memory");
        out[t] = r[127 - t];
    }
    asm volatile("bar.sync 3, %0;" :: "r"(blockDim.x) : "memory");
    out[128 + t] = s[t % 64] + r[t % 64];
}
__global__ void shared_by_parts(int *out)
{
    if (threadIdx.x < 64) {
        out[0] = 1;
        asm volatile("bar.sync 1, 128; bar.sync 2, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128; bar.sync 3, 64;" ::: "memory");
    }
}
"""


def test_barriers_of_parts(device):
    x = np.random.default_rng().integers(0, 1000, 128)
    out = array(device, [-1] * 256)
    td.cuda_module(PARTS).parts[1, 128](array(device, x), out)
    s = first = x[63::-1]
    for k in range(3):
        s, first = first + k, np.roll(first + k, -1)
    r = x[64:] * 2
    assert out.tolist() == [*first, *r[::-1], *(s + r), *(s + r)]


def test_barriers_that_parts_share():
    kernel = td.cuda_module(PARTS).shared_by_parts
    assert "bar.sync" in kernel.source("ptx", block=128)
    with pytest.raises(td.errors.CompileError, match="Give each branch its own barriers"):
        kernel.source("wgsl", block=128)


FETCHING = """
__global__ void fetching(int *next, const int *x, int *out, int n)
{
    __shared__ int base;
    for (;;) {
        __syncthreads();
        if (threadIdx.x == 0) base = atomicAdd(next, blockDim.x);
        __syncthreads();
        int i = base + threadIdx.x;
        if (i >= n) return;
        if (x[i] == 0) continue;
        out[i] = 2 * x[i] + 1;
    }
}
"""


def test_in_a_loop_that_only_returns_end(device):
    """Threads fetch work until there is none."""
    x = np.random.default_rng().integers(0, 5, 300).astype(np.int32)
    out = td.full((300,), -7, dtype=td.int32, device=device)
    following = td.zeros(1, dtype=td.int32, device=device)
    td.cuda_module(FETCHING).fetching[3, 64](following, td.asarray(x, device=device), out, 300)
    assert (out.numpy() == np.where(x == 0, -7, 2 * x + 1)).all()
    assert following.item() >= 300
