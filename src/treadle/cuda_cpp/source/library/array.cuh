// <array>
#pragma once
#include <iterator>
namespace std {

template <class T, size_t N> struct array {
    typedef T value_type;
    typedef T *iterator;
    typedef const T *const_iterator;
    typedef size_t size_type;
    T items[N];
    __host__ __device__ constexpr T &operator[](size_t i) { return items[i]; }
    __host__ __device__ constexpr const T &operator[](size_t i) const { return items[i]; }
    __host__ __device__ constexpr T &front() { return items[0]; }
    __host__ __device__ constexpr const T &front() const { return items[0]; }
    __host__ __device__ constexpr T &back() { return items[N - 1]; }
    __host__ __device__ constexpr const T &back() const { return items[N - 1]; }
    __host__ __device__ constexpr T *data() { return items; }
    __host__ __device__ constexpr const T *data() const { return items; }
    __host__ __device__ constexpr T *begin() { return items; }
    __host__ __device__ constexpr const T *begin() const { return items; }
    __host__ __device__ constexpr T *end() { return items + N; }
    __host__ __device__ constexpr const T *end() const { return items + N; }
    __host__ __device__ constexpr const T *cbegin() const { return items; }
    __host__ __device__ constexpr const T *cend() const { return items + N; }
    __host__ __device__ constexpr reverse_iterator<T *> rbegin() { return reverse_iterator<T *>(items + N); }
    __host__ __device__ constexpr reverse_iterator<T *> rend() { return reverse_iterator<T *>(items); }
    __host__ __device__ constexpr reverse_iterator<const T *> rbegin() const { return reverse_iterator<const T *>(items + N); }
    __host__ __device__ constexpr reverse_iterator<const T *> rend() const { return reverse_iterator<const T *>(items); }
    __host__ __device__ constexpr T &at(size_t i) { return items[i]; }
    __host__ __device__ constexpr const T &at(size_t i) const { return items[i]; }
    __host__ __device__ static constexpr size_t size() { return N; }
    __host__ __device__ static constexpr size_t max_size() { return N; }
    __host__ __device__ static constexpr bool empty() { return N == 0; }
    __host__ __device__ void fill(T value) {
        for (int i = 0; i < (int)N; ++i)
            items[i] = value;
    }
    __host__ __device__ void swap(array &other) { std::swap(items, other.items); }
};
// Without elements, and so without an array.
template <class T> struct array<T, 0> {
    typedef T value_type;
    typedef T *iterator;
    typedef const T *const_iterator;
    typedef size_t size_type;
    __host__ __device__ constexpr T *data() const { return nullptr; }
    __host__ __device__ constexpr T *begin() const { return nullptr; }
    __host__ __device__ constexpr T *end() const { return nullptr; }
    __host__ __device__ static constexpr size_t size() { return 0; }
    __host__ __device__ static constexpr size_t max_size() { return 0; }
    __host__ __device__ static constexpr bool empty() { return true; }
    __host__ __device__ void fill(T) {}
    __host__ __device__ void swap(array &) {}
};
template <class T, size_t N, size_t... i>
__host__ __device__ constexpr array<T, N> __treadle_to_array(const T (&x)[N], index_sequence<i...>) {
    return array<T, N>{{x[i]...}};
}
template <class T, size_t N> __host__ __device__ constexpr array<T, N> to_array(const T (&x)[N]) {
    return __treadle_to_array(x, make_index_sequence<N>());
}
template <class T, class... U> array(T, U...) -> array<T, 1 + sizeof...(U)>;
template <class T, size_t N> struct tuple_size<array<T, N>> : integral_constant<size_t, N> {};
template <size_t i, class T, size_t N> struct tuple_element<i, array<T, N>> { typedef T type; };
template <size_t i, class T, size_t N>
__host__ __device__ constexpr T &get(array<T, N> &a) { return a.items[i]; }
template <size_t i, class T, size_t N>
__host__ __device__ constexpr const T &get(const array<T, N> &a) { return a.items[i]; }

template <class T, size_t N>
__host__ __device__ constexpr bool operator==(const array<T, N> &x, const array<T, N> &y) {
    for (int i = 0; i < (int)N; ++i)
        if (!(x.items[i] == y.items[i]))
            return false;
    return true;
}
template <class T, size_t N>
__host__ __device__ constexpr bool operator!=(const array<T, N> &x, const array<T, N> &y) {
    return !(x == y);
}
template <class T, size_t N>
__host__ __device__ constexpr bool operator<(const array<T, N> &x, const array<T, N> &y) {
    for (int i = 0; i < (int)N; ++i)
        if (x.items[i] < y.items[i])
            return true;
        else if (y.items[i] < x.items[i])
            return false;
    return false;
}
template <class T, size_t N>
__host__ __device__ constexpr bool operator>(const array<T, N> &x, const array<T, N> &y) {
    return y < x;
}
template <class T, size_t N>
__host__ __device__ constexpr bool operator<=(const array<T, N> &x, const array<T, N> &y) {
    return !(y < x);
}
template <class T, size_t N>
__host__ __device__ constexpr bool operator>=(const array<T, N> &x, const array<T, N> &y) {
    return !(x < y);
}

}  // namespace std
