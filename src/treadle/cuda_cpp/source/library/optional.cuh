// <optional>: a value, or none. The value of none is one that is made without arguments.
#pragma once
#include <utility>
namespace std {

struct nullopt_t { __host__ __device__ explicit constexpr nullopt_t(int) {} };
constexpr nullopt_t nullopt = nullopt_t(0);
struct in_place_t {};
constexpr in_place_t in_place = in_place_t();

template <class T> struct optional {
    static_assert(is_trivially_destructible_v<T>,
                  "std::optional of a class whose destructor does something: none has an object here, "
                  "which would end, too. Keep the object and a bool of your own");
    typedef T value_type;
    T __treadle_value;
    bool __treadle_engaged;
    __host__ __device__ constexpr optional() : __treadle_value(), __treadle_engaged(false) {}
    __host__ __device__ constexpr optional(nullopt_t) : __treadle_value(), __treadle_engaged(false) {}
    __host__ __device__ constexpr optional(const T &x) : __treadle_value(x), __treadle_engaged(true) {}
    template <class U>
    __host__ __device__ constexpr optional(const optional<U> &other)
        : __treadle_value(other.has_value() ? (T)*other : T()), __treadle_engaged(other.has_value()) {}
    template <class... A>
    __host__ __device__ constexpr explicit optional(in_place_t, A... a) : __treadle_value(a...), __treadle_engaged(true) {}
    __host__ __device__ constexpr optional &operator=(nullopt_t) {
        __treadle_engaged = false;
        return *this;
    }
    __host__ __device__ constexpr optional &operator=(const T &x) {
        __treadle_value = x;
        __treadle_engaged = true;
        return *this;
    }
    template <class U> __host__ __device__ constexpr optional &operator=(const optional<U> &other) {
        if (other.has_value())
            __treadle_value = *other;
        __treadle_engaged = other.has_value();
        return *this;
    }
    template <class... A> __host__ __device__ constexpr T &emplace(A... a) {
        __treadle_value = T(a...);
        __treadle_engaged = true;
        return __treadle_value;
    }
    __host__ __device__ constexpr void reset() { __treadle_engaged = false; }
    __host__ __device__ constexpr bool has_value() const { return __treadle_engaged; }
    __host__ __device__ constexpr explicit operator bool() const { return __treadle_engaged; }
    __host__ __device__ constexpr T &operator*() { return __treadle_value; }
    __host__ __device__ constexpr const T &operator*() const { return __treadle_value; }
    __host__ __device__ constexpr T *operator->() { return &__treadle_value; }
    __host__ __device__ constexpr const T *operator->() const { return &__treadle_value; }
    __host__ __device__ constexpr T &value() { return __treadle_value; }
    __host__ __device__ constexpr const T &value() const { return __treadle_value; }
    template <class U> __host__ __device__ constexpr T value_or(const U &other) const {
        return __treadle_engaged ? __treadle_value : (T)other;
    }
};
template <class T> __host__ __device__ constexpr optional<decay_t<T>> make_optional(const T &x) { return optional<decay_t<T>>(x); }

// Comparisons with another optional, with a value, and with nullopt. `one` and
// `other` are what they give if only the first or only the second has a value, `none` if neither has.
#define __treadle_optional(op, none, one, other) \
    template <class T, class U> __host__ __device__ constexpr bool operator op(const optional<T> &x, const optional<U> &y) { \
        return x.has_value() ? (y.has_value() ? (bool)(*x op *y) : one) : (y.has_value() ? other : none); \
    } \
    template <class T, class U> __host__ __device__ constexpr bool operator op(const optional<T> &x, const U &y) { \
        return x.has_value() ? (bool)(*x op y) : other; \
    } \
    template <class T, class U> __host__ __device__ constexpr bool operator op(const T &x, const optional<U> &y) { \
        return y.has_value() ? (bool)(x op *y) : one; \
    } \
    template <class T> __host__ __device__ constexpr bool operator op(const optional<T> &x, nullopt_t) { \
        return x.has_value() ? one : none; \
    } \
    template <class T> __host__ __device__ constexpr bool operator op(nullopt_t, const optional<T> &x) { \
        return x.has_value() ? other : none; \
    }
__treadle_optional(==, true, false, false)
__treadle_optional(!=, false, true, true)
__treadle_optional(<, false, false, true)
__treadle_optional(>, false, true, false)
__treadle_optional(<=, true, false, true)
__treadle_optional(>=, true, true, false)
#undef __treadle_optional

}  // namespace std
