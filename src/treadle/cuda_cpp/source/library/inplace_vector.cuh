// <inplace_vector>: a vector with room for N elements in the object.
#pragma once
#include <iterator>
#include <optional>
namespace std {

template <class T, size_t N> struct inplace_vector {
    typedef T value_type;
    typedef size_t size_type;
    typedef ptrdiff_t difference_type;
    typedef T &reference;
    typedef const T &const_reference;
    typedef T *iterator;
    typedef const T *const_iterator;
    T __treadle_items[N];
    size_t __treadle_size;
    __host__ __device__ constexpr inplace_vector() : __treadle_size(0) {}
    __host__ __device__ constexpr explicit inplace_vector(size_t count) : __treadle_size(0) { resize(count); }
    __host__ __device__ constexpr inplace_vector(size_t count, const T &value) : __treadle_size(0) { resize(count, value); }
    __host__ __device__ constexpr inplace_vector(initializer_list<T> list) : __treadle_size(0) {
        for (size_t i = 0; i < list.size(); ++i)
            push_back(list.begin()[i]);
    }
    __host__ __device__ constexpr inplace_vector(const T *first, const T *last) : __treadle_size(0) {
        for (; first != last; ++first)
            push_back(*first);
    }
    __host__ __device__ static constexpr size_t capacity() { return N; }
    __host__ __device__ static constexpr size_t max_size() { return N; }
    __host__ __device__ constexpr size_t size() const { return __treadle_size; }
    __host__ __device__ constexpr bool empty() const { return __treadle_size == 0; }
    __host__ __device__ constexpr T *data() { return __treadle_items; }
    __host__ __device__ constexpr const T *data() const { return __treadle_items; }
    __host__ __device__ constexpr T *begin() { return __treadle_items; }
    __host__ __device__ constexpr const T *begin() const { return __treadle_items; }
    __host__ __device__ constexpr T *end() { return __treadle_items + __treadle_size; }
    __host__ __device__ constexpr const T *end() const { return __treadle_items + __treadle_size; }
    __host__ __device__ constexpr const T *cbegin() const { return __treadle_items; }
    __host__ __device__ constexpr const T *cend() const { return __treadle_items + __treadle_size; }
    __host__ __device__ constexpr reverse_iterator<T *> rbegin() { return reverse_iterator<T *>(end()); }
    __host__ __device__ constexpr reverse_iterator<T *> rend() { return reverse_iterator<T *>(begin()); }
    __host__ __device__ constexpr T &operator[](size_t i) { return __treadle_items[i]; }
    __host__ __device__ constexpr const T &operator[](size_t i) const { return __treadle_items[i]; }
    __host__ __device__ constexpr T &front() { return __treadle_items[0]; }
    __host__ __device__ constexpr const T &front() const { return __treadle_items[0]; }
    __host__ __device__ constexpr T &back() { return __treadle_items[__treadle_size - 1]; }
    __host__ __device__ constexpr const T &back() const { return __treadle_items[__treadle_size - 1]; }
    // std::bad_alloc would be thrown where there is no room.
    __host__ __device__ constexpr T &push_back(const T &value) {
        if (__treadle_size >= N)
            __trap();
        __treadle_items[__treadle_size++] = value;
        return back();
    }
    __host__ __device__ constexpr T &unchecked_push_back(const T &value) { return push_back(value); }
    template <class... A> __host__ __device__ constexpr T &emplace_back(A &&...a) { return push_back(T(forward<A>(a)...)); }
    template <class... A> __host__ __device__ constexpr T &unchecked_emplace_back(A &&...a) { return push_back(T(forward<A>(a)...)); }
    __host__ __device__ constexpr T *try_push_back(const T &value) { return __treadle_size < N ? &push_back(value) : nullptr; }
    template <class... A> __host__ __device__ constexpr T *try_emplace_back(A &&...a) {
        return __treadle_size < N ? &push_back(T(forward<A>(a)...)) : nullptr;
    }
    __host__ __device__ constexpr void pop_back() { --__treadle_size; }
    __host__ __device__ constexpr void clear() { __treadle_size = 0; }
    __host__ __device__ constexpr void resize(size_t count, const T &value = T()) {
        while (__treadle_size < count)
            push_back(value);
        __treadle_size = count;
    }
    __host__ __device__ constexpr void reserve(size_t count) {
        if (count > N)
            __trap();
    }
    __host__ __device__ constexpr void shrink_to_fit() {}
    __host__ __device__ constexpr void assign(size_t count, const T &value) {
        clear();
        resize(count, value);
    }
    __host__ __device__ constexpr T *insert(const T *before, const T &value) {
        size_t at = before - __treadle_items;
        push_back(value);
        for (size_t i = __treadle_size - 1; i > at; --i)
            __treadle_items[i] = __treadle_items[i - 1];
        __treadle_items[at] = value;
        return __treadle_items + at;
    }
    template <class... A> __host__ __device__ constexpr T *emplace(const T *before, A &&...a) { return insert(before, T(forward<A>(a)...)); }
    __host__ __device__ constexpr T *erase(const T *first, const T *last) {
        size_t at = first - __treadle_items, count = last - first;
        for (size_t i = at; i + count < __treadle_size; ++i)
            __treadle_items[i] = __treadle_items[i + count];
        __treadle_size -= count;
        return __treadle_items + at;
    }
    __host__ __device__ constexpr T *erase(const T *one) { return erase(one, one + 1); }
    __host__ __device__ constexpr bool operator==(const inplace_vector &other) const {
        if (__treadle_size != other.__treadle_size)
            return false;
        for (size_t i = 0; i < __treadle_size; ++i)
            if (!(__treadle_items[i] == other.__treadle_items[i]))
                return false;
        return true;
    }
    __host__ __device__ constexpr bool operator!=(const inplace_vector &other) const { return !(*this == other); }
};

}  // namespace std
