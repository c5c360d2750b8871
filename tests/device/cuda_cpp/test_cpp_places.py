"""Where CUDA C++ kernels run and what they share: indices, memories, barriers, fences."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileError, LaunchError

INDICES = td.cuda_module("""
struct Where { unsigned x, y, z; };

__device__ unsigned linear_block() {
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

__global__ void places(unsigned *out, unsigned *extents)
{
    unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned at = linear_block() * threads + thread;
    dim3 block = blockIdx;
    uint3 inner = threadIdx;
    out[6 * at] = inner.x;
    out[6 * at + 1] = inner.y;
    out[6 * at + 2] = inner.z;
    out[6 * at + 3] = block.x;
    out[6 * at + 4] = block.y;
    out[6 * at + 5] = block.z;
    if (at == 0) {
        dim3 sizes = blockDim, grid(gridDim.x, gridDim.y);
        grid.z = gridDim.z;
        extents[0] = sizes.x; extents[1] = sizes.y; extents[2] = sizes.z;
        extents[3] = grid.x;  extents[4] = grid.y;  extents[5] = grid.z;
        dim3 one, two(7), made = dim3(1, 2, 3);
        extents[6] = one.x + one.y + one.z + two.x * two.y * two.z + made.z;
        extents[7] = warpSize;
    }
}

__global__ void __launch_bounds__(32, 2) bounded(int *out) { out[threadIdx.x] = -int(threadIdx.x); }

__global__ void below_zero(int *out)
{
    out[threadIdx.x] = threadIdx.x - 2 > 0;               // unsigned: wraps
    out[threadIdx.x + 4] = (int)threadIdx.x - 2 > 0;
}
""")


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((5, 1, 1), (7, 1, 1)),
        ((3, 5, 1), (2, 3, 1)),
        ((2, 3, 2), (3, 2, 3)),
        ((1, 1, 3), (1, 5, 2)),
    ],
)
def test_built_in_variables(device, grid, block):
    threads = int(np.prod(grid) * np.prod(block))
    out = td.zeros((threads, 6), dtype=td.uint32, device=device)
    extents = td.zeros(8, dtype=td.uint32, device=device)
    INDICES.places[grid, block](out, extents)
    expected = [
        (x, y, z, i, j, k)
        for k in range(grid[2]) for j in range(grid[1]) for i in range(grid[0])
        for z in range(block[2]) for y in range(block[1]) for x in range(block[0])
    ]  # fmt: skip
    np.testing.assert_array_equal(out.numpy(), expected)
    assert extents.tolist() == [*block, *grid, 3 + 7 + 3, 32]


def test_launch_bounds_and_unsigned_indices(device):
    out = td.zeros(32, dtype=td.int32, device=device)
    INDICES.bounded[1, 32](out)
    assert out.tolist() == [-i for i in range(32)]
    with pytest.raises(LaunchError, match="__launch_bounds__ allow 32"):
        INDICES.bounded[1, 33](out)
    out = td.zeros(8, dtype=td.int32, device=device)
    INDICES.below_zero[1, 4](out)
    assert out.tolist() == [1, 1, 0, 1, 0, 0, 0, 1]


SHARED = td.cuda_module("""
#define N 24
struct __align__(8) Pair { float value; int index; };
struct Tile { float rows[4][6]; int count; };

template <typename T> __device__ T *scratch()
{
    __shared__ T own[N];                         // one for each instance
    return own;
}

__device__ __forceinline__ int reversed(int value)
{
    __shared__ int line[N];
    line[threadIdx.x] = value;
    __syncthreads();
    int found = line[N - 1 - threadIdx.x];
    __syncthreads();
    return found;
}

__device__ __noinline__ float scaled(const float *__restrict__ x, float by) { return *x * by; }

__global__ void tiles(const float *__restrict__ in, float *__restrict__ out)
{
    __shared__ float tile[4][6 + 1];
    __shared__ Pair pairs[N];
    __shared__ Tile whole;
    __shared__ int total;
    int i = threadIdx.x, row = i / 6, column = i % 6;
    if (i == 0) {
        total = 0;
        whole.count = 3;
    }
    tile[row][column] = in[i];
    whole.rows[row][column] = 2 * in[i];
    pairs[i].value = in[i];
    pairs[i].index = i;
    __syncthreads();
    atomicAdd(&total, pairs[N - 1 - i].index);
    float (*view)[7] = tile;
    out[i] = view[3 - row][5 - column];
    out[N + i] = whole.rows[row][(column + 1) % 6] + whole.count;
    Pair *p = &pairs[(i + 1) % N];
    out[2 * N + i] = p->value * p->index;
    __syncthreads();
    out[3 * N + i] = total;
    out[4 * N + i] = reversed(i) + 100 * reversed(2 * i);
    scratch<float>()[i] = 0.5f * i;
    scratch<int>()[i] = -i;
    __syncthreads();
    out[5 * N + i] = scaled(scratch<float>() + N - 1 - i, 4) + scratch<int>()[(i + 1) % N];
}

extern __shared__ float bytes_of_all[];

__device__ float from_dynamic(int at) { return bytes_of_all[at]; }

__global__ void dynamic(float *out, int n)
{
    extern __shared__ float bytes_of_all[];
    float *floats = bytes_of_all;                // n floats, then n ints, then n shorts
    int *ints = (int *)&floats[n];
    short *shorts = reinterpret_cast<short *>(ints + n);
    int i = threadIdx.x;
    floats[i] = 0.5f * i;
    ints[i] = -i;
    shorts[i] = (short)(1000 - i);
    __syncthreads();
    int other = n - 1 - i;
    out[i] = floats[other] + 10 * ints[other] + 100 * shorts[other];
    out[n + i] = from_dynamic((i + 1) % n);
}

__global__ void typed_views(int *out, int n)
{
    extern __shared__ __align__(16) unsigned char raw[];
    double2 *none = nullptr;
    float4 *vectors = reinterpret_cast<float4 *>(raw);
    Pair *pairs = (Pair *)(raw + n * sizeof(float4));
    int i = threadIdx.x;
    vectors[i] = make_float4(i, i + 1, i + 2, i + 3);
    pairs[i].value = 0.25f;
    pairs[i].index = 7 * i;
    __syncthreads();
    int other = (i + 1) % n;
    float4 v = vectors[other];
    out[i] = int(v.x + v.y + v.z + v.w) + pairs[other].index + int(4 * pairs[other].value);
    out[n + i] = none == nullptr ? ((int *)raw)[4 * other] == __float_as_int((float)other) : -1;
}
""")


def test_shared_memory(device):
    n = 24
    x = np.arange(n, dtype=np.float32) * 0.5 + 1
    out = td.zeros((6, n), device=device)
    SHARED.tiles[1, n](td.asarray(x, device=device), out)
    got = out.numpy()
    np.testing.assert_array_equal(got[0], x[::-1])
    np.testing.assert_array_equal(got[1], 2 * np.roll(x.reshape(4, 6), -1, axis=1).ravel() + 3)
    np.testing.assert_array_equal(got[2], np.roll(x * np.arange(n), -1))
    assert (got[3] == n * (n - 1) // 2).all()
    i = np.arange(n)
    np.testing.assert_array_equal(got[4], i[::-1] + 100 * 2 * i[::-1])
    np.testing.assert_array_equal(got[5], 2.0 * i[::-1] - (i + 1) % n)


def test_dynamic_shared_memory_under_several_types(device):
    n = 10
    out = td.zeros((2, n), device=device)
    SHARED.dynamic[1, n, n * 10](out, n)
    other = np.arange(n)[::-1]
    mixed = 0.5 * other - 10 * other + 100 * (1000 - other)
    np.testing.assert_array_equal(out.numpy(), [mixed, np.roll(np.arange(n), -1) / 2])
    out = td.zeros((2, n), dtype=td.int32, device=device)
    SHARED.typed_views[1, n, n * 24](out, n)
    k = np.roll(np.arange(n), -1)
    np.testing.assert_array_equal(out.numpy(), [4 * k + 6 + 7 * k + 1, np.ones(n)])


VARIABLES = """
struct Entry { float scale; int shift[2]; float2 offset; };

__constant__ float coefficients[4] = {1.0f, -0.5f};
__constant__ int grid2[2][3] = {{1, 2, 3}, {4, 5}};
__constant__ Entry entries[2] = {{2.0f, {1, 2}, {0.5f, 0.25f}}, {3.0f, {4}}};
__constant__ double unused_double = 2.5;
__constant__ const unsigned char letters[] = "abc";
__device__ int counter = 5;
__device__ float field[3][4];
__device__ Entry record = {1.5f, {7, 8}};
__device__ unsigned history[8];
static __device__ const float third = 1.0f / 3.0f;
namespace inner { __device__ int hidden = 11; }

__device__ float horner(float x)
{
    float sum = 0.0f;
    for (int k = 3; k >= 0; k--)
        sum = sum * x + coefficients[k];
    return sum;
}

__device__ int *where(bool first) { return first ? &counter : &inner::hidden; }

__device__ void note(unsigned *list, unsigned value) { list[atomicAdd(&counter, 1) % 8] = value; }

__global__ void read(float *out)
{
    int i = threadIdx.x;
    out[i] = horner((float)i);
    out[6 + i] = grid2[i / 3][i % 3] + letters[i % 3];
    const Entry &e = entries[i % 2];
    out[12 + i] = e.scale * e.shift[i / 3] + e.offset.x + e.offset.y;
    out[18 + i] = third;
}

__global__ void write(int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    field[i / 4][i % 4] = i * 0.5f;
    if (i == 0) {
        record.shift[1] += record.shift[0];
        record.offset = make_float2(3, 4);
        *where(false) += 1;
    }
    note(history, i);
}
"""


def test_variables_of_the_file(device):
    module = td.cuda_module(VARIABLES)
    out = td.zeros((4, 6), device=device)
    module.read[1, 6](out)
    i = np.arange(6)
    expected = [
        1 - 0.5 * i,
        [1 + 97, 2 + 98, 3 + 99, 4 + 97, 5 + 98, 99],
        [2.75, 12, 2.75, 0, 4.75, 0],
        np.full(6, np.float32(1) / np.float32(3)),
    ]
    np.testing.assert_array_equal(out.numpy(), np.float32(expected))
    module.constants["coefficients"] = [0, 1, 2, 3]
    module.constants["grid2"] = np.arange(6, dtype=np.int32).reshape(2, 3)
    module.read[1, 6](out)
    np.testing.assert_array_equal(out.numpy()[0], i + 2 * i**2 + 3 * i**3)
    np.testing.assert_array_equal(out.numpy()[1], i + np.array([97, 98, 99] * 2))

    module.write[3, 4](10)
    assert module.constants["counter"] == 15
    field = module.constants["field"]
    np.testing.assert_array_equal(field.ravel()[:10], np.arange(10) * 0.5)
    assert (field.ravel()[10:] == 0).all()
    assert module.constants["record"]["shift"].tolist() == [7, 15]
    assert module.constants["record"]["offset"].tolist() == [3, 4]
    assert module.constants["inner::hidden"] == 12
    assert set(module.constants["history"].tolist()) <= set(range(10))
    assert module.constants["letters"].tolist() == [97, 98, 99, 0]
    assert module.constants["unused_double"] == 2.5


BARRIERS = td.cuda_module("""
__device__ int sum_of_block(int value, int *scratch)
{
    int i = threadIdx.x;
    scratch[i] = value;
    __syncthreads();
    for (unsigned stride = blockDim.x / 2; stride > 0; stride >>= 1) {
        if (i < stride)
            scratch[i] += scratch[i + stride];
        __syncthreads();
    }
    int total = scratch[0];
    __syncthreads();
    return total;
}

__global__ void loops(const int *in, int *out)
{
    __shared__ int scratch[64];
    int i = threadIdx.x;
    int total = 0;
    for (int round = 0; round < 3; round++)
        total += sum_of_block(in[i] * (round + 1), scratch);
    out[i] = total;
    do {
        __syncthreads();
        total -= 1000;
    } while (total > 0);
    out[64 + i] = total;
}

__global__ void early(int *out, int n)
{
    __shared__ int line[64];
    int i = threadIdx.x;
    line[i] = 1;
    if (blockIdx.x * blockDim.x + i >= n)
        return;
    line[i] = i;
    __syncthreads();
    if (i % 2)
        return;
    out[blockIdx.x * blockDim.x + i] = line[i + 1];
}

__global__ void counting(const int *in, int *out)
{
    int i = threadIdx.x + blockDim.x * threadIdx.y;
    int value = in[i];
    int odd = __syncthreads_count(value & 1);
    int all = __syncthreads_and(value > 0) ? 1 : 0;
    int any = __syncthreads_or(value == 7);
    out[i] = odd + 100 * all + (any != 0) * 1000;

    __shared__ int steps;
    if (i == 0)
        steps = 0;
    int left = value;
    while (__syncthreads_or(left > 0)) {         // as many rounds as the largest takes
        left--;
        __syncthreads();
        if (i == 0)
            steps++;
        __syncthreads();
    }
    out[40 + i] = steps;
    int rounds = 0;
    for (;;) {
        int finished = __syncthreads_count(rounds >= value);
        if (finished == blockDim.x * blockDim.y)
            break;
        __syncthreads();
        rounds++;
    }
    out[80 + i] = rounds;
}

__global__ void warps(int *out)
{
    __shared__ volatile int line[64];
    int i = threadIdx.x, lane = i % 32;
    line[i] = i;
    __syncwarp();
    if (lane < 16)
        line[i] += line[i + 16];
    __syncwarp(0xffffffff);
    out[i] = line[i];
}

__global__ void fenced(int *out, int *flag)
{
    out[threadIdx.x] = 3;
    __threadfence_block();
    __threadfence();
    if (threadIdx.x == 0)
        atomicExch(flag, 1);
}
""")


def test_barriers_in_loops_and_after_returns(device):
    values = np.arange(64, dtype=np.int32)
    out = td.zeros((2, 64), dtype=td.int32, device=device)
    BARRIERS.loops[1, 64](td.asarray(values, device=device), out)
    total = 6 * int(values.sum())
    np.testing.assert_array_equal(out.numpy()[0], np.full(64, total))
    np.testing.assert_array_equal(out.numpy()[1], np.full(64, total % 1000 - 1000))
    out = td.zeros(80, dtype=td.int32, device=device)
    BARRIERS.early[2, 40](out, 70)
    expected = np.zeros(80, np.int32)
    for block in range(2):
        for i in range(0, 40, 2):
            if block * 40 + i < 70:
                expected[block * 40 + i] = i + 1 if block * 40 + i + 1 < 70 else 1
    np.testing.assert_array_equal(out.numpy(), expected)


# 40 and not 41: Mesa's llvmpipe ends loops wrongly in groups of 8 lanes that are not full.
@pytest.mark.parametrize("block", [(40, 1), (8, 5)])
def test_barriers_that_count(device, block):
    values = np.random.default_rng(4).integers(1, 9, 40).astype(np.int32)
    cases = values, np.where(np.arange(40) == 31, 0, values), np.where(values == 7, 6, values)
    for case in cases:
        out = td.zeros((3, 40), dtype=td.int32, device=device)
        BARRIERS.counting[1, block](td.asarray(case.astype(np.int32), device=device), out)
        odd, every, some = int((case & 1).sum()), int((case > 0).all()), int((case == 7).any())
        expected = odd + 100 * every + 1000 * some
        assert (out.numpy()[0] == expected).all()
        assert (out.numpy()[1] == case.max()).all()
        assert (out.numpy()[2] == case.max()).all()


def test_barriers_of_warps(device):
    out = td.zeros(64, dtype=td.int32, device=device)
    BARRIERS.warps[1, 64](out)
    i = np.arange(64)
    np.testing.assert_array_equal(out.numpy(), np.where(i % 32 < 16, 2 * i + 16, i))


def test_fences_of_the_device(device):
    out = td.zeros(4, dtype=td.int32, device=device)
    flag = td.zeros(1, dtype=td.int32, device=device)
    if device.backend == "webgpu" and "device_fences" not in device.features:
        with pytest.raises(CompileError, match="fence"):
            BARRIERS.fenced[1, 4](out, flag)
        return
    BARRIERS.fenced[1, 4](out, flag)
    assert out.tolist() == [3, 3, 3, 3]
    assert flag.tolist() == [1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("coefficient = 2.0f;", "coefficient is __constant__"),
        ("host_side += 1;", "host_side is a host variable"),
        ("float x[]; x[0] = 1;", "needs a length"),
        ("__shared__ int line[2] = {1};", "line is __shared__, so it cannot have an initializer"),
        ("threadIdx.w;", "w"),
        ("threadIdx.x = 3;", "threadIdx"),
        ("dim3 block(1, 2, 3, 4);", "up to 3 extents"),
        ("__syncthreads_count();", "takes 1 argument"),
    ],
)
def test_refusals(body, message):
    text = (
        "__constant__ float coefficient;\nint host_side;\n"
        f"__global__ void k(int *out)\n{{\n    {body}\n}}\n"
    )
    with pytest.raises(CompileError, match=message) as caught:
        td.cuda_module(text).k.source("wgsl")
    assert caught.value.line == 5


_NAMES = ("result", "index", "bound", "inside", "value", "old")


@pytest.mark.parametrize("name", _NAMES)
def test_arrays_with_the_names_of_a_printer(device, name):
    """Local, shared and global arrays may be named as variables of the functions that access them
    within their bounds."""
    text = f"""__global__ void k(const int *{name}, int *out, int n) {{ out[0] = {name}[n]; }}
    __global__ void local(const int *x, int *out, int n)
    {{ int {name}[4]; for (int i = 0; i < 4; i++) {name}[i] = x[i] * 2; out[1] = {name}[n]; }}
    __global__ void shared(const int *x, int *out, int n) {{ __shared__ int {name}[4];
      if (threadIdx.x < 4) {name}[threadIdx.x] = x[threadIdx.x] * 3; __syncthreads();
      if (threadIdx.x == 0) out[2] = {name}[n]; }}"""
    module = td.cuda_module(text)
    x = td.asarray(np.array([5, 6, 7, 8], np.int32), device=device)
    out = td.asarray(np.zeros(3, np.int32), device=device)
    for kernel in (module.k, module.local, module.shared):
        kernel[1, 32](x, out, 2)
    assert out.tolist() == [7, 14, 21]


TEMPLATES = """
namespace conv { template <class T> __constant__ T mask[3]; }
struct Members { template <class T> static __device__ T uses; };
template <class T> __device__ T Members::uses = 3;
template <class T> __device__ T state;
template <> __device__ int state<int> = 7;
template <class T, int N = 2> __device__ T first[N] = {T(1), T(2)};
template <class T> __constant__ T scale = T(3);
template <class T> __device__ T doubled() { return scale<T> * first<T>[1]; }

template <class T> __global__ void run(const T *x, T *y)
{
    static_assert(sizeof(conv::mask<T>) == 3 * sizeof(T));
    int i = threadIdx.x;
    T sum = 0;
    for (int j = 0; j < 3; j++) sum += x[i + j] * conv::mask<T>[j];
    y[i] = sum + doubled<T>();
    if (i == 0) {
        state<T> += T(2);
        Members::uses<T>++;
        first<T, 3>[2] = sum;
    }
}

__global__ void count(int *out) { out[threadIdx.x] = atomicAdd(&state<int>, 1); }
"""


def test_templates_of_variables(device):
    module = td.cuda_module(TEMPLATES)
    module.constants["conv::mask<float>"] = [1, 10, 100]
    x, y = td.asarray(np.arange(6, dtype=np.float32), device=device), td.zeros(4, device=device)
    kernel = module.kernel("run", td.f32)
    for _ in range(2):
        kernel[1, 4](x, y)
    assert y.tolist() == [216, 327, 438, 549]
    values = module.constants.on(device)
    assert values["state<float>"] == 4
    assert values["first<float, 3>"].tolist() == [1, 2, 210]
    assert values["Members::uses<float>"] == 5
    assert values["first<float>"].tolist() == [1, 2]

    numbers = td.asarray(np.arange(6, dtype=np.int32), device=device)
    out = td.zeros(4, dtype=td.int32, device=device)
    module.constants["scale<int>"] = 5
    module.constants["conv::mask<int>"] = [1, 2, 3]
    module.kernel("run", td.i32)[1, 4](numbers, out)
    assert out.tolist() == [18, 24, 30, 36]
    module.count[1, 2](out)
    assert sorted(out.tolist()[:2]) == [9, 10]
    assert values["state<int>"] == 11
    assert values["state<float>"] == 4
