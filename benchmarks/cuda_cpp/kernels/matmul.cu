// C = A B for square matrices of a multiple of 64 rows, by tiles in shared memory. A block of 16 x 16
// threads makes 64 x 64 elements, 4 x 4 a thread.

#define TILE 64
#define DEPTH 16
#define EACH 4

__global__ void matmul(const float *__restrict__ a, const float *__restrict__ b,
                       float *__restrict__ c, int n)
{
    __shared__ float tile_a[DEPTH][TILE + 1];
    __shared__ float tile_b[DEPTH][TILE];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int thread = ty * blockDim.x + tx;
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;

    float sums[EACH][EACH] = {};

    for (int start = 0; start < n; start += DEPTH) {
#pragma unroll
        for (int k = 0; k < TILE * DEPTH; k += 256) {
            int at = k + thread;
            tile_a[at % DEPTH][at / DEPTH] = a[(row + at / DEPTH) * n + start + at % DEPTH];
            tile_b[at / TILE][at % TILE] = b[(start + at / TILE) * n + column + at % TILE];
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float of_a[EACH], of_b[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                of_a[i] = tile_a[k][ty + 16 * i];
                of_b[i] = tile_b[k][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sums[i][j] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
            c[(row + ty + 16 * i) * n + column + tx + 16 * j] = sums[i][j];
}
