// <tuple>: tuples of up to 10 elements, as <thrust/tuple.h> has them.
#pragma once
#include <utility>
namespace std {

struct __treadle_each {};  // a constructor takes an argument for each element
struct __treadle_from {};  // or another tuple

// The elements, one after the other, as in a struct. The text of each number of them is the same
// pattern.
template <class... T> struct __treadle_items {
    static_assert(sizeof...(T) <= 10, "std::tuple of more than 10 elements: nest tuples, or write a struct");
};
template <class A> struct __treadle_items<A> {
    A item0;
    __host__ __device__ constexpr __treadle_items() : item0() {}
    template <class A2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a)
        : item0(forward<A2>(a)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        return item0 < other.item0;
    }
};
template <class A, class B> struct __treadle_items<A, B> {
    A item0; B item1;
    __host__ __device__ constexpr __treadle_items() : item0(), item1() {}
    template <class A2, class B2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b)
        : item0(forward<A2>(a)), item1(forward<B2>(b)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        return item1 < other.item1;
    }
};
template <class A, class B, class C> struct __treadle_items<A, B, C> {
    A item0; B item1; C item2;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2() {}
    template <class A2, class B2, class C2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        return item2 < other.item2;
    }
};
template <class A, class B, class C, class D> struct __treadle_items<A, B, C, D> {
    A item0; B item1; C item2; D item3;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3() {}
    template <class A2, class B2, class C2, class D2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        return item3 < other.item3;
    }
};
template <class A, class B, class C, class D, class E> struct __treadle_items<A, B, C, D, E> {
    A item0; B item1; C item2; D item3; E item4;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4() {}
    template <class A2, class B2, class C2, class D2, class E2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        return item4 < other.item4;
    }
};
template <class A, class B, class C, class D, class E, class F> struct __treadle_items<A, B, C, D, E, F> {
    A item0; B item1; C item2; D item3; E item4; F item5;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4(), item5() {}
    template <class A2, class B2, class C2, class D2, class E2, class F2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e, F2 &&f)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)), item5(forward<F2>(f)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4; item5 = other.item5;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4 && item5 == other.item5;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        if (item4 < other.item4 || other.item4 < item4)
            return item4 < other.item4;
        return item5 < other.item5;
    }
};
template <class A, class B, class C, class D, class E, class F, class G> struct __treadle_items<A, B, C, D, E, F, G> {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4(), item5(), item6() {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e, F2 &&f, G2 &&g)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)), item5(forward<F2>(f)), item6(forward<G2>(g)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4; item5 = other.item5; item6 = other.item6;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4 && item5 == other.item5 && item6 == other.item6;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        if (item4 < other.item4 || other.item4 < item4)
            return item4 < other.item4;
        if (item5 < other.item5 || other.item5 < item5)
            return item5 < other.item5;
        return item6 < other.item6;
    }
};
template <class A, class B, class C, class D, class E, class F, class G, class H> struct __treadle_items<A, B, C, D, E, F, G, H> {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6; H item7;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4(), item5(), item6(), item7() {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e, F2 &&f, G2 &&g, H2 &&h)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)), item5(forward<F2>(f)), item6(forward<G2>(g)), item7(forward<H2>(h)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6), item7(other.item7) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4; item5 = other.item5; item6 = other.item6; item7 = other.item7;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4 && item5 == other.item5 && item6 == other.item6 && item7 == other.item7;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        if (item4 < other.item4 || other.item4 < item4)
            return item4 < other.item4;
        if (item5 < other.item5 || other.item5 < item5)
            return item5 < other.item5;
        if (item6 < other.item6 || other.item6 < item6)
            return item6 < other.item6;
        return item7 < other.item7;
    }
};
template <class A, class B, class C, class D, class E, class F, class G, class H, class I> struct __treadle_items<A, B, C, D, E, F, G, H, I> {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6; H item7; I item8;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4(), item5(), item6(), item7(), item8() {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2, class I2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e, F2 &&f, G2 &&g, H2 &&h, I2 &&i)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)), item5(forward<F2>(f)), item6(forward<G2>(g)), item7(forward<H2>(h)), item8(forward<I2>(i)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6), item7(other.item7), item8(other.item8) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4; item5 = other.item5; item6 = other.item6; item7 = other.item7; item8 = other.item8;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4 && item5 == other.item5 && item6 == other.item6 && item7 == other.item7 && item8 == other.item8;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        if (item4 < other.item4 || other.item4 < item4)
            return item4 < other.item4;
        if (item5 < other.item5 || other.item5 < item5)
            return item5 < other.item5;
        if (item6 < other.item6 || other.item6 < item6)
            return item6 < other.item6;
        if (item7 < other.item7 || other.item7 < item7)
            return item7 < other.item7;
        return item8 < other.item8;
    }
};
template <class A, class B, class C, class D, class E, class F, class G, class H, class I, class J> struct __treadle_items<A, B, C, D, E, F, G, H, I, J> {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6; H item7; I item8; J item9;
    __host__ __device__ constexpr __treadle_items() : item0(), item1(), item2(), item3(), item4(), item5(), item6(), item7(), item8(), item9() {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2, class I2, class J2>
    __host__ __device__ constexpr __treadle_items(__treadle_each, A2 &&a, B2 &&b, C2 &&c, D2 &&d, E2 &&e, F2 &&f, G2 &&g, H2 &&h, I2 &&i, J2 &&j)
        : item0(forward<A2>(a)), item1(forward<B2>(b)), item2(forward<C2>(c)), item3(forward<D2>(d)), item4(forward<E2>(e)), item5(forward<F2>(f)), item6(forward<G2>(g)), item7(forward<H2>(h)), item8(forward<I2>(i)), item9(forward<J2>(j)) {}
    template <class S>
    __host__ __device__ constexpr __treadle_items(__treadle_from, S &other)
        : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6), item7(other.item7), item8(other.item8), item9(other.item9) {}
    template <class S> __host__ __device__ constexpr void __treadle_assign(S &other) {
        item0 = other.item0; item1 = other.item1; item2 = other.item2; item3 = other.item3; item4 = other.item4; item5 = other.item5; item6 = other.item6; item7 = other.item7; item8 = other.item8; item9 = other.item9;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_equals(const S &other) const {
        return item0 == other.item0 && item1 == other.item1 && item2 == other.item2 && item3 == other.item3 && item4 == other.item4 && item5 == other.item5 && item6 == other.item6 && item7 == other.item7 && item8 == other.item8 && item9 == other.item9;
    }
    template <class S> __host__ __device__ constexpr bool __treadle_precedes(const S &other) const {
        if (item0 < other.item0 || other.item0 < item0)
            return item0 < other.item0;
        if (item1 < other.item1 || other.item1 < item1)
            return item1 < other.item1;
        if (item2 < other.item2 || other.item2 < item2)
            return item2 < other.item2;
        if (item3 < other.item3 || other.item3 < item3)
            return item3 < other.item3;
        if (item4 < other.item4 || other.item4 < item4)
            return item4 < other.item4;
        if (item5 < other.item5 || other.item5 < item5)
            return item5 < other.item5;
        if (item6 < other.item6 || other.item6 < item6)
            return item6 < other.item6;
        if (item7 < other.item7 || other.item7 < item7)
            return item7 < other.item7;
        if (item8 < other.item8 || other.item8 < item8)
            return item8 < other.item8;
        return item9 < other.item9;
    }
};
template <class... T> struct tuple : __treadle_items<T...> {
    __host__ __device__ constexpr tuple() : __treadle_items<T...>() {}
    __host__ __device__ constexpr tuple(const T &...x) : __treadle_items<T...>(__treadle_each(), x...) {}
    template <class... U>
    __host__ __device__ constexpr tuple(__treadle_each, U &&...x)
        : __treadle_items<T...>(__treadle_each(), forward<U>(x)...) {}
    template <class... U>
    __host__ __device__ constexpr tuple(const tuple<U...> &other)
        : __treadle_items<T...>(__treadle_from(), other) {}
    template <class A, class B>
    __host__ __device__ constexpr tuple(const pair<A, B> &other)
        : __treadle_items<T...>(__treadle_each(), other.first, other.second) {}
    __host__ __device__ constexpr tuple &operator=(const tuple &other) {
        this->__treadle_assign(other);
        return *this;
    }
    template <class... U> __host__ __device__ constexpr tuple &operator=(const tuple<U...> &other) {
        this->__treadle_assign(other);
        return *this;
    }
    template <class A, class B> __host__ __device__ constexpr tuple &operator=(const pair<A, B> &other) {
        this->item0 = other.first;
        this->item1 = other.second;
        return *this;
    }
    __host__ __device__ void swap(tuple &other) {
        tuple before(*this);
        *this = other;
        other = before;
    }
};
template <> struct tuple<> {
    __host__ __device__ constexpr tuple() {}
    __host__ __device__ constexpr tuple(__treadle_each) {}
};
template <class... T> tuple(T...) -> tuple<T...>;
template <class A, class B> tuple(pair<A, B>) -> tuple<A, B>;

template <class... T> struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <size_t i, class A, class... T> struct tuple_element<i, tuple<A, T...>> : tuple_element<i - 1, tuple<T...>> {};
template <class A, class... T> struct tuple_element<0, tuple<A, T...>> { typedef A type; };

template <size_t i, class... T>
__host__ __device__ constexpr tuple_element_t<i, tuple<T...>> &get(tuple<T...> &t) {
    return __treadle_item<i>::of(t);
}
template <size_t i, class... T>
__host__ __device__ constexpr const tuple_element_t<i, tuple<T...>> &get(const tuple<T...> &t) {
    return __treadle_item<i>::of(t);
}

// The place of a type among others.
template <class T, class A, class... B> constexpr size_t __treadle_place = 1 + __treadle_place<T, B...>;
template <class T, class... B> constexpr size_t __treadle_place<T, T, B...> = 0;
template <class A, class... T> __host__ __device__ constexpr A &get(tuple<T...> &t) { return get<__treadle_place<A, T...>>(t); }
template <class A, class... T> __host__ __device__ constexpr const A &get(const tuple<T...> &t) {
    return get<__treadle_place<A, T...>>(t);
}

__host__ __device__ constexpr bool operator==(const tuple<> &, const tuple<> &) { return true; }
template <class... T, class... U>
__host__ __device__ constexpr bool operator==(const tuple<T...> &x, const tuple<U...> &y) { return x.__treadle_equals(y); }
template <class... T, class... U>
__host__ __device__ constexpr bool operator!=(const tuple<T...> &x, const tuple<U...> &y) { return !(x == y); }
template <class... T, class... U>
__host__ __device__ constexpr bool operator<(const tuple<T...> &x, const tuple<U...> &y) { return x.__treadle_precedes(y); }
template <class... T, class... U>
__host__ __device__ constexpr bool operator>(const tuple<T...> &x, const tuple<U...> &y) { return y < x; }
template <class... T, class... U>
__host__ __device__ constexpr bool operator<=(const tuple<T...> &x, const tuple<U...> &y) { return !(y < x); }
template <class... T, class... U>
__host__ __device__ constexpr bool operator>=(const tuple<T...> &x, const tuple<U...> &y) { return !(x < y); }

// A reference_wrapper becomes a reference.
template <class T> struct __treadle_unwrapped { typedef T type; };
template <class T> struct __treadle_unwrapped<reference_wrapper<T>> { typedef T &type; };
template <class... T>
__host__ __device__ constexpr tuple<typename __treadle_unwrapped<decay_t<T>>::type...> make_tuple(T &&...x) {
    return tuple<typename __treadle_unwrapped<decay_t<T>>::type...>(__treadle_each(), forward<T>(x)...);
}
template <class... T> __host__ __device__ constexpr tuple<T &&...> forward_as_tuple(T &&...x) {
    return tuple<T &&...>(__treadle_each(), forward<T>(x)...);
}
// What std::tie has where nothing is assigned.
struct __treadle_ignore {
    template <class T> __host__ __device__ constexpr const __treadle_ignore &operator=(const T &) const { return *this; }
};
constexpr __treadle_ignore ignore = __treadle_ignore();
template <class... T>
    requires((is_lvalue_reference_v<T> || is_same_v<T, __treadle_ignore>) && ...)
__host__ __device__ constexpr tuple<T &&...> tie(T &&...x) {
    return tuple<T &&...>(__treadle_each(), forward<T>(x)...);
}

template <class F, class T, size_t... I>
__host__ __device__ constexpr decltype(auto) __treadle_apply(F &&f, T &&t, index_sequence<I...>) {
    return f(get<I>(t)...);
}
template <class F, class T> __host__ __device__ constexpr auto apply(F &&f, T &&t) -> decltype(auto) {
    return __treadle_apply(f, t, make_index_sequence<tuple_size_v<remove_reference_t<T>>>());
}
template <class R, class T, size_t... I> __host__ __device__ constexpr R __treadle_made_from(T &&t, index_sequence<I...>) {
    return R(get<I>(t)...);
}
template <class R, class T> __host__ __device__ constexpr R make_from_tuple(T &&t) {
    return __treadle_made_from<R>(t, make_index_sequence<tuple_size_v<remove_reference_t<T>>>());
}

template <class... A, class... B, size_t... I, size_t... J>
__host__ __device__ constexpr tuple<A..., B...>
__treadle_joined(const tuple<A...> &a, const tuple<B...> &b, index_sequence<I...>, index_sequence<J...>) {
    return tuple<A..., B...>(__treadle_each(), get<I>(a)..., get<J>(b)...);
}
__host__ __device__ constexpr tuple<> tuple_cat() { return tuple<>(); }
template <class... A> __host__ __device__ constexpr tuple<A...> tuple_cat(const tuple<A...> &a) { return a; }
template <class... A, class... B, class... More>
__host__ __device__ constexpr auto tuple_cat(const tuple<A...> &a, const tuple<B...> &b, const More &...more) {
    return tuple_cat(__treadle_joined(a, b, index_sequence_for<A...>(), index_sequence_for<B...>()), more...);
}

}  // namespace std
