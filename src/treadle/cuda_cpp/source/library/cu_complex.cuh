// <cuComplex.h>: complex numbers as float2 and double2.
#pragma once
typedef float2 cuFloatComplex;
typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

__host__ __device__ inline cuComplex make_cuComplex(float re, float im) { return make_float2(re, im); }
__host__ __device__ inline cuFloatComplex make_cuFloatComplex(float re, float im) { return make_float2(re, im); }
__host__ __device__ inline cuDoubleComplex make_cuDoubleComplex(double re, double im) { return make_double2(re, im); }
__host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return make_double2(z.x, z.y); }
__host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) {
    return make_float2((float)z.x, (float)z.y);
}

// Quotients and lengths scale first, so that squares neither overflow nor vanish.
#define __treadle_complex(T, R, end, made, absolute, root) \
    __host__ __device__ inline R cuCreal##end(T z) { return z.x; } \
    __host__ __device__ inline R cuCimag##end(T z) { return z.y; } \
    __host__ __device__ inline T cuConj##end(T z) { return made(z.x, -z.y); } \
    __host__ __device__ inline T cuCadd##end(T a, T b) { return made(a.x + b.x, a.y + b.y); } \
    __host__ __device__ inline T cuCsub##end(T a, T b) { return made(a.x - b.x, a.y - b.y); } \
    __host__ __device__ inline T cuCmul##end(T a, T b) { \
        return made(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); \
    } \
    __host__ __device__ inline T cuCdiv##end(T a, T b) { \
        R scale = 1 / (absolute(b.x) + absolute(b.y)); \
        R x = a.x * scale, y = a.y * scale, u = b.x * scale, v = b.y * scale; \
        R size = 1 / (u * u + v * v); \
        return made((x * u + y * v) * size, (y * u - x * v) * size); \
    } \
    __host__ __device__ inline R cuCabs##end(T z) { \
        R x = absolute(z.x), y = absolute(z.y); \
        R larger = x > y ? x : y, smaller = x > y ? y : x; \
        if (larger == 0 || isinf(larger)) \
            return larger; \
        R ratio = smaller / larger; \
        return larger * root(1 + ratio * ratio); \
    } \
    __host__ __device__ inline T cuCfma##end(T a, T b, T c) { \
        return made(a.x * b.x - a.y * b.y + c.x, a.x * b.y + a.y * b.x + c.y); \
    }
__treadle_complex(cuFloatComplex, float, f, make_float2, fabsf, sqrtf)
__treadle_complex(cuDoubleComplex, double, , make_double2, fabs, sqrt)
#undef __treadle_complex
