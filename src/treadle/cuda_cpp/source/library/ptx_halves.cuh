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
