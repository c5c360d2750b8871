"""CUDA C++ in a browser

A reduction as it is written for NVIDIA's cards, and what your GPU is given instead.
"""

import playground
import treadle as td

source = """
__global__ void block_sums(const float *x, float *sums, int n) {
    __shared__ float part[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
"""

n, threads = 100_000, 128
blocks = -(-n // threads)
x = td.ones(n)
sums = td.zeros(blocks)
kernel = td.cuda_module(source).block_sums
kernel[blocks, threads](x, sums, n)

print("sum of", n, "ones:", (await sums.numpy_async()).sum())
playground.columns({"CUDA C++": source, "WGSL": kernel.source("wgsl", block=threads)})
