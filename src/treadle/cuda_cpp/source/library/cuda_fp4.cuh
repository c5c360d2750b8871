// <cuda_fp4.h>: floating-point numbers of 4 bits, E2M1, rounded to the nearest, ties to even. Numbers
// beyond the largest become it, and NaN too.
#pragma once
#include <cuda_fp8.h>
typedef unsigned char __nv_fp4_storage_t;
typedef unsigned char __nv_fp4x2_storage_t;
typedef unsigned short __nv_fp4x4_storage_t;
enum __nv_fp4_interpretation_t { __NV_E2M1 };
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

__host__ __device__ inline __nv_fp4_storage_t __nv_cvt_float_to_fp4(float x, __nv_fp4_interpretation_t,
                                                                  cudaRoundMode = cudaRoundNearest) {
    float size = fabsf(x);
    if (x != x)
        return 7;
    // The sizes are 0, 0.5, 1, 1.5, 2, 3, 4 and 6; halfway the even one of two.
    unsigned int made = (size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) + (size > 2.5f) +
                        (size >= 3.5f) + (size > 5.0f);
    return (__nv_fp4_storage_t)(__float_as_uint(x) >> 28 & 8u | made);
}
__host__ __device__ inline __nv_fp4x2_storage_t __nv_cvt_float2_to_fp4x2(float2 x, __nv_fp4_interpretation_t kind,
                                                                       cudaRoundMode mode = cudaRoundNearest) {
    return (__nv_fp4x2_storage_t)(__nv_cvt_float_to_fp4(x.x, kind, mode) | __nv_cvt_float_to_fp4(x.y, kind, mode) << 4);
}
__host__ __device__ inline __nv_fp4_storage_t __nv_cvt_halfraw_to_fp4(__half_raw x, __nv_fp4_interpretation_t kind,
                                                                    cudaRoundMode mode = cudaRoundNearest) {
    return __nv_cvt_float_to_fp4(__half2float(__ushort_as_half(x.x)), kind, mode);
}
__host__ __device__ inline __nv_fp4x2_storage_t __nv_cvt_halfraw2_to_fp4x2(__half2_raw x, __nv_fp4_interpretation_t kind,
                                                                         cudaRoundMode mode = cudaRoundNearest) {
    return __nv_cvt_float2_to_fp4x2(__half22float2((__half2)x), kind, mode);
}
__host__ __device__ inline float __treadle_fp4_to_float(unsigned int x) {
    unsigned int exponent = x >> 1 & 3u, part = x & 1u;
    float size = exponent != 0 ? (float)((2u | part) << (exponent - 1u)) * 0.5f : 0.5f * (float)part;
    return x & 8u ? -size : size;
}
__host__ __device__ inline __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t x, __nv_fp4_interpretation_t) {
    return __half_raw(__float2half(__treadle_fp4_to_float(x)));
}
__host__ __device__ inline __half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t x, __nv_fp4_interpretation_t) {
    return __half2_raw(__floats2half2_rn(__treadle_fp4_to_float(x), __treadle_fp4_to_float((unsigned int)x >> 4)));
}
struct __nv_fp4_e2m1 {
    __nv_fp4_storage_t __x;
    __host__ __device__ __nv_fp4_e2m1() {}
    __host__ __device__ explicit __nv_fp4_e2m1(float x) : __x(__nv_cvt_float_to_fp4(x, __NV_E2M1)) {}
    __host__ __device__ explicit __nv_fp4_e2m1(__half x) : __x(__nv_cvt_float_to_fp4((float)x, __NV_E2M1)) {}
    __host__ __device__ explicit __nv_fp4_e2m1(__nv_bfloat16 x) : __x(__nv_cvt_float_to_fp4((float)x, __NV_E2M1)) {}
    __host__ __device__ operator float() const { return __treadle_fp4_to_float(__x); }
};
struct __nv_fp4x2_e2m1 {
    __nv_fp4x2_storage_t __x;
    __host__ __device__ __nv_fp4x2_e2m1() {}
    __host__ __device__ explicit __nv_fp4x2_e2m1(float2 x) : __x(__nv_cvt_float2_to_fp4x2(x, __NV_E2M1)) {}
    __host__ __device__ explicit __nv_fp4x2_e2m1(__half2 x) : __x(__nv_cvt_float2_to_fp4x2(__half22float2(x), __NV_E2M1)) {}
    __host__ __device__ operator float2() const {
        return make_float2(__treadle_fp4_to_float(__x), __treadle_fp4_to_float((unsigned int)__x >> 4));
    }
};
struct __nv_fp4x4_e2m1 {
    __nv_fp4x4_storage_t __x;
    __host__ __device__ __nv_fp4x4_e2m1() {}
    __host__ __device__ explicit __nv_fp4x4_e2m1(float4 x)
        : __x((__nv_fp4x4_storage_t)((unsigned int)__nv_cvt_float2_to_fp4x2(make_float2(x.x, x.y), __NV_E2M1) |
                                     (unsigned int)__nv_cvt_float2_to_fp4x2(make_float2(x.z, x.w), __NV_E2M1) << 8)) {}
    __host__ __device__ operator float4() const {
        unsigned int bits = __x;
        return make_float4(__treadle_fp4_to_float(bits), __treadle_fp4_to_float(bits >> 4),
                           __treadle_fp4_to_float(bits >> 8), __treadle_fp4_to_float(bits >> 12));
    }
};
