// How often each byte occurs, counted in shared memory by each block, and then all together.

#define BINS 256

__global__ void histogram(const unsigned int *__restrict__ data, unsigned int *counts, int n)
{
    __shared__ unsigned int mine[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        mine[bin] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        unsigned int four = data[i];
        atomicAdd(&mine[four & 0xff], 1u);
        atomicAdd(&mine[(four >> 8) & 0xff], 1u);
        atomicAdd(&mine[(four >> 16) & 0xff], 1u);
        atomicAdd(&mine[four >> 24], 1u);
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&counts[bin], mine[bin]);
}
