// <ratio>: fractions that are types.
#pragma once
#include <type_traits>
namespace std {

__host__ __device__ constexpr long __treadle_divisor(long a, long b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
template <long n, long d = 1> struct ratio {
    static_assert(d != 0, "a ratio has no denominator 0");
    static constexpr long num = (d < 0 ? -n : n) / __treadle_divisor(n, d);
    static constexpr long den = (d < 0 ? -d : d) / __treadle_divisor(n, d);
    typedef ratio<num, den> type;
};
#define __treadle_of_ratios(name, n, d) \
    template <class A, class B> using name = typename ratio<n, d>::type;
__treadle_of_ratios(ratio_add, A::num * (B::den / __treadle_divisor(A::den, B::den)) + B::num * (A::den / __treadle_divisor(A::den, B::den)),
                    A::den / __treadle_divisor(A::den, B::den) * B::den)
__treadle_of_ratios(ratio_subtract, A::num * (B::den / __treadle_divisor(A::den, B::den)) - B::num * (A::den / __treadle_divisor(A::den, B::den)),
                    A::den / __treadle_divisor(A::den, B::den) * B::den)
// Each numerator and the other's denominator without their divisor, so that products stay small.
__treadle_of_ratios(ratio_multiply, (A::num / __treadle_divisor(A::num, B::den)) * (B::num / __treadle_divisor(B::num, A::den)),
                    (A::den / __treadle_divisor(B::num, A::den)) * (B::den / __treadle_divisor(A::num, B::den)))
__treadle_of_ratios(ratio_divide, (A::num / __treadle_divisor(A::num, B::num)) * (B::den / __treadle_divisor(B::den, A::den)),
                    (A::den / __treadle_divisor(B::den, A::den)) * (B::num / __treadle_divisor(A::num, B::num)))
#undef __treadle_of_ratios
#define __treadle_compared_ratios(name, test) \
    template <class A, class B> constexpr bool name##_v = test; \
    template <class A, class B> struct name : integral_constant<bool, test> {};
__treadle_compared_ratios(ratio_equal, A::num == B::num && A::den == B::den)
__treadle_compared_ratios(ratio_not_equal, A::num != B::num || A::den != B::den)
__treadle_compared_ratios(ratio_less, (ratio_subtract<A, B>::num < 0))
__treadle_compared_ratios(ratio_less_equal, (ratio_subtract<A, B>::num <= 0))
__treadle_compared_ratios(ratio_greater, (ratio_subtract<A, B>::num > 0))
__treadle_compared_ratios(ratio_greater_equal, (ratio_subtract<A, B>::num >= 0))
#undef __treadle_compared_ratios

typedef ratio<1, 1000000000000000000> atto;
typedef ratio<1, 1000000000000000> femto;
typedef ratio<1, 1000000000000> pico;
typedef ratio<1, 1000000000> nano;
typedef ratio<1, 1000000> micro;
typedef ratio<1, 1000> milli;
typedef ratio<1, 100> centi;
typedef ratio<1, 10> deci;
typedef ratio<10> deca;
typedef ratio<100> hecto;
typedef ratio<1000> kilo;
typedef ratio<1000000> mega;
typedef ratio<1000000000> giga;
typedef ratio<1000000000000> tera;
typedef ratio<1000000000000000> peta;
typedef ratio<1000000000000000000> exa;

}  // namespace std
