"""CUDA's vector types and halves: constructors, members, operators that a file declares itself."""

from __future__ import annotations

import numpy as np

import treadle as td

VECTORS = td.cuda_module("""
inline __host__ __device__ float3 operator+(float3 a, float3 b)
{
    return make_float3(a.x + b.x, a.y + b.y, a.z + b.z);
}
inline __device__ float3 operator*(float3 a, float s)
{
    return make_float3(a.x * s, a.y * s, a.z * s);
}
inline __device__ float3 operator*(float s, float3 a) { return a * s; }
inline __device__ void operator+=(float3 &a, const float3 &b)
{
    a.x += b.x;
    a.y += b.y;
    a.z += b.z;
}
inline __device__ float3 operator-(const float3 &a) { return make_float3(-a.x, -a.y, -a.z); }
inline __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __device__ float dot(float4 a, float4 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
inline __device__ float length(float3 v) { return sqrtf(dot(v, v)); }
inline __device__ float3 cross(float3 a, float3 b)
{
    return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
inline __device__ float4 make_float4(float3 a, float w) { return make_float4(a.x, a.y, a.z, w); }
inline __device__ float3 make_float3(float s) { return make_float3(s, s, s); }
__device__ bool operator==(int2 a, int2 b) { return a.x == b.x && a.y == b.y; }

__global__ void forces(const float3 *points, float4 *out, int n)
{
    __shared__ float3 tile[8];
    int i = threadIdx.x;
    tile[i] = points[i];
    __syncthreads();
    float3 sum = make_float3(0.0f);
    for (int k = 0; k < n; k++)
        sum += 0.5f * (tile[k] + -points[i]);
    sum.y = sum.y + 1;
    float3 pair[2] = {sum, points[i]};
    pair[1].x *= 2;
    float3 *second = &pair[1];
    second->z = -second->z;
    out[i] = make_float4(cross(pair[0], *second), dot(sum, make_float3(1, 2, 3)));
    out[n + i] = make_float4(length(points[i]), dot(out[i], out[i]) >= 0, second->x, pair[1].z);
}

template <typename V, typename T> __device__ T total(V v) { return (T)(v.x + v.y + v.z + v.w); }

__global__ void elements(int *out)
{
    char4 c = make_char4(1, -2, 127, (char)128);
    uchar4 b = make_uchar4(255, 1, 2, 256);
    short2 s = make_short2(-5, (short)65535);
    ushort4 h = {1, 2, 3, 65535};
    int3 i; i.x = 1; i.y = -2; i.z = i.x - i.y;
    uint2 u = make_uint2(7, 0xffffffffu);
    long long wide = make_longlong2(1, 5).y;
    float2 f = make_float2(1.5f, 2.5f), g{3.0f, 4.0f};
    float1 one = make_float1(9);
    int2 pairs[2] = {{1, 2}, make_int2(1, 2)};
    uint4 many = {};
    out[0] = c.x + c.y + c.z + c.w;
    out[1] = b.x + b.y + b.z + b.w;
    out[2] = s.x * s.y;
    out[3] = h.w + h.x;
    out[4] = i.x * 100 + i.y * 10 + i.z;
    out[5] = (int)(u.x + u.y);
    out[6] = (int)(f.x * g.y + f.y * g.x) + one.x;
    out[7] = (pairs[0] == pairs[1]) + 2 * (pairs[0] == int2{1, 3});
    out[8] = total<char4, int>(c) + total<uint4, int>(many) + (int)wide;
    out[9] = sizeof(float3) + 100 * sizeof(float4) + 10000 * alignof(float4);
    many.w = 3; many.x = many.w++;
    out[10] = many.x * 10 + many.w;
}
""")


def test_vectors(device):
    n = 7
    points = np.random.default_rng(8).integers(-8, 8, (n, 3)).astype(np.float32)
    out = td.zeros((2 * n, 4), device=device)
    VECTORS.forces[1, n](td.asarray(points, device=device), out, n)
    p = points.astype(np.float64)
    sums = 0.5 * (p.sum(axis=0) - n * p)
    sums[:, 1] += 1
    other = p * [2, 1, -1]
    got = out.numpy()
    np.testing.assert_allclose(got[:n, :3], np.cross(sums, other), rtol=1e-6)
    np.testing.assert_allclose(got[:n, 3], sums @ [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(got[n:, 0], np.linalg.norm(p, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(got[n:, 1:], np.stack([np.ones(n), other[:, 0], other[:, 2]], 1))


def test_elements_of_every_type(device):
    out = td.zeros(11, dtype=td.int32, device=device)
    VECTORS.elements[1, 1](out)
    assert out.tolist() == [
        -2, 258, 5, 65536, 83, 6, 22, 1, -2 + 5, 12 + 1600 + 160000, 34,
    ]  # fmt: skip


HALVES = td.cuda_module("""
#include <cuda_fp16.h>
__global__ void halves(const half *x, half *out, float *floats, int n)
{
    int i = threadIdx.x;
    if (i >= n)
        return;
    half a = x[i], b = x[n + i];
    out[i] = __hadd(a, b);
    out[n + i] = __hfma(a, b, __float2half(0.5f));
    out[2 * n + i] = a * b + a - b / a;
    out[3 * n + i] = hsqrt(__habs(a));
    half2 pair = __halves2half2(a, b);
    half2 sum = __hadd2(pair, __float2half2_rn(1.0f));
    sum = __hmul2(sum, sum);
    floats[i] = __low2float(sum) + __high2float(sum);
    floats[n + i] = __half2float(a) * 2 + (float)b;
    floats[2 * n + i] = __hgt(a, b) + 2 * (a < b) + 4 * __heq(a, a);
    float2 both = __half22float2(pair);
    floats[3 * n + i] = both.x - both.y;
    half2 *view = (half2 *)out + 2 * n;
    if (i == 0)
        *view = make_half2(a, __hneg(b));
    short bits = __half_as_short(a);
    floats[4 * n + i] = bits;
    half c = 1.5f;
    c += a;
    floats[5 * n + i] = __half2float(__hmax(c, b)) + __half2int_rz(b);
}
""")


def test_halves(device):
    a = np.array([1.5, -2.25, 0.125, 3.0], np.float16)
    b = np.array([0.75, 4.5, -8.0, 3.0], np.float16)
    n = 4
    out, floats = np.zeros(4 * n + 2, np.float16), np.zeros((6, n), np.float32)
    with td.use_device(device):
        HALVES.halves[1, n](np.stack([a, b]), out, floats, n)
    f, g = a.astype(np.float32), b.astype(np.float32)
    half = np.float16
    np.testing.assert_array_equal(out[:n], a + b)
    np.testing.assert_array_equal(out[n : 2 * n], (f * g + 0.5).astype(half))
    steps = ((a * b) + a) - (b / a)
    np.testing.assert_array_equal(out[2 * n : 3 * n], steps)
    np.testing.assert_array_equal(out[3 * n : 4 * n], np.sqrt(np.abs(a)))
    one = half(1)
    low, high = (a + one) * (a + one), (b + one) * (b + one)
    np.testing.assert_array_equal(floats[0], low.astype("f4") + high.astype("f4"))
    np.testing.assert_array_equal(floats[1], 2 * f + g)
    np.testing.assert_array_equal(floats[2], (f > g) + 2 * (f < g) + 4)
    np.testing.assert_array_equal(floats[3], f - g)
    np.testing.assert_array_equal(floats[4], a.view(np.int16))
    np.testing.assert_array_equal(
        floats[5], np.maximum(half(1.5) + a, b).astype("f4") + np.trunc(g)
    )
    assert out[4 * n :].tolist() == [1.5, -0.75]
