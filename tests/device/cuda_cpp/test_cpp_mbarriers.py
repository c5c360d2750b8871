"""mbarrier and cp.async.bulk, in inline PTX and of <cuda/ptx>: who waits sees what others wrote."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

INLINE = r"""
__device__ __forceinline__ unsigned address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void wait(unsigned bar, unsigned parity)
{
    asm volatile("{ .reg .pred P1; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;"
                 "@P1 bra DONE; bra LAB_WAIT; DONE: }" :: "r"(bar), "r"(parity));
}
__global__ void stages(const float *x, float *y, int tiles)
{
    __shared__ alignas(128) float tile[2][64];
    __shared__ alignas(8) unsigned long long full[2], done;
    int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                         :: "r"(address(&full[s])), "r"(1));
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(address(&done)), "r"(64));
        asm volatile("fence.mbarrier_init.release.cluster;");
    }
    __syncthreads();
    for (int i = 0; i < tiles; i++) {
        int s = i % 2;
        if (t == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :: "r"(address(&full[s])), "r"(256) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];"
                         :: "r"(address(tile[s])), "l"(x + (blockIdx.x * tiles + i) * 64), "r"(256),
                            "r"(address(&full[s])) : "memory");
        }
        wait(address(&full[s]), i / 2 % 2);
        y[(blockIdx.x * tiles + i) * 64 + t] = tile[s][63 - t] * 2;
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(address(&done)));
        int ready;
        do {
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
                         "selp.b32 %0, 1, 0, p; }"
                         : "=r"(ready) : "r"(address(&done)), "r"(i % 2));
        } while (!ready);
    }
}
"""
FUNCTIONS = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;
__global__ void stages(const float *x, float *y, int tiles)
{
    __shared__ alignas(128) float tile[64];
    __shared__ uint64_t full, done;
    int t = threadIdx.x;
    if (t == 0) {
        ptx::mbarrier_init(&full, 1);
        ptx::mbarrier_init(&done, 64);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    __syncthreads();
    for (int i = 0; i < tiles; i++) {
        int at = (blockIdx.x * tiles + i) * 64;
        if (t == 0) {
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared,
                                           &full, 256);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, x + at, 256, &full);
        }
        while (!ptx::mbarrier_try_wait_parity(&full, i % 2)) {}
        float mine = tile[63 - t] * 2;
        uint64_t state = ptx::mbarrier_arrive(&done);
        while (!ptx::mbarrier_try_wait(&done, state)) {}
        tile[t] = mine;
        ptx::fence_proxy_async(ptx::space_shared);
        __syncthreads();
        if (t == 0) {
            ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + at, tile, 256);
            ptx::cp_async_bulk_commit_group();
            ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
        }
        __syncthreads();
    }
}
"""


@pytest.mark.parametrize("source", [INLINE, FUNCTIONS], ids=["inline", "functions"])
def test_copies_in_stages(device, source):
    x = np.random.default_rng().normal(size=(2 * 3, 64)).astype(np.float32)
    y = td.full((6, 64), np.nan, device=device)
    td.cuda_module(source).stages[2, 64](td.asarray(x, device=device), y, 3)
    np.testing.assert_array_equal(y.numpy(), 2 * x[:, ::-1])


COUNTS = """
__global__ void counts(unsigned *out)
{
    __shared__ unsigned long long bar[2];
    unsigned long long state;
    unsigned pending, first, second, third;
    asm volatile("mbarrier.init.b64 [%0], 3;" :: "l"(bar));
    asm volatile("mbarrier.arrive.b64 %0, [%1], 2;" : "=l"(state) : "l"(bar));
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }"
                 : "=r"(first) : "l"(bar));
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "l"(bar));
    asm volatile("mbarrier.arrive_drop.b64 _, [%0];" :: "l"(bar));
    asm volatile("{ .reg .pred p; mbarrier.test_wait.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(second) : "l"(bar), "l"(state));
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "l"(bar));
    asm volatile("{ .reg .pred p; mbarrier.test_wait.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(third) : "l"(bar), "l"(state));
    asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(state) : "l"(bar));
    out[0] = pending; out[1] = first; out[2] = second; out[3] = third;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[4]) : "l"(state));
}
"""


def test_counts(device):
    """Of a phase with three arrivals, then of one without the thread that has dropped out."""
    out = td.zeros(5, dtype=td.uint32, device=device)
    td.cuda_module(COUNTS).counts[1, 1](out)
    assert out.tolist() == [3, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned multiplies tiles by units"),
        ("bar.arrive 1, 64;", "arrives where others wait"),
        ("tex.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}];", "use tex2D"),
        ("cp.async.bulk.tensor.1d.shared::cluster.global [p], [q, {r}], [s];", "a tensor map"),
    ],
)
def test_refused(text, message):
    kernel = td.cuda_module(f'__global__ void k() {{ asm volatile("{text}"); }}').k
    with pytest.raises(td.errors.CompileError, match=message):
        kernel.source("ir")


EXCHANGED = """
#include <cuda/barrier>
__global__ void exchanged(int *out)
{
    __shared__ cuda::barrier<cuda::thread_scope::thread_scope_block> one, other;
    __shared__ int data[2][32];
    auto *front = &one, *back = &other;
    if (threadIdx.x == 0) { init(front, 32); init(&other, 32); }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        data[i & 1][threadIdx.x] = threadIdx.x * 10 + i;
        front->arrive_and_wait();
        sum += data[i & 1][31 - threadIdx.x];
        (*back).arrive_and_wait();
        auto *kept = front;
        front = back;
        back = kept;
    }
    out[threadIdx.x] = sum;
}
"""


def test_pointers_to_barriers_that_are_exchanged(device):
    out = td.zeros(32, dtype=td.int32, device=device)
    td.cuda_module(EXCHANGED).exchanged[1, 32](out)
    assert out.tolist() == [40 * (31 - i) + 6 for i in range(32)]
