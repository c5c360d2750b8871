// <optional>: a value, or none.
#pragma once
#include <utility>
namespace std {

struct nullopt_t { __host__ __device__ explicit constexpr nullopt_t(int) {} };
constexpr nullopt_t nullopt = nullopt_t(0);

// Where the value is. One that nothing becomes of at its end, and that can be made of nothing, is
// always there; others are in a union, and begin and end with the value of the optional.
template <class T, bool plain> struct __treadle_slot {
    T __treadle_value;
    bool __treadle_engaged;
    __host__ __device__ constexpr __treadle_slot() : __treadle_value(), __treadle_engaged(false) {}
    template <class... A>
    __host__ __device__ constexpr explicit __treadle_slot(in_place_t, A &&...a)
        : __treadle_value(forward<A>(a)...), __treadle_engaged(true) {}
    template <class... A> __host__ __device__ constexpr T &emplace(A &&...a) {
        __treadle_value = T(forward<A>(a)...);
        __treadle_engaged = true;
        return __treadle_value;
    }
    __host__ __device__ constexpr void reset() { __treadle_engaged = false; }
};
template <class T> struct __treadle_slot<T, false> {
    union { char __treadle_none; T __treadle_value; };
    bool __treadle_engaged;
    __host__ __device__ constexpr __treadle_slot() : __treadle_none(0), __treadle_engaged(false) {}
    template <class... A>
    __host__ __device__ constexpr explicit __treadle_slot(in_place_t, A &&...a)
        : __treadle_value(forward<A>(a)...), __treadle_engaged(true) {}
    __host__ __device__ constexpr __treadle_slot(const __treadle_slot &other) : __treadle_none(0), __treadle_engaged(other.__treadle_engaged) {
        if (__treadle_engaged)
            new (&__treadle_value) T(other.__treadle_value);
    }
    __host__ __device__ constexpr __treadle_slot(__treadle_slot &&other) : __treadle_none(0), __treadle_engaged(other.__treadle_engaged) {
        if (__treadle_engaged)
            new (&__treadle_value) T(move(other.__treadle_value));
    }
    __host__ __device__ constexpr __treadle_slot &operator=(const __treadle_slot &other) {
        if (!other.__treadle_engaged)
            reset();
        else if (__treadle_engaged)
            __treadle_value = other.__treadle_value;
        else
            emplace(other.__treadle_value);
        return *this;
    }
    __host__ __device__ ~__treadle_slot() { reset(); }
    template <class... A> __host__ __device__ constexpr T &emplace(A &&...a) {
        reset();
        new (&__treadle_value) T(forward<A>(a)...);
        __treadle_engaged = true;
        return __treadle_value;
    }
    __host__ __device__ constexpr void reset() {
        if constexpr (!is_trivially_destructible_v<T>) {
            if (__treadle_engaged)
                __treadle_value.~T();
        }
        __treadle_engaged = false;
    }
};

template <class T> struct optional : __treadle_slot<T, is_trivially_destructible_v<T> && is_default_constructible_v<T>> {
    typedef T value_type;
    typedef __treadle_slot<T, is_trivially_destructible_v<T> && is_default_constructible_v<T>> __treadle_base;
    __host__ __device__ constexpr optional() {}
    __host__ __device__ constexpr optional(nullopt_t) {}
    __host__ __device__ constexpr optional(const T &x) : __treadle_base(in_place, x) {}
    template <class U> __host__ __device__ constexpr optional(const optional<U> &other) {
        if (other.has_value())
            this->emplace(*other);
    }
    template <class... A>
    __host__ __device__ constexpr explicit optional(in_place_t, A &&...a) : __treadle_base(in_place, forward<A>(a)...) {}
    __host__ __device__ constexpr optional &operator=(nullopt_t) {
        this->reset();
        return *this;
    }
    __host__ __device__ constexpr optional &operator=(const T &x) {
        if (this->__treadle_engaged)
            this->__treadle_value = x;
        else
            this->emplace(x);
        return *this;
    }
    template <class U> __host__ __device__ constexpr optional &operator=(const optional<U> &other) {
        if (other.has_value())
            *this = T(*other);
        else
            this->reset();
        return *this;
    }
    __host__ __device__ constexpr bool has_value() const { return this->__treadle_engaged; }
    __host__ __device__ constexpr explicit operator bool() const { return this->__treadle_engaged; }
    __host__ __device__ constexpr T &operator*() { return this->__treadle_value; }
    __host__ __device__ constexpr const T &operator*() const { return this->__treadle_value; }
    __host__ __device__ constexpr T *operator->() { return &this->__treadle_value; }
    __host__ __device__ constexpr const T *operator->() const { return &this->__treadle_value; }
    __host__ __device__ constexpr T &value() { return this->__treadle_value; }
    __host__ __device__ constexpr const T &value() const { return this->__treadle_value; }
    template <class U> __host__ __device__ constexpr T value_or(const U &other) const {
        return this->__treadle_engaged ? this->__treadle_value : (T)other;
    }
    template <class F> __host__ __device__ constexpr auto and_then(F &&f) const {
        typedef remove_cvref_t<decltype(f(declval<const T &>()))> R;
        if (this->__treadle_engaged)
            return f(this->__treadle_value);
        return R();
    }
    template <class F> __host__ __device__ constexpr auto transform(F &&f) const {
        typedef optional<remove_cvref_t<decltype(f(declval<const T &>()))>> R;
        if (this->__treadle_engaged)
            return R(f(this->__treadle_value));
        return R();
    }
    template <class F> __host__ __device__ constexpr optional or_else(F &&f) const {
        if (this->__treadle_engaged)
            return *this;
        return optional(f());
    }
};
template <class T> optional(T) -> optional<T>;
template <class T> __host__ __device__ constexpr optional<decay_t<T>> make_optional(const T &x) { return optional<decay_t<T>>(x); }
template <class T, class... A> __host__ __device__ constexpr optional<T> make_optional(A &&...a) {
    return optional<T>(in_place, forward<A>(a)...);
}

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
