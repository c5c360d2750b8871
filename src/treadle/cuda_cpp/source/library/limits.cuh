// <limits>
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
namespace std {

enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest };

template <class T> struct numeric_limits { static constexpr bool is_specialized = false; };

#define __treadle_integer(T, bits_, signed_, low, high) \
    template <> struct numeric_limits<T> { \
        static constexpr bool is_specialized = true, is_integer = true, is_exact = true; \
        static constexpr bool is_signed = signed_, is_bounded = true, has_infinity = false; \
        static constexpr bool has_quiet_NaN = false, is_iec559 = false, is_modulo = !signed_; \
        static constexpr int radix = 2, digits = bits_, digits10 = bits_ * 643L / 2136; \
        static constexpr int max_digits10 = 0, min_exponent = 0, max_exponent = 0; \
        __host__ __device__ static constexpr T min() { return low; } \
        __host__ __device__ static constexpr T lowest() { return low; } \
        __host__ __device__ static constexpr T max() { return high; } \
        __host__ __device__ static constexpr T epsilon() { return T(0); } \
        __host__ __device__ static constexpr T infinity() { return T(0); } \
    };
__treadle_integer(bool, 1, false, false, true)
__treadle_integer(char, 7, true, CHAR_MIN, CHAR_MAX)
__treadle_integer(signed char, 7, true, SCHAR_MIN, SCHAR_MAX)
__treadle_integer(unsigned char, 8, false, 0, UCHAR_MAX)
__treadle_integer(short, 15, true, SHRT_MIN, SHRT_MAX)
__treadle_integer(unsigned short, 16, false, 0, USHRT_MAX)
__treadle_integer(int, 31, true, INT_MIN, INT_MAX)
__treadle_integer(unsigned int, 32, false, 0, UINT_MAX)
__treadle_integer(long, 63, true, LONG_MIN, LONG_MAX)
__treadle_integer(unsigned long, 64, false, 0, ULONG_MAX)
__treadle_integer(long long, 63, true, LLONG_MIN, LLONG_MAX)
__treadle_integer(unsigned long long, 64, false, 0, ULLONG_MAX)
#undef __treadle_integer

#define __treadle_floating(T, mantissa, decimal, most, low_e, high_e, low_d, high_d, least, greatest, \
                           step, half_step, tiniest, infinite, nan_) \
    template <> struct numeric_limits<T> { \
        static constexpr bool is_specialized = true, is_integer = false, is_exact = false; \
        static constexpr bool is_signed = true, is_bounded = true, has_infinity = true; \
        static constexpr bool has_quiet_NaN = true, is_iec559 = true, is_modulo = false; \
        static constexpr int radix = 2, digits = mantissa, digits10 = decimal; \
        static constexpr int max_digits10 = most, min_exponent = low_e, max_exponent = high_e; \
        static constexpr int min_exponent10 = low_d, max_exponent10 = high_d; \
        __host__ __device__ static constexpr T min() { return least; } \
        __host__ __device__ static constexpr T lowest() { return -greatest; } \
        __host__ __device__ static constexpr T max() { return greatest; } \
        __host__ __device__ static constexpr T epsilon() { return step; } \
        __host__ __device__ static constexpr T round_error() { return half_step; } \
        __host__ __device__ static constexpr T denorm_min() { return tiniest; } \
        __host__ __device__ static constexpr T infinity() { return infinite; } \
        __host__ __device__ static constexpr T quiet_NaN() { return nan_; } \
        __host__ __device__ static constexpr T signaling_NaN() { return nan_; } \
    };
__treadle_floating(float, 24, 6, 9, -125, 128, -37, 38, FLT_MIN, FLT_MAX, FLT_EPSILON, 0.5f,
                   FLT_TRUE_MIN, INFINITY, NAN)
__treadle_floating(double, 53, 15, 17, -1021, 1024, -307, 308, DBL_MIN, DBL_MAX, DBL_EPSILON, 0.5,
                   DBL_TRUE_MIN, HUGE_VAL, (double)NAN)
#undef __treadle_floating

}  // namespace std
