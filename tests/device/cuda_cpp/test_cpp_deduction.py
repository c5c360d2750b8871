"""Deduced class template arguments, user-defined literals, friends, decltype, switches, beside
g++."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel

HEADERS = """
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>
"""
# A name, what stands before, and what computes: it writes to `out[k++]`, and `n` is 3.
FEATURES = {
    "ctad constructor": (
        """
template <class T> struct A { T x; __device__ A(T v) : x(v) {} };
        """,
        """
A a(n); A b{2.5f}; A c = 7; out[k++] = a.x; out[k++] = b.x * 2; out[k++] = c.x;
out[k++] = A(4).x; out[k++] = sizeof(b.x); out[k++] = A{'c'}.x;
        """,
    ),
    "ctad aggregate": (
        """
template <class T, class U> struct P { T a; U b; };
template <class T, class U> P(T, U) -> P<T, U>;
        """,
        """
P p{n, 2.5f}; out[k++] = p.a; out[k++] = p.b * 2; out[k++] = P{1, 'a'}.b; out[k++] = sizeof(p);
        """,
    ),
    "ctad aggregate without guide": (
        """
template <class T, class U> struct P { T a; U b; };
        """,
        """
P p{n, 2.5f}; out[k++] = p.a; out[k++] = p.b * 2;
        """,
    ),
    "ctad array guide": (
        """
template <class T, int N> struct A { T v[N]; };
template <class T, class... U> A(T, U...) -> A<T, 1 + sizeof...(U)>;
        """,
        """
A a{1, 2, n}; out[k++] = a.v[2]; out[k++] = sizeof(a);
        """,
    ),
    "ctad std::array pair tuple": (
        """

        """,
        """
std::array a{1, 2, n}; out[k++] = a.size(); out[k++] = a[2]; std::pair q(n, 2.5f);
out[k++] = q.second * 2; std::tuple t(1, 'b', n); out[k++] = std::get<2>(t); auto [x, y, z] = t;
out[k++] = x + y + z;
        """,
    ),
    "ctad copy": (
        """
template <class T> struct A { T x; __device__ A(T v) : x(v) {} };
        """,
        """
A a(n); A b = a; A c(b); A d{c}; out[k++] = d.x + sizeof(d);
        """,
    ),
    "ctad from pointer guide": (
        """
template <class T> struct A { int s; template <class U> __device__ A(U *p) : s(sizeof(T)) {} };
template <class U> A(U *) -> A<U>;
        """,
        """
short v[2]; A a(v); out[k++] = a.s; A b(&v[0]); out[k++] = b.s;
        """,
    ),
    "ctad default args": (
        """
template <class T = int, int N = 3> struct A { T v[N]; };
        """,
        """
A a{}; out[k++] = sizeof(a); A<short> b; out[k++] = sizeof(b);
        """,
    ),
    "ctad lambda member": (
        """
template <class F> struct Def { F f; __device__ int run(int x) { return f(x); } };
template <class F> Def(F) -> Def<F>;
        """,
        """
Def d{[=](int x) { return x * n; }}; out[k++] = d.run(5);
        """,
    ),
    "overloaded trick": (
        """
template <class... T> struct O : T... { using T::operator()...; };
template <class... T> O(T...) -> O<T...>;
        """,
        """
O o{[](int x) { return x + 1; }, [](float x) { return 100; }}; out[k++] = o(n);
out[k++] = o(1.f);
        """,
    ),
    "user literal int": (
        """
__device__ constexpr int operator""_k(unsigned long long x) { return x * 1000; }
__device__ constexpr float operator"" _h(long double x) { return x / 2; }
        """,
        """
out[k++] = 5_k; out[k++] = 3.0_h * 2; out[k++] = 2_k + n;
        """,
    ),
    "user literal char string": (
        """
__device__ constexpr int operator""_c(char c) { return c + 1; }
__device__ constexpr int operator""_s(const char *s, std::size_t n) { return n; }
        """,
        """
out[k++] = 'a'_c; out[k++] = "hello"_s;
        """,
    ),
    "user literal template": (
        """
template <char... C> __device__ constexpr int operator""_b() { int r = 0;
((r = r * 2 + (C - '0')), ...); return r; }
        """,
        """
out[k++] = 1011_b;
        """,
    ),
    "user literal raw": (
        """
__device__ constexpr int operator""_r(const char *s) { int r = 0; while (*s) r += *s++ - '0';
return r; }
        """,
        """
out[k++] = 123_r;
        """,
    ),
    "literals in namespace": (
        """
namespace lit { struct M { float v; }; __device__ constexpr M operator""_m(long double x) {
return M{(float)x}; } __device__ constexpr M operator""_m(unsigned long long x) {
return M{(float)x}; } }
        """,
        """
using namespace lit; out[k++] = (5_m).v; out[k++] = (2.5_m).v * 2;
        """,
    ),
    "hidden friend": (
        """
template <class T> struct V { T x; friend __device__ V operator+(const V &a, const V &b) {
return {a.x + b.x}; } friend __device__ V operator*(T s, const V &a) { return {s * a.x}; }
friend __device__ int get(const V &v) { return v.x; } };
        """,
        """
V<int> a{n}, b{4}; out[k++] = (a + b).x; out[k++] = (2 * a).x; out[k++] = get(a);
V<float> c{1.5f}; out[k++] = get(c + c); out[k++] = (2 * c).x;
        """,
    ),
    "friend template declared": (
        """
template <class T> struct V; template <class T> __device__ int peek(const V<T> &);
template <class T> struct V { __device__ V(T v) : x(v) {} friend int peek<>(const V<T> &);
private: T x; }; template <class T> __device__ int peek(const V<T> &v) { return v.x; }
        """,
        """
V<int> a(n); out[k++] = peek(a);
        """,
    ),
    "friend class": (
        """
class A { int x; friend class B; template <class T> friend struct C;
public: __device__ A(int v) : x(v) {} }; class B { public: __device__ int get(const A &a) {
return a.x; } }; template <class T> struct C { __device__ T get(const A &a) { return a.x; } };
        """,
        """
A a(n); out[k++] = B().get(a); out[k++] = C<int>().get(a);
        """,
    ),
    "comma operator overload etc": (
        """
struct A { int x; __device__ A &operator,(int y) { x = x * 10 + y; return *this; }
__device__ A *operator->() { return this; } __device__ A &operator*() { return *this; }
__device__ A operator++(int) { A o = *this; ++x; return o; } __device__ A operator-() const {
return {-x}; } __device__ bool operator!() const { return x == 0; } __device__ A *operator&() {
return nullptr; } };
        """,
        """
A a{1}; a, 2, 3; out[k++] = a.x; out[k++] = a->x; out[k++] = (*a).x; out[k++] = a++.x;
out[k++] = a.x; out[k++] = (-a).x; out[k++] = !a;
        """,
    ),
    "move const": (
        """
struct A { int x; __device__ A(int v) : x(v) {} __device__ A(const A &o) : x(o.x + 1) {}
__device__ A(A &&o) : x(o.x + 100) {} };
        """,
        """
const A a(n); A b(std::move(a)); out[k++] = b.x; A c(1); A d = std::move(c); out[k++] = d.x;
A e = static_cast<const A &&>(c); out[k++] = e.x;
        """,
    ),
    "trailing returns": (
        """
template <class A, class B> __device__ auto add(A a, B b) -> decltype(a + b) { return a + b; }
__device__ auto ref(int *p) -> int & { return *p; }
__device__ decltype(auto) dr(int *p) { return (p[0]); }
__device__ auto arr(int (*p)[3]) -> int (*)[3] { return p; }
struct S { int x; __device__ auto get() const -> const int & { return x; } };
        """,
        """
out[k++] = add(n, 2.5f) * 2; int z = 4; ref(&z) = 9; out[k++] = z; dr(&z) += 2; out[k++] = z;
int q[3] = {1, 2, n}; out[k++] = (*arr(&q))[2]; S s{n}; out[k++] = s.get();
decltype(auto) w = (z); w = 3; out[k++] = z; decltype(z) y = 5; out[k++] = y;
decltype((z)) x = z; x = 8; out[k++] = z;
        """,
    ),
    "lambda unevaluated": (
        """
template <class T = decltype([](int x) { return x + 3; })> struct W { T f; };
        """,
        """
using F = decltype([](int x) { return x * 2; }); F f; out[k++] = f(n); W<> w; out[k++] = w.f(n);
out[k++] = sizeof([](int) { return 1.0; }(1));
        """,
    ),
    "index sequence": (
        """
template <int... I> struct Seq {};
template <std::size_t... I> __device__ int f(const int *a, std::index_sequence<I...>) {
return ((a[I] * (I + 1)) + ...); }
        """,
        """
out[k++] = f(in, std::make_index_sequence<3>{});
auto g = [&]<std::size_t... I>(std::index_sequence<I...>) { ((out[k++] = I * n), ...); };
g(std::make_index_sequence<4>()); [&]<int... J>(std::integer_sequence<int, J...>) {
(..., (out[k++] = J)); }(std::make_integer_sequence<int, 3>{});
        """,
    ),
    "nested namespaces": (
        """
namespace A::B::inline C { __device__ int f() { return 4; } namespace D { constexpr int z = 9; }
} namespace AB = A::B; namespace A::inline E { __device__ int g() { return 6; } }
        """,
        """
out[k++] = A::B::f(); out[k++] = A::B::C::f(); out[k++] = AB::D::z; out[k++] = A::g();
        """,
    ),
    "recursive lambda": (
        """

        """,
        """
auto fib = [](auto self, int x) -> int {
return x < 2 ? x : self(self, x - 1) + self(self, x - 2); }; out[k++] = fib(fib, n + 2);
        """,
    ),
    "capture this": (
        """
struct A { int x; __device__ int f(int y) { auto g = [this, y] { return x * y; };
auto h = [*this]() mutable { return ++x; }; auto i = [=, this] { return x + y; };
return g() * 100 + h() * 10 + i(); } };
        """,
        """
A a{n}; out[k++] = a.f(2); out[k++] = a.x;
        """,
    ),
    "values of bases and members": (
        """
struct A { int a[2]; }; struct D { int g; int b = 5; }; struct P { int *p; int n; };
struct B : A { D d; int e[2]; P q; __device__ B() : A(), d(), e(), q() {} };
struct C : A, D { __device__ C() : A{}, D() {} }; struct E { int x, y; }; struct F { E e; int z;
__device__ F(int) : e(), z() {} __device__ F() : F(1) {} };
template <class T> struct W { T v; __device__ W() : v() {} };
struct T1 { E e{}; int n = int(); A a = A(); };
        """,
        """
B b; out[k++] = b.a[0] + b.a[1]; out[k++] = b.d.g; out[k++] = b.d.b; out[k++] = b.e[0] + b.e[1];
out[k++] = b.q.p == nullptr; out[k++] = b.q.n; C c; out[k++] = c.a[1]; out[k++] = c.b; F f;
out[k++] = f.e.x + f.e.y + f.z; W<int> w; out[k++] = w.v; W<E> v; out[k++] = v.v.y; W<int *> u;
out[k++] = u.v == nullptr; T1 t; out[k++] = t.e.y + t.n + t.a.a[1]; E g = E(); out[k++] = g.x;
E h[2] = {}; out[k++] = h[1].y; A i{}; out[k++] = i.a[1]; using V = E; out[k++] = V().y;
        """,
    ),
    "switch no braces": (
        """

        """,
        """
int r = 0; switch (n) case 3: r = 5; out[k++] = r; switch (n) { case 1: r = 1; break;
default: r = 9; } out[k++] = r; switch (n) default: r++; out[k++] = r;
        """,
    ),
    "duff": (
        """

        """,
        """
int r = 0, c = n + 4; int i = (c + 3) / 4; switch (c % 4) { case 0: do { r += 1;
case 3: r += 10; case 2: r += 100; case 1: r += 1000; } while (--i > 0); } out[k++] = r;
        """,
    ),
    "nested case block": (
        """

        """,
        """
for (int q = 0; q < 6; ++q) { int r = 0; switch (q) { case 0: r = 1; { case 1: r += 2;
case 2: r += 4; } case 3: r += 8; break; case 4: { r += 16; break; } default: r = 50; }
out[k++] = r; }
        """,
    ),
    "switch ranges": (
        """

        """,
        """
for (int q = 0; q < 12; q += 3) { switch (q) { case 0 ... 4: out[k++] = 1; break;
case 5 ... 9: out[k++] = 2; break; default: out[k++] = 3; } }
        """,
    ),
    "switch enum class": (
        """
enum class E : char { A, B = 5, C };
        """,
        """
E e = n == 3 ? E::B : E::A; switch (e) { using enum E; case A: out[k++] = 1; break;
case B: out[k++] = 2; break; case C: out[k++] = 3; }
        """,
    ),
    "using enum": (
        """
enum class E { A, B = 4 }; struct S { using enum E; }; namespace N { enum class F { X = 7 }; }
        """,
        """
using enum N::F; out[k++] = (int)X; out[k++] = (int)S::B; S s; out[k++] = (int)s.B; using E::A;
out[k++] = (int)A;
        """,
    ),
    "deduction corners": (
        """
template <class T, class U = T> struct A { T t; U u; A(T) = delete;
__device__ A(T a, U b) : t(a), u(b) {} };
template <class T> struct L { T v; template <class U> __device__ L(U a, T b) : v(b + a) {} };
template <class T> struct Q { T v; }; template <class T> Q(T) -> Q<T *>;
template <> struct Q<int> { int v, w; };
template <class F> struct Fin { F f; __device__ ~Fin() { f(); } };
template <class F> Fin(F) -> Fin<F>; template <class T> struct R { T &r;
__device__ R(T &x) : r(x) {} };
template <class T, int N> struct Arr { T v[N]; __device__ Arr(const T (&a)[N]) { for (int i = 0;
i < N; ++i) v[i] = a[i]; } };
        """,
        """
A a(n, 2.5f); out[k++] = sizeof(a); L l(1, 2.5f); out[k++] = l.v * 2; int z = 0; { Fin f{[&] {
z = 9; }}; } out[k++] = z; R r(z); r.r = 4; out[k++] = z; const R s(z); out[k++] = s.r;
short b[3] = {1, 2, 3}; Arr c(b); out[k++] = sizeof(c); auto d = std::pair{1, 'c'};
out[k++] = sizeof(d); std::array e{1.5f, 2.5f}; out[k++] = e.size();
out[k++] = sizeof(std::pair(1.0, 'a')); std::pair g = d; out[k++] = g.second;
auto h = [](auto p) { std::pair w{p, p}; return w.first; }; out[k++] = h(n);
        """,
    ),
    "lambda corners": (
        """
struct S { int a; __device__ auto get() { return [this](int x) mutable { a += x; return a; }; }
};
        """,
        """
int x = 1; auto f = [x]() mutable { return x++; }; auto g = f; f(); out[k++] = f();
out[k++] = g(); out[k++] = x; S s{n}; auto h = s.get(); h(2); out[k++] = s.a;
auto c = [y = x + 1, &x] { x += y; return y; }; c(); out[k++] = x; int arr[3] = {1, 2, 3};
auto ac = [arr] { return arr[2]; }; arr[2] = 9; out[k++] = ac(); auto ar = [&arr] {
return arr[2]; }; out[k++] = ar(); auto v = [](auto... a) { return (a * ... * 1); };
out[k++] = v(2, 3, n); auto comp = [](auto f1, auto f2) { return [=](int q) { return f2(f1(q));
}; }; auto inc = [](int q) { return q + 1; }; auto dbl = [](int q) { return q * 2; };
out[k++] = comp(inc, dbl)(n); out[k++] = [](int a, int b = 4) { return a * b; }(3);
constexpr auto cl = [](int q) { return q * q; }; static_assert(cl(3) == 9);
bool t = [&](auto q) { if constexpr (sizeof(q) > 4) return true; else return false; }(1.0);
out[k++] = t;
        """,
    ),
    "overload ranking": (
        """
struct A {}; struct B : A {}; __device__ int f(int) { return 1; } __device__ int f(long) {
return 2; } __device__ int f(double) { return 3; } __device__ int f(...) { return 4; }
__device__ int g(const A &) { return 1; } __device__ int g(B) { return 2; }
__device__ int h(float) { return 1; } __device__ int h(bool) { return 2; }
__device__ int q(const int *) { return 1; } __device__ int q(int *) { return 2; }
__device__ int q(const void *) { return 3; } template <class T> __device__ int r(T) { return 1;
} template <class T> __device__ int r(T *) { return 2; }
template <class T> __device__ int r(const T *) { return 3; } __device__ int r(int) { return 4; }
template <class T> __device__ int s(const T &) { return 1; }
template <class T> __device__ int s(T &) { return 2; }
template <class T> __device__ int t(T &&) { return 1; }
template <class T> __device__ int t(const T &) { return 2; } __device__ int u(unsigned) {
return 1; } __device__ int u(int) { return 2; } __device__ int u(char) { return 3; }
        """,
        """
out[k++] = f('a'); out[k++] = f(1.f); out[k++] = f((short)1); out[k++] = f(A{});
out[k++] = f(3L); out[k++] = g(B{}); out[k++] = h(in != nullptr); out[k++] = q(in);
out[k++] = q(&k); float z = 1; out[k++] = q(&z); out[k++] = r(n); out[k++] = r(&k);
out[k++] = r(in); out[k++] = r(2.f); out[k++] = s(n); const int c = k; out[k++] = s(c);
out[k++] = t(n); out[k++] = t(c); out[k++] = t(4); out[k++] = u('a');
out[k++] = u((unsigned char)1); out[k++] = u(true); out[k++] = u(1u);
        """,
    ),
    "classes among many overloads": (
        """
struct A { int x; }; struct B : A {}; struct C { int x; __device__ C(int v) : x(v) {} };
struct D { int x; __device__ operator A() const { return {x + 10}; } };
struct N { int x; __device__ operator int() const { return x + 20; } }; struct E;
struct U { int x; __device__ static int later(const E &e); __device__ static int later(U) {
return 1; } }; struct E { int x; U u; }; __device__ int U::later(const E &e) { return e.x; }
template <class T, int M> struct V { T x; }; template <class T> struct W { T x;
__device__ operator V<T, 2>() const { return {x + T(30)}; } };
__device__ int f(A a) { return 100 + a.x; } __device__ int f(C c, int) { return 200 + c.x; }
__device__ int f(const E &e) { return 300 + e.x; } __device__ int f(U u, A = A{1}) { return 400; }
__device__ int f(int *p) { return 500 + *p; } __device__ int f(bool, A) { return 600; }
__device__ int f(A, double d) { return 700 + d; } __device__ int f(int, ...) { return 800; }
template <class T> __device__ int f(V<T, 1> v) { return 900 + v.x; }
template <class T> __device__ int f(V<T, 2> v) { return 1000 + v.x; }
template <class T, int M> __device__ int f(V<T, M> v, T) { return 1100 + M; }
template <class T> __device__ int f(W<T> v, int) { return 1200 + v.x; }
template <class T> __device__ int g(V<T, 2> v) { return v.x; } __device__ int g(A) { return 1; }
__device__ A operator+(A a, A b) { return {a.x + b.x}; } __device__ int operator+(U, A) {
return 2; } __device__ int operator+(int, U) { return 3; }
        """,
        """
A a{n}; B b; b.x = 4; C c(5); D d{6}; N i{7}; E e{8}; U u{9}; V<int, 1> v{1}; V<float, 2> w{2};
V<int, 3> z{3}; W<int> y{4}; out[k++] = f(a); out[k++] = f(b); out[k++] = f(d); out[k++] = f(c, 1);
out[k++] = f(5, 1); out[k++] = f(e); out[k++] = f(u); out[k++] = f(u, d); out[k++] = f(&k) - k;
out[k++] = f(b, 2); out[k++] = f(true, a); out[k++] = f(i); out[k++] = f(v); out[k++] = f(w);
out[k++] = f(z, 1); out[k++] = f(y, 2); out[k++] = g<int>(y); out[k++] = U::later(e);
out[k++] = U::later(u); out[k++] = (a + b).x; out[k++] = u + d; out[k++] = i + u; out[k++] = i + 1;
        """,
    ),
    "designated": (
        """
struct A { int x = 7, y = 8; float z; }; struct B { A a; int b[3]; };
        """,
        """
A a{.y = n}; out[k++] = a.x; out[k++] = a.y; out[k++] = a.z;
B b{.a = {.x = 1, .z = 2}, .b = {4, 5}}; out[k++] = b.a.x; out[k++] = b.a.y; out[k++] = b.a.z;
out[k++] = b.b[1]; out[k++] = b.b[2]; auto f = [](A q) { return q.x + q.y; };
out[k++] = f({.x = 5}); out[k++] = A{.z = 3}.z;
        """,
    ),
    "template lambda": (
        """

        """,
        """
auto f = []<class T>(T x) { return sizeof(T) + x; }; out[k++] = f(n); out[k++] = f('b');
auto g = []<int N>(int (&a)[N]) { return N; }; int a[5]; out[k++] = g(a);
auto h = []<class... T>(T... x) { return sizeof...(T); }; out[k++] = h(1, 2, 3);
out[k++] = f.operator()<short>(n);
        """,
    ),
    "pack captures": (
        """
template <class... T> __device__ int f(T... x) { auto g = [x...] { return (x + ...); };
auto h = [...y = x * 2] { return (y + ...); }; auto r = [&x...] { return (++x, ...); }; r();
return g() * 1000 + h() + (x + ...); }
        """,
        """
out[k++] = f(1, 2, n);
        """,
    ),
    "enum things": (
        """
enum E { A = 1, B = A << 3, C = B | A }; enum class F : unsigned char { X = 255 };
__device__ constexpr E operator|(E a, E b) { return E(int(a) | int(b)); } enum G : short;
enum G : short { g1 = -3 };
        """,
        """
E e = A | B; out[k++] = e; out[k++] = (int)F::X; out[k++] = sizeof(F); F f{7};
out[k++] = (int)f; out[k++] = g1; out[k++] = sizeof(G); out[k++] = e == C; out[k++] = A + B;
        """,
    ),
    "lambda returning lambda": (
        """

        """,
        """
auto add = [](int a) { return [a](int b) { return a + b; }; }; out[k++] = add(n)(4);
auto c = add(1); out[k++] = c(c(c(n)));
        """,
    ),
    "lambda noexcept attributes": (
        """

        """,
        """
auto f = [](int x) noexcept -> long { return x; }; out[k++] = sizeof(f(1));
auto g = [] [[nodiscard]] (int x) { return x; }; out[k++] = g(n); auto h = [] { }; h();
auto i = []() __attribute__((always_inline)) { return 4; }; out[k++] = i();
        """,
    ),
}  # fmt: skip

_AT_ONCE = 8
NAMES = sorted(FEATURES)
GROUPS = [NAMES[at : at + _AT_ONCE] for at in range(0, len(NAMES), _AT_ONCE)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda names: names[0].replace(" ", "_"))
def test_beside_the_host(device, group):
    source = HEADERS + in_one_kernel([FEATURES[name] for name in group])
    check(source, device, 3, 7, 2, standard="gnu++20")


REFUSED = {
    "no_unique_address": "struct E {}; struct C { [[no_unique_address]] E e; int x; };",
    "must be directly in the braces": """struct C {}; __device__ void f(int n) {
    switch (n) { case 0: if (n > 2) { case 1: n += 3; } } }""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    text = f"{REFUSED[message]} __global__ void k(int *x) {{ C c; *x = sizeof(c); {{FUNCTION}} }}"
    call = "f(*x);" if " f(" in text else ""
    with pytest.raises(td.errors.CompileError, match=message):
        td.cuda_module(text.replace("{FUNCTION}", call)).k.source("ir")
