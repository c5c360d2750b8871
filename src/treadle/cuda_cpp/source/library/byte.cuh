// std::byte of <cstddef>: eight bits that are no number.
#pragma once
#include <type_traits>
namespace std {

enum class byte : unsigned char {};
template <class I> requires(is_integral_v<I>) __host__ __device__ constexpr I to_integer(byte b) { return (I)(unsigned char)b; }
__host__ __device__ constexpr byte operator|(byte a, byte b) { return byte((unsigned char)((unsigned char)a | (unsigned char)b)); }
__host__ __device__ constexpr byte operator&(byte a, byte b) { return byte((unsigned char)((unsigned char)a & (unsigned char)b)); }
__host__ __device__ constexpr byte operator^(byte a, byte b) { return byte((unsigned char)((unsigned char)a ^ (unsigned char)b)); }
__host__ __device__ constexpr byte operator~(byte a) { return byte((unsigned char)~(unsigned char)a); }
template <class I> requires(is_integral_v<I>)
__host__ __device__ constexpr byte operator<<(byte a, I by) { return byte((unsigned char)((unsigned int)a << by)); }
template <class I> requires(is_integral_v<I>)
__host__ __device__ constexpr byte operator>>(byte a, I by) { return byte((unsigned char)((unsigned int)a >> by)); }
__host__ __device__ constexpr byte &operator|=(byte &a, byte b) { return a = a | b; }
__host__ __device__ constexpr byte &operator&=(byte &a, byte b) { return a = a & b; }
__host__ __device__ constexpr byte &operator^=(byte &a, byte b) { return a = a ^ b; }
template <class I> requires(is_integral_v<I>) __host__ __device__ constexpr byte &operator<<=(byte &a, I by) { return a = a << by; }
template <class I> requires(is_integral_v<I>) __host__ __device__ constexpr byte &operator>>=(byte &a, I by) { return a = a >> by; }

}  // namespace std
