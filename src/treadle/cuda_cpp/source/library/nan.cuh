// nan and nanf. Their text selects one of NaN's representations: here all are CUDA's own one.
#pragma once
__host__ __device__ inline float nanf(const char *) { return __int_as_float(0x7fffffff); }
__host__ __device__ inline double nan(const char *) { return (double)__int_as_float(0x7fffffff); }
