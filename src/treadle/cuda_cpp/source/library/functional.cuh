// <functional>: the function objects of operators.
#pragma once
#include <utility>
namespace std {

#define __treadle_function(name, result, expression) \
    template <class T = void> struct name { \
        typedef T first_argument_type; \
        typedef T second_argument_type; \
        typedef result result_type; \
        __host__ __device__ constexpr result operator()(const T &x, const T &y) const { \
            return expression; \
        } \
    };
__treadle_function(plus, T, x + y)
__treadle_function(minus, T, x - y)
__treadle_function(multiplies, T, x * y)
__treadle_function(divides, T, x / y)
__treadle_function(modulus, T, x % y)
__treadle_function(bit_and, T, x & y)
__treadle_function(bit_or, T, x | y)
__treadle_function(bit_xor, T, x ^ y)
__treadle_function(equal_to, bool, x == y)
__treadle_function(not_equal_to, bool, x != y)
__treadle_function(less, bool, x < y)
__treadle_function(greater, bool, x > y)
__treadle_function(less_equal, bool, x <= y)
__treadle_function(greater_equal, bool, x >= y)
__treadle_function(logical_and, bool, x && y)
__treadle_function(logical_or, bool, x || y)
#undef __treadle_function

// Of any two types, as std::plus<> is.
#define __treadle_function(name, expression) \
    template <> struct name<void> { \
        template <class A, class B> \
        __host__ __device__ constexpr auto operator()(const A &x, const B &y) const { \
            return expression; \
        } \
    };
__treadle_function(plus, x + y)
__treadle_function(minus, x - y)
__treadle_function(multiplies, x * y)
__treadle_function(divides, x / y)
__treadle_function(modulus, x % y)
__treadle_function(bit_and, x & y)
__treadle_function(bit_or, x | y)
__treadle_function(bit_xor, x ^ y)
__treadle_function(equal_to, x == y)
__treadle_function(not_equal_to, x != y)
__treadle_function(less, x < y)
__treadle_function(greater, x > y)
__treadle_function(less_equal, x <= y)
__treadle_function(greater_equal, x >= y)
__treadle_function(logical_and, x && y)
__treadle_function(logical_or, x || y)
#undef __treadle_function

// The object of a pointer to a member, which may be given by a pointer to it.
template <class T> __host__ __device__ constexpr T &__treadle_object(T &object) { return object; }
template <class T> __host__ __device__ constexpr T &__treadle_object(T *object) { return *object; }
template <class F, class O>
__host__ __device__ constexpr auto __treadle_invoke(F f, O &&object) -> decltype(auto) {
    if constexpr (__treadle_is_member_function_pointer<F>) {
        return (__treadle_object(object).*f)();
    } else {
        return (__treadle_object(object).*f);
    }
}
template <class F, class O, class B, class... A>
__host__ __device__ constexpr auto __treadle_invoke(F f, O &&object, B &&b, A &&...a) -> decltype(auto) {
    return (__treadle_object(object).*f)(forward<B>(b), forward<A>(a)...);
}
template <class F, class... A>
__host__ __device__ constexpr auto invoke(F &&f, A &&...a) -> decltype(auto) {
    if constexpr (__treadle_is_member_pointer<__treadle_decay<F>>) {
        return __treadle_invoke(f, forward<A>(a)...);
    } else {
        return f(forward<A>(a)...);
    }
}

template <class T = void> struct negate {
    __host__ __device__ constexpr T operator()(const T &x) const { return -x; }
};
template <class T = void> struct logical_not {
    __host__ __device__ constexpr bool operator()(const T &x) const { return !x; }
};
template <class T = void> struct bit_not {
    __host__ __device__ constexpr T operator()(const T &x) const { return ~x; }
};
#define __treadle_function(name, sign) \
    template <> struct name<void> { \
        template <class A> __host__ __device__ constexpr auto operator()(const A &x) const { return sign x; } \
    };
__treadle_function(negate, -)
__treadle_function(logical_not, !)
__treadle_function(bit_not, ~)
#undef __treadle_function
template <class F> struct __treadle_not {
    F f;
    template <class... A> __host__ __device__ constexpr bool operator()(A &&...a) const { return !f(forward<A>(a)...); }
};
template <class F> __host__ __device__ constexpr __treadle_not<decay_t<F>> not_fn(F &&f) { return __treadle_not<decay_t<F>>{f}; }
struct identity {
    template <class T> __host__ __device__ constexpr T operator()(const T &x) const { return x; }
};

}  // namespace std
