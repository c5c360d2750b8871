// <tuple>: tuples of up to 8 elements. The text of each number of elements is the same pattern.
#pragma once
#include <utility>
namespace std {

struct __treadle_none {};
struct ignore_t {
    template <class T> __host__ __device__ const ignore_t &operator=(const T &) const { return *this; }
};

template <class A = __treadle_none, class B = __treadle_none, class C = __treadle_none,
          class D = __treadle_none, class E = __treadle_none, class F = __treadle_none,
          class G = __treadle_none, class H = __treadle_none>
struct tuple {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6; H item7;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2(), item3(), item4(), item5(), item6(), item7() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c, const D &d, const E &e, const F &f, const G &g, const H &h) : item0(a), item1(b), item2(c), item3(d), item4(e), item5(f), item6(g), item7(h) {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2, D2, E2, F2, G2, H2> &other) : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6), item7(other.item7) {}
};
template <> struct tuple<__treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none> {};
template <> struct tuple_size<tuple<>> : integral_constant<size_t, 0> {};
__host__ __device__ constexpr tuple<> make_tuple() { return tuple<>(); }

template <class A> struct tuple<A, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none> {
    A item0;
    __host__ __device__ constexpr tuple() : item0() {}
    __host__ __device__ constexpr explicit tuple(const A &a) : item0(a) {}
    template <class A2>
    __host__ __device__ constexpr tuple(const tuple<A2> &other) : item0(other.item0) {}
};
template <class A> struct tuple_size<tuple<A>> : integral_constant<size_t, 1> {};
template <class A>
__host__ __device__ constexpr tuple<A> make_tuple(A a) {
    return tuple<A>(a);
}
template <class A, class A2>
__host__ __device__ constexpr bool operator==(const tuple<A> &x, const tuple<A2> &y) {
    return x.item0 == y.item0;
}
template <class A, class A2>
__host__ __device__ constexpr bool operator!=(const tuple<A> &x, const tuple<A2> &y) {
    return !(x == y);
}
template <class A, class A2>
__host__ __device__ constexpr bool operator<(const tuple<A> &x, const tuple<A2> &y) {
    return x.item0 < y.item0;
}

template <class A, class B> struct tuple<A, B, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none> {
    A item0; B item1;
    __host__ __device__ constexpr tuple() : item0(), item1() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b) : item0(a), item1(b) {}
    template <class A2, class B2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2> &other) : item0(other.item0), item1(other.item1) {}
};
template <class A, class B> struct tuple_size<tuple<A, B>> : integral_constant<size_t, 2> {};
template <class A, class B>
__host__ __device__ constexpr tuple<A, B> make_tuple(A a, B b) {
    return tuple<A, B>(a, b);
}
template <class A, class B, class A2, class B2>
__host__ __device__ constexpr bool operator==(const tuple<A, B> &x, const tuple<A2, B2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1;
}
template <class A, class B, class A2, class B2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B> &x, const tuple<A2, B2> &y) {
    return !(x == y);
}
template <class A, class B, class A2, class B2>
__host__ __device__ constexpr bool operator<(const tuple<A, B> &x, const tuple<A2, B2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    return x.item1 < y.item1;
}

template <class A, class B, class C> struct tuple<A, B, C, __treadle_none, __treadle_none, __treadle_none, __treadle_none, __treadle_none> {
    A item0; B item1; C item2;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c) : item0(a), item1(b), item2(c) {}
    template <class A2, class B2, class C2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2> &other) : item0(other.item0), item1(other.item1), item2(other.item2) {}
};
template <class A, class B, class C> struct tuple_size<tuple<A, B, C>> : integral_constant<size_t, 3> {};
template <class A, class B, class C>
__host__ __device__ constexpr tuple<A, B, C> make_tuple(A a, B b, C c) {
    return tuple<A, B, C>(a, b, c);
}
template <class A, class B, class C, class A2, class B2, class C2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C> &x, const tuple<A2, B2, C2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2;
}
template <class A, class B, class C, class A2, class B2, class C2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C> &x, const tuple<A2, B2, C2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class A2, class B2, class C2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C> &x, const tuple<A2, B2, C2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    return x.item2 < y.item2;
}

template <class A, class B, class C, class D> struct tuple<A, B, C, D, __treadle_none, __treadle_none, __treadle_none, __treadle_none> {
    A item0; B item1; C item2; D item3;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2(), item3() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c, const D &d) : item0(a), item1(b), item2(c), item3(d) {}
    template <class A2, class B2, class C2, class D2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2, D2> &other) : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3) {}
};
template <class A, class B, class C, class D> struct tuple_size<tuple<A, B, C, D>> : integral_constant<size_t, 4> {};
template <class A, class B, class C, class D>
__host__ __device__ constexpr tuple<A, B, C, D> make_tuple(A a, B b, C c, D d) {
    return tuple<A, B, C, D>(a, b, c, d);
}
template <class A, class B, class C, class D, class A2, class B2, class C2, class D2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C, D> &x, const tuple<A2, B2, C2, D2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2 && x.item3 == y.item3;
}
template <class A, class B, class C, class D, class A2, class B2, class C2, class D2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C, D> &x, const tuple<A2, B2, C2, D2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class D, class A2, class B2, class C2, class D2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C, D> &x, const tuple<A2, B2, C2, D2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    if (x.item2 < y.item2 || y.item2 < x.item2)
        return x.item2 < y.item2;
    return x.item3 < y.item3;
}

template <class A, class B, class C, class D, class E> struct tuple<A, B, C, D, E, __treadle_none, __treadle_none, __treadle_none> {
    A item0; B item1; C item2; D item3; E item4;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2(), item3(), item4() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c, const D &d, const E &e) : item0(a), item1(b), item2(c), item3(d), item4(e) {}
    template <class A2, class B2, class C2, class D2, class E2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2, D2, E2> &other) : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4) {}
};
template <class A, class B, class C, class D, class E> struct tuple_size<tuple<A, B, C, D, E>> : integral_constant<size_t, 5> {};
template <class A, class B, class C, class D, class E>
__host__ __device__ constexpr tuple<A, B, C, D, E> make_tuple(A a, B b, C c, D d, E e) {
    return tuple<A, B, C, D, E>(a, b, c, d, e);
}
template <class A, class B, class C, class D, class E, class A2, class B2, class C2, class D2, class E2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C, D, E> &x, const tuple<A2, B2, C2, D2, E2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2 && x.item3 == y.item3 && x.item4 == y.item4;
}
template <class A, class B, class C, class D, class E, class A2, class B2, class C2, class D2, class E2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C, D, E> &x, const tuple<A2, B2, C2, D2, E2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class D, class E, class A2, class B2, class C2, class D2, class E2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C, D, E> &x, const tuple<A2, B2, C2, D2, E2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    if (x.item2 < y.item2 || y.item2 < x.item2)
        return x.item2 < y.item2;
    if (x.item3 < y.item3 || y.item3 < x.item3)
        return x.item3 < y.item3;
    return x.item4 < y.item4;
}

template <class A, class B, class C, class D, class E, class F> struct tuple<A, B, C, D, E, F, __treadle_none, __treadle_none> {
    A item0; B item1; C item2; D item3; E item4; F item5;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2(), item3(), item4(), item5() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c, const D &d, const E &e, const F &f) : item0(a), item1(b), item2(c), item3(d), item4(e), item5(f) {}
    template <class A2, class B2, class C2, class D2, class E2, class F2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2, D2, E2, F2> &other) : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5) {}
};
template <class A, class B, class C, class D, class E, class F> struct tuple_size<tuple<A, B, C, D, E, F>> : integral_constant<size_t, 6> {};
template <class A, class B, class C, class D, class E, class F>
__host__ __device__ constexpr tuple<A, B, C, D, E, F> make_tuple(A a, B b, C c, D d, E e, F f) {
    return tuple<A, B, C, D, E, F>(a, b, c, d, e, f);
}
template <class A, class B, class C, class D, class E, class F, class A2, class B2, class C2, class D2, class E2, class F2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C, D, E, F> &x, const tuple<A2, B2, C2, D2, E2, F2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2 && x.item3 == y.item3 && x.item4 == y.item4 && x.item5 == y.item5;
}
template <class A, class B, class C, class D, class E, class F, class A2, class B2, class C2, class D2, class E2, class F2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C, D, E, F> &x, const tuple<A2, B2, C2, D2, E2, F2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class D, class E, class F, class A2, class B2, class C2, class D2, class E2, class F2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C, D, E, F> &x, const tuple<A2, B2, C2, D2, E2, F2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    if (x.item2 < y.item2 || y.item2 < x.item2)
        return x.item2 < y.item2;
    if (x.item3 < y.item3 || y.item3 < x.item3)
        return x.item3 < y.item3;
    if (x.item4 < y.item4 || y.item4 < x.item4)
        return x.item4 < y.item4;
    return x.item5 < y.item5;
}

template <class A, class B, class C, class D, class E, class F, class G> struct tuple<A, B, C, D, E, F, G, __treadle_none> {
    A item0; B item1; C item2; D item3; E item4; F item5; G item6;
    __host__ __device__ constexpr tuple() : item0(), item1(), item2(), item3(), item4(), item5(), item6() {}
    __host__ __device__ constexpr tuple(const A &a, const B &b, const C &c, const D &d, const E &e, const F &f, const G &g) : item0(a), item1(b), item2(c), item3(d), item4(e), item5(f), item6(g) {}
    template <class A2, class B2, class C2, class D2, class E2, class F2, class G2>
    __host__ __device__ constexpr tuple(const tuple<A2, B2, C2, D2, E2, F2, G2> &other) : item0(other.item0), item1(other.item1), item2(other.item2), item3(other.item3), item4(other.item4), item5(other.item5), item6(other.item6) {}
};
template <class A, class B, class C, class D, class E, class F, class G> struct tuple_size<tuple<A, B, C, D, E, F, G>> : integral_constant<size_t, 7> {};
template <class A, class B, class C, class D, class E, class F, class G>
__host__ __device__ constexpr tuple<A, B, C, D, E, F, G> make_tuple(A a, B b, C c, D d, E e, F f, G g) {
    return tuple<A, B, C, D, E, F, G>(a, b, c, d, e, f, g);
}
template <class A, class B, class C, class D, class E, class F, class G, class A2, class B2, class C2, class D2, class E2, class F2, class G2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C, D, E, F, G> &x, const tuple<A2, B2, C2, D2, E2, F2, G2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2 && x.item3 == y.item3 && x.item4 == y.item4 && x.item5 == y.item5 && x.item6 == y.item6;
}
template <class A, class B, class C, class D, class E, class F, class G, class A2, class B2, class C2, class D2, class E2, class F2, class G2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C, D, E, F, G> &x, const tuple<A2, B2, C2, D2, E2, F2, G2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class D, class E, class F, class G, class A2, class B2, class C2, class D2, class E2, class F2, class G2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C, D, E, F, G> &x, const tuple<A2, B2, C2, D2, E2, F2, G2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    if (x.item2 < y.item2 || y.item2 < x.item2)
        return x.item2 < y.item2;
    if (x.item3 < y.item3 || y.item3 < x.item3)
        return x.item3 < y.item3;
    if (x.item4 < y.item4 || y.item4 < x.item4)
        return x.item4 < y.item4;
    if (x.item5 < y.item5 || y.item5 < x.item5)
        return x.item5 < y.item5;
    return x.item6 < y.item6;
}

template <class A, class B, class C, class D, class E, class F, class G, class H> struct tuple_size<tuple<A, B, C, D, E, F, G, H>> : integral_constant<size_t, 8> {};
template <class A, class B, class C, class D, class E, class F, class G, class H>
__host__ __device__ constexpr tuple<A, B, C, D, E, F, G, H> make_tuple(A a, B b, C c, D d, E e, F f, G g, H h) {
    return tuple<A, B, C, D, E, F, G, H>(a, b, c, d, e, f, g, h);
}
template <class A, class B, class C, class D, class E, class F, class G, class H, class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2>
__host__ __device__ constexpr bool operator==(const tuple<A, B, C, D, E, F, G, H> &x, const tuple<A2, B2, C2, D2, E2, F2, G2, H2> &y) {
    return x.item0 == y.item0 && x.item1 == y.item1 && x.item2 == y.item2 && x.item3 == y.item3 && x.item4 == y.item4 && x.item5 == y.item5 && x.item6 == y.item6 && x.item7 == y.item7;
}
template <class A, class B, class C, class D, class E, class F, class G, class H, class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2>
__host__ __device__ constexpr bool operator!=(const tuple<A, B, C, D, E, F, G, H> &x, const tuple<A2, B2, C2, D2, E2, F2, G2, H2> &y) {
    return !(x == y);
}
template <class A, class B, class C, class D, class E, class F, class G, class H, class A2, class B2, class C2, class D2, class E2, class F2, class G2, class H2>
__host__ __device__ constexpr bool operator<(const tuple<A, B, C, D, E, F, G, H> &x, const tuple<A2, B2, C2, D2, E2, F2, G2, H2> &y) {
    if (x.item0 < y.item0 || y.item0 < x.item0)
        return x.item0 < y.item0;
    if (x.item1 < y.item1 || y.item1 < x.item1)
        return x.item1 < y.item1;
    if (x.item2 < y.item2 || y.item2 < x.item2)
        return x.item2 < y.item2;
    if (x.item3 < y.item3 || y.item3 < x.item3)
        return x.item3 < y.item3;
    if (x.item4 < y.item4 || y.item4 < x.item4)
        return x.item4 < y.item4;
    if (x.item5 < y.item5 || y.item5 < x.item5)
        return x.item5 < y.item5;
    if (x.item6 < y.item6 || y.item6 < x.item6)
        return x.item6 < y.item6;
    return x.item7 < y.item7;
}

template <class A> tuple(A) -> tuple<A>;
template <class A, class B> tuple(A, B) -> tuple<A, B>;
template <class A, class B, class C> tuple(A, B, C) -> tuple<A, B, C>;
template <class A, class B, class C, class D> tuple(A, B, C, D) -> tuple<A, B, C, D>;
template <class A, class B, class C, class D, class E> tuple(A, B, C, D, E) -> tuple<A, B, C, D, E>;
template <class A, class B, class C, class D, class E, class F> tuple(A, B, C, D, E, F) -> tuple<A, B, C, D, E, F>;
template <class A, class B, class C, class D, class E, class F, class G> tuple(A, B, C, D, E, F, G) -> tuple<A, B, C, D, E, F, G>;
template <class A, class B, class C, class D, class E, class F, class G, class H> tuple(A, B, C, D, E, F, G, H) -> tuple<A, B, C, D, E, F, G, H>;
template <class A, class B> tuple(pair<A, B>) -> tuple<A, B>;

template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<0, tuple<A, B, C, D, E, F, G, H>> { typedef A type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<1, tuple<A, B, C, D, E, F, G, H>> { typedef B type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<2, tuple<A, B, C, D, E, F, G, H>> { typedef C type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<3, tuple<A, B, C, D, E, F, G, H>> { typedef D type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<4, tuple<A, B, C, D, E, F, G, H>> { typedef E type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<5, tuple<A, B, C, D, E, F, G, H>> { typedef F type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<6, tuple<A, B, C, D, E, F, G, H>> { typedef G type; };
template <class A, class B, class C, class D, class E, class F, class G, class H>
struct tuple_element<7, tuple<A, B, C, D, E, F, G, H>> { typedef H type; };
template <size_t i, class A, class B, class C, class D, class E, class F, class G, class H>
__host__ __device__ constexpr tuple_element_t<i, tuple<A, B, C, D, E, F, G, H>> &
get(tuple<A, B, C, D, E, F, G, H> &t) {
    if constexpr (i == 0)
        return t.item0;
    else if constexpr (i == 1)
        return t.item1;
    else if constexpr (i == 2)
        return t.item2;
    else if constexpr (i == 3)
        return t.item3;
    else if constexpr (i == 4)
        return t.item4;
    else if constexpr (i == 5)
        return t.item5;
    else if constexpr (i == 6)
        return t.item6;
    else
        return t.item7;
}
template <size_t i, class A, class B, class C, class D, class E, class F, class G, class H>
__host__ __device__ constexpr const tuple_element_t<i, tuple<A, B, C, D, E, F, G, H>> &
get(const tuple<A, B, C, D, E, F, G, H> &t) {
    if constexpr (i == 0)
        return t.item0;
    else if constexpr (i == 1)
        return t.item1;
    else if constexpr (i == 2)
        return t.item2;
    else if constexpr (i == 3)
        return t.item3;
    else if constexpr (i == 4)
        return t.item4;
    else if constexpr (i == 5)
        return t.item5;
    else if constexpr (i == 6)
        return t.item6;
    else
        return t.item7;
}

template <class F, class T, size_t... I>
__host__ __device__ constexpr decltype(auto) __treadle_apply(F &&f, T &&t, index_sequence<I...>) {
    return f(get<I>(t)...);
}
template <class F, class T> __host__ __device__ constexpr auto apply(F &&f, T &&t) -> decltype(auto) {
    return __treadle_apply(f, t, make_index_sequence<tuple_size_v<remove_reference_t<T>>>());
}

// What std::tie gives: references to variables, which an assigned tuple or pair changes.
template <class A, class B> struct __treadle_tied2 {
    A &a; B &b;
    __host__ __device__ __treadle_tied2(A &a, B &b) : a(a), b(b) {}
    template <class T> __host__ __device__ void operator=(const T &other) { a = get<0>(other); b = get<1>(other); }
};
template <class A, class B, class C> struct __treadle_tied3 {
    A &a; B &b; C &c;
    __host__ __device__ __treadle_tied3(A &a, B &b, C &c) : a(a), b(b), c(c) {}
    template <class T> __host__ __device__ void operator=(const T &other) { a = get<0>(other); b = get<1>(other); c = get<2>(other); }
};
template <class A, class B, class C, class D> struct __treadle_tied4 {
    A &a; B &b; C &c; D &d;
    __host__ __device__ __treadle_tied4(A &a, B &b, C &c, D &d) : a(a), b(b), c(c), d(d) {}
    template <class T> __host__ __device__ void operator=(const T &other) { a = get<0>(other); b = get<1>(other); c = get<2>(other); d = get<3>(other); }
};
template <class A, class B> __host__ __device__ __treadle_tied2<A, B> tie(A &a, B &b) { return __treadle_tied2<A, B>(a, b); }
template <class A, class B, class C> __host__ __device__ __treadle_tied3<A, B, C> tie(A &a, B &b, C &c) { return __treadle_tied3<A, B, C>(a, b, c); }
template <class A, class B, class C, class D> __host__ __device__ __treadle_tied4<A, B, C, D> tie(A &a, B &b, C &c, D &d) { return __treadle_tied4<A, B, C, D>(a, b, c, d); }

}  // namespace std
