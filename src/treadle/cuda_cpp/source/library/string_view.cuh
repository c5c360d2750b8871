// <string_view>: characters that are elsewhere.
#pragma once
#include <utility>
namespace std {

template <class C> struct basic_string_view {
    typedef C value_type;
    typedef const C *pointer;
    typedef const C *const_pointer;
    typedef const C *iterator;
    typedef const C *const_iterator;
    typedef size_t size_type;
    static constexpr size_t npos = (size_t)-1;
    const C *__treadle_first;
    size_t __treadle_size;
    __host__ __device__ constexpr basic_string_view() : __treadle_first(nullptr), __treadle_size(0) {}
    __host__ __device__ constexpr basic_string_view(const C *first, size_t count) : __treadle_first(first), __treadle_size(count) {}
    __host__ __device__ constexpr basic_string_view(const C *text) : __treadle_first(text), __treadle_size(0) {
        while (text[__treadle_size] != C(0))
            ++__treadle_size;
    }
    __host__ __device__ constexpr const C *data() const { return __treadle_first; }
    __host__ __device__ constexpr size_t size() const { return __treadle_size; }
    __host__ __device__ constexpr size_t length() const { return __treadle_size; }
    __host__ __device__ constexpr bool empty() const { return __treadle_size == 0; }
    __host__ __device__ constexpr const C *begin() const { return __treadle_first; }
    __host__ __device__ constexpr const C *end() const { return __treadle_first + __treadle_size; }
    __host__ __device__ constexpr const C *cbegin() const { return begin(); }
    __host__ __device__ constexpr const C *cend() const { return end(); }
    __host__ __device__ constexpr const C &operator[](size_t i) const { return __treadle_first[i]; }
    __host__ __device__ constexpr const C &at(size_t i) const { return __treadle_first[i]; }
    __host__ __device__ constexpr const C &front() const { return __treadle_first[0]; }
    __host__ __device__ constexpr const C &back() const { return __treadle_first[__treadle_size - 1]; }
    __host__ __device__ constexpr void remove_prefix(size_t n) {
        __treadle_first += n;
        __treadle_size -= n;
    }
    __host__ __device__ constexpr void remove_suffix(size_t n) { __treadle_size -= n; }
    __host__ __device__ constexpr basic_string_view substr(size_t from = 0, size_t n = npos) const {
        size_t left = __treadle_size - from;
        return basic_string_view(__treadle_first + from, n < left ? n : left);
    }
    __host__ __device__ constexpr int compare(basic_string_view other) const {
        size_t both = __treadle_size < other.__treadle_size ? __treadle_size : other.__treadle_size;
        for (size_t i = 0; i < both; ++i)
            if (__treadle_first[i] != other.__treadle_first[i])
                return (unsigned char)__treadle_first[i] < (unsigned char)other.__treadle_first[i] ? -1 : 1;
        return __treadle_size == other.__treadle_size ? 0 : __treadle_size < other.__treadle_size ? -1 : 1;
    }
    __host__ __device__ constexpr bool starts_with(basic_string_view other) const {
        return __treadle_size >= other.__treadle_size && substr(0, other.__treadle_size).compare(other) == 0;
    }
    __host__ __device__ constexpr bool starts_with(C c) const { return __treadle_size > 0 && front() == c; }
    __host__ __device__ constexpr bool ends_with(basic_string_view other) const {
        return __treadle_size >= other.__treadle_size && substr(__treadle_size - other.__treadle_size).compare(other) == 0;
    }
    __host__ __device__ constexpr bool ends_with(C c) const { return __treadle_size > 0 && back() == c; }
    __host__ __device__ constexpr size_t find(basic_string_view other, size_t from = 0) const {
        for (size_t i = from; i + other.__treadle_size <= __treadle_size; ++i)
            if (substr(i, other.__treadle_size).compare(other) == 0)
                return i;
        return npos;
    }
    __host__ __device__ constexpr size_t find(C c, size_t from = 0) const {
        for (size_t i = from; i < __treadle_size; ++i)
            if (__treadle_first[i] == c)
                return i;
        return npos;
    }
    __host__ __device__ constexpr size_t rfind(C c) const {
        for (size_t i = __treadle_size; i > 0; --i)
            if (__treadle_first[i - 1] == c)
                return i - 1;
        return npos;
    }
    __host__ __device__ constexpr size_t find_first_of(basic_string_view any, size_t from = 0) const {
        for (size_t i = from; i < __treadle_size; ++i)
            if (any.find(__treadle_first[i]) != npos)
                return i;
        return npos;
    }
    __host__ __device__ constexpr size_t find_first_not_of(basic_string_view any, size_t from = 0) const {
        for (size_t i = from; i < __treadle_size; ++i)
            if (any.find(__treadle_first[i]) == npos)
                return i;
        return npos;
    }
};
typedef basic_string_view<char> string_view;
#define __treadle_compared(op) \
    __host__ __device__ constexpr bool operator op(string_view x, string_view y) { return x.compare(y) op 0; }
__treadle_compared(==)
__treadle_compared(!=)
__treadle_compared(<)
__treadle_compared(>)
__treadle_compared(<=)
__treadle_compared(>=)
#undef __treadle_compared

}  // namespace std
