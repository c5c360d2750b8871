"""<cuda_fp8.h> beside ml_dtypes, and <cuComplex.h> beside NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import treadle as td

FP8 = """
#include <cuda_fp8.h>
__global__ void narrowed(const float *x, unsigned char *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[4 * i] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
        out[4 * i + 1] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
        out[4 * i + 2] = __nv_cvt_float_to_fp8(x[i], __NV_SATFINITE, __NV_E4M3);
        out[4 * i + 3] = __nv_fp8_e5m2(x[i]).__x;
    }
}
__global__ void widened(const __nv_fp8_e4m3 *a, const __nv_fp8_e5m2 *b, float *out)
{
    out[threadIdx.x] = float(a[threadIdx.x]);
    out[256 + threadIdx.x] = (float)b[threadIdx.x];
}
__global__ void several(float *out)
{
    __nv_fp8x4_e4m3 four(make_float4(1, -2, 3, 4.1f));
    float4 wide = (float4)four;
    __nv_fp8x2_e5m2 two(make_float2(5, 6));
    float2 pair = float2(two);
    __nv_fp8_e4m3 one(0.3);
    float sum = one;
    out[0] = wide.x; out[1] = wide.y; out[2] = wide.w; out[3] = pair.y; out[4] = sum;
    __nv_fp8x4_e5m2 mixed(__floats2half2_rn(7, -8), __floats2half2_rn(10, 12));
    float4 widest = float4(mixed);
    out[6] = widest.y * widest.w;
    out[5] = __half2float(__nv_cvt_fp8_to_halfraw(one.__x, __NV_E4M3));
}
"""


def test_floats_of_8_bits(device):
    rng = np.random.default_rng()
    x = np.concatenate([
        rng.integers(0, 2**32, 300, dtype=np.uint64).astype(np.uint32).view(np.float32),
        (rng.normal(size=300) * np.exp2(rng.integers(-20, 20, 300))).astype(np.float32),
        np.array([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 57344], np.float32),
        np.array([61440, 61441, 2.0**-9, 2.0**-10, 2.0**-16, 2.0**-17, -(2.0**-11)], np.float32),
        (np.arange(99) * 2.0**-11).astype(np.float32),
    ])  # fmt: skip
    out = td.zeros(4 * x.size, dtype=td.uint8, device=device)
    module = td.cuda_module(FP8)
    module.narrowed[-(-x.size // 64), 64](td.asarray(x, device=device), out, x.size)
    made = out.numpy().reshape(-1, 4)
    numbers = ~np.isnan(x)
    for column, dtype, most in (
        (0, ml_dtypes.float8_e4m3fn, None),
        (1, ml_dtypes.float8_e5m2, None),
        (2, ml_dtypes.float8_e4m3fn, 448),
        (3, ml_dtypes.float8_e5m2, 57344),
    ):
        given = x if most is None else np.clip(x, -most, most)
        with np.errstate(all="ignore"):
            expected = given.astype(dtype).view(np.uint8)
        assert (made[numbers, column] == expected[numbers]).all()
        assert (made[~numbers, column] == 0x7F).all()


def test_floats_of_8_bits_are_read(device):
    codes = np.arange(256, dtype=np.uint8)
    given, out = td.asarray(codes, device=device), td.zeros(512, device=device)
    module = td.cuda_module(FP8)
    module.widened[1, 256](given, given, out)
    expected = [
        codes.view(dtype).astype(np.float32)
        for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
    ]
    np.testing.assert_array_equal(out.numpy().reshape(2, 256), expected)
    out = td.zeros(7, device=device)
    has_double = device.backend != "webgpu" or "float64" in device.features
    module = module if has_double else td.cuda_module(FP8, double="float")
    module.several[1, 1](out)
    assert out.tolist() == [1, -2, 4, 6, 0.3125, 0.3125, -96]


FP4 = """
#include <cuda_fp4.h>
__global__ void fours(const float *x, unsigned char *codes, float *back, unsigned short *powers,
                      int n)
{
    int i = threadIdx.x;
    codes[i] = __nv_fp4_e2m1(x[i]).__x;
    back[i] = float(__nv_fp4_e2m1(x[i]));
    if (i % 4 == 0) {
        __nv_fp4x4_e2m1 four(make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]));
        __half2_raw low = __nv_cvt_fp4x2_to_halfraw2(four.__x & 255, __NV_E2M1);
        float4 wide = float4(four);
        __half2 pair = low;
        back[n + i] = float(pair.x); back[n + i + 1] = float(pair.y);
        back[n + i + 2] = wide.z; back[n + i + 3] = wide.w;
    }
    const __nv_bfloat16 power = __nv_cvt_e8m0_to_bf16raw(i);
    powers[i] = __bfloat16_as_ushort(power);
    unsigned pair = __nv_fp8x2_e4m3(make_float2(x[i], 2 * x[i])).__x, wide, narrow;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(wide) : "h"((unsigned short)pair));
    __half2_raw whole(wide & 0xffff, wide >> 16);
    unsigned short again = __nv_cvt_halfraw2_to_fp8x2(whole, __NV_SATFINITE, __NV_E4M3);
    asm("{ .reg .b16 t; cvt.rn.satfinite.e4m3x2.f32 t, %1, %2; mov.b32 %0, {t, t}; }"
        : "=r"(narrow) : "f"(2 * x[i]), "f"(x[i]));
    if (again != pair || (narrow & 0xffff) != pair) codes[i] = 99;
}
"""


def test_floats_of_4_bits_and_powers_of_two(device):
    rng = np.random.default_rng()
    x = (rng.normal(size=256) * np.exp2(rng.integers(-3, 4, 256))).astype(np.float32)
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7, 0, np.inf], np.float32)
    x[: 2 * ties.size] = [*ties, *-ties]
    codes, powers = (td.zeros(256, dtype=t, device=device) for t in (td.uint8, td.uint16))
    back = td.zeros(512, device=device)
    td.cuda_module(FP4).fours[1, 256](td.asarray(x, device=device), codes, back, powers, 256)
    wanted = x.astype(ml_dtypes.float4_e2m1fn)
    assert codes.tolist() == wanted.view(np.uint8).tolist()
    np.testing.assert_array_equal(back.numpy().reshape(2, 256), [wanted.astype(np.float32)] * 2)
    scales = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    found = powers.numpy().view(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(found, scales.astype(np.float64))


COMPLEX = """
#include <cuComplex.h>
__global__ void numbers(const cuFloatComplex *x, cuFloatComplex *out)
{
    cuComplex a = x[0], b = x[1];
    out[0] = cuCaddf(a, b); out[1] = cuCsubf(a, b); out[2] = cuCmulf(a, b); out[3] = cuCdivf(a, b);
    out[4] = cuConjf(a); out[5] = make_cuFloatComplex(cuCabsf(a), cuCrealf(a) + cuCimagf(b));
    out[6] = cuCfmaf(a, b, a);
    out[7] = make_cuComplex(cuCabsf(make_cuComplex(3e30f, 4e30f)), cuCabsf(make_cuComplex(0, 0)));
}
"""


def test_complex_numbers_of_cuda(device):
    a, b = (complex(*part) for part in np.random.default_rng().normal(size=(2, 2)))
    given = np.array([a, b], np.complex64)
    a, b = given.astype(complex)
    out = td.zeros(16, device=device)
    module = td.cuda_module(COMPLEX)
    module.numbers[1, 1](td.asarray(given.view(np.float32), device=device), out)
    expected = [
        a + b, a - b, a * b, a / b, a.conjugate(), complex(abs(a), a.real + b.imag), a * b + a,
        5e30,
    ]  # fmt: skip
    np.testing.assert_allclose(out.numpy().view(np.complex64), expected, rtol=2e-6, atol=1e-6)
