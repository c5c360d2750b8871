// <chrono>: durations and points in time. Calendars are for the host.
#pragma once
#include <limits>
#include <ratio>
#include <type_traits>
namespace std {
namespace chrono {

template <class R> struct treat_as_floating_point : integral_constant<bool, is_floating_point_v<R>> {};
template <class R> constexpr bool treat_as_floating_point_v = treat_as_floating_point<R>::value;
template <class R> struct duration_values {
    __host__ __device__ static constexpr R zero() { return R(0); }
    __host__ __device__ static constexpr R min() { return numeric_limits<R>::lowest(); }
    __host__ __device__ static constexpr R max() { return numeric_limits<R>::max(); }
};
template <class R, class P = ratio<1>> struct duration;
template <class D> constexpr bool __treadle_is_duration = false;
template <class R, class P> constexpr bool __treadle_is_duration<duration<R, P>> = true;
template <class To, class R, class P>
__host__ __device__ constexpr To duration_cast(const duration<R, P> &d) {
    typedef ratio_divide<P, typename To::period> by;
    typedef common_type_t<typename To::rep, R, long> number;
    if constexpr (by::num == 1 && by::den == 1)
        return To((typename To::rep)d.count());
    else if constexpr (by::den == 1)
        return To((typename To::rep)((number)d.count() * (number)by::num));
    else if constexpr (by::num == 1)
        return To((typename To::rep)((number)d.count() / (number)by::den));
    else
        return To((typename To::rep)((number)d.count() * (number)by::num / (number)by::den));
}
template <class R, class P> struct duration {
    typedef R rep;
    typedef typename P::type period;
    R __treadle_count;
    constexpr duration() = default;
    template <class S>
        requires(is_convertible_v<S, R> && (treat_as_floating_point_v<R> || !treat_as_floating_point_v<S>))
    __host__ __device__ constexpr explicit duration(const S &count) : __treadle_count((R)count) {}
    // Without loss: to floating-point numbers, or to a finer unit.
    template <class S, class Q>
        requires(treat_as_floating_point_v<R> || (ratio_divide<Q, P>::den == 1 && !treat_as_floating_point_v<S>))
    __host__ __device__ constexpr duration(const duration<S, Q> &other) : __treadle_count(duration_cast<duration<R, P>>(other).count()) {}
    __host__ __device__ constexpr R count() const { return __treadle_count; }
    __host__ __device__ constexpr duration operator+() const { return *this; }
    __host__ __device__ constexpr duration operator-() const { return duration(-__treadle_count); }
    __host__ __device__ constexpr duration &operator++() { ++__treadle_count; return *this; }
    __host__ __device__ constexpr duration &operator--() { --__treadle_count; return *this; }
    __host__ __device__ constexpr duration operator++(int) { return duration(__treadle_count++); }
    __host__ __device__ constexpr duration operator--(int) { return duration(__treadle_count--); }
    __host__ __device__ constexpr duration &operator+=(const duration &other) { __treadle_count += other.__treadle_count; return *this; }
    __host__ __device__ constexpr duration &operator-=(const duration &other) { __treadle_count -= other.__treadle_count; return *this; }
    __host__ __device__ constexpr duration &operator*=(const R &by) { __treadle_count *= by; return *this; }
    __host__ __device__ constexpr duration &operator/=(const R &by) { __treadle_count /= by; return *this; }
    __host__ __device__ constexpr duration &operator%=(const R &by) { __treadle_count %= by; return *this; }
    __host__ __device__ constexpr duration &operator%=(const duration &other) { __treadle_count %= other.__treadle_count; return *this; }
    __host__ __device__ static constexpr duration zero() { return duration(duration_values<R>::zero()); }
    __host__ __device__ static constexpr duration min() { return duration(duration_values<R>::min()); }
    __host__ __device__ static constexpr duration max() { return duration(duration_values<R>::max()); }
};
typedef duration<long, nano> nanoseconds;
typedef duration<long, micro> microseconds;
typedef duration<long, milli> milliseconds;
typedef duration<long> seconds;
typedef duration<long, ratio<60>> minutes;
typedef duration<long, ratio<3600>> hours;
typedef duration<int, ratio<86400>> days;
typedef duration<int, ratio<604800>> weeks;

// The type to which two durations convert without loss.
template <class A, class B> struct __treadle_both;
template <class R, class P, class S, class Q> struct __treadle_both<duration<R, P>, duration<S, Q>> {
    static constexpr long divisor_of_n = __treadle_divisor(P::num, Q::num);
    static constexpr long divisor_of_d = __treadle_divisor(P::den, Q::den);
    typedef duration<common_type_t<R, S>, typename ratio<divisor_of_n, P::den / divisor_of_d * Q::den>::type> type;
};
template <class R, class P, class S, class Q>
using __treadle_common = typename __treadle_both<duration<R, P>, duration<S, Q>>::type;

#define __treadle_of_durations(result, op, expression) \
    template <class R, class P, class S, class Q> \
    __host__ __device__ constexpr result operator op(const duration<R, P> &x, const duration<S, Q> &y) { \
        typedef __treadle_common<R, P, S, Q> both; \
        return expression; \
    }
#define __treadle_sum(op) __treadle_of_durations(auto, op, both(both(x).count() op both(y).count()))
#define __treadle_compared(op) __treadle_of_durations(bool, op, both(x).count() op both(y).count())
__treadle_sum(+)
__treadle_sum(-)
__treadle_sum(%)
__treadle_of_durations(auto, /, both(x).count() / both(y).count())
__treadle_compared(==)
__treadle_compared(!=)
__treadle_compared(<)
__treadle_compared(>)
__treadle_compared(<=)
__treadle_compared(>=)
#undef __treadle_compared
#undef __treadle_sum
#undef __treadle_of_durations
#define __treadle_by_number(op) \
    template <class R, class P, class S> requires(!__treadle_is_duration<S>) \
    __host__ __device__ constexpr auto operator op(const duration<R, P> &x, const S &by) { \
        typedef common_type_t<R, S> number; \
        return duration<number, P>((number)x.count() op (number)by); \
    }
__treadle_by_number(*)
__treadle_by_number(/)
__treadle_by_number(%)
#undef __treadle_by_number
template <class R, class P, class S> requires(!__treadle_is_duration<S>)
__host__ __device__ constexpr auto operator*(const S &by, const duration<R, P> &x) { return x * by; }

template <class To, class R, class P> __host__ __device__ constexpr To floor(const duration<R, P> &d) {
    To cut = duration_cast<To>(d);
    return cut > d ? To(cut.count() - 1) : cut;
}
template <class To, class R, class P> __host__ __device__ constexpr To ceil(const duration<R, P> &d) {
    To cut = duration_cast<To>(d);
    return cut < d ? To(cut.count() + 1) : cut;
}
template <class To, class R, class P> __host__ __device__ constexpr To round(const duration<R, P> &d) {
    To low = floor<To>(d), high = To(low.count() + 1);
    auto below = d - low, above = high - d;
    if (below == above)
        return low.count() % 2 == 0 ? low : high;
    return below < above ? low : high;
}
template <class R, class P> __host__ __device__ constexpr duration<R, P> abs(const duration<R, P> &d) { return d.count() < R(0) ? -d : d; }

template <class C, class D = typename C::duration> struct time_point {
    typedef C clock;
    typedef D duration;
    typedef typename D::rep rep;
    typedef typename D::period period;
    D __treadle_since;
    __host__ __device__ constexpr time_point() : __treadle_since(D::zero()) {}
    __host__ __device__ constexpr explicit time_point(const D &since) : __treadle_since(since) {}
    template <class E> requires(is_convertible_v<E, D>)
    __host__ __device__ constexpr time_point(const time_point<C, E> &other) : __treadle_since(other.time_since_epoch()) {}
    __host__ __device__ constexpr D time_since_epoch() const { return __treadle_since; }
    __host__ __device__ constexpr time_point &operator+=(const D &by) { __treadle_since += by; return *this; }
    __host__ __device__ constexpr time_point &operator-=(const D &by) { __treadle_since -= by; return *this; }
    __host__ __device__ static constexpr time_point min() { return time_point(D::min()); }
    __host__ __device__ static constexpr time_point max() { return time_point(D::max()); }
};
template <class To, class C, class D>
__host__ __device__ constexpr time_point<C, To> time_point_cast(const time_point<C, D> &t) {
    return time_point<C, To>(duration_cast<To>(t.time_since_epoch()));
}
template <class C, class D, class R, class P>
__host__ __device__ constexpr auto operator+(const time_point<C, D> &t, const duration<R, P> &by) {
    auto since = t.time_since_epoch() + by;
    return time_point<C, decltype(since)>(since);
}
template <class C, class D, class R, class P>
__host__ __device__ constexpr auto operator+(const duration<R, P> &by, const time_point<C, D> &t) { return t + by; }
template <class C, class D, class R, class P>
__host__ __device__ constexpr auto operator-(const time_point<C, D> &t, const duration<R, P> &by) { return t + -by; }
#define __treadle_of_points(result, op) \
    template <class C, class D, class E> \
    __host__ __device__ constexpr result operator op(const time_point<C, D> &x, const time_point<C, E> &y) { \
        return x.time_since_epoch() op y.time_since_epoch(); \
    }
__treadle_of_points(auto, -)
__treadle_of_points(bool, ==)
__treadle_of_points(bool, !=)
__treadle_of_points(bool, <)
__treadle_of_points(bool, >)
__treadle_of_points(bool, <=)
__treadle_of_points(bool, >=)
#undef __treadle_of_points

#define __treadle_clock(name, steady) \
    struct name { \
        typedef nanoseconds duration; \
        typedef long rep; \
        typedef nano period; \
        typedef chrono::time_point<name> time_point; \
        static constexpr bool is_steady = steady; \
        __host__ __device__ static time_point now() { return time_point(nanoseconds((long)::globaltimer())); } \
    };
__treadle_clock(system_clock, false)
__treadle_clock(steady_clock, true)
__treadle_clock(high_resolution_clock, false)
#undef __treadle_clock

}  // namespace chrono
inline namespace literals {
inline namespace chrono_literals {

#define __treadle_unit(suffix, type, ratio_) \
    __host__ __device__ constexpr chrono::type operator""suffix(unsigned long long x) { return chrono::type((long)x); } \
    __host__ __device__ constexpr chrono::duration<double, ratio_> operator""suffix(long double x) { \
        return chrono::duration<double, ratio_>((double)x); \
    }
__treadle_unit(h, hours, ratio<3600>)
__treadle_unit(min, minutes, ratio<60>)
__treadle_unit(s, seconds, ratio<1>)
__treadle_unit(ms, milliseconds, milli)
__treadle_unit(us, microseconds, micro)
__treadle_unit(ns, nanoseconds, nano)
#undef __treadle_unit

}  // namespace chrono_literals
}  // namespace literals
namespace chrono {
using namespace literals::chrono_literals;
}

}  // namespace std
