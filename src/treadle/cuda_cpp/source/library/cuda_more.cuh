// <cuda/cmath>, <cuda/functional>, <cuda/memory>, <cuda/annotated_ptr>: arithmetic of integers,
// function objects, and what says how memory is used, which changes no value.
#pragma once
#include <type_traits>
#include <functional>
namespace cuda {

// --- <cuda/cmath> --------------------------------------------------------------------------------

template <class A, class B> __host__ __device__ constexpr std::common_type_t<A, B> ceil_div(A a, B b) {
    typedef std::common_type_t<A, B> T;
    return (T)((T)a / (T)b + ((T)a % (T)b != 0 ? 1 : 0));
}
template <class A, class B> __host__ __device__ constexpr std::common_type_t<A, B> round_up(A a, B b) {
    return ceil_div(a, b) * (std::common_type_t<A, B>)b;
}
template <class A, class B> __host__ __device__ constexpr std::common_type_t<A, B> round_down(A a, B b) {
    typedef std::common_type_t<A, B> T;
    return (T)a / (T)b * (T)b;
}
template <class T> __host__ __device__ constexpr std::make_unsigned_t<T> uabs(T x) {
    typedef std::make_unsigned_t<T> U;
    return x < 0 ? (U)((U)0 - (U)x) : (U)x;
}
template <class T> __host__ __device__ constexpr T neg(T x) {
    typedef std::make_unsigned_t<T> U;
    return (T)(U)((U)0 - (U)x);
}
template <class T> __host__ __device__ constexpr bool is_power_of_two(T x) { return x > 0 && (x & (x - 1)) == 0; }
template <class T> __host__ __device__ constexpr int ilog2(T x) {
    int found = -1;
    for (unsigned long long rest = (unsigned long long)x; rest; rest >>= 1)
        ++found;
    return found;
}
template <class T> __host__ __device__ constexpr int ceil_ilog2(T x) { return ilog2(x) + (is_power_of_two(x) ? 0 : 1); }
template <class T> __host__ __device__ constexpr int ilog10(T x) {
    int found = 0;
    for (unsigned long long rest = (unsigned long long)x / 10u; rest; rest /= 10u)
        ++found;
    return found;
}
template <class T> __host__ __device__ constexpr T next_power_of_two(T x) { return x <= 1 ? (T)1 : (T)((T)1 << ceil_ilog2(x)); }
template <class T> __host__ __device__ constexpr T prev_power_of_two(T x) { return x <= 0 ? (T)0 : (T)((T)1 << ilog2(x)); }
template <class T> __host__ __device__ constexpr T isqrt(T x) {
    typedef unsigned long long U;
    U root = 0, rest = (U)x;
    for (U bit = 1ull << 62; bit; bit >>= 2) {
        if (rest >= root + bit) {
            rest -= root + bit;
            root = (root >> 1) + bit;
        } else {
            root >>= 1;
        }
    }
    return (T)root;
}
template <class T> struct __treadle_quotient { T first, second; };
template <class T, bool not_one = false> struct fast_mod_div {
    T divisor;
    __host__ __device__ constexpr fast_mod_div() : divisor(1) {}
    __host__ __device__ constexpr explicit fast_mod_div(T by) : divisor(by) {}
    __host__ __device__ constexpr operator T() const { return divisor; }
};
template <class A, class T, bool not_one> __host__ __device__ constexpr std::common_type_t<A, T> operator/(A a, fast_mod_div<T, not_one> b) {
    return (std::common_type_t<A, T>)a / (std::common_type_t<A, T>)b.divisor;
}
template <class A, class T, bool not_one> __host__ __device__ constexpr std::common_type_t<A, T> operator%(A a, fast_mod_div<T, not_one> b) {
    return (std::common_type_t<A, T>)a % (std::common_type_t<A, T>)b.divisor;
}
template <class A, class T, bool not_one> __host__ __device__ constexpr __treadle_quotient<T> div(A a, fast_mod_div<T, not_one> b) {
    return __treadle_quotient<T>{(T)(a / b), (T)(a % b)};
}

// --- <cuda/functional> ---------------------------------------------------------------------------

template <class T = void> struct maximum {
    __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
template <> struct maximum<void> {
    template <class A, class B> __host__ __device__ constexpr auto operator()(const A &a, const B &b) const { return a < b ? b : a; }
};
template <class T = void> struct minimum {
    __host__ __device__ constexpr T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};
template <> struct minimum<void> {
    template <class A, class B> __host__ __device__ constexpr auto operator()(const A &a, const B &b) const { return b < a ? b : a; }
};
template <class R, class F> struct __treadle_returns {
    F f;
    template <class... A> __host__ __device__ constexpr R operator()(A &&...a) const { return f(a...); }
};
template <class R, class F> __host__ __device__ constexpr __treadle_returns<R, F> proclaim_return_type(F f) {
    return __treadle_returns<R, F>{f};
}
template <class F> __host__ __device__ constexpr F proclaim_copyable_arguments(F f) { return f; }

// --- <cuda/memory>, <cuda/annotated_ptr>, <cuda/discard_memory> -----------------------------------

template <class T> __host__ __device__ bool is_aligned(T *p, size_t alignment) { return (size_t)p % alignment == 0; }
template <class T> __host__ __device__ T *align_down(T *p, size_t alignment) {
    return (T *)((char *)p - (size_t)p % alignment);
}
template <class T> __host__ __device__ T *align_up(T *p, size_t alignment) {
    return (T *)((char *)p + (alignment - (size_t)p % alignment) % alignment);
}
template <class U, class T> __host__ __device__ U *ptr_rebind(T *p) { return (U *)p; }
struct access_property {
    struct normal {};
    struct streaming {};
    struct persisting {};
    struct shared {};
    struct global {};
    __host__ __device__ constexpr access_property() {}
    __host__ __device__ constexpr access_property(normal) {}
    __host__ __device__ constexpr access_property(streaming) {}
    __host__ __device__ constexpr access_property(persisting) {}
    __host__ __device__ constexpr access_property(global) {}
    template <class P> __host__ __device__ constexpr access_property(P, float) {}
    template <class P, class Q> __host__ __device__ constexpr access_property(P, float, Q) {}
};
template <class T, class Property> struct annotated_ptr {
    T *__treadle_pointer;
    __host__ __device__ constexpr annotated_ptr() : __treadle_pointer(nullptr) {}
    __host__ __device__ constexpr annotated_ptr(T *p) : __treadle_pointer(p) {}
    template <class P> __host__ __device__ constexpr annotated_ptr(T *p, P) : __treadle_pointer(p) {}
    template <class U, class P>
    __host__ __device__ constexpr annotated_ptr(const annotated_ptr<U, P> &other) : __treadle_pointer(other.get()) {}
    __host__ __device__ constexpr T *get() const { return __treadle_pointer; }
    __host__ __device__ T &operator*() const { return *__treadle_pointer; }
    __host__ __device__ T *operator->() const { return __treadle_pointer; }
    __host__ __device__ T &operator[](ptrdiff_t i) const { return __treadle_pointer[i]; }
    __host__ __device__ T *operator+(ptrdiff_t i) const { return __treadle_pointer + i; }
    __host__ __device__ explicit operator bool() const { return __treadle_pointer != nullptr; }
};
template <class T, class P> __host__ __device__ T *associate_access_property(T *p, P) { return p; }
template <class S, class P> __host__ __device__ void apply_access_property(const volatile void *p, S bytes, P) {}
__host__ __device__ inline void discard_memory(volatile void *p, size_t bytes) {}

}  // namespace cuda
