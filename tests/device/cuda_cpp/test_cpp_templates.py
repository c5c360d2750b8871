"""Templates in kernels, beside g++: what programs of others use of them, and drawn ones."""

from __future__ import annotations

import random

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel

# A name, what stands before, and what computes: it writes to `out[k++]`, and `n` is 3.
FEATURES = {
    "specializations with const and volatile": (
        """
template <typename T> struct A { enum { size = 4 }; typedef T type; };
template <typename T> struct A<volatile T> : A<T> { enum { size = 5 }; };
template <typename T> struct A<const T> : A<T> { enum { size = 6 }; };
template <typename T> struct A<const volatile T> : A<T> { enum { size = 7 }; };
struct S { int a; };
template <class T> struct W { enum { x = A<T>::size }; };
    """,
        "out[k++] = W<S>::x; out[k++] = W<const S>::x; out[k++] = sizeof(A<const S>::type);",
    ),
    "vectors and matrices of libraries": (
        """
template <typename T> __device__ T (fmin)(T a, T b, T c) { return a < b ? a : c; }
template <typename T> __device__ T (fmin)(T a, T b, T c, T d) { return (fmin)(b, c, d); }
template <int L, typename T> struct V;
template <int C, int R, typename T> struct M;
enum Kind { packed, other };
template <int L, typename T, Kind K = packed> struct Tag {};
namespace detail { typedef std::int16_t int16; }
typedef detail::int16 int16;
typedef int16 int16_t;
template <typename T> struct V<2, T> {
    union { T x, r; };
    union { T y, g; };
    constexpr V(T a, T b) : x(a), y(b) {}
    constexpr V(V<2, T> const &v) = default;
    template <typename U> constexpr explicit V(V<2, U> const &v);
    template <typename U> constexpr explicit V(V<3, U> const &v);
    constexpr V<2, T> &operator=(V<2, T> const &v) = default;
    template <typename U> constexpr V<2, T> &operator=(V<2, U> const &v);
    template <typename U> constexpr V<2, T> &operator+=(V<2, U> const &v);
};
template <typename T> struct V<3, T> {
    T x, y, z;
    constexpr V(T a, T b, T c) : x(a), y(b), z(c) {}
};
template <typename T> template <typename U>
constexpr V<2, T>::V(V<2, U> const &v) : x(T(v.x)), y(T(v.y)) {}
template <typename T> template <typename U>
constexpr V<2, T>::V(V<3, U> const &v) : x(T(v.x)), y(T(v.z)) {}
template <typename T> template <typename U>
constexpr V<2, T> &V<2, T>::operator=(V<2, U> const &v)
{ this->x = T(v.x) + 1; this->y = T(v.y) + 1; return *this; }
template <typename T> template <typename U>
constexpr V<2, T> &V<2, T>::operator+=(V<2, U> const &v)
{ return *this = V<2, T>(x + v.x, y + v.y); }
template <typename T> constexpr V<2, T> operator+(V<2, T> const &v, V<2, T> const &w)
{ return V<2, T>(v) += w; }
template <typename T> constexpr V<3, T> operator+(V<3, T> const &v, V<3, T> const &w)
{ return V<3, T>(v.x + w.x, v.y + w.y, v.z + w.z); }
template <typename T> struct M<2, 2, T> {
    V<2, T> value[2];
    constexpr M(T a, T b, T c, T d) : value{V<2, T>(a, b), V<2, T>(c, d)} {}
    constexpr explicit M(M<2, 3, T> const &m);
    constexpr V<2, T> &operator[](int i) { return value[i]; }
    constexpr V<2, T> const &operator[](int i) const { return value[i]; }
};
template <typename T> struct M<2, 3, T> { T a[6]; };
template <typename T> constexpr M<2, 2, T>::M(M<2, 3, T> const &m)
    : value{V<2, T>(m.a[0], m.a[1]), V<2, T>(m.a[3], m.a[4])} {}
template <int L, typename T, Kind K> __device__ int which(Tag<L, T, K>) { return L; }
template <typename T> __device__ int which(Tag<2, T, other>) { return 20; }
template <typename T> __device__ int which(Tag<4, T, packed>) { return 40; }
__device__ int sum(const M<2, 2, int> m) { return m[0].x + 10 * m[0].y + 100 * m[1].x; }
__device__ int changed(M<2, 2, int> m) { m[0].x = 70; return sum(m); }
    """,
        """
V<2, int> v(n, 4), w = v + V<2, int>(10, 20);
V<2, short> s(w);
V<2, int> t(V<3, float>(1.5f, 2.5f, 3.5f));
w = V<2, int>({n, 9}); out[k++] = w.y; out[k++] = fmin(8, n, 4, 5); w = v + V<2, int>(10, 20);
out[k++] = v.x; out[k++] = v.g; out[k++] = w.r; out[k++] = w.y; out[k++] = s.x; out[k++] = t.y;
w = s; out[k++] = w.x; w = v; out[k++] = w.x;
out[k++] = (V<3, int>(1, 2, 3) + V<3, int>(4, 5, 6)).z;
M<2, 2, int> m(1, n, 3, 4), c(m);
c[1] += v; out[k++] = sum(m); out[k++] = changed(m); out[k++] = sum(c);
M<2, 3, int> six = {{1, 2, 3, 4, 5, 6}};
M<2, 2, int> from(six); out[k++] = sum(from); out[k++] = sizeof(int16_t);
(M<2, 2, int>(m))[0].x = 9; out[k++] = sum(m);
out[k++] = which(Tag<3, int>()); out[k++] = which(Tag<2, int, other>());
out[k++] = which(Tag<4, int>()); out[k++] = which(Tag<4, int, other>());
    """,
    ),
    "a member type with the name of a template": (
        """
template <int N> struct A { enum { size = N }; };
template <typename T> struct B { typedef T type; };
template <int N> struct C {
    using A = A<N + 1>;
    using B = B<A>;
    typename B::type member;
    __device__ int get() { return A::size; }
};
    """,
        """
C<4> c; out[k++] = c.get(); out[k++] = decltype(c.member)::size + n;
typename decltype(c)::B::type d; out[k++] = decltype(d)::size; out[k++] = sizeof(decltype(c)::B);
A<decltype(d)::size * 2> e; out[k++] = int(decltype(e)::size);
C<decltype(d)::size> f; out[k++] = f.get();
    """,
    ),
    "results that are types of members": (
        """
struct A { const int *lengths; int n; };
struct B : A {
    __device__ auto get(int i) const -> decltype(lengths[i]) { return lengths[i]; }
    __device__ auto twice() -> decltype(n + 0.5f) { return n * 1.5f; }
};
template <class T> struct C : T { __device__ auto first() -> decltype(T::n) { return this->n; } };
    """,
        """
C<B> b; b.lengths = in; b.n = 5; out[k++] = b.get(1); out[k++] = b.twice() * 10;
out[k++] = b.first(); out[k++] = sizeof(b.twice());
    """,
    ),
    "member templates of one instance": (
        """
struct P { int x, y; };
template <int I> struct Get {
    template <typename T, typename R> static __device__ R of(const T &v);
    template <typename T> static __device__ T of(T a, T b) { return a + b; }
    __device__ int other(); };
template <int I> template <typename T, typename R> __device__ R Get<I>::of(const T &v)
{ return 7; }
template <> template <typename T, typename R> __device__ R Get<0>::of(const T &v) { return v.x; }
template <> template <typename T, typename R> __device__ R Get<1>::of(const T &v) { return v.y; }
template <int I> __device__ int Get<I>::other() { return I; }
template <> __device__ int Get<1>::other() { return 100; }
    """,
        """
P p = {n, 5};
out[k++] = Get<0>::of<P, int>(p); out[k++] = Get<1>::of<P, short>(p);
out[k++] = Get<2>::of<P, int>(p);
out[k++] = Get<0>::of(n, 4); out[k++] = Get<1>().other(); out[k++] = Get<2>().other();
    """,
    ),
    "const variables of constexpr functions": (
        """
template <typename K> constexpr K none() {
    if constexpr (sizeof(K) == 8) return K(0) - 1; else return K(-2); }
template <typename K> const K NONE = none<K>();
template <typename K> struct H { static constexpr K most() {
    if (sizeof(K) == 1) return 127; else return 32767; } };
template <typename K> const K MOST = H<K>::most();
constexpr int lengths[3] = {5, 6, 7};
template <int N> struct M { char a[N][lengths[N - 1]]; };
    """,
        """
out[k++] = NONE<int>; out[k++] = NONE<unsigned long long> == ~0ull; out[k++] = MOST<short>;
out[k++] = MOST<signed char>; out[k++] = sizeof(M<2>); out[k++] = sizeof(M<3>);
    """,
    ),
    "static methods of instances with the template's own arguments": (
        """
template <typename T, int N> struct U {
    __device__ static T get(const T a[N], int i) {
        T r = 0; for (int j = 0; j < N; ++j) if (j == i) r = a[j]; return r; }
    __device__ static void set(T a[N], int i, T v) {
        for (int j = 0; j < N; ++j) if (j == i) a[j] = v; }
    __device__ static void add(T &x, T y) { x += y; }
};
template <typename T, int N> __device__ T f(int i) {
    T a[N];
    for (int j = 0; j < N; j++) a[j] = j;
    U<T, N>::set(a, i, 50);
    T x = U<T, N>::get(a, i);
    U<T, N>::add(x, N);
    return x;
}
    """,
        "out[k++] = f<int, 4>(n); out[k++] = f<short, 2>(n);",
    ),
    "templates as arguments of partial specializations": (
        """
template <typename T> struct Plain { typedef T *Pointer; };
template <typename T> struct Other { typedef const T *Pointer; };
template <typename T, int N, template <typename U> class P = Plain, typename I = long> struct View {
    typename P<T>::Pointer data; I step;
    __device__ View(typename P<T>::Pointer data, I step) : data(data), step(step) {}
    __device__ View<T, N - 1, P, I> operator[](I i) { return {data + i * step, 1}; }
};
template <typename T, template <typename U> class P, typename I> struct View<T, 1, P, I> {
    typename P<T>::Pointer data; I step;
    __device__ View(typename P<T>::Pointer data, I step) : data(data), step(step) {}
    __device__ decltype(auto) operator[](I i) { return data[i * step]; }
};
template <class T> struct Kind { static const int v = 0; };
template <template <class> class C, class T> struct Kind<C<T>> { static const int v = 2; };
template <class T> struct Kind<Plain<T>> { static const int v = 1; };
    """,
        """
int a[6] = {1, 2, 3, 4, 5, 6};
View<int, 2> v(a, n); v[1][1] = 40; View<int, 2, Other, int> w(a, 2);
out[k++] = a[4]; out[k++] = w[2][0] + w[1][1]; out[k++] = Kind<Plain<int>>::v;
out[k++] = Kind<Other<int>>::v; out[k++] = Kind<int>::v;
    """,
    ),
    "specializations without the primary's default arguments": (
        """
template <class T> struct C {};
template <class T> struct D {};
template <class T, class = void> struct P { enum { v = 1 }; };
template <class T> struct P<T *> { enum { v = 2 }; };
template <class T> struct P<const T *> { enum { v = 3 }; };
template <> struct P<int *> { enum { v = 4 }; };
template <class T, int N = 3, class A = T *> struct Q { T d[N]; __device__ int f() { return N; } };
template <> struct Q<float> { double d[2]; int e; __device__ int f() { return 44; } };
template <class T> struct Q<T, 5> { __device__ int f(); };
template <class T> __device__ int Q<T, 5>::f() { return 55; }
template <class T, int N = sizeof(T)> struct S { enum { v = 1 }; };
template <> struct S<char> { enum { v = 2 }; };
template <> struct S<short, 3> { enum { v = 3 }; };
template <class T, template <class> class V = C, class U = int> struct W { enum { v = 1 }; };
template <class T> struct W<T *> { enum { v = 2 }; };
template <class T> struct W<C<T>, D> { enum { v = 3 }; };
template <class T, class = void> constexpr int variable = 1;
template <class T> constexpr int variable<T *> = 2;
template <> constexpr int variable<int> = 3;
template <class A, class B = A *, int N = sizeof(B)> struct Later;
template <class T, class, int K> struct Later { enum { v = K }; };
template <> struct Later<char> { enum { v = 9 }; };
    """,
        """
out[k++] = P<float *>::v; out[k++] = P<const float *>::v; out[k++] = P<int *>::v;
out[k++] = P<int *, int>::v; out[k++] = P<float *, void>::v; out[k++] = P<int>::v;
Q<float> a; Q<float, 3> b; Q<float, 4> c; Q<int, 5> d; out[k++] = a.f() + sizeof(a);
out[k++] = b.f() + sizeof(b); out[k++] = c.f() + sizeof(c); out[k++] = d.f();
out[k++] = S<char>::v; out[k++] = S<char, 1>::v; out[k++] = S<char, 2>::v; out[k++] = S<short>::v;
out[k++] = W<int *>::v; out[k++] = W<int *, D>::v; out[k++] = W<C<int>, D>::v;
out[k++] = W<int *, C, int>::v; out[k++] = W<C<int>, D, char>::v;
out[k++] = variable<char *>; out[k++] = variable<int>; out[k++] = variable<int, int>;
out[k++] = Later<int>::v; out[k++] = Later<char>::v; out[k++] = Later<char, int>::v;
    """,
    ),
    "specializations for types with a property": (
        """
template <bool b, class T = void> struct If {};
template <class T> struct If<true, T> { typedef T type; };
template <bool b, class T = void> using If_t = typename If<b, T>::type;
template <class...> struct Voider { typedef void type; };
template <class... T> using Void = typename Voider<T...>::type;
template <class T> constexpr bool small = sizeof(T) < 3;
template <class T, class E = void> struct A { enum { v = 1 }; __device__ int f(); };
template <class T> struct A<T, If_t<sizeof(T) == 4>> { enum { v = 2 }; __device__ int f(); };
template <class T> struct A<T, typename If<(sizeof(T) > 4)>::type> { enum { v = 3 }; };
template <class T, class E> __device__ int A<T, E>::f() { return 10; }
template <class T> __device__ int A<T, If_t<sizeof(T) == 4>>::f() { return 20; }
template <class T, bool = true> struct B { enum { v = 1 }; };
template <class T> struct B<T, small<T>> { enum { v = 2 }; };
template <class T> struct B<T, (sizeof(T) > 7)> { enum { v = 3 }; };
struct X { int x; __device__ int get() const { return x; } };
struct Y { typedef int type; };
template <class T, class = void> struct H { enum { x = 0 }; };
template <class T> struct H<T, Void<decltype(T::x), decltype(T().get())>> { enum { x = 1 }; };
template <class T> struct H<T, Void<typename T::type>> { enum { x = 2 }; };
template <class T, class = void> constexpr int wide = 1;
template <class T> constexpr int wide<T, If_t<(sizeof(T) > 4)>> = 2;
    """,
        """
out[k++] = A<int>::v; out[k++] = A<double>::v; out[k++] = A<char>::v; out[k++] = A<int, int>::v;
out[k++] = A<float, void>::v; A<int> a; A<char> b; out[k++] = a.f(); out[k++] = b.f();
out[k++] = B<int>::v; out[k++] = B<short>::v; out[k++] = B<double>::v; out[k++] = B<char, false>::v;
out[k++] = H<X>::x; out[k++] = H<Y>::x; out[k++] = H<int>::x; out[k++] = H<X, int>::x;
out[k++] = wide<int>; out[k++] = wide<double>;
    """,
    ),
    "objects with arrays that functions return": (
        """
struct V {
    int d[3];
    __device__ V plus(int a) const { return {{d[0] + a, d[1] + a, d[2] + a}}; }
    __device__ V operator-() const { return {{-d[0], -d[1], -d[2]}}; }
};
__device__ V f(int x) { V v; for (int i = 0; i < 3; ++i) v.d[i] = x + i; return v; }
template <int R, int C, class T> struct M { T d[R][C]; };
template <int R, int K, int C, class T>
__device__ M<R, C, T> operator*(const M<R, K, T> &a, const M<K, C, T> &b) {
    M<R, C, T> r{};
    for (int i = 0; i < R * C * K; ++i)
        r.d[i / K / C][i / K % C] += a.d[i / K / C][i % K] * b.d[i % K][i / K % C];
    return r;
}
struct A { int a[2]; float g; };
struct B { A b[2]; union { int u; char v[4]; }; };
__device__ B nested(int x) { B r; r.u = x; r.b[1].a[1] = x + 1; return r; }
template <class F> __device__ auto called(F f, int x) -> decltype(f(x)) { return f(x); }
    """,
        """
const auto a = f(n); auto &&b = f(5); const auto &c = f(6); decltype(f(1)) d = f(n + 7);
out[k++] = a.d[2]; out[k++] = b.d[1]; out[k++] = c.d[0]; out[k++] = d.d[1];
out[k++] = sizeof(f(1)); out[k++] = sizeof(f(1).d);
auto e = a.plus(n), g = -a, h = f(n).plus(1), i = -f(2).plus(2);
out[k++] = e.d[0]; out[k++] = g.d[1]; out[k++] = h.d[2]; out[k++] = i.d[1];
M<2, 3, int> m{{{1, 2, 3}, {4, 5, n}}}; M<3, 2, int> w{{{1, 2}, {3, 4}, {5, 6}}};
auto p = m * w, q = m * w * m * w; out[k++] = p.d[1][1]; out[k++] = q.d[1][0];
auto s = nested(n); auto t = nested(n).b[1].a[1]; out[k++] = s.b[1].a[1] + s.u; out[k++] = t;
auto u = called(f, n); out[k++] = u.d[2];
auto l = [&](int x) { auto v = f(x); return v; }; auto y = l(7), z = [&] { return f(3); }();
out[k++] = y.d[2]; out[k++] = z.d[1];
for (auto j = f(n); j.d[0] < 6; ++j.d[0]) out[k++] = j.d[1];
    """,
    ),
    "operators of enums beside operators of classes that numbers convert to": (
        """
struct V {
    int x;
    __device__ V(int a = 1) : x(a) {}
    __device__ friend V operator*(int s, const V &v) { return V(s * v.x + 100); }
};
__device__ V operator-(const V &v) { return V(7); }
__device__ bool operator==(const V &v, const V &w) { return false; }
template <int N> struct Factorial { enum { v = N * Factorial<N - 1>::v }; };
template <> struct Factorial<0> { enum { v = 1 }; };
enum E { e = 3 };
enum class F { f = 5, g = 2 };
template <class T> __device__ T operator|(T a, T b) { return T(int(a) | int(b)); }
__device__ int operator+(int a, const F &f) { return a + int(f) + 50; }
    """,
        """
V v(n); out[k++] = (2 * v).x; out[k++] = Factorial<5>::v; out[k++] = 2 * e; out[k++] = -e;
out[k++] = e == e; out[k++] = (2 * V(e)).x; F f = F::f; out[k++] = int(f | F::g);
out[k++] = 1 + f; out[k++] = f == F::f; out[k++] = (e | e) + sizeof(2 * e);
    """,
    ),
    "bases without constructors that a constructor initializes": (
        """
struct A { int a[2]; };
struct C { int x, y; };
struct P { int *p; int n; };
struct B : A, C {
    int b;
    __device__ B() : A{{1, 2}}, C{3, 4}, b(5) {}
    __device__ B(int q) : C({q, 2}), A{q, 6} { y += q; }
    __device__ B(C c) : C(c), A() {}
    __device__ B(const B &o) : A(o), C(o), b(o.b + 1) {}
};
template <class T> struct W : T { template <class... X> __device__ W(X... x) : T{x...} {} };
struct Q : P { __device__ Q(int *p) : P{p, 4} {} };
    """,
        """
B a, b(n), c(C{8, 9}), d(a); W<C> w(n, 4); int z[2] = {6, n}; Q q(z);
out[k++] = a.a[0] + 10 * a.a[1] + 100 * a.x + 1000 * a.y + 10000 * a.b;
out[k++] = b.a[0] + 10 * b.a[1] + 100 * b.x + 1000 * b.y; out[k++] = c.x + 10 * c.y + c.a[1];
out[k++] = d.a[0] + 10 * d.a[1] + 100 * d.x + 1000 * d.y + 10000 * d.b;
out[k++] = w.x + 10 * w.y; out[k++] = q.p[1] + 10 * q.n;
    """,
    ),
    "forwarded objects": (
        """
struct Op { int s; __device__ int operator()(int x) const { return x * s; } };
template <class T, class F> __device__ T apply(T x, F &&f) { return f(x); }
template <class F> __device__ int a(int x, const F &f) {
    return apply<int>(x, std::forward<const F &>(f)); }
template <class F> __device__ int b(int x, F &&f) { return apply<int>(x, std::forward<F>(f)); }
template <class F> __device__ int c(int x, F f) { return apply<int>(x, std::forward<F>(f)); }
    """,
        "const Op o{4}; out[k++] = a(n, Op{2}); out[k++] = b(n, o); out[k++] = c(n, Op{5});",
    ),
    "conversions of structs with pointers": (
        "struct R { int *p; __device__ operator int &() { return *p; } };",
        """
int x = 5; R r{&x}; r = R{&x}; int y = r; static_cast<int &>(r) = 9;
out[k++] = y; out[k++] = x; out[k++] = n == 3 ? r : 4; out[k++] = n != 3 ? 2 : r;
    """,
    ),
    "enumerators by names of types": (
        """
typedef enum { SUM = 1, MEAN, MAX } reduce_t;
typedef enum Named { P = 7 } named_t;
namespace inner { enum class Color { red, green = 5 }; }
using Hue = inner::Color;
typedef Hue Tint;
    """,
        """
const reduce_t r = reduce_t::MAX; out[k++] = r; out[k++] = named_t::P + Named::P;
out[k++] = (int)Hue::green; out[k++] = Tint::red == Hue::red;
    """,
    ),
    "a variable in its own initializer": (
        "",
        """
int e[12] = {0}; int (*z)[2][3] = reinterpret_cast<decltype(z)>(e); z[1][1][2] = 5;
int size = sizeof(size); short s = (decltype(s))70000; out[k++] = e[11]; out[k++] = size;
out[k++] = s;
    """,
    ),
    "private members that are made by constructors": (
        """
struct P { int a; __device__ P() : a(7) {} };
template <class T, int N> class Stack {
    T items[N]; T one; int top;
  public:
    __device__ Stack() : top(-1) {}
    __device__ T &first() { return items[0]; }
    __device__ int sum() { return top + one.a; }
};
    """,
        "Stack<P, 3> s; out[k++] = s.sum(); out[k++] = s.first().a;",
    ),
    "lists in braces as arguments": (
        """
template <class T> __device__ T most(std::initializer_list<T> l) {
    T m = *l.begin(); for (T x : l) m = x > m ? x : m; return m; }
__device__ int sum(std::initializer_list<const int> l) {
    int s = 100 * l.size(); for (const auto &x : l) s += x; return s; }
struct V { int n; int a[4]; __device__ V(std::initializer_list<int> l) : n(0) {
    for (int x : l) a[n++] = x; } };
    """,
        """
out[k++] = most({3, 9, in[1]}); out[k++] = sum({4, n}); out[k++] = sum({});
V v({4, 5, 6}); out[k++] = v.n; out[k++] = v.a[2];
std::initializer_list<int> l = {7, n}; out[k++] = l.begin()[1] + l.size();
    """,
    ),
    "members of anonymous unions that a constructor initializes": (
        """
template <class T> struct V { T pad; union { struct { T x, y; }; struct { T u, v; }; };
    __device__ V(T a, T b) : pad(1), x(a), y(b) {} };
    """,
        "V<int> v(n, 8); out[k++] = v.u; out[k++] = v.y + v.pad;",
    ),
    "references to pointers to objects with pointers": (
        """
struct A { int *p; __device__ int get() { return p[1]; } };
template <class T> __device__ int f(int &i, T *&a) { i++; return a->get(); }
template <class T> __device__ int g(int &i, T *&a) { return f(i, a) + i; }
    """,
        "int x[2] = {1, 5}; A a{x}; A *q = &a; int i = n; out[k++] = g(i, q); out[k++] = i;",
    ),
    "texts": (
        "",
        """
const unsigned char *w = (const unsigned char *)"expand"; out[k++] = w[n]; out[k++] = w[6];
    """,
    ),
}  # fmt: skip


def test_beside_the_host(device):
    check(in_one_kernel(list(FEATURES.values())), device, 3, 7, 2)


# --- drawn templates -----------------------------------------------------------------------------

TYPES = ("int", "short", "Byte", "Wide", "bool")
PATTERNS = ("T *", "const T", "const T *", "T &", "T[2]", "Box<T>", "Box<Box<T>>", "T (*)(U)")


class Drawn:
    """A file of templates that are drawn: specializations, recursion, overloads, members, values
    and types as arguments, defaults."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._patterns = self._draw.sample(PATTERNS, 5)

    def _type(self, depth: int = 0) -> str:
        kind = self._draw.randrange(8 if depth < 3 else 2)
        if kind < 2:
            return self._draw.choice(TYPES)
        inner = self._type(depth + 1)
        if kind == 2 and "(" not in inner:
            return f"{inner} *"
        if kind == 3 and "(" not in inner and not inner.startswith("const"):
            return f"const {inner}"
        if kind == 4 and "(" not in inner:
            return f"{inner}[2]" if inner.isidentifier() and depth == 0 else inner
        if kind == 5:
            return f"{self._draw.choice(TYPES)} (*)({self._draw.choice(TYPES)})"
        return f"Box<{inner}>" if "(" not in inner else inner

    def _value(self) -> str:
        draw = self._draw
        a, b = draw.randrange(-4, 9), draw.randrange(1, 5)
        form = draw.choice(
            ("{a}", "({a} * {b})", "({a} >> {b})", "sizeof(Box<{t}>)", "({a} < {b})")
        )
        return str(form.format(a=a, b=b, t=draw.choice(TYPES)))

    def _special(self, number: int, pattern: str) -> str:
        head = "class T, class U" if "U" in pattern else "class T"
        below = "+ 10 * Kind<T>::value" if "T *" in pattern or "Box" in pattern else ""
        return (
            f"template <{head}> struct Kind<{pattern}> {{"
            f" static const int value = {number} {below};"
            f" __device__ static int of(int x) {{"
            f" return x * {number + 2} - (int)sizeof(T *); }} }};"
        )

    def text(self) -> tuple[str, str]:
        """What stands before, and what computes."""
        draw = self._draw
        special = "\n".join(self._special(i + 1, p) for i, p in enumerate(self._patterns))
        start, step = draw.randrange(3), draw.randrange(1, 4)
        before = f"""
typedef unsigned char Byte;
typedef long long Wide;
template <class T> struct Box {{ T item; typedef T type; static const int depth = 1; }};
template <class T> struct Box<Box<T>> {{ Box<T> item; typedef Box<T> type;
    static const int depth = 1 + Box<T>::depth; }};
template <class T> struct Kind {{ static const int value = 0;
    __device__ static int of(int x) {{ return x - 1; }} }};
{special}
template <int N, class T = {draw.choice(TYPES)}> struct Sum {{
    static const int value = N * {step} + Sum<N - 1, T>::value + sizeof(T); }};
template <class T> struct Sum<{start}, T> {{ static const int value = {draw.randrange(9)}; }};
template <class T> __device__ int pick(T) {{ return 1; }}
template <class T> __device__ int pick(T *) {{ return 2; }}
template <class T> __device__ int pick(const T *) {{ return 3; }}
template <class T> __device__ int pick(Box<T>) {{ return 4; }}
template <class T> __device__ int pick(Box<Box<T>>) {{ return 5; }}
__device__ int pick({draw.choice(TYPES)}) {{ return 6; }}
template <class T, int N> __device__ int length(T (&)[N]) {{ return N; }}
template <int N, class... T> __device__ int count(T... x) {{
    return N * sizeof...(T) + (int(x) + ... + 0); }}
template <template <class> class C, class T, int N> struct Made {{ C<T> item;
    template <class U> __device__ int plus(U x) const {{ return N + sizeof(C<U>) + x; }} }};
template <class T> using Twice = Box<Box<T>>;
"""
        lines = []
        for _ in range(8):
            type = self._type()
            lines.append(f"out[k++] = Kind<{type}>::value; out[k++] = Kind<{type}>::of(n);")
        for _ in range(3):
            n, type = draw.randrange(start, start + 5), draw.choice(TYPES)
            lines.append(f"out[k++] = Sum<{n}, {type}>::value + Sum<{n}>::value;")
        lines += [
            f"{{ {type} v = {type}(n); const {type} *p = &v; Box<{type}> b{{v}};"
            f" Box<Box<{type}>> c{{b}}; {type} a[{draw.randrange(1, 6)}] = {{v}};"
            " out[k++] = pick(v) + 10 * pick(&v) + 100 * pick(p) + 1000 * pick(b);"
            " out[k++] = pick(c) + 10 * length(a) + 100 * c.depth; }"
            for type in draw.sample(TYPES, 3)
        ]
        for _ in range(3):
            a, b = self._value(), self._value()
            lines.append(f"out[k++] = count<{a}>(n, {b}, short({a})) + count<{b}>();")
            made = f"Made<{draw.choice(('Box', 'Twice'))}, {draw.choice(TYPES)}, {a}>"
            lines.append(f"out[k++] = {made}().plus<{draw.choice(TYPES)}>({draw.randrange(9)});")
        return before, "\n".join(lines)


def test_drawn_templates(device):
    seed = random.SystemRandom().randrange(10**9)
    print("seed", seed)  # shown if it fails
    check(in_one_kernel([Drawn(seed).text()]), device, 3)


# --- what g++ cannot compile ---------------------------------------------------------------------

WARPS = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <tuple>
namespace cg = cooperative_groups;
struct __align__(8) Best { float value; int at; };
struct Bytes { unsigned char a, b, c; };
__device__ Best better(Best a, Best b) { return a.value > b.value ? a : b; }
__global__ void k(const float *x, float *out)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int lane = threadIdx.x;
    Best best = cg::reduce(warp, Best{x[lane], lane}, better);
    Bytes bytes = {(unsigned char)lane, (unsigned char)(lane * 3), 7};
    Bytes next = warp.shfl(bytes, (lane + 1) % 32);
    float value; int at;
    std::tie(value, at) = std::make_tuple(best.value, best.at);
    out[lane] = value + 100 * at;
    out[32 + lane] = next.a + 100 * next.b + 100000 * next.c;
}
"""


def test_structs_in_warps_and_ties():
    """On one device: shuffles are numbers by then, which test_cpp_warps has on all of them."""
    x = np.random.default_rng().permutation(32).astype(np.float32)
    out = np.full(64, -1, np.float32)
    td.cuda_module(WARPS).k[1, 32](x, out)
    next_lane = (np.arange(32) + 1) % 32
    expected = np.concatenate([
        np.full(32, x.max() + 100 * x.argmax()), next_lane + 300 * next_lane + 700000
    ])  # fmt: skip
    np.testing.assert_array_equal(out, expected.astype(np.float32))


LIBRARIES = """
#include <cub/cub.cuh>
#include <torch/extension.h>
__global__ void k(unsigned *x, float value)
{
    typename cub::Traits<float>::UnsignedBits bits = __float_as_uint(value);
    x[0] = cub::Traits<float>::TwiddleIn(bits);
    x[1] = cub::Traits<float>::TwiddleOut(x[0]) == bits;
    x[2] = cub::Traits<int>::TwiddleIn(5);
    x[3] = cub::Traits<unsigned char>::TwiddleOut(5);
    x[4] = sizeof(c10::impl::ScalarTypeToCPPTypeT<at::ScalarType::Half>);
    x[5] = (int)c10::ScalarType::BFloat16;
}
"""


@pytest.mark.parametrize("value", [-1.5, 0.25, -0.0, np.inf])
def test_traits_of_libraries(value):
    x = np.zeros(6, np.uint32)
    td.cuda_module(LIBRARIES).k[1, 1](x, value)
    bits = int(np.float32(value).view(np.uint32))
    ordered = bits ^ 0xFFFFFFFF if bits >> 31 else bits | 1 << 31
    assert x.tolist() == [ordered, 1, 0x80000005, 5, 2, 15]


OVERLOADS = """
template <class T> struct View { T *p; __device__ T *data() const { return p; } };
template <class T> View<T> abs(View<T> const &x) { return x; }
__global__ void k(View<int> counts, float *x)
{
    auto old = atomicAdd(counts.data() + 1, int(2));
    x[0] = abs(x[0] - 2.5f) + old;
    x[1] = nanf("");
    counts.data()[1] += CLOCKS_PER_SEC / 1000000;
}
"""


def test_overloads_of_the_host_and_atomics_of_auto(device):
    """A host function that overloads one of CUDA's does not hide it."""
    counts = td.asarray(np.array([7, 5], np.int32), device=device)
    x = td.asarray(np.array([1, 1], np.float32), device=device)
    td.cuda_module(OVERLOADS).k[1, 1]((counts,), x)
    assert counts.tolist() == [7, 8]
    np.testing.assert_array_equal(x.numpy(), np.array([6.5, np.nan], np.float32))


HOST_MEMBERS = """
#include <vector>
template <class S> struct Vector { typedef S Scalar; std::vector<S> items; int n; };
template <class V> __global__ void k(typename V::Scalar *x, int n) { x[0] = n; }
template <class V> __global__ void bad(V v, int *x) { x[0] = v.n; }
"""


def test_classes_with_members_of_the_host():
    """They may be named, but not passed."""
    module = td.cuda_module(HOST_MEMBERS)
    x = np.zeros(2, np.float32)
    module.kernel("k", "Vector<float>")[1, 1](x, 3)
    assert x.tolist() == [3, 0]
    with pytest.raises(td.errors.CompileError, match="std::vector is from the C"):
        module.kernel("bad", "Vector<float>").source("ir")


def test_a_pointer_to_a_literal_as_a_format(capfd):
    text = """__global__ void k(int *x) { const char *w = "n is " "%d\\n"; printf(w, x[0]); }
    __global__ void other(int *x) { const char *w = "a"; if (x[0]) ++w; printf(w); }"""
    module = td.cuda_module(text)
    module.k[1, 1](np.full(1, 4, np.int32))
    assert "n is 4" in capfd.readouterr().out
    with pytest.raises(td.errors.CompileError, match="must be a string literal"):
        module.other.source("ir")


OF_LIBRARIES = r"""
#include <cuda_fp16.h>
#include <algorithm>
#include <cuda/std/type_traits>
template <class T> constexpr T most(std::initializer_list<T> all) { return std::max(all); }
template <int N, typename ::cuda::std::enable_if<(N > 1), int>::type = 0>
__device__ int above_one() { return N; }
struct Next { int a; __device__ operator int() const { return a + 1; } };
template <class T> __device__ T make(int x, int y) { return T(); }
template <> __device__ float make(int x, int y) { return x + 0.5f; }   // by its result alone
template <> __device__ float2 make(int x, int y) { return make_float2(x, y); }
template <> __device__ int make(int x, int y) { return x * y; }
__global__ void k(const __half *h, float *o)
{
    Next s{4};
    *o++ = above_one<2>();
    *o++ = h[0].operator float() * 2;
    *o++ = s.operator int();
    *o++ = make<float>(3, 4);
    *o++ = make<float2>(3, 4).y;
    *o++ = make<int>(3, 4);
    *o++ = make<double>(3, 4);
}
"""


def test_what_libraries_write(device):
    """Parts of C++'s library that kernels lack are no errors where no kernel uses them."""
    x = td.zeros(7, device=device)
    td.cuda_module(OF_LIBRARIES, double="float").k[1, 1](
        td.asarray(np.float16([1.25]), device=device), x
    )
    assert x.tolist() == [2, 2.5, 5, 3.5, 4, 12, 0]


def test_pointers_to_functions_of_the_host():
    text = """struct Mapper { int (*f)(int); };
    __global__ void k(Mapper m, int *x) { x[0] = m.f(x[0]); }"""
    with pytest.raises(td.errors.CompileError, match="field f, is a pointer to functions of the"):
        td.cuda_module(text).k.source("ir")


DECLARED_FIRST = """
int total = 3;
float table[3] = {1, 2, 3};
struct S { int a; double b; } s;
template <class T> struct Size { static const int value = 1; };
template <> struct Size<int>;
template <> struct Size<int> { static const int value = 2; };
template <class T> struct Size<T *>;
template <class T> struct Size<T *> { static const int value = 3; };
template <class T> __device__ int pick(T) { return 1; }
template <> __device__ int pick<int>(int);
__device__ int used() { return pick(1) + pick(1.0f); }
template <> __device__ int pick<int>(int a) { return a + 10; }
__global__ void sizes(int *x)
{
    x[0] = Size<float>::value; x[1] = Size<int>::value; x[2] = Size<int *>::value; x[3] = used();
    x[4] = sizeof(total); x[5] = sizeof(table); x[6] = sizeof(table[0]); x[7] = sizeof(s);
    x[8] = sizeof(s.b + total);
}
"""


def test_specializations_declared_first_and_sizes_of_the_hosts_variables(device):
    x = td.zeros(9, dtype=td.int32, device=device)
    td.cuda_module(DECLARED_FIRST).sizes[1, 1](x)
    assert x.tolist() == [1, 2, 3, 12, 4, 12, 4, 16, 8]
