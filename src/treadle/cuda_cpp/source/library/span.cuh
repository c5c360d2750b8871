// <span>: a pointer and a number of elements.
#pragma once
#include <array>
namespace std {

constexpr size_t dynamic_extent = (size_t)-1;
template <class T, size_t extent_ = dynamic_extent> struct span {
    typedef T element_type;
    typedef remove_cv_t<T> value_type;
    typedef size_t size_type;
    typedef ptrdiff_t difference_type;
    typedef T *pointer;
    typedef T &reference;
    typedef T *iterator;
    static constexpr size_t extent = extent_;
    T *__treadle_first;
    size_t __treadle_size;
    __host__ __device__ constexpr span() : __treadle_first(nullptr), __treadle_size(0) {}
    __host__ __device__ constexpr span(T *first, size_t count) : __treadle_first(first), __treadle_size(count) {}
    __host__ __device__ constexpr span(T *first, T *last) : __treadle_first(first), __treadle_size((size_t)(last - first)) {}
    template <size_t n> __host__ __device__ constexpr span(T (&x)[n]) : __treadle_first(x), __treadle_size(n) {}
    template <class U, size_t n> __host__ __device__ constexpr span(array<U, n> &x) : __treadle_first(x.data()), __treadle_size(n) {}
    template <class U, size_t n>
    __host__ __device__ constexpr span(const array<U, n> &x) : __treadle_first(x.data()), __treadle_size(n) {}
    template <class U, size_t n>
    __host__ __device__ constexpr span(const span<U, n> &other) : __treadle_first(other.data()), __treadle_size(other.size()) {}
    __host__ __device__ constexpr T *data() const { return __treadle_first; }
    __host__ __device__ constexpr size_t size() const { return extent_ == dynamic_extent ? __treadle_size : extent_; }
    __host__ __device__ constexpr size_t size_bytes() const { return size() * sizeof(T); }
    __host__ __device__ constexpr bool empty() const { return size() == 0; }
    __host__ __device__ constexpr T *begin() const { return __treadle_first; }
    __host__ __device__ constexpr T *end() const { return __treadle_first + size(); }
    __host__ __device__ constexpr auto rbegin() const { return make_reverse_iterator(end()); }
    __host__ __device__ constexpr auto rend() const { return make_reverse_iterator(begin()); }
    __host__ __device__ constexpr T &front() const { return __treadle_first[0]; }
    __host__ __device__ constexpr T &back() const { return __treadle_first[size() - 1]; }
    __host__ __device__ constexpr T &operator[](size_t i) const { return __treadle_first[i]; }
    __host__ __device__ constexpr span<T> first(size_t n) const { return span<T>(__treadle_first, n); }
    __host__ __device__ constexpr span<T> last(size_t n) const { return span<T>(__treadle_first + (size() - n), n); }
    __host__ __device__ constexpr span<T> subspan(size_t from, size_t n = dynamic_extent) const {
        return span<T>(__treadle_first + from, n == dynamic_extent ? size() - from : n);
    }
    template <size_t n> __host__ __device__ constexpr span<T, n> first() const { return span<T, n>(__treadle_first, n); }
    template <size_t n> __host__ __device__ constexpr span<T, n> last() const {
        return span<T, n>(__treadle_first + (size() - n), n);
    }
    template <size_t from, size_t n = dynamic_extent>
    __host__ __device__ constexpr span<T, n != dynamic_extent ? n : extent_ != dynamic_extent ? extent_ - from : dynamic_extent> subspan() const {
        return span<T, n != dynamic_extent ? n : extent_ != dynamic_extent ? extent_ - from : dynamic_extent>(
            __treadle_first + from, n != dynamic_extent ? n : size() - from);
    }
};
template <class T, size_t n> span(T (&)[n]) -> span<T, n>;
template <class T, size_t n> span(array<T, n> &) -> span<T, n>;
template <class T, size_t n> span(const array<T, n> &) -> span<const T, n>;
template <class T, class N> span(T *, N) -> span<T>;

}  // namespace std
