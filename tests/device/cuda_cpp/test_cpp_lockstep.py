"""Code that counts on the threads of a warp being in step: warned of, and right if asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import WarpSynchronousWarning

# As the samples of CUDA had it before Volta.
REDUCTIONS = """
template <unsigned blockSize> __device__ void warp_reduce(volatile int *s, unsigned t)
{
    if (blockSize >= 64) s[t] += s[t + 32];
    if (blockSize >= 32) s[t] += s[t + 16];
    if (blockSize >= 16) s[t] += s[t + 8];
    if (blockSize >= 8) s[t] += s[t + 4];
    if (blockSize >= 4) s[t] += s[t + 2];
    if (blockSize >= 2) s[t] += s[t + 1];
}
template <unsigned blockSize> __global__ void unrolled(const int *in, int *out, unsigned n)
{
    extern __shared__ int data[];
    unsigned t = threadIdx.x, i = blockIdx.x * blockSize * 2 + t;
    int sum = 0;
    for (; i < n; i += blockSize * 2 * gridDim.x) {
        sum += in[i];
        if (i + blockSize < n) sum += in[i + blockSize];
    }
    data[t] = sum;
    __syncthreads();
    if (blockSize >= 128) { if (t < 64) data[t] += data[t + 64]; __syncthreads(); }
    if (t < 32) warp_reduce<blockSize>(data, t);
    if (t == 0) out[blockIdx.x] = data[0];
}
__global__ void with_sums(const int *in, int *out, unsigned n)
{
    __shared__ int data[96];
    unsigned t = threadIdx.x;
    int sum = t < n ? in[t] : 0;
    data[t] = sum;
    __syncthreads();
    if (t < 32) {
        volatile int *s = data;
        s[t] = sum = sum + s[t + 32];
        for (int by = 16; by > 0; by >>= 1) s[t] = sum = sum + s[t + by];
        if (t == 0) out[0] = sum;
    }
}
"""

# Each thread reads what the one below wrote before: the order within a statement matters, too.
SCANS = """
__global__ void scan(const int *in, int *out, int n)
{
    volatile __shared__ int data[128];
    int t = threadIdx.x, at = 2 * t - (t & 31);
    data[at] = 0;
    at += 32;
    data[at] = in[t];
    for (int by = 1; by < 32; by <<= 1) data[at] += data[at - by];
    out[t] = data[at];
}
__global__ void parted(const int *in, int *out, int n)
{
    __shared__ int data[64];
    volatile int *s = data;
    int t = threadIdx.x, lane = t & 31;
    s[t] = in[t];
    if (lane >= 1) s[t] += s[t - 1];
    if (lane >= 2) s[t] += s[t - 2];
    out[t] = s[t];
}
"""


def module_of(source):
    return td.cuda_module(source, warp_synchronous=True)


@pytest.mark.parametrize("block", [16, 128])
def test_unrolled_reductions(device, rng, block):
    values = rng.integers(-1000, 1000, 1000).astype(np.int32)
    out = td.zeros(3, dtype=td.int32, device=device)
    kernel = module_of(REDUCTIONS).kernel("unrolled", block)
    kernel[3, block, 4 * (block + 32)](td.asarray(values, device=device), out, 1000)
    assert int(out.numpy().sum()) == int(values.sum())


def test_a_reduction_that_keeps_its_sum(device, rng):
    values = rng.integers(-1000, 1000, 64).astype(np.int32)
    out = td.zeros(1, dtype=td.int32, device=device)
    module_of(REDUCTIONS).with_sums[1, 64](td.asarray(values, device=device), out, 64)
    assert out.tolist() == [int(values.sum())]


@pytest.mark.parametrize("kernel", ["scan", "parted"])
def test_scans(device, rng, kernel):
    values = rng.integers(-1000, 1000, (2, 32)).astype(np.int32)
    out = td.zeros(64, dtype=td.int32, device=device)
    module_of(SCANS).kernel(kernel)[1, 64](td.asarray(values.ravel(), device=device), out, 64)
    sums = np.cumsum(values, 1)
    if kernel == "parted":  # of four at most
        sums[:, 4:] -= np.cumsum(values, 1)[:, :-4]
    np.testing.assert_array_equal(out.numpy().reshape(2, 32), sums)


@pytest.mark.parametrize(
    ("source", "kernel", "line"),
    [(REDUCTIONS, "unrolled", 5), (REDUCTIONS, "with_sums", 36), (SCANS, "scan", 9),
     (SCANS, "parted", 18)],
)  # fmt: skip
def test_a_warning_when_it_is_compiled(tmp_path, source, kernel, line):
    path = tmp_path / "old.cu"
    path.write_text(source)
    module = td.cuda_module(path)
    made = module.kernel(kernel, *([64] if kernel == "unrolled" else []))
    with pytest.warns(WarpSynchronousWarning, match="__syncwarp|warp_synchronous=True") as said:
        made.source("wgsl", block=64, shared_bytes=512)
    assert [(one.filename, one.lineno) for one in said] == [(str(path), line)]
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        made.source("llvm", block=64, shared_bytes=512)
    (note,) = module.report()[made.name].warned
    assert note.span.line == line
    assert f"warned    line {line}: warp-synchronous code: this reads shared" in str(
        module.report()
    )


QUIET = """
__global__ void k(const int *in, int *out)
{
    __shared__ int data[64];
    __shared__ volatile bool done;
    volatile int *s = data;
    int t = threadIdx.x;
    if (t == 0) done = in[0] > 100;
    s[t] = in[t];
    s[t] += t;
    s[t] *= 2;
    __syncthreads();
    if (done) return;
    for (int by = 32; by > 0; by >>= 1) {
        if (t < by) s[t] += s[t + by];
        __syncwarp();
        __syncthreads();
    }
    if (t == 0) out[0] = s[0];
}
"""


def test_code_with_barriers_is_not_warned_of():
    module = td.cuda_module(QUIET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.k.source("wgsl", block=64)
    assert not module.report()["k"].warned


def test_the_report_says_that_warps_are_kept_in_step():
    notes = module_of(SCANS).report()["parted"].emulated
    assert [note.construct for note in notes] == ["warps in step"]
