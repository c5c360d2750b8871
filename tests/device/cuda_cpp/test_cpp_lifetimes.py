"""Copy constructors, destructors and assignments that do something, in C++'s order, beside g++."""

from __future__ import annotations

from tests.support.cpp_host import check, in_one_kernel

# Each class writes down what happens to its objects: n when n is made, 1000 + n for a copy,
# 2000 + n for a move, 3000 + n for an assignment and -n for an end.
CLASSES = """
__device__ int log_[1024], at_;
__device__ void note(int x) { if (at_ < 1024) log_[at_++] = x; }
struct T {
    int v;
    __device__ T() : v(7) { note(7); }
    __device__ T(int v) : v(v) { note(v); }
    __device__ T(const T &o) : v(o.v + 100) { note(1000 + v); }
    __device__ ~T() { note(-v); }
    __device__ T &operator=(const T &o) { v = o.v; note(3000 + v); return *this; }
    __device__ bool is(int n) const { return v == n; }
    __device__ T plus(int n) const { return T(v + n); }
};
struct M {
    int v;
    __device__ M(int v) : v(v) { note(v); }
    __device__ M(const M &o) : v(o.v + 100) { note(1000 + v); }
    __device__ M(M &&o) : v(o.v + 200) { o.v = 0; note(2000 + v); }
    __device__ ~M() { note(-v); }
};
struct P {  // with a pointer in it
    int *to, v;
    __device__ P(int *to, int v) : to(to), v(v) { *to += v; note(v); }
    __device__ P(const P &o) : to(o.to), v(o.v + 100) { *to += v; note(1000 + v); }
    __device__ ~P() { *to -= v; note(-v); }
};
struct K { __device__ ~K() { note(-500); } };
struct H { T a; int x; T b; __device__ H(int n) : a(n), x(n), b(n + 1) {} };
struct A { T a; int x; };  // an aggregate
struct D : T { T c; int y; __device__ D(int n) : T(n), c(n + 1), y(n) {} };
"""
FEATURES = {
    "the order of members": (
        """
__device__ int noted(int x) { note(x); return x; }
struct O {
    int a = noted(1), b, c = noted(3), d;
    __device__ O() : d(noted(4)), b(noted(2)) {}
};
struct Q { int a; int b = a + 1; int c; __device__ Q(int x) : c(x * 10), a(x) {} };
struct R : T {
    union { int i; float f; };
    T t;
    int w;
    __device__ R() : w(noted(5)), i(noted(6)), T(8) {}
};
""",
        "O o; Q q(n); note(q.b); note(q.c); R r; note(r.i);",
    ),
    "blocks and loops": (
        "",
        """
T a(1);
{ T b(2), c = b; }
for (int i = 0; i < n; i++) { T d(10 + i); if (i == 1) continue; T e(20 + i); if (i == 2) break; }
for (T i(30); i.v < 33; i.v++) note(i.v);
int w = 0;
while (T(40 + w).v < 42) { T x(50); w++; if (w == 5) break; }
do { T y(60); if (n == 3) break; note(61); } while (T(62).is(61));
switch (n) { case 3: { T z(70); break; } case 4: note(71); default: T q(72); }
switch (n) {
case 3: { T z(73); }
case 4: { T q(74); if (n > 1) break; note(75); }
default: note(76);
}
if (T(80).is(n)) note(81); else note(82);
if (T c = T(83); c.is(83)) { T g(84); note(85); }
    """,
    ),
    "temporaries": (
        """
__device__ int value(T t) { note(500); return t.v; }
__device__ int read(const T &t) { note(501); return t.v; }
struct Small { T t; int n; };
    """,
        """
out[k++] = value(T(1)); note(600);
T t(2);
out[k++] = value(t), note(601);
out[k++] = read(T(3)); note(602);
out[k++] = read(t) + read(4);
const T &r = T(5);
T &&s = t.plus(4);
out[k++] = r.v + s.v;
out[k++] = n > 2 && T(8).is(8) && T(9).is(8);
out[k++] = n > 3 && T(10).is(8);
out[k++] = n > 2 || T(11).is(8);
out[k++] = (n > 2 ? T(12) : T(13)).v + (n > 3 ? T(14).v : 15);
T c = n > 2 ? t : T(16);
T d = n > 2 ? T(17) : t;
T e = true ? c : d;
out[k++] = e.v + T(18).plus(1).plus(2).v;
t = T(19);
t = c = d;
out[k++] = T(t).v + t.v;
    """,
    ),
    "results": (
        """
__device__ T made(int n) { return T(n); }
__device__ T named(int n) { T x(n); x.v++; return x; }
__device__ T either(int n) { T x(n), y(n + 1); if (n > 2) return x; return y; }
__device__ T one(int n) { T x(n); if (n > 2) return x; x.v = 9; return x; }
__device__ T given(T x) { return x; }
__device__ T early(const T &x, int n) {
    for (int i = 0; i < 9; i++) { T y(i); if (i == n) return x; }
    return T(99);
}
__device__ int number(int n) { T x(n); if (n > 2) { T y(5); return x.v + y.v; } return x.v; }
__device__ void nothing(int n) { T x(n); if (n > 2) return; note(400); }
__device__ const T &same(const T &x) { T y(1); return x; }
__device__ M moved(int n) { M x(n), y(n + 1); if (n > 2) return x; return y; }
__device__ M passed(M x) { return x; }
__device__ auto deduced(int n) { T x(n); return x; }
__device__ int left(int n) { T x(n); return x.v; }
    """,
        """
{ T a = made(1); T b(named(2)); T c{made(3)}; out[k++] = a.v + b.v + c.v; }
{ T a = either(n); T b = either(1); out[k++] = a.v + b.v; }
{ T a = one(n); T b = one(1); out[k++] = a.v + b.v; }
{ T a(4); T b = given(a); T c = given(T(5)); out[k++] = b.v + c.v; }
{ T a(6); T b = early(a, 1); out[k++] = b.v + number(n) + number(2); nothing(n); nothing(2); }
{ T a(7); T b = same(a); const T &c = same(a); out[k++] = b.v + c.v + made(8).v; }
{ M a = moved(n); M b = passed(a); M c = passed(M(3)); out[k++] = a.v + b.v + c.v; }
{ M a(1); M b = std::move(a); M c(static_cast<M &&>(b)); M d = a; out[k++] = a.v + b.v + c.v; }
{ T a = deduced(2); made(3); out[k++] = a.v + left(5); }
    """,
    ),
    "members, bases and arrays": (
        "",
        """
{ H a(1); H b = a; H c(b); a = c; out[k++] = a.a.v + b.b.v + c.x; }
{ A a{T(1), 2}; A b = a; A c = {b.a, 3}; b = c; A d{}; out[k++] = a.a.v + b.a.v + c.a.v + d.a.v; }
{ D a(1); D b = a; T c = a; T d = D(5); a = b; out[k++] = a.v + a.c.v + b.y + c.v + d.v; }
{ T a[3] = {T(1), 2, T(3)}; T b[2]; T c[2][2] = {{1, 2}, {3, 4}}; out[k++] = a[1].v + b[1].v; }
{ struct L { T t[2]; int n; } a{{T(1), T(2)}, 3}; L b = a; b = a; out[k++] = b.t[1].v + b.n; }
{ T many[20]; out[k++] = many[19].v; }
    """,
    ),
    "pointers in objects": (
        """
__device__ int sum(P p) { return *p.to + p.v; }
__device__ P make(int *to, int n) { P p(to, n); return p; }
__device__ P pick(P p, P q, int n) { if (n > 2) return p; return q; }
    """,
        """
int total = 0;
{ P a(&total, 1); out[k++] = total; P b = a; out[k++] = total; { P c(b); out[k++] = sum(c); } }
out[k++] = total;
{ P a = make(&total, 3); out[k++] = total; out[k++] = sum(make(&total, 4)); }
out[k++] = total;
for (int i = 0; i < n; i++) { P a(&total, i); if (i == 1) continue; note(total); }
{ P b(&total, 2); P a = pick(b, b, n); out[k++] = a.v; }
out[k++] = total;
    """,
    ),
    "unions that say which member they have": (
        """
struct Q { int *p; int v; __device__ Q(int *p, int v) : p(p), v(v) {}
    __device__ Q(const Q &o) : p(o.p), v(o.v + 100) {} __device__ ~Q() { *p += v; } };
template <class X> union Slot { char none; X value; __device__ Slot() : none(0) {}
    __device__ Slot(const X &x) : value(x) {} __device__ ~Slot() {} };
template <class X> struct Maybe {
    Slot<X> slot; bool has;
    __device__ Maybe() : has(false) {}
    __device__ Maybe(const X &x) : slot(x), has(true) {}
    __device__ ~Maybe() { if (has) slot.value.~X(); }
    template <class... A> __device__ void emplace(A... a) {
        new (&slot.value) X(a...); has = true; }
};
struct Either { union { char none; Q value; }; bool has;
    __device__ Either() : none(7), has(false) {}
    __device__ ~Either() { if (has) value.~Q(); } };
    """,
        """
int sum = 0;
{ Maybe<Q> none, one(Q(&sum, n)), later; out[k++] = sum; later.emplace(&sum, 5);
  out[k++] = one.slot.value.v; out[k++] = later.slot.value.v; }
out[k++] = sum;
{ Either p, q; new (&q.value) Q(&sum, 1000); q.has = true; out[k++] = p.none; }
out[k++] = sum;
    """,
    ),
    "lambdas and templates": (
        """
template <class F> __device__ int call(F f) { return f(2); }
template <class F> __device__ int refer(const F &f) { return f(2); }
template <class X> struct Box { X x; __device__ Box(const X &o) : x(o) {} __device__ ~Box(); };
template <class X> __device__ Box<X>::~Box() { note(-9000); }
template <class X> __device__ void eat(X &&x) { X y(x); note(y.v); }
template <class X> __device__ X take_(X &&x) { return std::forward<X>(x); }
    """,
        """
{ T t(1); auto f = [t](int n) { return t.v + n; }; auto g = f; out[k++] = f(1) + g(2); }
{ T t(3); out[k++] = call([t](int n) { return t.v + n; }); }
{ T t(3); out[k++] = refer([t, n](int m) { return t.v * n + m; }); }
{ T t(4); out[k++] = call([&](int n) { T u(t); return u.v + n; }); }
{ Box<T> b(T(5)); Box<T> c = b; out[k++] = c.x.v; Box<int> d(3); Box<int> e = d; out[k++] = e.x; }
{ eat(T(6)); M m = take_(M(7)); out[k++] = m.v; }
{ auto [x, y] = A{T(8), 9}; out[k++] = x.v + y; K q, *p = &q; q.~K(); p->~K(); }
    """,
    ),
}
AFTER = """
out[k++] = at_;
int h = 0;
for (int i = 0; i < at_; i++) h = h * 31 + log_[i];
out[k++] = h;
"""


def test_objects_begin_and_end_as_gplusplus_has_them(device):
    chosen = list(FEATURES.values())
    if device.kind != "cpu":  # software GPUs compile long for so many branches
        chosen = chosen[1:2]
    features = [(before, f"at_ = 0;\n{{\n{inside}\n}}{AFTER}") for before, inside in chosen]
    check(CLASSES + in_one_kernel(features), device, 3)
