"""Small programs that use several features of C++ together: objects that `?:` selects, constants
with arrays, linked items, functions that are found by their arguments. Their values are those of
g++ for the same functions as host code."""

from __future__ import annotations

import pytest

from tests.support.cpp_tables_of_programs import results

CHOICES = """
struct Animal {
    int legs;
    __device__ Animal(int l) : legs(l) {}
    virtual __device__ int speak(int k) const = 0;
};
struct Dog : Animal {
    __device__ Dog() : Animal(4) {}
    __device__ int speak(int k) const override { return k + 1; }
};
struct Bird : Animal {
    using Animal::Animal;
    __device__ int speak(int k) const override { return legs * k; }
};
struct A { int v; };
struct B : A { int w; };
template <class T> struct Opt {
    bool has;
    union { char none; T val; };
    __device__ Opt() : has(false), none(0) {}
    __device__ Opt(T v) : has(true), val(v) {}
    template <class F> __device__ auto map(F f) const -> Opt<decltype(f(val))> { if (has)
        return f(val); return {}; }
    __device__ T value_or(T d) const { return has ? val : d; }
};
struct S { int a; float b; };
__device__ Opt<S> maybe(int k) { return k > 4 ? Opt<S>(S{k, 1.5f}) : Opt<S>(); }
__device__ int test(int k) {
    Dog d;
    Bird b(2);
    Animal &r = k & 1 ? static_cast<Animal &>(d) : b;
    A a{1};
    B c;
    c.v = 2;
    c.w = 3;
    A &x = k & 2 ? a : c;
    x.v += 5;
    Opt<int> o(k);
    return r.speak(4) + a.v * 10 + c.v * 100 + maybe(k).value_or(S{7, 2.f}).a * 1000 +
        o.map([](int v) { return v * 1.5f; }).value_or(2.f) * 2;
}
"""

OBJECTS = """
struct T { int v[5]; int n; };
constexpr T ct{{1, 2, 3, 4, 5}, 7};
const T cd = {{9, 8, 7}};
template <int N> struct Tab {
    int v[N];
    constexpr __host__ __device__ Tab() : v() { for (int i = 0; i < N; i++) v[i] = i * i; }
};
constexpr Tab<5> squares;
__device__ int f(int k) { return ct.v[k % 5]; }
__device__ int test(int k) {
    int s = 0;
    if (k > 3) s += ct.v[k % 5];
    else s += ct.v[(k + 1) % 5] * 10;
    for (int i = 0; i < k; i++) s += cd.v[i % 3];
    s += k & 1 ? cd.v[k % 2] : ct.v[k % 4];
    auto x = ct.v[k % 5];
    auto y = ct;
    constexpr auto z = ct;
    static_assert(ct.n == 7);
    decltype(ct.n) w = ct.v[2];
    return s + cd.v[1] + x * 3 + y.v[1] + z.v[3] * 5 + w + f(k) + squares.v[k % 5] * 7;
}
"""

LINKED = """
template <class T> struct Node { T v; Node *next; };
template <class T, int N> class Pool {
    Node<T> a[N];
    int n = 0;
    Node<T> *head = nullptr;
    public: class iterator {
        Node<T> *p;
        public: __device__ iterator(Node<T> *q) : p(q) {}
        __device__ T &operator*() const { return p->v; }
        __device__ iterator &operator++() { p = p->next; return *this; }
        __device__ bool operator!=(const iterator &o) const { return p != o.p; }
    };
    __device__ void push(T v) { a[n] = {v, head}; head = &a[n++]; }
    __device__ iterator begin() { return head; }
    __device__ iterator end() { return nullptr; }
    __device__ void reverse() {
        Node<T> *prev = nullptr;
        while (head) { auto *nx = head->next; head->next = prev; prev = head; head = nx; }
        head = prev;
    }
};
struct Link { int v; Link *next; };
__device__ int test(int k) {
    Pool<int, 6> p;
    for (int i = 0; i < 5; i++) p.push(i * k + 1);
    int s = 0;
    for (int &v : p) { s = s * 3 + v; v += 1; }
    p.reverse();
    for (int v : p) s = s * 2 - v;
    Link b[3] = {{1}, {2}, {k}};
    Link *h = nullptr;
    for (int i = 0; i < 3; i++) { b[i].next = h; h = &b[i]; }
    return s + h->next->v + h->v * 10;
}
"""

BY_ARGUMENTS = """
struct Range {
    int b, e;
    struct It {
        int i;
        __device__ int operator*() const { return i; }
        __device__ It &operator++() { ++i; return *this; }
        __device__ friend bool operator!=(It a, It b) { return a.i != b.i; }
    };
    friend __device__ It begin(const Range &r) { return {r.b}; }
    friend __device__ It end(const Range &r) { return {r.e}; }
};
namespace z {
    struct L { int d[3]; };
    __device__ int *begin(L &l) { return l.d; }
    __device__ int *end(L &l) { return l.d + 3; }
    __device__ int f(L a) { return a.d[0] * 2; }
    template <class T> __device__ int h(T t) { return 7; }
}
__device__ int f(int x) { return x + 1; }
template <class T> __device__ int h(T t, int k) { return k; }
struct W {
    __device__ int f(z::L a) const { return -1; }
    __device__ int call(z::L a) const { return f(a); }
};
template <class T, int N> __device__ const T *first(const T (&a)[N]) { return a; }
__device__ const int *first(const Range &r) { return &r.b; }
template <class C> __device__ int head(const C &c) { return *first(c); }
struct M { float a[2][2]; };
__device__ int test(int k) {
    int s = 0;
    for (auto x : Range{k, k + 3}) s = s * 2 + x;
    z::L l{{k, 1, 2}};
    for (int &v : l) v += 2;
    for (int v : l) s += v;
    int a[] = {5, k, 3};
    M m{{{1, 2}, {3, float(k)}}};
    auto [r0, r1] = m.a;
    r1[0] += 1;
    return s + f(l) + f(2) * 10 + h(l) * 100 + h(l, 3) + W{}.call(l) + head(a) * 3 +
        int(r0[1] + r1[0] + r1[1] + m.a[1][0]);
}
"""

MOVES = """
struct Log {
    int *p;
    __device__ void operator()(int v) const { *p = (*p * 10 + v) % 100003; }
};
struct T {
    Log l;
    int id;
    __device__ T(Log l, int i) : l(l), id(i) {}
    __device__ T(const T &o) : l(o.l), id(o.id) { l(2); }
    __device__ T(T &&o) : l(o.l), id(o.id) { l(3); }
    __device__ T &operator=(const T &o) { id = o.id; l(4); return *this; }
    __device__ T &operator=(T &&o) { id = o.id; l(5); return *this; }
};
template <class U> __device__ U &&mv(U &u) { return static_cast<U &&>(u); }
struct A { T a; T b; };
struct B { T a; __device__ ~B() {} };
struct C : A { T c; };
struct D {
    T a;
    D(D &&) = default;
    D &operator=(D &&) = default;
    __device__ D(Log l) : a(l, 1) {}
};
struct E { T a[2]; };
struct F {
    T a;
    F(const F &) = default;
    F &operator=(const F &) = default;
    __device__ F(Log l) : a(l, 1) {}
};
__device__ int test(int k) {
    int v = 0;
    Log l{&v};
    A a{T(l, 1), T(l, 2)};
    A a2 = mv(a);
    a = mv(a2);
    a = a2;
    l(9);
    B b{T(l, 1)};
    B b2 = mv(b);
    b = mv(b2);
    l(9);
    C c{{T(l, 1), T(l, 2)}, T(l, 3)};
    C c2 = mv(c);
    c = mv(c2);
    l(9);
    int w = v;
    v = 0;
    D d(l);
    D d2 = mv(d);
    d = mv(d2);
    l(9);
    E e{{T(l, 1), T(l, 2)}};
    E e2 = mv(e);
    e = mv(e2);
    l(9);
    F f(l);
    F f2 = mv(f);
    f = mv(f2);
    return w * 3 + v + k;
}
"""

TEXTS = """
struct Cfg { char name[8] = "none"; int v[2][2] = {{1, 2}, {3}}; bool on : 1 = true; };
__device__ int test(int k) {
    const char g[3][6] = {"..#..", {'a', 'b'}, "xyz"};
    Cfg c;
    Cfg d{"abc", {{k}}};
    return g[0][2] + g[1][1] * 2 + g[2][k % 6] * 3 + g[1][5] + c.name[1] + c.v[1][0] +
        d.name[2] + d.name[5] + d.v[0][0] * 10 + c.on;
}
"""

COPIES = """
struct Q { int x[3]; };
struct V { int *p; int n; };
struct P {
    Q q;
    __device__ Q get() const { return q; }
    __device__ auto get2() const { return q; }
    __device__ Q some(int k) const { if (k) return q; return Q{{7}}; }
};
struct H { V v; __device__ V get() { return v; } __device__ auto get2() { return v; } };
__device__ Q local(int k) { Q r{{k, 1, 2}}; r.x[1] += k; return r; }
__device__ Q param(Q a) { return a; }
__device__ Q param2(Q a) { a.x[0]++; return a; }
__device__ Q ref(Q &a) { return a; }
__device__ Q shadow(Q &o) { Q r{{1}}; { Q &r = o; return r; } }
__device__ Q binding(Q (&o)[2]) { auto &[a, b] = o; return b; }
__device__ Q constant() { const Q r{{5, 6, 7}}; return r; }
__device__ int stale(V s, V &r) { r.n += 100; return s.n; }
__device__ int test(int k)
{
    P p{{{1, 2, 3}}};
    auto &&a = p.get();
    auto &&b = p.get2();
    const Q &c = p.some(k & 1);
    p.q.x[0] = 50; p.q.x[k % 3] = 40;
    Q q{{k, 7, 8}}, o[2] = {{{1}}, {{2}}};
    auto &&d = param(q);
    auto &&e = ref(q);
    auto &&f = local(k);
    auto &&g = shadow(q);
    auto &&h = binding(o);
    auto &&i = param2(q);
    auto &&j = param(param(q));
    auto &&l = constant();
    q.x[0] += 50; q.x[1] = 3; o[1].x[0] = 99;
    int u[2] = {4, 5};
    H t{{u, k}};
    auto &&v = t.get();
    auto &&w = t.get2();
    t.v.n = 77;
    int st = stale(t.v, t.v);
    return a.x[k % 3] + b.x[k % 3] * 100 + c.x[0] * 10000 + d.x[0] + e.x[0] * 3 + f.x[1] * 5 +
        g.x[0] * 7 + h.x[0] * 11 + i.x[0] * 13 + j.x[1] * 17 + l.x[2] + v.n * 1000 +
        w.n * 10000 + st + q.x[0];
}
"""

EXACT_TYPES = """
#include <functional>
struct Q { int x; };
struct P {
    int a; Q q; int b[2];
    __device__ decltype(auto) val() { return a; }
    __device__ decltype(auto) ref() { return (a); }
    __device__ auto plain() { return a; }
    __device__ auto object() { return q; }
    __device__ decltype(auto) at(int i) { if (i == 0) return (b[0]); return (b[i]); }
    __device__ decltype(auto) self() { return *this; }
    __device__ int &member() { return a; }
    __device__ int add(int v) const { return a + v; }
};
__device__ decltype(auto) param(int &x) { return x; }
__device__ decltype(auto) moved(int x) { return x; }
template <class T> __device__ decltype(auto) id(T &&t) { return static_cast<T &&>(t); }
template <class F, class... A> __device__ decltype(auto) call(F &&f, A &&...a)
{
    return std::invoke(std::forward<F>(f), std::forward<A>(a)...);
}
__device__ int test(int k)
{
    P p{k, {2}, {3, 4}};
    decltype(auto) v = p.val();
    v += 100;
    auto &&r = p.plain();
    auto &&s = p.object();
    auto &&w = p.val();
    p.a = 50; p.q.x = 60; p.ref() += 1; p.at(k & 1) += 7; p.self().a += 3;
    int z = k;
    param(z) += 2;
    decltype(auto) m = moved(z);
    m += 5; id(z) += 1;
    decltype(auto) i = id(7);
    int a = 1, b = 2;
    auto f = [&](int c) -> decltype(auto) { if (c) return (a); else return (b); };
    f(k & 1) += 10;
    call(f, 0) += 5;
    call(&P::member, p) += 3;
    call(&P::a, p) *= 2;
    decltype(auto) l = std::invoke(&P::a, p);
    l += 1;
    return v + r * 2 + s.x * 3 + w * 5 + p.a * 7 + p.b[0] * 11 + p.b[1] * 13 + z * 17 + m + i +
        a * 19 + b * 23 + call(&P::add, p, 4);
}
"""

DECLARED_TWICE = """
__device__ int f(int a, int b);
__device__ int f(int a, int b = 2);
__device__ int g(int a, int b, int c = 5);
__device__ int g(int a, int b = 3, int c);
__device__ int g(int a, int b, int c) { return a + b * 10 + c * 100; }
struct S { int v; __device__ int m(int a, int b); __device__ S(int, int); };
__device__ int S::m(int a, int b = 4) { return v + a * b; }
__device__ S::S(int a, int b = 7) : v(a + b) {}
template <class T> __device__ T h(T a, int b = 3);
template <class T> __device__ T h(T a, int b) { return a * b; }
template <class T, int N> struct Q;
template <class T, int N = 3> struct Q;
template <class T, int N> struct Q { T v[N]; static constexpr int n = N; };
__device__ int f(int a, int b) { return a * b; }
struct Node;
struct List { Node *head; int n; };
struct Node { List l; int v; };
__device__ int counted(int &c, int v) { c++; return v; }
__device__ int test(int k)
{
    S s(k);
    Node a{{nullptr, 0}, k}, b{{&a, 1}, 2};
    List l{&b, 2};
    int t = 0;
    for (Node *p = l.head; p; p = p->l.head) t = t * 3 + p->v;
    int c = 0, y = 5, *null = nullptr;
    int r = counted(c, k % 3) ?: 7;
    float u = (k & 1 ? 0.f : 2.5f) ?: 1.5f;
    int *q = null ?: &y;
    return f(k) + g(k) + s.m(k) + h(k) + h(1.5f) + Q<int>::n + t + r + (int)(u * 2) * 10 +
        *q * 100 + c * 1000;
}
"""

EXCHANGED = """
struct B {
    int w[2]; int n;
    __device__ int *first() { return w; }
    __device__ int sum(const int *p) const { return p[0] + p[1]; }
    __device__ int go() { return sum(w); }
};
__device__ void bump(int *p) { p[1] += 10; }
__device__ int test(int k)
{
    B x{{1, 2}, 3}, y{{4, 5}, 6};
    B *f = &x, *b = &y;
    int s = 0;
    for (int i = 0; i < 3 + k; i++) {
        s = s * 2 + f->go();
        bump(f->w);
        int *q = f->w + 1;
        *q += 1;
        B *t = f;
        f = b;
        b = t;
    }
    B &r = k & 1 ? x : y;
    int *p = r.w;
    p[0] += 5;
    return s + x.w[0] + y.w[1] * 100 + *f->first();
}
"""

MADE_BY_CONSTRUCTORS = """
struct Crc {
    unsigned t[256];
    constexpr __host__ __device__ Crc() : t()
    {
        for (int i = 0; i < 256; i++) {
            unsigned c = i;
            for (int j = 0; j < 8; j++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            t[i] = c;
        }
    }
};
struct In { int x = 5; };
struct S { In i; int a[2]; };
struct E { int v; __device__ E() {} };
struct B { int q; constexpr __host__ __device__ B() : q(8) {} };
struct D : B { int z = 2; };
struct M { B b[2]; int n; };
__device__ constexpr Crc crc_table;
__device__ S s;
__device__ E e;
__device__ D d;
__device__ M m[2];
__constant__ B cb;
__device__ B several[3];
__device__ const B kb;
__device__ unsigned crc(const char *s)
{
    unsigned c = ~0u;
    for (; *s; ++s) c = crc_table.t[(c ^ *s) & 255] ^ (c >> 8);
    return ~c;
}
struct G {
    int q; float w;
    __device__ G() : q(8), w(2) {}
    __device__ G(int a) : q(a), w(1) {}
    __device__ G(int a, float b) : q(a), w(b) {}
};
struct H : G { int z = 2; int t; };
struct C { int a; int b = 3; };
struct I : C, G { int z; };
struct J : I { int u[2]; };
__device__ int sum(const H &d) { return d.q + (int)d.w * 10 + d.z * 100 + d.t * 1000; }
__device__ int sum(const I &e) { return e.a + e.b * 3 + e.q * 7 + (int)e.w * 11 + e.z * 13; }
__device__ int test(int k)
{
    H a{}, b{{}, 4}, c{{k}, 4, 5}, f{{k, 6.f}}, g{k, 1, 2}, h = {G(3), 4}, l = H{{7}, k};
    I i{{1}, {2}, 3}, n{{}, {}, k}, o{};
    J p{{{k}, {4, 5.f}, 6}, {7, 8}}, q{};
    return s.i.x + s.a[1] + e.v + d.q * 10 + d.z * 100 + m[1].b[1].q * 1000 + m[0].n +
        cb.q * 10000 + several[k % 3].q * 3 + kb.q * 7 + crc("add") % 1000 + sum(a) +
        sum(b) * 3 + sum(c) * 5 + sum(f) * 7 + sum(g) * 11 + sum(h) * 13 + sum(i) +
        sum(n) * 3 + sum(o) + sum(p) * 5 + p.u[1] + sum(q) + sum(l);
}
"""

REFERRED = """
template <class E> struct Expr {
    __device__ const E &self() const { return static_cast<const E &>(*this); }
};
struct Vec : Expr<Vec> {
    float d[4] = {};
    __device__ Vec() = default;
    template <class E> __device__ Vec(const Expr<E> &e)
    {
        for (int i = 0; i < 4; i++) d[i] = e.self()[i];
    }
    __device__ float &operator[](int i) { return d[i]; }
    __device__ float operator[](int i) const { return d[i]; }
};
template <class A, class B> struct Add : Expr<Add<A, B>> {
    const A &a; const B &b;
    __device__ Add(const A &a, const B &b) : a(a), b(b) {}
    __device__ float operator[](int i) const { return a[i] + b[i]; }
};
template <class A> struct Scale : Expr<Scale<A>> {
    const A &a; float s;
    __device__ Scale(const A &a, float s) : a(a), s(s) {}
    __device__ float operator[](int i) const { return a[i] * s; }
};
template <class A, class B>
__device__ Add<A, B> operator+(const Expr<A> &a, const Expr<B> &b) { return {a.self(), b.self()}; }
template <class A>
__device__ Scale<A> operator*(const Expr<A> &a, float s) { return {a.self(), s}; }
template <class T> __device__ const T &larger(const T &a, const T &b)
{
    const T *m = &a;
    if (b > *m) m = &b;
    return *m;
}
struct P { int x, y; };
__device__ int size(int x) { return x < 0 ? -x : x; }
__device__ int size(const P &p) { return p.x * p.x + p.y * p.y; }
template <class T> __device__ T longer(const T &a, const T &b)
{
    const T *m = &a;
    if (size(*m) < size(b)) m = &b;
    return *m;
}
__device__ int at(const int &v) { const int *p = &v; return *p + 1; }
__device__ int first(const P &p) { const int *q = &p.x; return q[0] + q[1] * 10; }
__device__ int test(int k)
{
    Vec a, b;
    for (int i = 0; i < 4; i++) { a[i] = i + k; b[i] = i * i; }
    Vec c = a + b * 2 + a * 0.5f;
    Vec d = (c + c) * 3.f;
    c[1] = 100;
    return c[0] + c[1] + d[1] * 10 + d[3] + at(7) + at(k) + at(k + 1) * 3 + larger(3, k) * 100 +
        larger(k + 2, 5) + first(P{k, 2}) * 7 + first({1, k}) +
        longer(P{k, 1}, P{1, 2}).y * 5 + longer(k, -3) * 11;
}
"""

UNNAMED = """
__device__ int test(int k)
{
    int d = k + 1, q = 5, s = 0;
    { struct { int d; int w[2]; } x; x.d = k; x.w[1] = 7; s += d * 10 + x.d + x.w[1]; }
    {
        union { int q; unsigned char bytes[4]; short halves[2]; };
        q = 0x01020304 + k;
        s += bytes[0] * 100 + bytes[3];
        halves[1] = 9;
        s += (q >> 16) * 1000;
        union { float f; unsigned u; };
        f = 1.0f + k;
        s += u >> 20;
    }
    const struct { int T; } one = { 3 };
    typedef short T;
    T y = (T)(70000 + q);
    enum { A = 4, B } e = k & 1 ? A : B;
    return s + one.T + y + e * A + q;
}
"""

ENUMS = """
enum E1 { A = 0x80000000 };
enum { W = 3000000000u, W2 };
enum E2 { B = 0xffffffff, C = 1 };
enum E4 { G = 1ull << 40, H = -1 };
enum E5 { Low = -5, High = 0x7fffffff, Next };
enum Flags { F0 = 1u << 31, F1 = F0 | 1, F2 = F1 + 1, All = F0 | F1 | F2 };
enum Small { S0 = -1, S1 };
enum class Named : unsigned char { X = 200, Y };
template <int n> struct T {
    enum { size = n, twice = n * 2, big = size + 0x7ffffffeLL };
    enum Own { a = size << 20 };
};
struct S { enum { Z = 0xdeadbeef }; E1 one; E4 two; unsigned f : 4; };
__device__ long long sum(int) { return 1; }
__device__ long long sum(unsigned) { return 2; }
__device__ long long sum(long) { return 3; }
__device__ long long sum(long long) { return 4; }
__device__ int test(int k)
{
    E1 e = A;
    E2 b = k & 1 ? B : C;
    long long all = W / 2 + (A >> 4) + (E1(A) > 0) * 7 + (long long)(double)W2 % 1000;
    all += (B > C) * 10 + (b > C) * 20 + sizeof(E4) * 100 + sizeof(E5) * 1000 + sizeof(Small);
    all += (G >> 30) + H + (long long)Next / 5 + (long long)Low;
    all += (long long)F2 % 1001 + (long long)All % 77;
    all += sum(A) * 11 + sum(G) * 13 + sum(S0) * 17 + sum(Next) * 19;
    all += T<3>::big % 1000 + T<3>::twice + T<5>::a % 1009 + S::Z % 1013;
    all += (int)Named::Y + sizeof(S);
    S s = { e, H, 3 };
    s.one = (E1)(A | 1);
    switch (b) { case C: all += 5; break; case B: all += 9; break; }
    all += (s.one & 0xff) + (s.two < 0) * 1000 + (e == 0x80000000u) + k + S0 + S1;
    return (int)(all % 1000003);
}
"""

# --- the table ---

PROGRAMS = {
    "one of two classes": (CHOICES, [7718, 7718, 7274, 7274, 7730, 5730, 6286, 7286]),
    "objects of constants": (OBJECTS, [58, 95, 133, 194, 204, 87, 101, 141]),
    "linked items of arrays": (LINKED, [3812, 17428, 31044, 44660, 58276, 71892, 85508, 99124]),
    "functions by arguments": (BY_ARGUMENTS, [773, 784, 795, 806, 817, 828, 839, 850]),
    "moves of members": (MOVES, [224822, 224823, 224824, 224825, 224826, 224827, 224828, 224829]),
    "copies that are returned": (
        COPIES,
        [70394, 21525, 92656, 43484, 114615, 65746, 136574, 87705],
    ),
    "decltype(auto)": (EXACT_TYPES, [1667, 1667, 1719, 1719, 1771, 1771, 1823, 1823]),
    "declared twice": (DECLARED_TWICE, [2107, 2093, 2126, 2123, 2149, 2142, 2179, 2165]),
    "pointers that are exchanged": (EXCHANGED, [1654, 2820, 2951, 4325, 4872, 7078, 9289, 14823]),
    "made by constructors": (
        MADE_BY_CONSTRUCTORS,
        [148965, 149132, 149299, 149466, 149633, 149800, 149967, 150134],
    ),
    "what references refer to": (REFERRED, [883, 1004, 1121, 1308, 1542, 1775, 2009, 2242]),
    "enums beyond int": (
        ENUMS,
        [721329, 721354, 721331, 721356, 721333, 721358, 721335, 721360],
    ),
    "classes without names": (
        UNNAMED,
        [14931, 15046, 15165, 15276, 15393, 15502, 15619, 15728],
    ),
    "texts in arrays": (TEXTS, [805, 818, 831, 475, 485, 495, 865, 878]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(device, name):
    source, expected = PROGRAMS[name]
    assert results(device, source) == expected
