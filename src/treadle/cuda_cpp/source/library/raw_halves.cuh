// The bits of 16-bit floats as structs, as <cuda_fp16.h> and <cuda_bf16.h> have them.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct __half_raw {
    unsigned short x;
    __host__ __device__ __half_raw() {}
    __host__ __device__ __half_raw(unsigned short bits) : x(bits) {}
    __host__ __device__ __half_raw(__half value) : x(__half_as_ushort(value)) {}
    __host__ __device__ operator __half() const { return __ushort_as_half(x); }
};
struct __nv_bfloat16_raw {
    unsigned short x;
    __host__ __device__ __nv_bfloat16_raw() {}
    __host__ __device__ __nv_bfloat16_raw(unsigned short bits) : x(bits) {}
    __host__ __device__ __nv_bfloat16_raw(__nv_bfloat16 value) : x(__bfloat16_as_ushort(value)) {}
    __host__ __device__ operator __nv_bfloat16() const { return __ushort_as_bfloat16(x); }
};
struct __half2_raw {
    unsigned short x, y;
    __host__ __device__ __half2_raw() {}
    __host__ __device__ __half2_raw(unsigned short low, unsigned short high) : x(low), y(high) {}
    __host__ __device__ __half2_raw(__half2 value) : x(__half_as_ushort(value.x)), y(__half_as_ushort(value.y)) {}
    __host__ __device__ operator __half2() const { return __halves2half2(__ushort_as_half(x), __ushort_as_half(y)); }
};
struct __nv_bfloat162_raw {
    unsigned short x, y;
    __host__ __device__ __nv_bfloat162_raw() {}
    __host__ __device__ __nv_bfloat162_raw(unsigned short low, unsigned short high) : x(low), y(high) {}
    __host__ __device__ __nv_bfloat162_raw(__nv_bfloat162 value)
        : x(__bfloat16_as_ushort(value.x)), y(__bfloat16_as_ushort(value.y)) {}
    __host__ __device__ operator __nv_bfloat162() const {
        return __halves2bfloat162(__ushort_as_bfloat16(x), __ushort_as_bfloat16(y));
    }
};
