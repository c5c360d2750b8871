"""What a small program in CUDA C++ gives for the first arguments, beside the values of g++."""

from __future__ import annotations

import treadle as td

COUNT = 8


def results(device, source):
    """`test(0)`, `test(1)`, … of a source with `__device__ int test(int k)`."""
    kernel = "__global__ void run(int *out) { out[threadIdx.x] = test(threadIdx.x); }"
    out = td.zeros(COUNT, dtype=td.int32, device=device)
    td.cuda_module(f"{source}\n{kernel}").run[1, COUNT](out)
    return out.tolist()
