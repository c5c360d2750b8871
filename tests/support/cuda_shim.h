// CUDA C++ as plain C++, as far as printed kernels use it.
#pragma once
#include "block_shim.h"

#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))

#define VECTORS(T, name, a2, a4)                                            \
    struct __align__(a2) name##2 { T x, y; };                               \
    struct name##3 { T x, y, z; };                                          \
    struct __align__(a4) name##4 { T x, y, z, w; };                         \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }              \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }      \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(signed char, char, 2, 4)
VECTORS(unsigned char, uchar, 2, 4)
VECTORS(short, short, 4, 8)
VECTORS(unsigned short, ushort, 4, 8)
VECTORS(int, int, 8, 16)
VECTORS(unsigned int, uint, 8, 16)
VECTORS(long long, longlong, 16, 16)
VECTORS(unsigned long long, ulonglong, 16, 16)
VECTORS(float, float, 8, 16)
VECTORS(double, double, 16, 16)

#define threadIdx (shim::now().current->index)
#define blockIdx (shim::now().block)
#define gridDim (shim::now().blocks)

inline void __syncthreads() { shim::wait(false); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// Every thread of the warp must be named, and no other.
inline void check_mask(unsigned mask) {
    if (mask != shim::full_warp()) {
        __builtin_trap();
    }
}
inline void __syncwarp(unsigned mask) {
    check_mask(mask);
    shim::wait(true);
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane) {
    check_mask(mask);
    return shim::exchange(value, (unsigned)lane % 32);
}
inline unsigned __ballot_sync(unsigned mask, bool yes) {
    check_mask(mask);
    return shim::ballot(yes);
}
inline int __any_sync(unsigned mask, bool yes) { return __ballot_sync(mask, yes) != 0; }
inline int __all_sync(unsigned mask, bool yes) { return __ballot_sync(mask, yes) == mask; }

// --- numbers -------------------------------------------------------------------------------------

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
using std::floor;

inline int __float_as_int(float a) { return shim::bits_as<int>(a); }
inline unsigned __float_as_uint(float a) { return shim::bits_as<unsigned>(a); }
inline float __int_as_float(int a) { return shim::bits_as<float>(a); }
inline float __uint_as_float(unsigned a) { return shim::bits_as<float>(a); }
inline long long __double_as_longlong(double a) { return shim::bits_as<long long>(a); }
inline double __longlong_as_double(long long a) { return shim::bits_as<double>(a); }

inline float shim_fmin(float a, float b) { return shim::lesser(a, b); }
inline float shim_fmax(float a, float b) { return shim::greater(a, b); }
inline double shim_fmin(double a, double b) { return shim::lesser(a, b); }
inline double shim_fmax(double a, double b) { return shim::greater(a, b); }
#define fminf shim_fmin
#define fmaxf shim_fmax
#define fmin shim_fmin
#define fmax shim_fmax

inline float rsqrtf(float a) { return 1 / std::sqrt(a); }
inline double rsqrt(double a) { return 1 / std::sqrt(a); }
inline float shim_expf(float a) { return std::exp(a); }
inline float shim_logf(float a) { return std::log(a); }
inline float shim_log2f(float a) { return std::log2(a); }
inline float shim_sinf(float a) { return std::sin(a); }
inline float shim_cosf(float a) { return std::cos(a); }
inline float shim_tanf(float a) { return std::tan(a); }
inline float shim_powf(float a, float b) { return std::pow(a, b); }
#define __expf shim_expf
#define __logf shim_logf
#define __log2f shim_log2f
#define __sinf shim_sinf
#define __cosf shim_cosf
#define __tanf shim_tanf
#define __powf shim_powf

inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
inline unsigned __brev(unsigned a) {
    unsigned result = 0;
    for (int i = 0; i < 32; i++) {
        result |= (a >> i & 1) << (31 - i);
    }
    return result;
}
inline unsigned long long __brevll(unsigned long long a) {
    return (unsigned long long)__brev((unsigned)a) << 32 | __brev((unsigned)(a >> 32));
}
namespace shim {
template <class A, class B>
int dot_bytes(int a, int b, int sum) {
    unsigned result = (unsigned)sum;
    for (int i = 0; i < 32; i += 8) {
        result += (unsigned)((A)(unsigned char)(a >> i) * (B)(unsigned char)(b >> i));
    }
    return (int)result;
}
}  // namespace shim
inline int __dp4a(int a, int b, int sum) {
    return shim::dot_bytes<signed char, signed char>(a, b, sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
    return (unsigned)shim::dot_bytes<unsigned char, unsigned char>((int)a, (int)b, (int)sum);
}
inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return ((unsigned long long)a * b) >> 32; }
inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return ((unsigned __int128)a * b) >> 64;
}

// --- atomics: fibers do not come between ----------------------------------------------------------

#define ATOMIC(name, T, updated)                \
    inline T name(T* place, T value) {          \
        T old = *place;                         \
        *place = updated;                       \
        return old;                             \
    }
#define UNSIGNED_ATOMICS(T)                                        \
    ATOMIC(atomicMin, T, value < old ? value : old)                \
    ATOMIC(atomicMax, T, value > old ? value : old)                \
    ATOMIC(atomicAnd, T, old & value)                              \
    ATOMIC(atomicOr, T, old | value)                               \
    ATOMIC(atomicXor, T, old ^ value)                              \
    ATOMIC(atomicExch, T, value)                                   \
    inline T atomicCAS(T* place, T expected, T desired) {          \
        T old = *place;                                            \
        *place = old == expected ? desired : old;                  \
        return old;                                                \
    }
UNSIGNED_ATOMICS(int)
UNSIGNED_ATOMICS(unsigned)
UNSIGNED_ATOMICS(unsigned long long)
ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
ATOMIC(atomicAdd, unsigned, old + value)
ATOMIC(atomicSub, unsigned, old - value)
ATOMIC(atomicAdd, unsigned long long, old + value)
ATOMIC(atomicAdd, float, old + value)
ATOMIC(atomicAdd, double, old + value)
ATOMIC(atomicExch, float, value)
ATOMIC(atomicMin, long long, value < old ? value : old)
ATOMIC(atomicMax, long long, value > old ? value : old)
