// Thrust in device code: function objects.
#pragma once
#include <functional>
namespace thrust {

using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::identity;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::plus;
template <class T = void> struct maximum {
    __host__ __device__ constexpr T operator()(const T &x, const T &y) const { return x < y ? y : x; }
};
template <class T = void> struct minimum {
    __host__ __device__ constexpr T operator()(const T &x, const T &y) const { return y < x ? y : x; }
};
template <class T = void> struct square {
    __host__ __device__ constexpr T operator()(const T &x) const { return x * x; }
};
template <class A, class B> struct unary_function {
    typedef A argument_type;
    typedef B result_type;
};
template <class A, class B, class C> struct binary_function {
    typedef A first_argument_type;
    typedef B second_argument_type;
    typedef C result_type;
};

}  // namespace thrust
