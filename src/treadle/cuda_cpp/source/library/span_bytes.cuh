// as_bytes of <span>.
#pragma once
#include <byte.cuh>
#include <span>
namespace std {

template <class T, size_t n>
__host__ __device__ auto as_bytes(span<T, n> s) {
    return span<const byte, n == dynamic_extent ? dynamic_extent : n * sizeof(T)>((const byte *)s.data(), s.size_bytes());
}
template <class T, size_t n>
__host__ __device__ auto as_writable_bytes(span<T, n> s) {
    return span<byte, n == dynamic_extent ? dynamic_extent : n * sizeof(T)>((byte *)s.data(), s.size_bytes());
}

}  // namespace std
