// Running sums: of each block's elements, four a thread; then of the blocks' totals, by one block;
// then what stands before a block is added to its elements.

#define BLOCK 256

__device__ int warp_scan(int value)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(0xffffffffu, value, offset);
        if (lane >= offset)
            value += other;
    }
    return value;
}

// The sum of the values of all threads before this one, and of all threads in `total`.
__device__ int block_scan(int value, int &total)
{
    __shared__ int warps[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

    int running = warp_scan(value);
    if (lane == 31)
        warps[warp] = running;
    __syncthreads();
    if (warp == 0) {
        int sums = lane < (int)(blockDim.x >> 5) ? warps[lane] : 0;
        warps[lane] = warp_scan(sums);
    }
    __syncthreads();

    total = warps[(blockDim.x >> 5) - 1];
    int before = warp > 0 ? warps[warp - 1] : 0;
    __syncthreads();
    return before + running - value;
}

__global__ void scan_blocks(const int4 *__restrict__ x, int4 *__restrict__ out, int *totals, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    int4 mine = i < n ? x[i] : make_int4(0, 0, 0, 0);
    mine.y += mine.x;
    mine.z += mine.y;
    mine.w += mine.z;

    int total;
    int before = block_scan(mine.w, total);
    if (i < n)
        out[i] = make_int4(before + mine.x, before + mine.y, before + mine.z, before + mine.w);
    if (threadIdx.x == 0)
        totals[blockIdx.x] = total;
}

__global__ void scan_totals(int *totals, int n)
{
    int carried = 0;
    for (int start = 0; start < n; start += blockDim.x) {
        int i = start + threadIdx.x;
        int value = i < n ? totals[i] : 0;
        int total;
        int before = block_scan(value, total);
        if (i < n)
            totals[i] = carried + before;
        carried += total;
    }
}

__global__ void add_totals(int4 *out, const int *__restrict__ totals, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) {
        int before = totals[blockIdx.x];
        int4 mine = out[i];
        out[i] = make_int4(mine.x + before, mine.y + before, mine.z + before, mine.w + before);
    }
}
