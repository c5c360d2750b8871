// The sum of an array: each thread sums what is its own, each warp by shuffles, each block in shared
// memory, and all blocks by atomic additions.

__inline__ __device__ float warp_sum(float value)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;
}

__inline__ __device__ float block_sum(float value)
{
    __shared__ float partial[32];
    int lane = threadIdx.x % warpSize;
    int warp = threadIdx.x / warpSize;

    value = warp_sum(value);
    if (lane == 0)
        partial[warp] = value;
    __syncthreads();

    value = threadIdx.x < blockDim.x / warpSize ? partial[lane] : 0.0f;
    if (warp == 0)
        value = warp_sum(value);
    return value;
}

__global__ void sum(const float *__restrict__ x, float *total, int n)
{
    float mine = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        mine += x[i];
    mine = block_sum(mine);
    if (threadIdx.x == 0)
        atomicAdd(total, mine);
}
