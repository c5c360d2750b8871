// <expected>: a value, or an error.
#pragma once
#include <variant>
namespace std {

template <class E> struct unexpected {
    E __treadle_error;
    __host__ __device__ constexpr explicit unexpected(const E &e) : __treadle_error(e) {}
    __host__ __device__ constexpr E &error() { return __treadle_error; }
    __host__ __device__ constexpr const E &error() const { return __treadle_error; }
};
template <class E> unexpected(E) -> unexpected<E>;
struct unexpect_t {};
constexpr unexpect_t unexpect = unexpect_t();

// What both kinds have: the first type is that of the value, the second that of the error.
#define __treadle_expected \
    template <class... A> __host__ __device__ constexpr explicit expected(in_place_t, A &&...a) { \
        this->template __treadle_make<0>(forward<A>(a)...); \
    } \
    template <class... A> __host__ __device__ constexpr explicit expected(unexpect_t, A &&...a) { \
        this->template __treadle_make<1>(forward<A>(a)...); \
    } \
    template <class G> __host__ __device__ constexpr expected(const unexpected<G> &e) { \
        this->template __treadle_make<1>(e.__treadle_error); \
    } \
    template <class G> __host__ __device__ constexpr expected &operator=(const unexpected<G> &e) { \
        this->template __treadle_set<1>(e.__treadle_error); \
        return *this; \
    } \
    __host__ __device__ constexpr bool has_value() const { return this->__treadle_index == 0; } \
    __host__ __device__ constexpr explicit operator bool() const { return this->__treadle_index == 0; } \
    __host__ __device__ constexpr E &error() { return this->item1; } \
    __host__ __device__ constexpr const E &error() const { return this->item1; } \
    template <class G> __host__ __device__ constexpr E error_or(const G &other) const { \
        return has_value() ? (E)other : this->item1; \
    }

template <class T, class E> struct expected : __treadle_union<T, E> {
    typedef T value_type;
    typedef E error_type;
    typedef unexpected<E> unexpected_type;
    __host__ __device__ constexpr expected() { this->template __treadle_make<0>(); }
    __host__ __device__ constexpr expected(const T &x) { this->template __treadle_make<0>(x); }
    __host__ __device__ constexpr expected &operator=(const T &x) {
        this->template __treadle_set<0>(x);
        return *this;
    }
    __treadle_expected
    template <class... A> __host__ __device__ constexpr T &emplace(A &&...a) {
        this->__treadle_end();
        this->template __treadle_make<0>(forward<A>(a)...);
        return this->item0;
    }
    __host__ __device__ constexpr T &operator*() { return this->item0; }
    __host__ __device__ constexpr const T &operator*() const { return this->item0; }
    __host__ __device__ constexpr T *operator->() { return &this->item0; }
    __host__ __device__ constexpr const T *operator->() const { return &this->item0; }
    __host__ __device__ constexpr T &value() { return this->item0; }
    __host__ __device__ constexpr const T &value() const { return this->item0; }
    template <class U> __host__ __device__ constexpr T value_or(const U &other) const {
        return has_value() ? this->item0 : (T)other;
    }
    template <class F> __host__ __device__ constexpr auto and_then(F &&f) const {
        typedef remove_cvref_t<decltype(f(declval<const T &>()))> R;
        if (has_value())
            return f(this->item0);
        return R(unexpect, this->item1);
    }
    template <class F> __host__ __device__ constexpr auto transform(F &&f) const {
        typedef expected<remove_cvref_t<decltype(f(declval<const T &>()))>, E> R;
        if (has_value())
            return R(in_place, f(this->item0));
        return R(unexpect, this->item1);
    }
    template <class F> __host__ __device__ constexpr auto or_else(F &&f) const {
        typedef remove_cvref_t<decltype(f(declval<const E &>()))> R;
        if (has_value())
            return R(in_place, this->item0);
        return f(this->item1);
    }
    template <class F> __host__ __device__ constexpr auto transform_error(F &&f) const {
        typedef expected<T, remove_cvref_t<decltype(f(declval<const E &>()))>> R;
        if (has_value())
            return R(in_place, this->item0);
        return R(unexpect, f(this->item1));
    }
};
template <class E> struct expected<void, E> : __treadle_union<monostate, E> {
    typedef void value_type;
    typedef E error_type;
    typedef unexpected<E> unexpected_type;
    __host__ __device__ constexpr expected() { this->template __treadle_make<0>(); }
    __treadle_expected
    __host__ __device__ constexpr void emplace() { this->template __treadle_set<0>(monostate()); }
    __host__ __device__ constexpr void operator*() const {}
    __host__ __device__ constexpr void value() const {}
};
#undef __treadle_expected

template <class T, class E> __host__ __device__ constexpr bool operator==(const expected<T, E> &x, const expected<T, E> &y) {
    return x.has_value() == y.has_value() && (x.has_value() ? x.item0 == y.item0 : x.item1 == y.item1);
}
template <class T, class E> __host__ __device__ constexpr bool operator!=(const expected<T, E> &x, const expected<T, E> &y) {
    return !(x == y);
}
template <class T, class E, class U> __host__ __device__ constexpr bool operator==(const expected<T, E> &x, const U &y) {
    return x.has_value() && x.item0 == y;
}
template <class T, class E, class G> __host__ __device__ constexpr bool operator==(const expected<T, E> &x, const unexpected<G> &y) {
    return !x.has_value() && x.item1 == y.__treadle_error;
}

}  // namespace std
