// What inline PTX of 16-bit floats becomes: two in a register of 32 bits.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ inline __half2 __treadle_as_half2(unsigned int x) {
    return __halves2half2(__ushort_as_half((unsigned short)x), __ushort_as_half((unsigned short)(x >> 16)));
}
__device__ inline __nv_bfloat162 __treadle_as_bfloat162(unsigned int x) {
    return __halves2bfloat162(__ushort_as_bfloat16((unsigned short)x), __ushort_as_bfloat16((unsigned short)(x >> 16)));
}
__device__ inline unsigned int __treadle_bits_of(__half2 x) {
    return __half_as_ushort(__low2half(x)) | (unsigned int)__half_as_ushort(__high2half(x)) << 16;
}
__device__ inline unsigned int __treadle_bits_of(__nv_bfloat162 x) {
    return __bfloat16_as_ushort(__low2bfloat16(x)) | (unsigned int)__bfloat16_as_ushort(__high2bfloat16(x)) << 16;
}
__device__ inline float __treadle_half_of(unsigned int x, unsigned int place) {
    return __half2float(__ushort_as_half((unsigned short)(x >> 16 * place)));
}
__device__ inline unsigned int __treadle_halves(float low, float high) {
    return __half_as_ushort(__float2half(low)) | (unsigned int)__half_as_ushort(__float2half(high)) << 16;
}
__device__ inline __half2 __treadle_exp2(__half2 x) {
    return __floats2half2_rn(exp2f(__low2float(x)), exp2f(__high2float(x)));
}
__device__ inline __nv_bfloat162 __treadle_exp2(__nv_bfloat162 x) {
    return __floats2bfloat162_rn(exp2f(__low2float(x)), exp2f(__high2float(x)));
}
__device__ inline __half2 __treadle_tanh(__half2 x) {
    return __floats2half2_rn(tanhf(__low2float(x)), tanhf(__high2float(x)));
}
__device__ inline __nv_bfloat162 __treadle_tanh(__nv_bfloat162 x) {
    return __floats2bfloat162_rn(tanhf(__low2float(x)), tanhf(__high2float(x)));
}
// In [0, 1], or not below zero; NaN is 0 in the first.
#define __treadle_limits(type, pair, of_float, halves) \
    __device__ inline type __treadle_saturated(type x) { return of_float(__saturatef((float)x)); } \
    __device__ inline type __treadle_relu(type x) { return (float)x < 0.0f ? of_float(0.0f) : x; } \
    __device__ inline type __treadle_min_nan(type x, type y) { return isnan((float)x) || isnan((float)y) ? of_float(NAN) : __hmin(x, y); } \
    __device__ inline type __treadle_max_nan(type x, type y) { return isnan((float)x) || isnan((float)y) ? of_float(NAN) : __hmax(x, y); } \
    __device__ inline pair __treadle_saturated(pair v) { return halves(__treadle_saturated(v.x), __treadle_saturated(v.y)); } \
    __device__ inline pair __treadle_relu(pair v) { return halves(__treadle_relu(v.x), __treadle_relu(v.y)); } \
    __device__ inline pair __treadle_min_nan(pair v, pair w) { return halves(__treadle_min_nan(v.x, w.x), __treadle_min_nan(v.y, w.y)); } \
    __device__ inline pair __treadle_max_nan(pair v, pair w) { return halves(__treadle_max_nan(v.x, w.x), __treadle_max_nan(v.y, w.y)); }
__treadle_limits(__half, __half2, __float2half, __halves2half2)
__treadle_limits(__nv_bfloat16, __nv_bfloat162, __float2bfloat16, __halves2bfloat162)
#undef __treadle_limits
// In the range of finite numbers.
__device__ inline float __treadle_finite_f16(float x) { return isnan(x) ? x : fminf(fmaxf(x, -65504.0f), 65504.0f); }
__device__ inline float __treadle_finite_bf16(float x) {
    float most = __uint_as_float(0x7f7f0000u);
    return isnan(x) ? x : fminf(fmaxf(x, -most), most);
}
// An integer, rounded once: bits that a float does not hold are in its last one.
__device__ inline __nv_bfloat16 __treadle_bfloat16_of(unsigned long long x) {
    int by = 64 - __clzll((long long)x) - 20;
    if (by <= 0)
        return __float2bfloat16_rn((float)x);
    unsigned long long kept = x >> by, rest = (x & ((1ull << by) - 1ull)) != 0ull ? 1ull : 0ull;
    return __float2bfloat16_rn(ldexpf((float)(unsigned int)(kept | rest), by));
}
__device__ inline __nv_bfloat16 __treadle_bfloat16_of(long long x) {
    __nv_bfloat16 size = __treadle_bfloat16_of(x < 0 ? 0ull - (unsigned long long)x : (unsigned long long)x);
    return x < 0 ? __hneg(size) : size;
}
// Two 8-bit floats as halves, which hold all of them.
__device__ inline unsigned int __treadle_halves_of_bytes(unsigned int bytes, bool e4m3) {
    unsigned int low = bytes & 255u, high = bytes >> 8 & 255u;
    if (!e4m3)
        return low << 8 | high << 24;
    unsigned int word = 0;
#pragma unroll
    for (int at = 0; at < 2; ++at) {
        unsigned int byte = at ? high : low, size = byte & 127u;
        // The exponent's bias is 7 here, and 15 in a half; small numbers are whole multiples of 2^-9.
        float value = size < 8u ? ldexpf((float)size, -9) : ldexpf((float)(8u + size % 8u), (int)(size / 8u) - 10);
        unsigned int half = size == 127u ? 0x7fffu : (unsigned int)__half_as_ushort(__float2half(value));
        word |= (half | (byte & 128u) << 8) << 16 * at;
    }
    return word;
}
