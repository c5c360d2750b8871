// A step of heat conduction in a box: seven points, each thread goes along z and keeps three of them.

__constant__ float weights[2];

__global__ void stencil(const float *__restrict__ in, float *__restrict__ out, int nx, int ny,
                        int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;

    const int plane = nx * ny;
    int at = y * nx + x;
    float below, here = in[at], above = in[at + plane];
    for (int z = 1; z < nz - 1; z++) {
        at += plane;
        below = here;
        here = above;
        above = in[at + plane];
        out[at] = weights[0] * here +
                  weights[1] * (below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
    }
}
