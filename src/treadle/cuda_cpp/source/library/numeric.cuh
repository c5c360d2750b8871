// <numeric>, for one thread: iterators are pointers, or classes like them.
#pragma once
#include <utility>
#include <iterator>
namespace std {

struct __treadle_sum {
    template <class A, class B> __host__ __device__ constexpr auto operator()(const A &x, const B &y) const { return x + y; }
};
struct __treadle_product {
    template <class A, class B> __host__ __device__ constexpr auto operator()(const A &x, const B &y) const { return x * y; }
};
struct __treadle_same {
    template <class A> __host__ __device__ constexpr A operator()(const A &x) const { return x; }
};

template <class I, class T> __host__ __device__ void iota(I first, I last, T value) {
    for (; first != last; ++first, ++value)
        *first = value;
}
template <class I, class T, class F> __host__ __device__ T accumulate(I first, I last, T sum, F f) {
    for (; first != last; ++first)
        sum = f(sum, *first);
    return sum;
}
template <class I, class T> __host__ __device__ T accumulate(I first, I last, T sum) {
    for (; first != last; ++first)
        sum = sum + *first;
    return sum;
}
template <class I, class T, class F> __host__ __device__ T reduce(I first, I last, T sum, F f) {
    return accumulate(first, last, sum, f);
}
template <class I, class T> __host__ __device__ T reduce(I first, I last, T sum) { return accumulate(first, last, sum); }
template <class I> __host__ __device__ auto reduce(I first, I last) {
    return accumulate(first, last, typename iterator_traits<I>::value_type());
}
template <class I, class J, class T, class F, class G>
__host__ __device__ T inner_product(I first, I last, J other, T sum, F f, G g) {
    for (; first != last; ++first, ++other)
        sum = f(sum, g(*first, *other));
    return sum;
}
template <class I, class J, class T>
__host__ __device__ T inner_product(I first, I last, J other, T sum) {
    return inner_product(first, last, other, sum, __treadle_sum(), __treadle_product());
}
template <class I, class J, class T, class F, class G>
__host__ __device__ T transform_reduce(I first, I last, J other, T sum, F f, G g) {
    return inner_product(first, last, other, sum, f, g);
}
template <class I, class J, class T> __host__ __device__ T transform_reduce(I first, I last, J other, T sum) {
    return inner_product(first, last, other, sum, __treadle_sum(), __treadle_product());
}
template <class I, class T, class F, class G> __host__ __device__ T transform_reduce(I first, I last, T sum, F f, G g) {
    for (; first != last; ++first)
        sum = f(sum, g(*first));
    return sum;
}

// Scans with a value before the first element. The result may be written over the elements.
template <class I, class O, class T, class F, class G>
__host__ __device__ O transform_exclusive_scan(I first, I last, O to, T sum, F f, G g) {
    for (; first != last; ++first, ++to) {
        T next = f(sum, g(*first));
        *to = sum;
        sum = next;
    }
    return to;
}
template <class I, class O, class T, class F>
__host__ __device__ O exclusive_scan(I first, I last, O to, T sum, F f) {
    return transform_exclusive_scan(first, last, to, sum, f, __treadle_same());
}
template <class I, class O, class T> __host__ __device__ O exclusive_scan(I first, I last, O to, T sum) {
    return transform_exclusive_scan(first, last, to, sum, __treadle_sum(), __treadle_same());
}
template <class I, class O, class F, class G, class T>
__host__ __device__ O transform_inclusive_scan(I first, I last, O to, F f, G g, T sum) {
    for (; first != last; ++first, ++to) {
        sum = f(sum, g(*first));
        *to = sum;
    }
    return to;
}
template <class I, class O, class F, class G>
__host__ __device__ O transform_inclusive_scan(I first, I last, O to, F f, G g) {
    if (first == last)
        return to;
    auto sum = g(*first);
    *to = sum;
    return transform_inclusive_scan(++first, last, ++to, f, g, sum);
}
template <class I, class O, class F, class T>
__host__ __device__ O inclusive_scan(I first, I last, O to, F f, T sum) {
    return transform_inclusive_scan(first, last, to, f, __treadle_same(), sum);
}
template <class I, class O, class F> __host__ __device__ O inclusive_scan(I first, I last, O to, F f) {
    return transform_inclusive_scan(first, last, to, f, __treadle_same());
}
template <class I, class O> __host__ __device__ O inclusive_scan(I first, I last, O to) {
    return transform_inclusive_scan(first, last, to, __treadle_sum(), __treadle_same());
}
template <class I, class O, class F> __host__ __device__ O partial_sum(I first, I last, O to, F f) {
    return transform_inclusive_scan(first, last, to, f, __treadle_same());
}
template <class I, class O> __host__ __device__ O partial_sum(I first, I last, O to) {
    return transform_inclusive_scan(first, last, to, __treadle_sum(), __treadle_same());
}
template <class I, class O, class F> __host__ __device__ O adjacent_difference(I first, I last, O to, F f) {
    if (first == last)
        return to;
    auto before = *first;
    *to = before;
    for (++first, ++to; first != last; ++first, ++to) {
        auto value = *first;
        *to = f(value, before);
        before = value;
    }
    return to;
}
template <class I, class O> __host__ __device__ O adjacent_difference(I first, I last, O to) {
    return adjacent_difference(first, last, to, [](const auto &x, const auto &y) { return x - y; });
}

// --- numbers -------------------------------------------------------------------------------------

template <class A, class B> __host__ __device__ constexpr common_type_t<A, B> gcd(A x, B y) {
    common_type_t<A, B> a = x, b = y;
    while (b != 0) {
        common_type_t<A, B> rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}
template <class A, class B> __host__ __device__ constexpr common_type_t<A, B> lcm(A x, B y) {
    common_type_t<A, B> a = x, b = y;
    common_type_t<A, B> product = a == 0 ? a : a / gcd(a, b) * b;
    return product < 0 ? -product : product;
}
// Half way from `a` to `b` without overflow; of integers the one nearer to `a`.
template <class T> __host__ __device__ constexpr T midpoint(T a, T b) {
    if constexpr (is_integral_v<T>) {
        typedef make_unsigned_t<T> U;
        return a <= b ? (T)(a + (T)((U)((U)b - (U)a) / 2u)) : (T)(a - (T)((U)((U)a - (U)b) / 2u));
    } else {
        // The sum is exact or rounded once, unless it may overflow.
        T most = (is_same_v<T, float> ? (T)3.402823466e+38f : (T)1.7976931348623157e+308) / 2;
        return fabs(a) <= most && fabs(b) <= most ? (a + b) / 2 : a / 2 + b / 2;
    }
}
template <class T> __host__ __device__ constexpr T *midpoint(T *a, T *b) { return a + (b - a) / 2; }
// From <cmath>: exact at 0 and 1, and monotonic.
template <class T> __host__ __device__ constexpr T __treadle_lerp(T a, T b, T t) {
    if ((a <= 0 && b >= 0) || (a >= 0 && b <= 0))
        return t * b + (1 - t) * a;
    if (t == 1)
        return b;
    T x = a + t * (b - a);
    return (t > 1) == (b > a) ? (b < x ? x : b) : (x < b ? x : b);
}
__host__ __device__ constexpr float lerp(float a, float b, float t) { return __treadle_lerp(a, b, t); }
__host__ __device__ constexpr double lerp(double a, double b, double t) { return __treadle_lerp(a, b, t); }

}  // namespace std
