// The accelerations of bodies by each other; positions and masses of a block's tile in shared memory.

#define TILE 256

__device__ float3 pulled(float3 sum, float4 mine, float4 other, float softening)
{
    float3 apart = make_float3(other.x - mine.x, other.y - mine.y, other.z - mine.z);
    float squared = apart.x * apart.x + apart.y * apart.y + apart.z * apart.z + softening;
    float inverse = rsqrtf(squared);
    float strength = other.w * inverse * inverse * inverse;
    sum.x += apart.x * strength;
    sum.y += apart.y * strength;
    sum.z += apart.z * strength;
    return sum;
}

__global__ void nbody(const float4 *__restrict__ bodies, float4 *__restrict__ accelerations, int n,
                      float softening)
{
    __shared__ float4 tile[TILE];

    int i = blockIdx.x * TILE + threadIdx.x;
    float4 mine = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);

    for (int start = 0; start < n; start += TILE) {
        int j = start + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < TILE; k++)
            sum = pulled(sum, mine, tile[k], softening);
        __syncthreads();
    }
    if (i < n)
        accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0.0f);
}
