// <bitset>: a fixed number of bits.
#pragma once
#include <type_traits>
namespace std {

template <size_t N> struct bitset {
    static constexpr int __treadle_count = N == 0 ? 1 : (int)((N + 31) / 32);
    unsigned int __treadle_words[__treadle_count];
    // One bit, as what is assigned to.
    struct reference {
        bitset *__treadle_set;
        size_t __treadle_at;
        __host__ __device__ constexpr reference &operator=(bool value) { __treadle_set->set(__treadle_at, value); return *this; }
        __host__ __device__ constexpr reference &operator=(const reference &other) { __treadle_set->set(__treadle_at, (bool)other); return *this; }
        __host__ __device__ constexpr operator bool() const { return __treadle_set->test(__treadle_at); }
        __host__ __device__ constexpr bool operator~() const { return !__treadle_set->test(__treadle_at); }
        __host__ __device__ constexpr reference &flip() { __treadle_set->flip(__treadle_at); return *this; }
    };
    __host__ __device__ constexpr bitset(unsigned long long value = 0) : __treadle_words() {
        __treadle_words[0] = (unsigned int)value;
        if constexpr (__treadle_count > 1)
            __treadle_words[1] = (unsigned int)(value >> 32);
        __treadle_cut();
    }
    // Bits past the last one are 0.
    __host__ __device__ constexpr void __treadle_cut() {
        __treadle_words[__treadle_count - 1] &= N == 0 ? 0u : N % 32 == 0 ? ~0u : (1u << N % 32) - 1u;
    }
    __host__ __device__ static constexpr size_t size() { return N; }
    __host__ __device__ constexpr bool test(size_t at) const { return __treadle_words[at / 32] >> at % 32 & 1u; }
    __host__ __device__ constexpr bool operator[](size_t at) const { return test(at); }
    __host__ __device__ constexpr reference operator[](size_t at) { return reference{this, at}; }
    __host__ __device__ constexpr bitset &set(size_t at, bool value = true) {
        unsigned int bit = 1u << at % 32;
        __treadle_words[at / 32] = value ? __treadle_words[at / 32] | bit : __treadle_words[at / 32] & ~bit;
        return *this;
    }
    __host__ __device__ constexpr bitset &reset(size_t at) { return set(at, false); }
    __host__ __device__ constexpr bitset &flip(size_t at) { __treadle_words[at / 32] ^= 1u << at % 32; return *this; }
    __host__ __device__ constexpr bitset &set() {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] = ~0u;
        __treadle_cut();
        return *this;
    }
    __host__ __device__ constexpr bitset &reset() {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] = 0u;
        return *this;
    }
    __host__ __device__ constexpr bitset &flip() {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] = ~__treadle_words[i];
        __treadle_cut();
        return *this;
    }
    __host__ __device__ constexpr bitset operator~() const { bitset made = *this; made.flip(); return made; }
    __host__ __device__ constexpr size_t count() const {
        int sum = 0;
        for (int i = 0; i < __treadle_count; ++i)
            sum += __popc(__treadle_words[i]);
        return (size_t)sum;
    }
    __host__ __device__ constexpr bool any() const { return count() != 0; }
    __host__ __device__ constexpr bool none() const { return count() == 0; }
    __host__ __device__ constexpr bool all() const { return count() == N; }
    // std::overflow_error would be thrown for more bits.
    __host__ __device__ constexpr unsigned long long to_ullong() const {
        if constexpr (__treadle_count > 1)
            return (unsigned long long)__treadle_words[1] << 32 | __treadle_words[0];
        else
            return __treadle_words[0];
    }
    __host__ __device__ constexpr unsigned long to_ulong() const { return (unsigned long)to_ullong(); }
    __host__ __device__ constexpr bitset &operator&=(const bitset &other) {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] &= other.__treadle_words[i];
        return *this;
    }
    __host__ __device__ constexpr bitset &operator|=(const bitset &other) {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] |= other.__treadle_words[i];
        return *this;
    }
    __host__ __device__ constexpr bitset &operator^=(const bitset &other) {
        for (int i = 0; i < __treadle_count; ++i)
            __treadle_words[i] ^= other.__treadle_words[i];
        return *this;
    }
    __host__ __device__ constexpr bitset &operator<<=(size_t by) {
        int words = by >= N ? __treadle_count : (int)(by / 32), bits = (int)(by % 32);
        for (int i = __treadle_count - 1; i >= 0; --i) {
            unsigned int high = i >= words ? __treadle_words[i - words] : 0u;
            unsigned int low = i > words ? __treadle_words[i - words - 1] : 0u;
            __treadle_words[i] = bits == 0 ? high : high << bits | low >> (32 - bits);
        }
        __treadle_cut();
        return *this;
    }
    __host__ __device__ constexpr bitset &operator>>=(size_t by) {
        int words = by >= N ? __treadle_count : (int)(by / 32), bits = (int)(by % 32);
        for (int i = 0; i < __treadle_count; ++i) {
            unsigned int low = i + words < __treadle_count ? __treadle_words[i + words] : 0u;
            unsigned int high = i + words + 1 < __treadle_count ? __treadle_words[i + words + 1] : 0u;
            __treadle_words[i] = bits == 0 ? low : low >> bits | high << (32 - bits);
        }
        return *this;
    }
    __host__ __device__ constexpr bitset operator<<(size_t by) const { bitset made = *this; made <<= by; return made; }
    __host__ __device__ constexpr bitset operator>>(size_t by) const { bitset made = *this; made >>= by; return made; }
    __host__ __device__ constexpr bool operator==(const bitset &other) const {
        for (int i = 0; i < __treadle_count; ++i)
            if (__treadle_words[i] != other.__treadle_words[i])
                return false;
        return true;
    }
    __host__ __device__ constexpr bool operator!=(const bitset &other) const { return !(*this == other); }
};
template <size_t N> __host__ __device__ constexpr bitset<N> operator&(const bitset<N> &x, const bitset<N> &y) { bitset<N> made = x; made &= y; return made; }
template <size_t N> __host__ __device__ constexpr bitset<N> operator|(const bitset<N> &x, const bitset<N> &y) { bitset<N> made = x; made |= y; return made; }
template <size_t N> __host__ __device__ constexpr bitset<N> operator^(const bitset<N> &x, const bitset<N> &y) { bitset<N> made = x; made ^= y; return made; }

}  // namespace std
