// <utility>: std::move, std::forward, std::pair and kin.
#pragma once
#include <type_traits>
namespace std {

struct piecewise_construct_t {};
struct in_place_t {};
constexpr in_place_t in_place = in_place_t();
template <size_t i> struct in_place_index_t {};
template <size_t i> constexpr in_place_index_t<i> in_place_index = in_place_index_t<i>();
template <class T> struct in_place_type_t {};
template <class T> constexpr in_place_type_t<T> in_place_type = in_place_type_t<T>();
template <class T> __host__ __device__ T &&declval();
template <class F, class... A>
constexpr bool is_invocable_v = requires { declval<F>()(declval<A>()...); };
template <class F, class... A>
struct is_invocable : integral_constant<bool, is_invocable_v<F, A...>> {};
template <class F, class... A> struct invoke_result {
    typedef decltype(declval<F>()(declval<A>()...)) type;
};
template <class F, class... A>
using invoke_result_t = typename invoke_result<F, A...>::type;
template <class T, class... A>
constexpr bool is_constructible_v = requires { T(declval<A>()...); };
template <class T, class... A>
struct is_constructible : integral_constant<bool, is_constructible_v<T, A...>> {};
template <class T> constexpr bool is_default_constructible_v = requires { T(); };
template <class T>
struct is_default_constructible : integral_constant<bool, is_default_constructible_v<T>> {};
template <class T, class U>
constexpr bool is_assignable_v = requires { declval<T>() = declval<U>(); };
template <class T, class U>
struct is_assignable : integral_constant<bool, is_assignable_v<T, U>> {};

template <class T> __host__ __device__ constexpr T &&move(T &x) { return static_cast<T &&>(x); }
template <class T> __host__ __device__ constexpr const T &&move(const T &x) {
    return static_cast<const T &&>(x);
}
template <class T>
__host__ __device__ constexpr T &&forward(remove_reference_t<T> &x) {
    return static_cast<T &&>(x);
}
template <class T>
__host__ __device__ constexpr T &&forward(remove_reference_t<T> &&x) {
    return static_cast<T &&>(x);
}
template <class T>
__host__ __device__ constexpr const remove_reference_t<T> &forward(const remove_reference_t<T> &x) {
    return x;
}
template <class T> __host__ __device__ constexpr const T &as_const(T &x) { return x; }
template <class T> __host__ __device__ constexpr T *addressof(T &x) { return &x; }
template <class T, class U = T> __host__ __device__ constexpr T exchange(T &x, U &&value) {
    T before = move(x);
    x = forward<U>(value);
    return before;
}

#define __treadle_compared(name, whole, op) \
    template <class T, class U> __host__ __device__ constexpr bool name(T a, U b) { \
        if constexpr (__treadle_is_signed<T> == __treadle_is_signed<U>) \
            return a op b; \
        else if constexpr (__treadle_is_signed<T>) \
            return a < 0 ? whole : (__treadle_make_unsigned<T>)a op b; \
        else \
            return b < 0 ? !whole : a op (__treadle_make_unsigned<U>)b; \
    }
__treadle_compared(cmp_less, true, <)
__treadle_compared(cmp_less_equal, true, <=)
__treadle_compared(cmp_greater, false, >)
__treadle_compared(cmp_greater_equal, false, >=)
#undef __treadle_compared
template <class T, class U> __host__ __device__ constexpr bool cmp_equal(T a, U b) {
    return !cmp_less(a, b) && !cmp_greater(a, b);
}
template <class T, class U> __host__ __device__ constexpr bool cmp_not_equal(T a, U b) {
    return !cmp_equal(a, b);
}
template <class R, class T> __host__ __device__ constexpr bool in_range(T x) {
    R y = (R)x;
    return cmp_equal(x, y);
}
template <class E> __host__ __device__ constexpr __treadle_underlying_type<E> to_underlying(E e) {
    return static_cast<__treadle_underlying_type<E>>(e);
}

// A reference that is assigned as a whole; also in <functional>.
template <class T> struct reference_wrapper {
    typedef T type;
    T *__treadle_at;
    __host__ __device__ constexpr reference_wrapper(T &x) : __treadle_at(&x) {}
    __host__ __device__ constexpr operator T &() const { return *__treadle_at; }
    __host__ __device__ constexpr T &get() const { return *__treadle_at; }
    template <class... A> __host__ __device__ constexpr auto operator()(A &&...a) const -> decltype(auto) {
        return (*__treadle_at)(forward<A>(a)...);
    }
};
template <class T> __host__ __device__ constexpr reference_wrapper<T> ref(T &x) { return reference_wrapper<T>(x); }
template <class T> __host__ __device__ constexpr reference_wrapper<const T> cref(const T &x) {
    return reference_wrapper<const T>(x);
}

// The numbers 0, 1, …, N - 1 as a pack.
template <class T, T... I> struct integer_sequence {
    typedef T value_type;
    static __host__ __device__ constexpr size_t size() { return sizeof...(I); }
};
template <size_t... I> using index_sequence = integer_sequence<size_t, I...>;
template <class T, int N, T... I> struct __treadle_sequence : __treadle_sequence<T, N - 1, N - 1, I...> {};
template <class T, T... I> struct __treadle_sequence<T, 0, I...> {
    typedef integer_sequence<T, I...> type;
};
template <class T, T N> using make_integer_sequence = typename __treadle_sequence<T, N>::type;
template <size_t N> using make_index_sequence = typename __treadle_sequence<size_t, N>::type;
template <class... T> using index_sequence_for = make_index_sequence<sizeof...(T)>;

// What a braced list is as an argument: the compiler makes the array.
template <class T> struct initializer_list {
    typedef T value_type;
    typedef size_t size_type;
    typedef const T *iterator;
    typedef const T *const_iterator;
    const T *first;
    size_t count;
    __host__ __device__ initializer_list(const T *first, size_t count) : first(first), count(count) {}
    __host__ __device__ size_t size() const { return count; }
    __host__ __device__ const T *begin() const { return first; }
    __host__ __device__ const T *end() const { return first + count; }
};

// Each part of a tuple or variant by its number: functions with one return, so that they may refer
// to pointers.
template <size_t i> struct __treadle_item;
template <> struct __treadle_item<0> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item0; } };
template <> struct __treadle_item<1> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item1; } };
template <> struct __treadle_item<2> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item2; } };
template <> struct __treadle_item<3> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item3; } };
template <> struct __treadle_item<4> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item4; } };
template <> struct __treadle_item<5> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item5; } };
template <> struct __treadle_item<6> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item6; } };
template <> struct __treadle_item<7> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item7; } };
template <> struct __treadle_item<8> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item8; } };
template <> struct __treadle_item<9> { template <class S> __host__ __device__ static constexpr auto &of(S &s) { return s.item9; } };

template <class A, class B> struct pair {
    typedef A first_type;
    typedef B second_type;
    A first;
    B second;
    __host__ __device__ constexpr pair() : first(), second() {}
    __host__ __device__ constexpr pair(const A &a, const B &b) : first(a), second(b) {}
    template <class C, class D>
    __host__ __device__ constexpr pair(const pair<C, D> &other)
        : first(other.first), second(other.second) {}
    __host__ __device__ void swap(pair &other) {
        std::swap(first, other.first);
        std::swap(second, other.second);
    }
};
template <class A, class B> pair(A, B) -> pair<A, B>;
template <class A, class B>
__host__ __device__ constexpr pair<A, B> make_pair(A a, B b) { return pair<A, B>(a, b); }

template <class A, class B>
__host__ __device__ constexpr bool operator==(const pair<A, B> &x, const pair<A, B> &y) {
    return x.first == y.first && x.second == y.second;
}
template <class A, class B>
__host__ __device__ constexpr bool operator!=(const pair<A, B> &x, const pair<A, B> &y) {
    return !(x == y);
}
template <class A, class B>
__host__ __device__ constexpr bool operator<(const pair<A, B> &x, const pair<A, B> &y) {
    return x.first < y.first || (!(y.first < x.first) && x.second < y.second);
}
template <class A, class B>
__host__ __device__ constexpr bool operator>(const pair<A, B> &x, const pair<A, B> &y) {
    return y < x;
}
template <class A, class B>
__host__ __device__ constexpr bool operator<=(const pair<A, B> &x, const pair<A, B> &y) {
    return !(y < x);
}
template <class A, class B>
__host__ __device__ constexpr bool operator>=(const pair<A, B> &x, const pair<A, B> &y) {
    return !(x < y);
}

template <class T> struct tuple_size;
template <size_t i, class T> struct tuple_element;
template <class A, class B> struct tuple_size<pair<A, B>> : integral_constant<size_t, 2> {};
template <class A, class B> struct tuple_element<0, pair<A, B>> { typedef A type; };
template <class A, class B> struct tuple_element<1, pair<A, B>> { typedef B type; };
template <size_t i, class T> using tuple_element_t = typename tuple_element<i, T>::type;
template <class T> constexpr size_t tuple_size_v = tuple_size<T>::value;

// Functions with one return, so that they may refer to pointers.
template <size_t i> struct __treadle_of_pair;
template <> struct __treadle_of_pair<0> { template <class P> __host__ __device__ static constexpr auto &of(P &p) { return p.first; } };
template <> struct __treadle_of_pair<1> { template <class P> __host__ __device__ static constexpr auto &of(P &p) { return p.second; } };
template <size_t i, class A, class B>
__host__ __device__ constexpr tuple_element_t<i, pair<A, B>> &get(pair<A, B> &p) { return __treadle_of_pair<i>::of(p); }
template <size_t i, class A, class B>
__host__ __device__ constexpr const tuple_element_t<i, pair<A, B>> &get(const pair<A, B> &p) {
    return __treadle_of_pair<i>::of(p);
}

}  // namespace std
