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
