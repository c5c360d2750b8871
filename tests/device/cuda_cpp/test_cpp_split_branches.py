"""Both branches of an `if` wait at barriers, which are the same ones."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

SOURCE = """
__global__ void both(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 32) { s[t] = in[t]; __syncthreads(); out[t] = s[63 - t]; }
    else { s[t] = in[t] * 10; __syncthreads(); out[t] = s[63 - t] + 1; }
}
"""


def test_in_both_branches(device):
    x = np.random.default_rng(3).integers(0, 50, 64)
    out = td.zeros(64, dtype=td.int32, device=device)
    values = td.asarray(x.astype(np.int32), device=device)
    td.cuda_module(SOURCE).both[1, 64](values, out)
    shared = np.where(np.arange(64) < 32, x, x * 10)
    assert out.tolist() == (shared[63 - np.arange(64)] + (np.arange(64) >= 32)).tolist()


def test_what_is_refused_still():
    kernel = td.cuda_module("""
        __global__ void uneven(int *out) {
            if (threadIdx.x < 32) { out[0] = 1; __syncthreads(); out[1] = 2; __syncthreads(); }
            else { __syncthreads(); out[2] = 3; }
            __syncthreads();
            out[3] = 4;
        }
    """).kernel("uneven")
    with pytest.raises(td.errors.CompileError, match="must be reached by all threads"):
        kernel.source("wgsl", block=64)
