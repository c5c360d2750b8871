// <iterator>: what iterators are, for pointers and classes like them.
#pragma once
#include <utility>
namespace std {

struct input_iterator_tag {};
struct output_iterator_tag {};
struct forward_iterator_tag : input_iterator_tag {};
struct bidirectional_iterator_tag : forward_iterator_tag {};
struct random_access_iterator_tag : bidirectional_iterator_tag {};

template <class I> struct iterator_traits {
    typedef typename I::value_type value_type;
    typedef typename I::difference_type difference_type;
    typedef typename I::pointer pointer;
    typedef typename I::reference reference;
    typedef typename I::iterator_category iterator_category;
};
template <class T> struct iterator_traits<T *> {
    typedef T value_type;
    typedef ptrdiff_t difference_type;
    typedef T *pointer;
    typedef T &reference;
    typedef random_access_iterator_tag iterator_category;
};

template <class I> __host__ __device__ constexpr ptrdiff_t distance(I first, I last) { return last - first; }
template <class I, class N> __host__ __device__ constexpr void advance(I &i, N by) { i += by; }
template <class I> __host__ __device__ constexpr I next(I i, ptrdiff_t by = 1) { return i + by; }
template <class I> __host__ __device__ constexpr I prev(I i, ptrdiff_t by = 1) { return i - by; }

template <class I> struct reverse_iterator {
    typedef I iterator_type;
    typedef typename iterator_traits<I>::value_type value_type;
    typedef ptrdiff_t difference_type;
    typedef typename iterator_traits<I>::pointer pointer;
    typedef typename iterator_traits<I>::reference reference;
    typedef typename iterator_traits<I>::iterator_category iterator_category;
    I __treadle_behind;
    __host__ __device__ constexpr reverse_iterator() : __treadle_behind() {}
    __host__ __device__ constexpr explicit reverse_iterator(I i) : __treadle_behind(i) {}
    __host__ __device__ constexpr I base() const { return __treadle_behind; }
    __host__ __device__ constexpr reference operator*() const { return __treadle_behind[-1]; }
    __host__ __device__ constexpr reference operator[](ptrdiff_t i) const { return __treadle_behind[-i - 1]; }
    __host__ __device__ constexpr pointer operator->() const { return &__treadle_behind[-1]; }
    __host__ __device__ constexpr reverse_iterator &operator++() { --__treadle_behind; return *this; }
    __host__ __device__ constexpr reverse_iterator &operator--() { ++__treadle_behind; return *this; }
    __host__ __device__ constexpr reverse_iterator operator++(int) { return reverse_iterator(__treadle_behind--); }
    __host__ __device__ constexpr reverse_iterator operator--(int) { return reverse_iterator(__treadle_behind++); }
    __host__ __device__ constexpr reverse_iterator &operator+=(ptrdiff_t n) { __treadle_behind -= n; return *this; }
    __host__ __device__ constexpr reverse_iterator &operator-=(ptrdiff_t n) { __treadle_behind += n; return *this; }
    __host__ __device__ constexpr reverse_iterator operator+(ptrdiff_t n) const { return reverse_iterator(__treadle_behind - n); }
    __host__ __device__ constexpr reverse_iterator operator-(ptrdiff_t n) const { return reverse_iterator(__treadle_behind + n); }
    __host__ __device__ constexpr ptrdiff_t operator-(const reverse_iterator &other) const { return other.__treadle_behind - __treadle_behind; }
    __host__ __device__ constexpr bool operator==(const reverse_iterator &other) const { return __treadle_behind == other.__treadle_behind; }
    __host__ __device__ constexpr bool operator!=(const reverse_iterator &other) const { return __treadle_behind != other.__treadle_behind; }
    __host__ __device__ constexpr bool operator<(const reverse_iterator &other) const { return other.__treadle_behind < __treadle_behind; }
};
template <class I> __host__ __device__ constexpr reverse_iterator<I> make_reverse_iterator(I i) { return reverse_iterator<I>(i); }

// Of arrays, and of classes with such members.
template <class T, size_t n> __host__ __device__ constexpr T *begin(T (&x)[n]) { return x; }
template <class T, size_t n> __host__ __device__ constexpr T *end(T (&x)[n]) { return x + n; }
template <class T, size_t n> __host__ __device__ constexpr T *data(T (&x)[n]) { return x; }
template <class T, size_t n> __host__ __device__ constexpr size_t size(const T (&x)[n]) { return n; }
template <class T, size_t n> __host__ __device__ constexpr ptrdiff_t ssize(const T (&x)[n]) { return (ptrdiff_t)n; }
template <class C> __host__ __device__ constexpr auto begin(C &x) { return x.begin(); }
template <class C> __host__ __device__ constexpr auto end(C &x) { return x.end(); }
template <class C> __host__ __device__ constexpr auto cbegin(const C &x) { return begin(x); }
template <class C> __host__ __device__ constexpr auto cend(const C &x) { return end(x); }
template <class C> __host__ __device__ constexpr auto rbegin(C &x) { return make_reverse_iterator(end(x)); }
template <class C> __host__ __device__ constexpr auto rend(C &x) { return make_reverse_iterator(begin(x)); }
template <class C> __host__ __device__ constexpr auto data(C &x) { return x.data(); }
template <class C> __host__ __device__ constexpr size_t size(const C &x) { return x.size(); }
template <class C> __host__ __device__ constexpr ptrdiff_t ssize(const C &x) { return (ptrdiff_t)x.size(); }
template <class C> __host__ __device__ constexpr bool empty(const C &x) { return x.empty(); }

}  // namespace std
