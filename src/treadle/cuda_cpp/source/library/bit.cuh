// <bit>
#pragma once
#include <type_traits>
namespace std {

enum class endian { little, big, native = 0 };

template <class To, class From> __host__ __device__ constexpr To bit_cast(const From &from) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
    if constexpr (is_same_v<From, float> && is_integral_v<To>) {
        return (To)__float_as_uint(from);
    } else if constexpr (is_same_v<To, float> && is_integral_v<From>) {
        return __uint_as_float((unsigned int)from);
    } else if constexpr (is_same_v<From, double> && is_integral_v<To>) {
        return (To)__double_as_longlong(from);
    } else if constexpr (is_same_v<To, double> && is_integral_v<From>) {
        return __longlong_as_double((long long)from);
    } else {
        To to;
        memcpy(&to, &from, sizeof(To));
        return to;
    }
}
#define __treadle_bits(T) (int)(sizeof(T) * 8)
template <class T> __host__ __device__ constexpr int popcount(T x) {
    return sizeof(T) == 8 ? __popcll(x) : __popc(x);
}
template <class T> __host__ __device__ constexpr int countl_zero(T x) {
    return sizeof(T) == 8 ? __clzll(x) : __clz((unsigned int)x) - (32 - __treadle_bits(T));
}
template <class T> __host__ __device__ constexpr int countl_one(T x) { return countl_zero((T)~x); }
template <class T> __host__ __device__ constexpr int countr_zero(T x) {
    return x == 0 ? __treadle_bits(T) : sizeof(T) == 8 ? __ffsll(x) - 1 : __ffs((int)x) - 1;
}
template <class T> __host__ __device__ constexpr int countr_one(T x) { return countr_zero((T)~x); }
template <class T> __host__ __device__ constexpr int bit_width(T x) {
    return __treadle_bits(T) - countl_zero(x);
}
template <class T> __host__ __device__ constexpr bool has_single_bit(T x) {
    return x != 0 && (x & (x - 1)) == 0;
}
template <class T> __host__ __device__ constexpr T bit_floor(T x) {
    return x == 0 ? (T)0 : (T)((T)1 << (bit_width(x) - 1));
}
template <class T> __host__ __device__ constexpr T bit_ceil(T x) {
    return x <= 1 ? (T)1 : (T)((T)1 << bit_width((T)(x - 1)));
}
template <class T> __host__ __device__ constexpr T rotl(T x, int by) {
    int bits = __treadle_bits(T), left = (by % bits + bits) % bits;
    return left == 0 ? x : (T)((T)(x << left) | (T)(x >> (bits - left)));
}
template <class T> __host__ __device__ constexpr T rotr(T x, int by) { return rotl(x, -by); }
template <class T> __host__ __device__ constexpr T byteswap(T x) {
    typedef make_unsigned_t<T> U;
    U from = (U)x, to = 0;
    for (int i = 0; i < (int)sizeof(T); ++i)
        to |= (U)((U)((from >> (8 * i)) & 0xff) << (8 * ((int)sizeof(T) - 1 - i)));
    return (T)to;
}
#undef __treadle_bits

}  // namespace std
