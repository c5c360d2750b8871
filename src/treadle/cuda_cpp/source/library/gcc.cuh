// What GCC declares, and NVIDIA's compiler takes, without a header.
#pragma once
__host__ __device__ constexpr int __builtin_popcount(unsigned int x) { return __popc(x); }
__host__ __device__ constexpr int __builtin_popcountl(unsigned long x) { return __popcll(x); }
__host__ __device__ constexpr int __builtin_popcountll(unsigned long long x) { return __popcll(x); }
__host__ __device__ constexpr int __builtin_clz(unsigned int x) { return __clz((int)x); }
__host__ __device__ constexpr int __builtin_clzl(unsigned long x) { return __clzll((long long)x); }
__host__ __device__ constexpr int __builtin_clzll(unsigned long long x) {
    return __clzll((long long)x);
}
__host__ __device__ constexpr int __builtin_ctz(unsigned int x) { return __ffs((int)x) - 1; }
__host__ __device__ constexpr int __builtin_ctzl(unsigned long x) { return __ffsll((long long)x) - 1; }
__host__ __device__ constexpr int __builtin_ctzll(unsigned long long x) {
    return __ffsll((long long)x) - 1;
}
__host__ __device__ constexpr int __builtin_ffs(int x) { return __ffs(x); }
__host__ __device__ constexpr int __builtin_ffsll(long long x) { return __ffsll(x); }
__host__ __device__ constexpr int __builtin_parity(unsigned int x) { return __popc(x) & 1; }
__host__ __device__ constexpr unsigned int __builtin_bswap32(unsigned int x) {
    return __byte_perm(x, 0, 0x0123);
}
__host__ __device__ constexpr int __builtin_abs(int x) { return abs(x); }
__host__ __device__ constexpr float __builtin_fabsf(float x) { return fabsf(x); }
__host__ __device__ constexpr float __builtin_sqrtf(float x) { return sqrtf(x); }
__host__ __device__ constexpr float __builtin_huge_valf() { return __int_as_float(0x7f800000); }
__host__ __device__ constexpr float __builtin_inff() { return __int_as_float(0x7f800000); }
template <class T> __host__ __device__ constexpr bool __builtin_isnan(T x) { return x != x; }
