// <cuda_fp8.h>: floating-point numbers of 8 bits, E4M3 and E5M2, rounded to the nearest, ties to even.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <raw_halves.cuh>
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

__host__ __device__ inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                                  __nv_fp8_interpretation_t kind) {
    unsigned int bits = __float_as_uint(x), sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return 0x7f;
    bool narrow = kind == __NV_E5M2;  // of two bits of the mantissa
    int mantissa = narrow ? 2 : 3, bias = narrow ? 15 : 7;
    unsigned int most = narrow ? 0x7bu : 0x7eu, beyond = narrow ? 0x7cu : 0x7fu;
    int exponent = (int)(size >> 23) - 127 + bias;
    unsigned int made = 0;
    if (exponent > 0) {
        unsigned int drop = 23 - mantissa, kept = size - ((unsigned int)(127 - bias) << 23);
        made = (kept + (1u << (drop - 1)) - 1u + (kept >> drop & 1u)) >> drop;
    } else {
        int drop = 24 - mantissa - exponent;  // below the smallest normal number
        unsigned int whole = (size & 0x7fffffu) | 0x800000u;
        if (drop <= 25)
            made = (whole + (1u << (drop - 1)) - 1u + (whole >> drop & 1u)) >> drop;
    }
    if (size == 0x7f800000u || made > most)
        made = saturation == __NV_SATFINITE ? most : beyond;
    return (__nv_fp8_storage_t)(sign | made);
}
__host__ __device__ inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                                   __nv_fp8_interpretation_t kind) {
    float odd = __double2float_rz(x);  // rounded to odd, so that the second rounding is right
    if ((double)odd != x && odd == odd)
        odd = __uint_as_float(__float_as_uint(odd) | 1u);
    return __nv_cvt_float_to_fp8(odd, saturation, kind);
}
__host__ __device__ inline float __treadle_fp8_to_float(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    if (kind == __NV_E5M2)
        return __half2float(__ushort_as_half((unsigned short)((unsigned int)x << 8)));
    unsigned int size = x & 0x7fu, exponent = size >> 3, part = size & 7u;
    float value = ldexpf((float)(exponent != 0 ? 8u + part : part), (int)(exponent != 0 ? exponent : 1u) - 10);
    value = size == 0x7fu ? __int_as_float(0x7fffffff) : value;
    return x & 0x80u ? -value : value;
}
__host__ __device__ inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    return __half_raw(__float2half(__treadle_fp8_to_float(x, kind)));
}
__host__ __device__ inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
    return __half2_raw(__floats2half2_rn(__treadle_fp8_to_float((__nv_fp8_storage_t)x, kind),
                                         __treadle_fp8_to_float((__nv_fp8_storage_t)(x >> 8), kind)));
}
__host__ __device__ inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                                    __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8(__half2float(__ushort_as_half(x.x)), saturation, kind);
}
__host__ __device__ inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturation,
                                                                        __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float_to_fp8(__bfloat162float(__ushort_as_bfloat16(x.x)), saturation, kind);
}
// E8M0: powers of two, and NaN.
__host__ __device__ inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
    return __nv_bfloat16_raw((unsigned short)(x == 255 ? 0x7fffu : x == 0 ? 0x40u : (unsigned int)x << 7));
}
__host__ __device__ inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturation,
                                                                       __nv_fp8_interpretation_t kind) {
    return (__nv_fp8x2_storage_t)(__nv_cvt_float_to_fp8(x.x, saturation, kind) |
                                  __nv_cvt_float_to_fp8(x.y, saturation, kind) << 8);
}
__host__ __device__ inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturation,
                                                                         __nv_fp8_interpretation_t kind) {
    return __nv_cvt_float2_to_fp8x2(__half22float2((__half2)x), saturation, kind);
}

#define __treadle_fp8(name, kind) \
    struct name { \
        __nv_fp8_storage_t __x; \
        __host__ __device__ name() {} \
        __host__ __device__ explicit name(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit name(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit name(__half x) : __x(__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit name(__nv_bfloat16 x) \
            : __x(__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit name(int x) : __x(__nv_cvt_float_to_fp8((float)x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ operator float() const { return __treadle_fp8_to_float(__x, kind); } \
    };
__treadle_fp8(__nv_fp8_e4m3, __NV_E4M3)
__treadle_fp8(__nv_fp8_e5m2, __NV_E5M2)
#undef __treadle_fp8
#define __treadle_fp8(name, pair, four, kind) \
    struct pair { \
        __nv_fp8x2_storage_t __x; \
        __host__ __device__ pair() {} \
        __host__ __device__ explicit pair(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit pair(__half2 x) \
            : __x(__nv_cvt_float2_to_fp8x2(__half22float2(x), __NV_SATFINITE, kind)) {} \
        __host__ __device__ explicit pair(__nv_bfloat162 x) \
            : __x(__nv_cvt_float2_to_fp8x2(__bfloat1622float2(x), __NV_SATFINITE, kind)) {} \
        __host__ __device__ operator float2() const { \
            return make_float2(__treadle_fp8_to_float((__nv_fp8_storage_t)__x, kind), \
                               __treadle_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), kind)); \
        } \
    }; \
    struct four { \
        __nv_fp8x4_storage_t __x; \
        __host__ __device__ four() {} \
        __host__ __device__ explicit four(float4 x) \
            : __x((unsigned int)__nv_cvt_float2_to_fp8x2(make_float2(x.x, x.y), __NV_SATFINITE, kind) | \
                  (unsigned int)__nv_cvt_float2_to_fp8x2(make_float2(x.z, x.w), __NV_SATFINITE, kind) << 16) {} \
        __host__ __device__ four(__half2 low, __half2 high) \
            : __x((unsigned int)__nv_cvt_float2_to_fp8x2(__half22float2(low), __NV_SATFINITE, kind) | \
                  (unsigned int)__nv_cvt_float2_to_fp8x2(__half22float2(high), __NV_SATFINITE, kind) << 16) {} \
        __host__ __device__ four(__nv_bfloat162 low, __nv_bfloat162 high) \
            : __x((unsigned int)__nv_cvt_float2_to_fp8x2(__bfloat1622float2(low), __NV_SATFINITE, kind) | \
                  (unsigned int)__nv_cvt_float2_to_fp8x2(__bfloat1622float2(high), __NV_SATFINITE, kind) << 16) {} \
        __host__ __device__ operator float4() const { \
            return make_float4(__treadle_fp8_to_float((__nv_fp8_storage_t)__x, kind), \
                               __treadle_fp8_to_float((__nv_fp8_storage_t)(__x >> 8), kind), \
                               __treadle_fp8_to_float((__nv_fp8_storage_t)(__x >> 16), kind), \
                               __treadle_fp8_to_float((__nv_fp8_storage_t)(__x >> 24), kind)); \
        } \
    };
__treadle_fp8(__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3)
__treadle_fp8(__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2)
#undef __treadle_fp8
