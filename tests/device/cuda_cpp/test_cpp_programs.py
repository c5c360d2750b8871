"""Less common features of C++, in small programs whose values are those of g++ for the same
functions as host code."""

from __future__ import annotations

import re

import pytest

import treadle as td
from tests.support.cpp_tables_of_programs import results
from treadle.core.errors import CompileErrors

NESTED = """
struct A {
    struct B;
    enum E : int;
    enum class F;
    int f();
    struct B2 { int y; __device__ int g(int); struct C; };
};
struct A::B {
    int x;
    __device__ int f(int k) const;
    struct D { int q; __device__ int h(); };
};
enum A::E : int { e0, e1 = 5, e2 };
enum class A::F { a = 3, b };
struct A::B2::C { int z; static __device__ int s(int k) { return k * 3; } };
__device__ inline int A::B::f(int k) const { return x * k + e2; }
__device__ int A::B::D::h() { return q + 1; }
__device__ int A::B2::g(int k) { return y + k; }
__device__ int test(int k)
{
    A::B b{k + 1};
    A::B2 c{4};
    A::B2::C d{2};
    A::B::D dd{9};
    A::E e = A::e1;
    A::F f = A::F::b;
    return b.f(k) + c.g(k) * 100 + d.z + A::B2::C::s(k) * 1000 + int(e) + int(f) + dd.h();
}
"""

NESTED_IN_TEMPLATES = """
template <class T, int N> struct V {
    struct It;
    enum class K : unsigned;
    enum P : int;
    struct Node { T v; __device__ T twice() const; template <class U> __device__ U as() const; };
    T d[N];
    __device__ It begin();
    __device__ It end();
};
template <class S, int M> struct V<S, M>::It {
    S *p;
    __device__ S &operator*() { return *p; }
    __device__ It &operator++();
    __device__ bool operator!=(const It &o) const { return p != o.p; }
};
template <class T, int N> enum class V<T, N>::K : unsigned { a = N, b };
template <class T, int L> enum V<T, L>::P : int { pa = L * 2, pb };
template <class T, int N> __device__ typename V<T, N>::It &V<T, N>::It::operator++()
{
    ++p;
    return *this;
}
template <class T, int N> __device__ typename V<T, N>::It V<T, N>::begin() { return It{d}; }
template <class T, int N> __device__ auto V<T, N>::end() -> It { return It{d + N}; }
template <class R, int N> __device__ R V<R, N>::Node::twice() const { return v + v; }
template <class T, int N> template <class U> __device__ U V<T, N>::Node::as() const
{
    return U(v) / 2;
}
__device__ int test(int k)
{
    V<int, 4> v{{k, 1, 2, 3}};
    int s = 0;
    for (int &x : v) {
        x += 1;
        s = s * 3 + x;
    }
    V<float, 3>::Node n{1.5f + k};
    return s + int(V<int, 4>::K::b) * 1000 + int(n.twice() * 10) + V<int, 4>::pb * 7 +
           int(n.as<float>() * 8);
}
"""

NESTED_IN_NAMESPACES = """
namespace ns {
struct A { __device__ int f(int k) const; struct B; int v; };
struct Q;
enum class E : int;
template <class T> struct P;
template <class T> struct P<T *> { struct I; __device__ int g(); };
}
struct ns::Q { int z; };
enum class ns::E : int { a = 4, b };
namespace ns { struct A::B { int w; A a; __device__ int h(int k); struct C; }; }
struct ns::A::B::C { int y; __device__ int j() const; };
__device__ int ns::A::f(int k) const { return v * k; }
__device__ int ns::A::B::h(int k) { return w + k + a.f(2); }
namespace ns {
__device__ int A::B::C::j() const { return y * 2; }
template <class U> struct P<U *>::I { U u; };
template <class U> __device__ int P<U *>::g() { I i{U(7)}; return int(i.u); }
}
__device__ int test(int k)
{
    ns::A a{};
    a.v = k;
    ns::A::B b{};
    b.w = 3;
    b.a = a;
    ns::A::B::C c{k};
    ns::Q q{9};
    ns::P<float *> p;
    return a.f(k) + b.h(k) + c.j() + q.z + int(ns::E::b) + p.g();
}
"""


LISTS = """
#include <initializer_list>
__device__ int sum(std::initializer_list<int> l) {
    int s = 0;
    for (int x : l) s = s * 2 + x;
    return s + int(l.size()) * 1000;
}
template <class T> __device__ T maxi(std::initializer_list<T> l) {
    T m = *l.begin();
    for (auto p = l.begin(); p != l.end(); ++p) if (*p > m) m = *p;
    return m;
}
struct Arr {
    int d[8];
    int n;
    __device__ Arr(std::initializer_list<int> l) : n(0) { for (auto x : l) d[n++] = x; }
    __device__ Arr(int a, int b) : n(-1) { d[0] = a; d[1] = b; }
    __device__ Arr &operator=(std::initializer_list<int> l) {
        n = 0;
        for (auto x : l) d[n++] = x;
        return *this;
    }
    __device__ int operator+=(std::initializer_list<int> l) {
        for (auto x : l) d[n++] = x;
        return n;
    }
    __device__ int total() const {
        int s = n * 100;
        for (int i = 0; i < n; i++) s += d[i] * (i + 1);
        return s;
    }
};
__device__ int which(std::initializer_list<int>) { return 1; }
__device__ int which(std::initializer_list<float>) { return 2; }
__device__ int test(int k) {
    auto il = {1, 2, k};
    int s = 0;
    for (auto x : il) s += x * x;
    Arr a{k, 2, 3};
    Arr b{1, k};
    Arr c(1, k);
    Arr e = {4, 5, k, 6};
    std::initializer_list<int> j = {k, k + 1};
    int q = 0;
    for (int x : {5, 6, 7}) q += x * k;
    s += sum({1, 2, 3, k}) + sum({}) + int(maxi({1.5f, float(k), 3.f}));
    s += a.total() + b.total() + c.n + e.total() + sum(j) + q + int(il.size());
    a = {9, 8};
    a += {k, k};
    return s + a.total() * 3 + which({1, 2}) * 10 + which({1.5f, 2.5f});
}
"""

OPERATORS = """
struct L { int v; };
struct P { L *p; int o; };
__device__ L operator&&(L a, L b) { return L{a.v * 10 + b.v}; }
__device__ L operator||(const L &a, int b) { return L{a.v - b}; }
struct W {
    int a, b;
    __device__ W operator,(const W &o) const { return W{a + o.a, b * o.b}; }
    __device__ int operator->*(int k) const { return a * k + b; }
    __device__ int operator&&(const W &o) const { return a - o.b; }
    __device__ bool operator||(const W &) { a++; return false; }
};
__device__ int side(int &c, int v) { c = c * 3 + v; return v; }
__device__ int test(int k) {
    L a{k}, b{3};
    W w{k, 2}, x{5, 6};
    int c = 1;
    bool z = w || x;
    L t = L{side(c, 0)} && L{side(c, 2)};
    W y = (w, x);
    return (a && b).v + (a || 4).v * 100 + y.a + y.b + w.b + (w && x) + z + c + t.v;
}
"""

USING = """
struct F { __device__ int operator()(int x) const { return x + 1; } int h(int) const; };
struct A { __device__ int h(int x) { return x * 2; } __device__ int g(int) { return 1; } };
struct B {
    __device__ int h(float x) { return int(x * 4); }
    __device__ int g(double) { return 2; }
};
template <class... Bs> struct M : Bs... { using Bs::h...; using Bs::g...; };
template <class... Fs> struct Ov : Fs... { using Fs::operator()...; };
template <class... Fs> Ov(Fs...) -> Ov<Fs...>;
struct Base {
    int v, w;
    __device__ Base(int a) : v(a), w(1) {}
    __device__ Base(int a, int b) : v(a), w(b) {}
    template <class T> __device__ Base(T t, float f) : v(int(t)), w(int(f * 2)) {}
};
struct D1 : Base { using Base::Base; int z = 5; };
struct D2 : D1 { using D1::D1; __device__ D2() : D1(8) {} };
template <class T> struct D3 : T { using T::T; int q = 1; };
template <class T> struct D4 : D3<T> { using D3<T>::D3; };
template <class T> struct TB { T t; __device__ TB(T x) : t(x) {} };
template <class T> struct TD : TB<T> { using typename TB<T>::TB; };
template <class T> struct TE : TB<T> { using TB<T>::TB; using Q = TB<T>; };
template <class T> struct TF : TB<T> { using Q = TB<T>; using Q::Q; };
template <class... B> struct All : B... { using B::B...; };
__device__ int test(int k) {
    M<A, B> m;
    Ov o{[=](int x) { return x + k; }, [](float y) { return y * 2; }, [](const char *) {
        return 9; }};
    D1 a(k);
    D1 b{k, 3};
    D2 c(2, k);
    D2 d;
    D3<Base> e(k);
    D4<Base> f(k, 2.5f);
    TE<int> g(k);
    TF<float> h(1.5f);
    All<Base> al(k, k);
    return m.h(k) + m.h(1.5f) * 10 + m.g(1) + m.g(1.) + o(3) + int(o(2.5f)) + o("x") + a.v +
        a.w + a.z + b.v + b.w + c.v * c.w + c.z + d.v + e.v + e.q + f.v + f.w + g.t +
        int(h.t * 2) + al.w;
}
"""

BASES = """
struct P { int x, y; };
struct Q { float f = 2; int *p; };
struct R { int a[2]; };
struct Z {};
struct D : P, Z, Q, R { int z = 7; };
template <class... F> struct Ov : F... { using F::operator()...; };
template <class... F> Ov(F...) -> Ov<F...>;
struct Vis { int &r; __device__ int operator()(int v) const { return r += v; } };
__device__ P mk(int k) { return P{k, k + 1}; }
__device__ int test(int k) {
    int w = k;
    Q q{1.5f, &w};
    D d{mk(k), Z{}, q, {{3, 4}}, 9};
    D e{P{1, 2}, {}, {}, R{{5, 6}}};
    *d.p += 5;
    int acc = 3;
    Ov v{[&](int x) { return acc += x; }, [k](float f) { return int(f * k); }, [](char) {
        return 1; }};
    v(4);
    return d.x + d.y + d.a[1] + d.z + int(d.f * 2) + w + e.y + e.a[0] + int(e.f) + e.z + acc
        * 100 + v(2.5f) + v('c');
}
"""

CONSTANTS = """
#include <type_traits>
constexpr __host__ __device__ int how(int x) {
    if (std::is_constant_evaluated()) return x * 2;
    return x * 3;
}
constexpr __host__ __device__ int how2(int x) {
    if (__builtin_is_constant_evaluated()) return x + 1;
    else return x + 2;
}
constexpr __host__ __device__ int loop(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += std::is_constant_evaluated() ? i : 1;
    return s;
}
constexpr int g = how(7);
const int h2 = how2(3);
__constant__ int cc = how(9);
template <int N> struct I { static constexpr int v = N; };
__device__ int test(int k) {
    constexpr int c = how(5);
    int d = how(k);
    const int e = how2(1);
    int f = how2(k);
    const int ff = how2(k);
    int x5 = how(5);
    static_assert(how(4) == 8);
    return c + d * 100 + e + f + ff * 3 + loop(5) + I<how(3)>::v * 7 + I<loop(4)>::v + g +
        h2 + cc + x5 * 11;
}
"""

CONSTEVAL = """
constexpr __host__ __device__ int how(int x) {
    if consteval { return x * 2; } else { return x * 3; }
}
constexpr __host__ __device__ int how3(int x) {
    if !consteval { return x * 2; }
    return x * 5;
}
consteval __host__ __device__ int ce(int x) { return x * x; }
__device__ int test(int k) {
    constexpr int c = how(5);
    int a[how(2)] = {};
    return c + how(k) * 100 + how3(k) + ce(4) + sizeof(a);
}
"""

VARIABLES = """
template <class T> __constant__ T pi = T(3.14159265358979);
template <class T> __constant__ T two = T(2);
template <int N> __constant__ int table[3] = {N, N * 2, N * 3};
template <class T, int N> __device__ constexpr T cv = T(N) / 2;
template <class T> inline constexpr int sz = sizeof(T);
template <class T> constexpr int sz<T *> = 99;
template <> constexpr int sz<char> = 77;
__device__ int test(int k) {
    return int(pi<float> * 100 * k) + int(pi<int>) + two<int> * k + table<5>[k % 3] +
        int(cv<float, 3> * 4) + sz<int> + sz<int *> + sz<char>;
}
"""

TEXTS = """
template <int N> __device__ int len(const char (&s)[N]) { return N - 1; }
template <unsigned long N> constexpr __device__ unsigned hash(const char (&s)[N]) {
    unsigned h = 5;
    for (unsigned long i = 0; i + 1 < N; i++) h = h * 31 + s[i];
    return h;
}
__constant__ const char *names[] = {"one", "three", "fifteen", ""};
static __device__ const char *const words[] = {"zero", "one"};
__device__ const char *pick(int k) {
    const char *t[3] = {"abc", "hello", "xy"};
    return t[k % 3];
}
__device__ int slen(const char *s) { int n = 0; while (*s++) n++; return n; }
struct E { const char *n; int v; };
__constant__ E tab[2] = {{"alpha", 1}, {"be", 2}};
template <char... C> struct Str { static constexpr char v[] = {C..., 0}; };
__device__ int cmp(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a - *b;
}
__device__ int test(int k) {
    static const char *const loc[] = {"q", "ww", "eee", "rrrr"};
    const char arr[] = "local";
    constexpr unsigned h = hash("const");
    const char *z = k > 3 ? "yes" : "nope";
    return len("hello") + hash("ab") % 1000 + slen(names[k & 3]) * 10 + slen(pick(k)) * 100
        + slen(loc[k & 3]) + arr[k % 5] + int(h % 100) + z[0] + pick(k)[1] + len(arr) +
        slen(tab[k & 1].n) * 7 + tab[k & 1].v + cmp(pick(k), "hello") + "digits"[k % 6] +
        slen(Str<'a', 'b'>::v) + slen(words[k & 1]) * 1000;
}
"""

ENUMS = """
enum Dir { NONE, DIAG };
enum class S : unsigned char { A, B };
struct Cell { short score; Dir dir; S s; };
enum class Bits : unsigned { A = 1, B = A << 2, C = B | A, D };
template <int N> struct Table { enum class Q { X = N, Y = X * 2 }; };
template <class T> __device__ T made() { return T{}; }
template <class T> __device__ T called() { return T(); }
struct H { S s{}; Dir d = {}; S t[2]{}; Dir e = Dir(); };
__device__ Dir given(Dir d = {}) { return d; }
__device__ int test(int k) {
    Cell t[4] = {}, u{}, v[3] = {{1, DIAG}}, w = {.score = 2};
    Dir d{DIAG}, e[2] = {}, q = {DIAG};
    S s{}, g[3] = {S::B};
    H h;
    Dir *p = new Dir{};
    int sum = t[k & 3].dir + u.dir * 2 + v[0].dir * 4 + v[1].dir * 8 + e[k & 1] * 16 + *p * 32;
    delete p;
    sum += (int)s * 64 + (int)g[0] * 128 + (int)g[1] * 256 + (int)h.s + h.d + (int)h.t[1] + h.e;
    sum += made<Dir>() + (int)made<S>() + called<Dir>() + made<Cell>().dir + given() + given({});
    d = {};
    s = S{};
    enum class Local { P = 3, R = P + 1 };
    sum += (int)Bits::C + (int)Bits::D * 10 + (int)Local::R * 100 + (int)Table<4>::Q::Y * 1000;
    return sum + d + (q == DIAG) * 512 + (int)s + w.dir + w.score + k;
}
"""

MEMBERS = """
struct S {
    int a, b;
    float c;
    int arr[3];
    __device__ int f(int k) const { return a * k; }
    __device__ int g(int k) { b += k; return b; }
    __device__ static int st(int k) { return k; }
};
template <int S::*M> __device__ int get(const S &s) { return s.*M; }
template <class C, class T, T C::*M> struct Acc {
    static __device__ T &of(C &c) { return c.*M; }
};
template <auto M> __device__ auto geta(S *s) { return s->*M; }
template <class C, class T> __device__ T ded(const C &c, T C::*m) { return c.*m; }
template <int (S::*F)(int) const> __device__ int callf(const S &s, int k) {
    return (s.*F)(k);
}
template <auto F, class... A> __device__ auto calla(S &s, A... a) { return (s.*F)(a...); }
template <class R, class C, class... A> __device__ R inv(R (C::*f)(A...), C &c, A... a) {
    return (c.*f)(a...);
}
using PM = int S::*;
typedef int (S::*PF)(int);
__device__ int sumby(const S *s, int n, int S::*m) {
    int t = 0;
    for (int i = 0; i < n; i++) t += s[i].*m;
    return t;
}
__device__ int test(int k) {
    S s{k, 2, 1.5f, {1, 2, 3}};
    S ss[2] = {s, {4, 5, 6, {7, 8, 9}}};
    int S::*p = &S::b;
    PM q = &S::a;
    const PM r = k & 1 ? &S::a : &S::b;
    PF f = &S::g;
    int (S::*h)(int) const = &S::f;
    float S::*fc = &S::c;
    s.*p += 1;
    S *ps = &s;
    ps->*q *= 2;
    PM tab[2] = {&S::a, &S::b};
    int t = 0;
    for (int i = 0; i < 2; i++) t = t * 5 + s.*tab[i];
    if (k > 5) p = &S::a;
    int n = (p == &S::a) + (q != nullptr) * 2;
    return get<&S::a>(s) + get<&S::b>(s) * 10 + Acc<S, float, &S::c>::of(s) +
        geta<&S::b>(ps) + ded(s, &S::a) + callf<&S::f>(s, 3) + calla<&S::g>(s, 2) +
        inv(&S::g, s, 1) + (s.*f)(k) + (ps->*h)(2) + int(s.*fc * 2) + s.*r * 100 + t +
        sumby(ss, 2, &S::b) + sumby(ss, 2, p) + n;
}
"""

KINDS = """
#include <initializer_list>
struct A {
    int x, y;
    __device__ int f(int k) { return x + k; }
    __device__ int f(float k) { return int(k * 10); }
    __device__ int get() const { return y; }
    __device__ void add(int v) { x += v; }
};
struct B {
    float w;
    int z;
    union { int u; float uf; };
    __device__ int h(int k) { return z * k; }
};
struct D : A, B { int q; __device__ int own(int k) const { return q - k; } };
struct V { virtual __device__ int v(int k) { return k; } int t; };
struct W : V { __device__ int v(int k) override { return k * 2 + t; } };
template <class T> struct Tr;
template <class R, class C, class... P> struct Tr<R (C::*)(P...)> {
    using Res = R;
    static constexpr int n = sizeof...(P);
    static constexpr bool c = false;
};
template <class R, class C, class... P> struct Tr<R (C::*)(P...) const> {
    using Res = R;
    static constexpr int n = sizeof...(P) + 10;
    static constexpr bool c = true;
};
template <class R, class C> struct Tr<R C::*> {
    using Res = R;
    static constexpr int n = 100;
};
struct P { int *p; int v; int *q; };
template <class T> struct Vec {
    T d[3];
    T s;
    __device__ T dot(const Vec &o) const { return d[0] * o.d[0] + s; }
    __device__ T each(T (Vec::*m)(const Vec &) const, const Vec &o) const {
        return (this->*m)(o);
    }
};
__device__ int A::*pick(int k) { return k & 1 ? &A::x : &A::y; }
template <auto... M> __device__ int total(const A &a) { return ((a.*M) + ... + 0); }
template <class C, class... M> __device__ int sumof(const C &c, M... m) {
    return (0 + ... + (c.*m));
}
struct Vis {
    int A::*m = &A::y;
    int (A::*fn)(int) = nullptr;
    __device__ int go(A &a, int k) { return fn ? (a.*fn)(k) : a.*m; }
};
typedef int (A::*Fn)(int);
constexpr Fn table[] = {&A::f, nullptr};
constexpr int A::*fields[] = {&A::x, &A::y};
__device__ int test(int k) {
    A a{k, 7};
    D d;
    d.x = 1;
    d.y = 2;
    d.z = 3;
    d.u = 4;
    d.q = 5;
    d.w = 1.5f;
    int D::*p = &A::y;
    int D::*r = &B::z;
    int B::*u = &B::u;
    if (k > 3) r = p;
    float B::*w = &B::w;
    int (D::*f)(int) const = &D::own;
    int (D::*g)(int) = &B::h;
    Fn h = &A::f;
    int (A::*hf)(float) = &A::f;
    W o;
    o.t = k;
    V &vr = o;
    int (V::*vf)(int) = &V::v;
    void (A::*ad)(int) = &A::add;
    (a.*ad)(2);
    (d.*ad)(3);
    Vis vis;
    int n = vis.go(a, k);
    vis.fn = h;
    n += vis.go(a, k) * 3;
    Vis e{&A::x};
    n += e.go(a, 1);
    int i1 = 4, i2 = 9;
    P pp{&i1, 2, &i2};
    int *P::*pm = k & 2 ? &P::p : &P::q;
    *(pp.*pm) += k;
    Vec<int> v1{{k, 2, 3}, 4}, v2{{2, 2, 2}, 1};
    int (Vec<int>::*dm)(const Vec<int> &) const = &Vec<int>::dot;
    const A ca{3, 4};
    int s = 0;
    for (auto m : {&A::x, &A::y}) s = s * 3 + ca.*m;
    auto L = [&](int A::*m) { return a.*m; };
    int nul = (p == nullptr) + (vis.fn != nullptr) * 2 + (pick(k) == &A::x) * 4 + (u ? 8 :
        0) + (f == nullptr) * 16;
    a.*pick(k) += 5;
    (&a)->*fields[k & 1] *= 2;
    A arr[2] = {a, ca};
    A *ap = arr;
    return a.x + a.y * 3 + d.*p + d.*r * 5 + d.*u + (d.*f)(k) + (d.*g)(k) + (a.*h)(2) +
        (a.*hf)(2.5f) + int(d.*w * 4) + (vr.*vf)(k) + n + i1 + i2 * 7 + v1.each(dm, v2) + s
        + L(&A::y) + nul * 11 + Tr<decltype(&A::get)>::n + Tr<Fn>::n + Tr<int A::*>::n +
        (Tr<decltype(f)>::c ? 1000 : 0) + total<&A::x, &A::y>(a) + sumof(a, &A::x, &A::y) +
        (a.*table[0])(3) + (ap++)->*fields[1] + ap->*pick(k) + sizeof(Fn) + sizeof(int A::*)
        + (static_cast<int (A::*)(float)>(&A::f) == hf) + d.x;
}
"""

INVOKE = """
#include <functional>
#include <type_traits>
struct A {
    int x;
    __device__ int f(int k) { return x += k; }
    __device__ int g() const { return x * 2; }
};
__device__ int fn(int a) { return a + 1; }
__device__ int test(int k) {
    A a{k};
    A *p = &a;
    int s = std::invoke(&A::f, a, 3);
    s += std::invoke(&A::g, a) * 2 + std::invoke(&A::x, p) * 3 + std::invoke(fn, 4) +
        std::invoke([k](int v) { return v * k; }, 5);
    std::invoke(&A::f, p, 2);
    return s + a.x * 100 + std::is_member_pointer_v<int A::*> +
        std::is_member_object_pointer_v<decltype(&A::f)> * 10 +
        std::is_member_function_pointer<decltype(&A::g)>::value * 20 + std::is_scalar_v<int
        A::*> * 40;
}
"""

MEMBER_LISTS = """
#include <initializer_list>
struct V {
    int n, s;
    __device__ V() : n(-1), s(0) {}
    __device__ V(int a, int b) : n(100), s(a * b) {}
    __device__ V(std::initializer_list<int> l) : n(0), s(0) { for (int v : l) { n++; s += v; } }
};
struct P { int a, b; };
template <class... T> struct W { V v, u; __device__ W(T... t) : v{t...}, u(t...) {} };
struct B : V {
    int arr[3];
    P p;
    V v, w, x;
    float f;
    __device__ B(int k) : V{k, 5}, arr{1, 2}, p{k, 3}, v{k, 7,}, w(k, 7), x{}, f{2.5f} {}
    __device__ B() : B{4} {}
};
struct D : V { __device__ D(int k) : V(k, 5) {} };
__device__ int test(int k) {
    B b(k), c;
    D d(k);
    W<int, int> w(k, 7);
    return b.n + b.s * 10 + (b.arr[0] + b.arr[1] + b.arr[2]) * 100 + b.p.a + b.p.b + b.v.n * 1000 +
        b.v.s + b.w.n + b.w.s + b.x.n + int(b.f * 2) + c.v.s + d.n + d.s + w.v.n + w.v.s + w.u.n +
        w.u.s;
}
"""

LINKS = """
struct Tree {
    int v;
    Tree *l = nullptr, *r = nullptr;
    __device__ Tree(int x) : v(x) {}
    __device__ void insert(int x) {
        Tree *&side = x < v ? l : r;
        if (side) side->insert(x);
        else side = new Tree(x);
    }
    __device__ int sum(int d = 1) const {
        return v * d + (l ? l->sum(d + 1) : 0) + (r ? r->sum(d + 1) : 0);
    }
    __device__ ~Tree() { if (l) delete l; if (r) delete r; }
};
__device__ int test(int k) {
    Tree tree(5);
    for (int i = 0; i < 6; i++) tree.insert((i * 7 + k) % 11);
    return tree.sum();
}
"""

# --- the table ---

PROGRAMS = {
    "nested classes": (NESTED, [427, 3529, 6633, 9739, 12847, 15957, 19069, 22183]),
    "nested in templates": (
        NESTED_IN_TEMPLATES,
        [5157, 5208, 5259, 5310, 5361, 5412, 5463, 5514],
    ),
    "nested in namespaces": (NESTED_IN_NAMESPACES, [24, 30, 38, 48, 60, 74, 90, 108]),
    "initializer lists": (LISTS, [8272, 8322, 8374, 8428, 8485, 8544, 8605, 8668]),
    "operators that evaluate both sides": (OPERATORS, [-369, -257, -145, -33, 79, 191, 303, 415]),
    "using declarations": (USING, [111, 122, 133, 144, 155, 166, 177, 188]),
    "bases as objects": (BASES, [739, 744, 750, 755, 761, 766, 772, 777]),
    "constant evaluation": (CONSTANTS, [274, 578, 882, 1186, 1490, 1794, 2098, 2402]),
    "if consteval": (CONSTEVAL, [42, 344, 646, 948, 1250, 1552, 1854, 2156]),
    "variable templates": (VARIABLES, [194, 515, 836, 1142, 1463, 1784, 2090, 2412]),
    "texts": (TEXTS, [5724, 4943, 5706, 4671, 5961, 4697, 5780, 4894]),
    "lists of members": (MEMBER_LISTS, [2686, 2718, 2750, 2782, 2814, 2846, 2878, 2910]),
    "references to links": (LINKS, [84, 68, 89, 111, 87, 81, 98, 115]),
    "enums": (ENUMS, [9111, 9112, 9113, 9114, 9115, 9116, 9117, 9118]),
    "pointers to members": (MEMBERS, [673, 298, 923, 748, 1173, 1198, 1427, 1653]),
    "kinds of pointers to members": (KINDS, [1519, 1617, 1569, 1651, 1638, 1716, 1664, 1726]),
    "invoke": (INVOKE, [590, 703, 816, 929, 1042, 1155, 1268, 1381]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device, name):
    source, expected = PROGRAMS[name]
    assert results(device, source) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("struct A { struct B; }; struct A::C { int x; };", "A declares no class C"),
        ("struct A { struct B {}; }; struct A::B { int x; };", "A declares no class B"),
        ("struct A { enum E : int; }; enum A::F : int { a };", "A declares no enum F"),
        (
            "template <class T> struct A { struct B; }; struct A<int>::B { int x; };",
            "member of one instance of A is defined here",
        ),
    ],
)
def test_nested_definitions_of_nothing(text, said):
    with pytest.raises(CompileErrors, match=re.escape(said)):
        td.cuda_module(f"{text}\n__global__ void k(int *x) {{ *x = 1; }}")
