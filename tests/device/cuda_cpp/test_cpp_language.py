"""The language of C++ in kernels, beside g++: classes, templates, constants, statements."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel

# A name, what stands before, and what computes: it writes to `out[k++]`, and `n` is 3.
FEATURES = {
    "const and references of arguments": (
        """
template <class T> struct X { static const int v = 0; };
template <class T> struct X<T *> { static const int v = 1; };
template <class T> struct X<const T *> { static const int v = 2; };
template <class T> struct X<T &> { static const int v = 3; };
template <class T> struct X<const T &> { static const int v = 4; };
template <class T> struct X<T &&> { static const int v = 5; };
template <class T> struct X<const T> { static const int v = 6; };
template <class T> struct X<T[2]> { static const int v = 7; };
template <class R, class A> struct X<R (*)(A)> { static const int v = 8; };
typedef const int fixed;
template <class T> struct Y { static const int v = X<T>::v + 10 * X<T *>::v; };
    """,
        """
out[k++] = X<int>::v; out[k++] = X<int *>::v; out[k++] = X<const int *>::v; out[k++] = X<int &>::v;
out[k++] = X<const int &>::v; out[k++] = X<int &&>::v; out[k++] = X<fixed>::v;
out[k++] = X<int[2]>::v; out[k++] = X<int (*)(float)>::v; out[k++] = X<fixed *>::v;
out[k++] = Y<const int>::v; out[k++] = Y<int>::v;
    """,
    ),
    "overloads by const of arguments": (
        """
struct M {
    int v, *p;
    __device__ int get() const { return v * 100; }
    __device__ int get() { return v; }
    __device__ const M &self() const { return *this; }
    __device__ M &self() { return *this; }
};
__device__ int f(M &m) { return 1; }
__device__ int f(const M &m) { return 2; }
__device__ int g(const int *p) { return 3; }
__device__ int g(int *p) { return 4; }
typedef const M Fixed;
    """,
        """
int one = 1; M m{n, &one}; const M c{n + 1, &one}; const M *p = &m; Fixed &r = m; M *q = &m;
out[k++] = m.get(); out[k++] = c.get(); out[k++] = p->get(); out[k++] = r.get();
out[k++] = q->get(); out[k++] = m.self().get(); out[k++] = c.self().get();
out[k++] = f(m) * 10 + f(c); out[k++] = f(*p) * 10 + f(*q); out[k++] = g(in) * 10 + g(&one);
out[k++] = static_cast<const M &>(m).get(); out[k++] = const_cast<M &>(c).get();
    """,
    ),
    "ctor const after": (
        """
struct S { int a;
__device__ S(int x) : a(x) {}
__device__ S(S const& o) : a(o.a) {} };
    """,
        """
S s(3); S t(s);
out[k++] = t.a;
    """,
    ),
    "operator< explicit": (
        """
template <int K> struct P { int v;
__device__ bool operator<(const P<K> &o) const { return v < o.v; }
__device__ bool operator<=(const P<K> &o) const { return v <= o.v; }};
    """,
        """
P<3> a{1}, b{2};
out[k++] = a < b;
out[k++] = b <= a;
    """,
    ),
    "or null": (
        """
template <bool U> __device__ bool t(const int *m, int i) { return m == nullptr || m[i] > 0; }
    """,
        """
out[k++] = t<true>(nullptr, 1);
out[k++] = t<true>(in, 0);
    """,
    ),
    "const local addr": (
        "",
        """
const int one = 1; bool little = *((const char *)&one);
out[k++] = little;
const float f = 1.5f;
out[k++] = *(const int *)&f;
const int arr[2] = {5, 6};
const int *q = &arr[1];
out[k++] = *q;
const int m = n + 2;
const int *pm = &m;
out[k++] = *pm;
    """,
    ),
    "device const from another": (
        """
__device__ const int A = 5;
__device__ const int B = A * 2;
__constant__ const float C = 2.f;
static const int D = B + 1;
__device__ constexpr int E[3] = {A, B, 3};
    """,
        """
out[k++] = B;
out[k++] = (int)(C * 2) + D + E[1];
    """,
    ),
    "dir::y": (
        """
namespace dir { enum { x = 1, y = 2 }; }
__device__ int g(int dir) { return dir + dir::y; }
    """,
        """
out[k++] = g(n);
    """,
    ),
    "static local const": (
        """
__device__ int f(int i) { static const int t[3] = {4, 5, 6}; return t[i]; }
    """,
        """
out[k++] = f(1);
    """,
    ),
    "const overload": (
        """
struct M { int v[3];
__device__ int at(int i) const { return v[i] * 2; }
__device__ int &at(int i) { return v[i]; } };
    """,
        """
M m = {{7, 8, 9}};
const M &c = m; m.at(1) = 5;
out[k++] = c.at(1);
out[k++] = m.at(2);
    """,
    ),
    "structured": (
        """
struct A { int x; float y; };
    """,
        """
A a{n, 2.5f};
auto [p, q] = a;
out[k++] = p + (int)(q * 2);
auto &[r, s] = a; r = 40;
out[k++] = a.x;
int arr[2] = {4, 5};
auto [u, v] = arr;
out[k++] = u * 10 + v;
    """,
    ),
    "stmt expr": (
        """
#define MOST(a, b) ({ auto _a = (a); auto _b = (b); _a > _b ? _a : _b; })
    """,
        """
out[k++] = MOST(n, 2) + MOST(1, n * 4);
    """,
    ),
    "goto out of loops": (
        """

    """,
        """
{
int a, b; for (a = 0; a < 4; a++) for (b = 0; b < 4; b++) { if (a * b == 6) {
out[k++] = a * 10 + b; goto done; } out[k++] = b; } out[k++] = 99; done: out[k++] = 5;
}
    """,
    ),
    "goto forwards and back": (
        """

    """,
        """
{
int i = 0; again: i++; if (i < n) goto again; out[k++] = i;
}
{
if (n > 2) goto skip; out[k++] = 99; skip:; out[k++] = 1; { int q = 4; if (q > n) goto two;
out[k++] = 8; one: out[k++] = 3; if (q++ < 6) goto one; goto three; two: out[k++] = q;
if (n == 3) { q = 0; goto one; } three: out[k++] = q; }
}
{
for (int i = 0; i < 6; i++) { int t = 0; retry: t++; if (i == 2) continue;
if (i == 5) break; if (t < i) goto retry; out[k++] = i * 10 + t; switch (t) {
case 3: goto next; default: out[k++] = 7; } next: out[k++] = t; } int j = 0;
loop: if (j >= 3) goto end; if (j == 1) { j++; goto loop; } out[k++] = j; j++; goto loop;
end: out[k++] = 77;
}
    """,
    ),
    "goto in functions": (
        """
__device__ int find(const int *a, int n, int v) { int i = 0; int r = -1;
next: if (i >= n) goto out; if (a[i] == v) { r = i; goto out; } i++; goto next;
out: return r * 2; }
__device__ int early(int x) { if (x == 1) goto bad; for (int i = 0; i < x; i++) {
if (i == 4) return 44; if (i == 5) goto bad; } return x; bad: x += 100; return x; }
__device__ void clean(int *o, int x) { int s = 1; if (x < 0) goto fail; s = 2;
while (true) { if (s > x) goto ok; s += 2; if (s == 8) goto fail; } ok: *o = s; return;
fail: *o = -s; }
__device__ int f(int n) { int s = 0; again: if (n <= 0) goto end; s += f(n - 2) + 1; n--;
if (s < 20) goto again; end: return s; }
    """,
        """
{
out[k++] = find(in, 6, 9); out[k++] = find(in, 6, 8); for (int i = 0; i < 7; i++) {
out[k++] = early(i); clean(&out[k], i - 1); k++; }
}
{
for (int i = 0; i < 6; i++) out[k++] = f(i);
}
    """,
    ),
    "alignment of members": (
        """
struct B { char c; alignas(8) int v; char d; }; struct C { alignas(16) float f[3]; int n; };
struct D { B b; short s; alignas(4) char x; __attribute__((aligned(8))) char y; };
struct E : B { char e; };
    """,
        """
out[k++] = sizeof(B); out[k++] = alignof(B); out[k++] = __builtin_offsetof(B, v);
out[k++] = __builtin_offsetof(B, d); out[k++] = sizeof(C); out[k++] = alignof(C);
out[k++] = __builtin_offsetof(D, x); out[k++] = __builtin_offsetof(D, y);
out[k++] = sizeof(D); B b{1, n, 3};
B a[2] = {{1, 2, 3}, {4, 5, 6}}; out[k++] = b.v + a[1].v * 10; a[n & 1].v = 9;
out[k++] = a[1].v; unsigned char *p = (unsigned char *)a; out[k++] = p[8] * 100 + p[24];
D d; d.y = 4; d.b.v = 8; D e = d; out[k++] = e.y + e.b.v;
    """,
    ),
    "values of categories": (
        """
__device__ int ov(int &) { return 1; } __device__ int ov(const int &) { return 2; }
__device__ int ov(int &&) { return 3; }
template <typename T> __device__ int fw(T &&t) { return ov(std::forward<T>(t)); }
struct D { int v; __device__ int get() & { return v; }
__device__ int get() const & { return v * 10; } __device__ int get() && { return -v; }
__device__ int g2() const && { return 7; } __device__ int g2() const & { return 8; }
__device__ int twice() { return get() * 2; } __device__ int operator()(int a) & { return a; }
__device__ int operator()(int a) && { return a + 100; }
__device__ D &operator+=(int a) & { v += a; return *this; } };
__device__ const int &id(const int &x) { return x; }
__device__ auto two() { const int y = 2; return y; }
    """,
        """
int x = 1; const int y = 2; const int z = n; out[k++] = fw(x) * 100 + fw(y) * 10 + fw(5);
out[k++] = fw(z) + fw(id(y)) * 10 + fw(two()) * 100; out[k++] = ov(std::move(x));
out[k++] = ov(static_cast<const int &&>(z)); D a{n}; const D c{n + 1}; D &r = a, *p = &a;
out[k++] = a.get(); out[k++] = c.get(); out[k++] = D{5}.get(); out[k++] = std::move(a).get();
out[k++] = a.g2() * 10 + D{1}.g2(); out[k++] = r.get() + p->get();
out[k++] = std::move(a).twice(); out[k++] = a(1) + D{2}(1); a += 4; out[k++] = a.v;
out[k++] = c.g2() * 10 + std::move(c).g2(); D &&m = D{6}; out[k++] = m.get();
    """,
    ),
    "moved objects with pointers": (
        """
struct B { int *p; int n; __device__ B(int *q, int m) : p(q), n(m) {}
__device__ B(B &&o) noexcept : p(o.p), n(o.n) { o.n = 0; } B(const B &) = delete;
__device__ B &operator=(B &&o) { n = o.n; o.n = -1; return *this; }
__device__ ~B() { *p += n; } };
__device__ B make(int *p, int n) { B b(p, n); b.n++; return b; }
__device__ int take(B &&b) { B c = std::move(b); return c.n; }
struct A { int *p; int n; __device__ A(int *q, int m) : p(q), n(m) {}
__device__ A &operator=(const A &o) { n = o.n; *p += 1000; return *this; } };
struct O { A b; int z; __device__ O(int *q, int m) : b(q, m), z(1) {} };
__device__ O with(int *q, int m) { O o(q, m); if (m > 100) return o; o.z++; return o; }
    """,
        """
int s = 0, t = 0; { B b = make(&s, n); out[k++] = take(std::move(b)); out[k++] = b.n;
B c(&s, 100); c = make(&s, 4); B d = static_cast<B &&>(c); } out[k++] = s; s = 0;
O o = with(&s, n); *o.b.p += o.b.n; O u(&t, 9); u = o; out[k++] = s; out[k++] = t;
out[k++] = u.z + u.b.n; O v = u; *v.b.p += 1; out[k++] = t;
    """,
    ),
    "tables made by constructors": (
        """
constexpr unsigned entry(unsigned i) {
for (int k = 0; k < 8; k++) i = i & 1 ? 0xEDB88320u ^ (i >> 1) : i >> 1; return i; }
struct Table { unsigned v[256];
constexpr Table() : v() { for (int i = 0; i < 256; i++) v[i] = entry(i); } };
__constant__ constexpr Table crc{};
struct M { int v[4]; float w; short m[2][3]; constexpr M(int s) : v(), w(1.5f), m() {
for (int i = 0; i < 4; i++) v[i] = i * s; m[1][2] = 9; } };
constexpr M made() { M t(3); t.v[1] = 7; return t; }
__device__ const M t{5}; __constant__ M u = made(); struct Two { int v[2]; };
constexpr Two two(int a) { return {a, a + 1}; }
__constant__ Two w[2] = {two(1), two(5)};
    """,
        """
out[k++] = crc.v[n]; out[k++] = crc.v[255 - n]; out[k++] = t.v[n]; out[k++] = w[n & 1].v[1];
out[k++] = (int)(t.w * 2) + t.m[1][2]; out[k++] = u.v[1] + u.v[n] * 10 + u.m[1][2] * 100;
    """,
    ),
    "names of enums and namespaces": (
        """
enum class Color : unsigned char { red = 1, green, blue = 7 }; enum Old { a0, b0 = 5 };
namespace other { enum class Deep { x = 3, y }; }
__device__ int val(Color c) { using enum Color; using enum other::Deep; switch (c) {
case red: return 10 + (int)y; case green: return 20; case blue: return 30; } return 0; }
namespace lib { inline namespace v2 { __device__ int f() { return 2; } }
namespace a::b::inline c { __device__ int g() { return 7; } } }
namespace one::inline two::three { __device__ int h() { return 9; } }
    """,
        """
out[k++] = val(Color::green) + val(Color(7)); out[k++] = val(Color::red);
out[k++] = lib::f() + lib::a::b::g() * 100 + lib::a::b::c::g(); out[k++] = one::three::h();
int a[3] = {1, n, 5}; for (int i = 0; int x : a) out[k++] = x + i++;
auto p = +[](int x) { return x * 2; }; out[k++] = p(4); int *q = +a; out[k++] = q[1];
    """,
    ),
    "string literal": (
        "",
        """
const char *s = "hello";
out[k++] = s[1];
out[k++] = "abc"[2];
const char t[] = "xyz";
out[k++] = t[0] + sizeof(t);
    """,
    ),
    "shared union": (
        "",
        """
__shared__ union { int a; float f; } st; st.f = 1.0f;
out[k++] = st.a; __shared__ union U { int a[2]; char b[8]; } su; su.a[0] = 258;
out[k++] = su.b[1];
    """,
    ),
    "union": (
        """
union U { float f; unsigned u; unsigned char b[4]; };
    """,
        """
U u; u.f = 1.5f;
out[k++] = u.u; u.b[0] = 7;
out[k++] = u.u;
U v = {2.f};
out[k++] = v.u;
    """,
    ),
    "conv op ref": (
        """
struct R { int &r;
__device__ R(int &x) : r(x) {}
__device__ operator int&() { return r; } };
    """,
        """
int v = 4;
R r(v);
int &q = r; q = 9;
out[k++] = v;
    """,
    ),
    "range for begin": (
        """
struct It { int i;
__device__ int operator*() const { return i * i; }
__device__ It &operator++() { ++i; return *this; }
__device__ bool operator!=(const It &o) const { return i != o.i; } };
struct Rg { int n;
__device__ It begin() const { return {0}; }
__device__ It end() const { return {n}; } };
    """,
        """
int s = 0;
for (int x : Rg{n + 2}) s += x;
out[k++] = s;
int a[3] = {1,2,3};
for (auto &x : a) s += x;
out[k++] = s;
    """,
    ),
    "const spec": (
        """
template <class T> struct X { static const int v = 0; };
template <class T> struct X<const T> { static const int v = 1; };
    """,
        """
out[k++] = X<int>::v + X<const int>::v * 10;
    """,
    ),
    "trailing decltype": (
        """
template <class A, class B> __device__ auto add(A a, B b) -> decltype(a + b) { return a + b; }
    """,
        """
out[k++] = (int)(add(n, 2.5f) * 10);
    """,
    ),
    "function type": (
        """
template <class F> struct traits;
template <class R, class A> struct traits<R(A)> {
    static const int n = sizeof(R) * 10 + sizeof(A); };
    """,
        """
out[k++] = traits<double(int)>::n;
    """,
    ),
    "namespace fn": (
        """
namespace a { namespace b { __device__ int f(int x) { return x + 1; }
struct S { int v; };
__device__ int g(S s) { return s.v; } } }
namespace c = a::b;
using a::b::f;
    """,
        """
out[k++] = f(n) + c::f(2) + g(a::b::S{4});
    """,
    ),
    "const cast etc": (
        "",
        """
const int *q = in;
int *w = const_cast<int *>(q);
out[k++] = *w; float f = 1.f;
out[k++] = reinterpret_cast<int &>(f);
    """,
    ),
    "ternary lvalue etc": (
        "",
        """
int a = 1, b = 2; (n > 2 ? a : b) = 9;
out[k++] = a * 10 + b;
int c = (a++, b++, a + b);
out[k++] = c;
    """,
    ),
    "switch dup": (
        "",
        """
switch (n) { case 1: out[k++] = 1; break; case 3: case 4: out[k++] = 34; default: out[k++] = 5; }
    """,
    ),
    "init in if": (
        "",
        """
if (int v = n * 2; v > 3) out[k++] = v;
if (auto q = n) out[k++] = q;
    """,
    ),
    "delegating ctor": (
        """
struct B { int v, w;
__device__ B(int x, int y) : v(x), w(y) {}
__device__ B(int x) : B(x, x + 1) {} };
    """,
        """
B d(4);
out[k++] = d.w;
    """,
    ),
    "array of struct ptr": (
        """
struct N { int v;
int next; };
    """,
        """
N a[3] = {{1, 1}, {2, 2}, {3, -1}};
int s = 0;
for (int i = 0; i >= 0; i = a[i].next) s += a[i].v;
out[k++] = s;
N *q = &a[1]; q++;
out[k++] = q->v;
    """,
    ),
    "ptr to ptr": (
        """
__device__ void sw(int **a, int **b) { int *t = *a; *a = *b; *b = t; }
    """,
        """
int x = 1, y = 2;
int *a = &x, *b = &y; sw(&a, &b);
out[k++] = *a * 10 + *b;
    """,
    ),
    "offsetof": (
        """
struct S { char a;
int b; double c; };
    """,
        """
out[k++] = (int)__builtin_offsetof(S, c);
    """,
    ),
    "digit sep, binary": (
        "",
        """
out[k++] = 1'000 + 0b101 + 017 + 0x1F;
out[k++] = 'ab' - 'a' > 0;
    """,
    ),
    "decltype as an argument": (
        """
template <class T> __device__ T id(T x) { return x; }
    """,
        """
out[k++] = id<decltype(n)>(4);
auto x = id(2.5f);
out[k++] = (int)x;
    """,
    ),
    "unused host lambda": (
        "",
        """
out[k++] = __builtin_expect(n == 3, 1);
    """,
    ),
    "ref init array": (
        """
__device__ int s(const int (&a)[3]) { return a[0] + a[1] + a[2]; }
template <class T, int N> __device__ int len(T (&)[N]) { return N; }
    """,
        """
int a[3] = {1, 2, 3};
out[k++] = s(a) + len(a);
    """,
    ),
    "constexpr fn loops": (
        """
constexpr int lg(int n) { int r = 0; while (n >>= 1) r++; return r; }
constexpr int T[lg(64)] = {1,2,3,4,5,6};
    """,
        """
int a[lg(16)]; a[3] = T[5];
out[k++] = a[3] + sizeof(a);
    """,
    ),
    "enum class cast": (
        """
enum class C : unsigned char { R = 1, G = 4 };
    """,
        """
C c = C::G;
out[k++] = (int)c;
switch (c) { case C::R: out[k++] = 1; break; case C::G: out[k++] = 2; } c = static_cast<C>(1);
out[k++] = c == C::R;
    """,
    ),
    "comma decl": (
        "",
        """
int *a = 0, b = 3, c[2] = {1, 2};
out[k++] = (a == 0) + b + c[1];
    """,
    ),
    "references from several places": (
        """
template <class T> __device__ const T &bigger(const T &a, const T &b)
{
    if (a > b) return a;
    return b;
}
template <class T> __device__ T &lesser(T &a, T &b) { if (a < b) return a; else return b; }
struct V {
    int x, y;
    __device__ int &operator[](int i) { switch (i) { case 0: return x; default: return y; } }
};
struct W { V a[3]; __device__ V &at(int i) { if (i < 0) return a[0]; return a[i]; } };
__device__ int &where(int *a, int i)
{
    for (int j = 0; j < 4; j++) if (a[j] == i) return a[j];
    return a[0];
}
        """,
        """
int a = n, b = 5; out[k++] = bigger(a, b) + bigger(7, 2);
lesser(a, b) = 9; out[k++] = a * 100 + b; lesser(a, b) += 9; out[k++] = a * 100 + b;
V v{1, 2}; v[0] = 5; v[n] += 6; out[k++] = v.x * 10 + v.y; const int &c = v[1]; out[k++] = c;
W w{{{1, 2}, {3, 4}, {5, 6}}}; w.at(n - 1)[1] = 8; w.at(-1).x = 7;
V &r = w.at(1); r.x = 4; out[k++] = w.a[2].y * 100 + 10 * w.a[0].x + w.a[1].x;
int t[4] = {1, 2, 3, 4}; where(t, n) = 30; where(t, 99) = 10; out[k++] = t[0] * 100 + t[2];
        """,
    ),
    "constant objects": (
        """
struct C {
    int n, m;
    constexpr __host__ __device__ C(int a, int b) : n(a), m(b) {}
    constexpr __host__ __device__ int area() const { return n * m; }
};
constexpr __host__ __device__ C bigger(C a, C b) { return a.area() > b.area() ? a : b; }
struct P { int x, y; };
constexpr __host__ __device__ P swapped(P p) { int t = p.x; p.x = p.y; p.y = t; return p; }
constexpr __host__ __device__ int doubles(int n)
{
    int a[10] = {}, c = 0;
    while (n) { a[n % 10]++; n /= 10; }
    for (int i = 0; i < 10; i++) if (a[i] > 1) c += i;
    return c;
}
constexpr __host__ __device__ int at(int i) { constexpr int t[4] = {3, 1, 4, 1}; return t[i]; }
constexpr __host__ __device__ C config(int d)
{
    if (d == 64) return C(128, 2);
    if (d == 32) return C{64, 1};
    return C(32, 1);
}
template <int N> __device__ int val() { return N; }
template <int D> struct S { int v[config(D).n]; };
    """,
        """
constexpr C c = bigger(C(2, 3), C{4, 5}); out[k++] = val<c.n>() * 10 + val<c.area()>();
constexpr P p = swapped({1, 2}); int arr[p.y + 1]; out[k++] = val<p.x>() + sizeof(arr);
out[k++] = val<doubles(1223334)>() * 10 + val<at(2)>(); out[k++] = sizeof(S<64>) + sizeof(S<9>);
constexpr P q{7, 8}; const P *pq = &q; out[k++] = pq->y + q.x; C v = c; v.n++;
out[k++] = v.n * 100 + c.n; constexpr auto r = swapped(p); out[k++] = val<r.x>();
    """,
    ),
    "members of anonymous members by initializers": (
        """
struct V {
    union { struct { int x, y; }; int t[2]; };
    __device__ V(int a, int b) : x(a), y(b) {}
};
    """,
        """
V v(n, 4); out[k++] = v.t[0] * 10 + v.t[1]; v.t[1] = 9; out[k++] = v.y;
    """,
    ),
    "string literals": (
        """
__device__ int len(const char *s) { int n = 0; while (*s++) n++; return n; }
__device__ const char *name(int i)
{
    switch (i) { case 0: return "zero"; case 3: return "three"; default: return ""; }
}
struct Named { const char *name; int v; };
__device__ const char *pick(int i) { return i > 2 ? "large" : "no"; }
__device__ int own() { return len(__func__) * 10 + sizeof(__FUNCTION__); }
    """,
        """
out[k++] = len("hello") + len("abc" + 1) + own(); out[k++] = *("xyz" + n - 2);
const char *t[] = {"a", "bb", "ccc"}; out[k++] = len(t[n - 1]) + len(name(n)) * 10;
Named m{"four", 4}; m.name = "sevenxx"; out[k++] = len(m.name) + m.v + len(pick(n)) * 10;
const char *p; if (n > 1) p = "one"; else p = "other"; out[k++] = len(p) * 1000 + p[1];
p = p + 1; out[k++] = *p; out[k++] = len(n ? "yes" : "never"); out[k++] = "xyz"[1];
const unsigned char *u = (const unsigned char *)"expand 32"; out[k++] = u[7];
    """,
    ),
    "static variables": (
        """
namespace a { __device__ int count() { static int c; return ++c; } }
__device__ int count() { static int c = 5; return c++; }
__device__ int table(int i) { static int t[4] = {1, 2, 3, 4}; t[i & 3] += 10; return t[i & 3]; }
struct S { int m; __device__ int calls() { static unsigned c = 100; c += m; return c; } };
__device__ int constant(int i) { static const int t[3] = {7, 8, 9}; return t[i]; }
    """,
        """
out[k++] = a::count(); out[k++] = a::count() * 10; out[k++] = count(); out[k++] = count();
out[k++] = table(n); out[k++] = table(n) + constant(1); S s{5}; s.calls(); out[k++] = s.calls();
for (int i = 0; i < 3; i++) { static int loops; loops++; out[k++] = loops; }
    """,
    ),
    "unions": (
        """
union U {
    float f; unsigned u; unsigned char b[4]; struct { short lo, hi; } s;
    __device__ U() : u(7) {}
    __device__ U(float x) : f(x) {}
};
struct V { int tag; union { int i; float f; }; };
__device__ U made(int n) { U u; u.s.hi = n; return u; }
    """,
        """
U u; U w(1.5f); out[k++] = u.u + w.u; w.b[3] = 0; out[k++] = w.u + made(n).u;
V v{1, {5}}; v.f = 2.f; out[k++] = v.i; V x = {.tag = 2, .f = 1.f}; out[k++] = x.i;
U arr[2]; arr[1] = w; out[k++] = arr[1].s.hi;
    """,
    ),
    "loops over lists": (
        """
struct P { int a, b; };
template <int W> __device__ int sums()
{
    int s = 0;
    for (int w : {W, W / 2, W / 4}) { if (w == 1) continue; s = s * 100 + w; }
    return s;
}
    """,
        """
for (int x : {1, n, 7}) { if (x == 3) continue; out[k++] = -x; }
for (auto x : {1.5f, 2.5f}) { if (x > 2) break; out[k++] = (int)(x * 2); }
for (const P &p : {P{1, 2}, P{n, 4}}) out[k++] = p.a * 10 + p.b;
out[k++] = sums<8>(); for (const char *s : {"a", "bcd"}) out[k++] = s[0];
int a = 5, b = 6; for (int *p : {&a, &b}) *p += 1; out[k++] = a * 10 + b;
    """,
    ),
}
_AT_ONCE = 8
NAMES = sorted(FEATURES)
GROUPS = [NAMES[at : at + _AT_ONCE] for at in range(0, len(NAMES), _AT_ONCE)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_beside_the_host(device, group):
    check(in_one_kernel([FEATURES[name] for name in group]), device, 3, 7, 2, standard="gnu++20")


VECTORS = """
struct Checked {
    int a, b;
    __device__ Checked(int x) : a(x), b(x + 1) {}
    __device__ Checked(const Checked &o) : a(o.a), b(o.b) { assert(o.a < o.b); }
};
__global__ void copies(int *out)
{
    int4 t[2] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    int4 e(t[1]), f{t[0]};
    Checked c(7), d(c);
    out[0] = e.x + f.w * 10 + d.b * 100;
}
"""


def test_vectors_from_vectors(device):
    out = td.zeros(1, dtype=td.int32, device=device)
    td.cuda_module(VECTORS).copies[1, 1](out)
    assert out.tolist() == [845]


LASTING = """
__global__ void lasting(int *out)
{
    static int calls = 10;
    atomicAdd(&calls, 1);
    __threadfence_block();
    if (threadIdx.x == 0) out[0] = calls;
}
"""


def test_static_variables_last_from_launch_to_launch(device):
    out = td.zeros(1, dtype=td.int32, device=device)
    kernel = td.cuda_module(LASTING).lasting
    kernel[1, 1](out)
    kernel[1, 1](out)
    assert out.tolist() == [12]


KERNELS = """
__global__ void fill(float *x) { x[0] = 1; }
__global__ void fill(int *x) { x[0] = 2; }
__global__ void fill(int *x, int n) { x[0] = n; }
enum class Op { add, times };
template <Op op, int N> __global__ void chosen(int *x) { x[0] = (int)op * 10 + N; }
template <> __global__ void chosen<Op::times, 7>(int *x) { x[0] = 99; }
namespace a { __global__ void one(int *x) { x[0] = 5; } }
namespace b { __global__ void one(int *x) { x[0] = 6; } }
template <class T> __global__ void of(T *x) { x[0] = 3; }
template <class T, int N> __global__ void of(T *x) { x[0] = N; }
"""


def test_kernels_of_one_name(device):
    module = td.cuda_module(KERNELS)
    x = td.zeros(2, dtype=td.int32, device=device)
    y = td.zeros(2, dtype=td.float32, device=device)
    of_x, of_y = [], []

    def launched(kernel, *arguments):
        kernel[1, 1](*arguments)
        of_x.append(x.tolist()[0])
        of_y.append(y.tolist()[0])

    launched(module.fill, x)
    launched(module.fill, y)
    launched(module.fill, x, np.int32(8))
    launched(module.kernel("fill(int*)"), x)
    launched(module.kernel("chosen", 1, 5), x)
    launched(module.kernel("chosen", 1, 7), x)  # an explicit specialization
    launched(module.kernel("chosen", "Op::add", 7), x)
    launched(module.kernel("b::one"), x)
    launched(module.kernel("of", td.int32), x)
    launched(module.kernel("of", td.int32, 4), x)
    assert of_x == [2, 2, 8, 2, 15, 99, 7, 6, 3, 4]
    assert of_y == [0, *[1] * 9]
    assert module.kernels[:3] == ("fill(float*)", "fill(int*)", "fill(int*, int)")
    with pytest.raises(AttributeError, match="a::one and b::one: say which"):
        module.kernel("one")
    with pytest.raises(AttributeError, match="say which, as in kernel"):
        module.kernel("fill")
    with pytest.raises(td.errors.LaunchError, match="no one take these arguments"):
        module.fill[1, 1](x, 1.5)
