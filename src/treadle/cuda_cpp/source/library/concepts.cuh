// <concepts>. Every type of kernels can be copied and moved by its bytes, unless it is a reference.
#pragma once
#include <type_traits>
#include <utility>
namespace std {

template <class T, class U> concept same_as = is_same_v<T, U> && is_same_v<U, T>;
template <class D, class B> concept derived_from = is_base_of_v<B, D> && is_convertible_v<D *, B *>;
template <class F, class T> concept convertible_to = is_convertible_v<F, T>;
template <class T> concept integral = is_integral_v<T>;
template <class T> concept signed_integral = integral<T> && is_signed_v<T>;
template <class T> concept unsigned_integral = integral<T> && !signed_integral<T>;
template <class T> concept floating_point = is_floating_point_v<T>;
template <class T, class U> concept common_with = requires { typename common_type_t<T, U>; };
template <class T, class U> concept assignable_from =
    requires(T a, U b) { { a = static_cast<U>(b) } -> same_as<T>; };
template <class T> concept swappable = is_object_v<T>;
template <class T> concept destructible = is_object_v<T>;
template <class T, class... A> concept constructible_from = requires(A... a) { T(a...); };
template <class T> concept default_initializable = requires { T{}; };
template <class T> concept move_constructible = is_object_v<T>;
template <class T> concept copy_constructible = is_object_v<T>;
template <class T> concept movable = is_object_v<T>;
template <class T> concept copyable = is_object_v<T>;
template <class T> concept semiregular = copyable<T> && default_initializable<T>;
template <class T> concept equality_comparable = requires(const T &a, const T &b) {
    { a == b } -> convertible_to<bool>;
    { a != b } -> convertible_to<bool>;
};
template <class T, class U> concept equality_comparable_with = requires(const T &a, const U &b) {
    { a == b } -> convertible_to<bool>;
    { b == a } -> convertible_to<bool>;
};
template <class T> concept totally_ordered = equality_comparable<T>
    && requires(const T &a, const T &b) {
    { a < b } -> convertible_to<bool>;
    { a > b } -> convertible_to<bool>;
    { a <= b } -> convertible_to<bool>;
    { a >= b } -> convertible_to<bool>;
};
template <class T> concept regular = semiregular<T> && equality_comparable<T>;
template <class F, class... A> concept invocable = requires(F f, A... a) { f(a...); };
template <class F, class... A> concept regular_invocable = invocable<F, A...>;
template <class F, class... A> concept predicate =
    requires(F f, A... a) { { f(a...) } -> convertible_to<bool>; };
}
