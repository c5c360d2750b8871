"""CUDA C++ through `td.cuda_module`, on every device: arguments, variables, templates, streams."""

from __future__ import annotations

import enum

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import LaunchError

ARGUMENTS = td.cuda_module("""
enum Mode { ADD = 1, MULTIPLY = 2 };

struct Particle {
    float3 position;
    int charge;
};

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void move_all(Particle *particles, size_t n, float3 by, Particle first)
{
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (i == 0) {
        particles[0] = first;
        return;
    }
    particles[i].position.x += by.x;
    particles[i].position.y += by.y;
    particles[i].position.z += by.z;
    particles[i].charge = -particles[i].charge;
}

__global__ void sums(const float4 *rows, float *out, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        float4 row = rows[i];
        out[i] = row.x + row.y + row.z + row.w;
    }
}

__global__ void optional(const int *mask, int *out, int n, enum Mode mode, bool twice)
{
    int i = threadIdx.x;
    if (i >= n)
        return;
    if (mask != nullptr && !mask[i])
        return;
    for (int round = 0; round < (twice ? 2 : 1); round++) {
        if (mode == ADD)
            out[i] += 3;
        else
            out[i] *= 3;
    }
}

__global__ void flags(const bool *on, const unsigned char *bytes, signed char *out, long long big)
{
    int i = threadIdx.x;
    out[i] = on[i] ? (signed char)(bytes[i] - 1) : (signed char)(big >> 40);
}
""")


def on(device, values, dtype=np.float32):
    return td.asarray(np.array(values, dtype=dtype), device=device)


def test_arrays_of_any_shape_and_views(device):
    x = on(device, np.arange(35).reshape(5, 7))
    y = on(device, np.ones(35))
    ARGUMENTS.saxpy[3, 16](35, 0.5, x, y)
    np.testing.assert_array_equal(y.numpy(), np.arange(35) * 0.5 + 1)
    ARGUMENTS.saxpy[(1, 1, 1), (8, 1)](6, 2, x[2], y[10:16])
    expected = np.arange(35) * 0.5 + 1
    expected[10:16] += 2 * np.arange(14, 20)
    np.testing.assert_array_equal(y.numpy(), expected)
    host = np.ones(35, np.float32)
    with td.use_device(device):
        ARGUMENTS.saxpy[3, 16](35, 0.5, np.arange(35, dtype=np.float32), host)
    np.testing.assert_array_equal(host, np.arange(35) * 0.5 + 1)


def test_structs_in_arrays_and_by_value(device):
    @td.struct
    class Particle:
        position: td.vec3[td.f32]
        charge: td.i32

    host = np.zeros(5, Particle.dtype)
    host["position"] = np.arange(15).reshape(5, 3)
    host["charge"] = [1, 2, 3, 4, 5]
    first = Particle(td.vec3[td.f32](7, 8, 9), -1)
    with td.use_device(device):
        ARGUMENTS.move_all[2, 4](host, 5, (0.5, 0.25, 1), first)
    assert host["charge"].tolist() == [-1, -2, -3, -4, -5]
    expected = np.arange(15).reshape(5, 3) + np.array([0.5, 0.25, 1])
    expected[0] = [7, 8, 9]
    np.testing.assert_array_equal(host["position"], expected)
    with td.use_device(device):
        ARGUMENTS.move_all[1, 1](host, 5, [0, 0, 0], {"position": (1, 2, 3), "charge": 6})
    assert host["position"][0].tolist() == [1, 2, 3]
    assert host["charge"].tolist() == [6, -2, -3, -4, -5]


def test_vectors_in_flat_arrays(device):
    x = on(device, np.arange(24))
    out = td.zeros(4, device=device)
    ARGUMENTS.sums[1, 8](td.reshape(x, (6, 4))[1:5], out, 4)
    assert out.tolist() == [22, 38, 54, 70]
    ARGUMENTS.sums[1, 8](x[8:], out, 2)
    assert out.tolist() == [38, 54, 54, 70]
    with pytest.raises(LaunchError, match="begins 2 elements into its memory"):
        ARGUMENTS.sums[1, 8](x[2:22], out, 2)


def test_null_pointers_enums_and_bools(device):
    class Mode(enum.IntEnum):
        ADD = 1
        MULTIPLY = 2

    out = on(device, [1, 2, 3], np.int32)
    ARGUMENTS.optional[1, 4](None, out, 3, Mode.ADD, False)
    assert out.tolist() == [4, 5, 6]
    ARGUMENTS.optional[1, 4](td.zeros(0, dtype=td.int32, device=device), out, 3, 2, True)
    assert out.tolist() == [36, 45, 54]
    ARGUMENTS.optional[1, 4](on(device, [0, 1, 0], np.int32), out, 3, 1, True)
    assert out.tolist() == [36, 51, 54]


def test_narrow_arrays_and_wide_numbers(device):
    flags = on(device, [True, False, True], bool)
    read = on(device, [0, 9, 200], np.uint8)
    out = td.zeros(3, dtype=td.int8, device=device)
    ARGUMENTS.flags[1, 3](flags, read, out, -(5 << 40))
    assert out.tolist() == [-1, -5, -57]


PIECES = td.cuda_module("""
#include <cuda_fp16.h>
#include <stdint.h>

struct Padded { char tag; float scale; short shift; };
__constant__ Padded table[2] = {{1, 0.5f, 3}, {2, 0.25f}};

__global__ void tabled(float *out)
{
    int i = threadIdx.x;
    out[i] = table[i].scale * 8 + table[i].tag + table[i].shift;
}

struct __align__(16) Body { float3 position; };
union Bits { float number; unsigned int bits; };
struct Tagged { Bits bits; int shift; };
class Segment {
    float from, to;
public:
    __host__ __device__ Segment(float a, float b) : from(a), to(b) {}
    __device__ float length() const { return to - from; }
};
__constant__ Body bodies[2] = {{{1, 2, 3}}, {{4, 5, 6}}};

__global__ void measured(float *out, Segment segment, Body body, Tagged tagged)
{
    out[0] = segment.length();
    out[1] = body.position.y + bodies[1].position.z;
    tagged.bits.bits += tagged.shift;
    out[2] = tagged.bits.number;
}

__global__ void doubled(half *x, int n)
{
    int i = threadIdx.x;
    if (i < n)
        x[i] = __hadd(x[i], x[i]);
}

__global__ void swapped(const void *from, void *to, int words)
{
    const uint32_t *source = (const uint32_t *)from;
    uint32_t *target = reinterpret_cast<uint32_t *>(to);
    int i = threadIdx.x;
    if (i < words)
        target[words - 1 - i] = source[i];
}

__global__ void shifted(float *x, const float *same, int n)
{
    int i = threadIdx.x;
    float next = i + 1 < n ? same[i + 1] : 0.0f;
    __syncthreads();
    if (i < n)
        x[i] = next;
}
""")


def test_first_values_of_structs_with_gaps(device):
    out = td.zeros(2, device=device)
    PIECES.tabled[1, 2](out)
    assert out.tolist() == [8, 4]
    assert PIECES.constants["table"]["shift"].tolist() == [3, 0]


def test_classes_unions_and_alignments_by_value(device):
    out = td.zeros(3, device=device)
    PIECES.measured[1, 1](out, (1.5, 4), [(7, 8, 9)], (np.float32(1), 1 << 22))
    assert out.tolist() == [2.5, 14, 1.5]
    assert PIECES.constants["bodies"]["position"].tolist() == [[1, 2, 3], [4, 5, 6]]
    PIECES.constants["bodies"] = [PIECES.constants["bodies"][1], {"position": (0, 0, 1)}]
    PIECES.measured[1, 1](out, (1.5, 4), [(7, 8, 9)], (np.uint32(0), 0))
    assert out.tolist() == [2.5, 9, 0]
    PIECES.constants["bodies"] = [[(1, 2, 3)], [(4, 5, 6)]]


def test_halves(device):
    x = on(device, [1, 2.5, 60000, -0.0, 3], np.float16)
    PIECES.doubled[1, 8](x, 4)
    assert x.tolist() == [2, 5, np.inf, 0, 3]


def test_pointers_to_void(device):
    for values in ([1.5, 2.5, -3.5], [1, 2, 3]):
        x = on(device, values, np.float32 if values[0] == 1.5 else np.int32)
        y = td.zeros_like(x)
        PIECES.swapped[1, 4](x, y, 3)
        assert y.tolist() == values[::-1]


def test_one_array_as_two_arguments(device):
    x = on(device, [1, 2, 3, 4, 5])
    PIECES.shifted[1, 8](x, x, 4)
    assert x.tolist() == [2, 3, 4, 0, 5]
    PIECES.shifted[1, 8](x, x[1:], 3)
    assert x.tolist() == [4, 0, 0, 0, 5]


STATE = """
#define N 3
struct Weights { float scale; int shift; };

__constant__ float coeff[N] = {1.0f, 0.5f, 0.25f};
__constant__ Weights weights;
__device__ int calls = 10;
__device__ int seen[2][N];

__global__ void polynomial(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] = coeff[0] + x[i] * (coeff[1] + x[i] * coeff[2]);
        atomicAdd(&calls, 1);
    }
}

__global__ void weigh(float *x)
{
    x[threadIdx.x] = x[threadIdx.x] * weights.scale + weights.shift;
    if (threadIdx.x < N)
        seen[1][threadIdx.x] = calls + threadIdx.x;
}
"""


def test_variables_of_the_file(device):
    module = td.cuda_module(STATE)
    assert module.constants["calls"] == 10
    x = on(device, [0, 1, 2, 3])
    module.polynomial[1, 4](x, 4)
    np.testing.assert_array_equal(x.numpy(), [1, 1.75, 3, 4.75])
    module.constants["coeff"] = [0, 2, 0]
    module.polynomial[2, 2](x, 3)
    np.testing.assert_array_equal(x.numpy(), [2, 3.5, 6, 4.75])
    assert module.constants["calls"] == 17
    module.constants["weights"] = (2, -1)
    module.weigh[1, 4](x)
    np.testing.assert_array_equal(x.numpy(), [3, 6, 11, 8.5])
    assert module.constants["seen"].tolist() == [[0, 0, 0], [17, 18, 19]]


TEMPLATES = td.cuda_module("""
template <typename T, int BLOCK>
__global__ void block_sums(const T *x, T *sums, int n)
{
    __shared__ T part[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : T(0);
    __syncthreads();
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}

__global__ void reverse(int *x)
{
    extern __shared__ int line[];
    line[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}
""")


@pytest.mark.parametrize("dtype", [td.float32, td.int32])
def test_instances_of_a_template(device, dtype):
    kernel = TEMPLATES.kernel("block_sums", dtype, 64)
    x = td.asarray(np.arange(150), dtype=dtype, device=device)
    sums = td.zeros(3, dtype=dtype, device=device)
    kernel[3, 64](x, sums, 150)
    whole = np.concatenate([np.arange(150), np.zeros(42)]).reshape(3, 64).sum(axis=1)
    np.testing.assert_array_equal(sums.numpy(), whole)


def test_dynamic_shared_memory_and_a_stream(device):
    x = td.asarray(np.arange(33), dtype=td.int32, device=device)
    stream = device.stream()
    TEMPLATES.reverse[1, 33, 33 * 4, stream](x)
    assert x.tolist() == list(range(33))[::-1]
