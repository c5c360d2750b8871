"""C++17's order of evaluation, and when objects that references are bound to are read; `?:` as an
object, swaps and comparisons of optional values."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import doubles_if_any

ORDER = """
struct C {
    int v;
    __device__ C &bump() { v += 1; return *this; }
    __device__ C &operator+=(const C &o) { v += o.v; return *this; }
    __device__ C &operator-=(C o) { v = v * 10 - o.v; return *this; }
    __device__ C &operator*=(const int &o) { v = v * 100 + o; return *this; }
    __device__ C &operator^=(int o) { v = v * 100 + o; return *this; }
};
__device__ C &operator/=(C &a, const C &b) { a.v = a.v * 100 + b.v; return a; }
__device__ C &operator<<(C &a, const C &b) { a.v = a.v * 100 + b.v; return a; }
__device__ C &operator<<(C &a, int b) { a.v = a.v * 10 + b; return a; }
__device__ int operator>>(C a, const C &b) { return a.v * 100 + b.v; }

__global__ void assignments(const int *in, int *out)
{
    int n = 0;
    C q{in[0]};
    q.bump() += q; out[n++] = q.v;                      // read by the function: 4 + 4
    q.v = in[0]; q.bump() -= q; out[n++] = q.v;         // copied before: 40 - 3
    q.v = in[0]; q.bump() *= q.v; out[n++] = q.v;       // a reference to what was changed: 404
    q.v = in[0]; q.bump() ^= q.v; out[n++] = q.v;       // a number read before: 403
    q.v = in[0]; q.bump() /= q; out[n++] = q.v;
    C r{5}; r.bump() = r; out[n++] = r.v;
    int a[3] = {1, 2, 3}, i = 0;
    a[i] = i++; out[n++] = a[1] * 10 + i;               // the right one first
    a[i] += a[i++]; out[n++] = a[2];                    // 3 + a[1]
    i = i++ + 1; out[n++] = i;
}
__global__ void left_first(const int *in, int *out)
{
    int n = 0, i = in[0];
    C q{in[0]};
    q << q.bump(); out[n++] = q.v;                      // 404
    q.v = in[0]; q << i++ << i++ << i; out[n++] = q.v;  // 3345
    q.v = in[0]; out[n++] = q >> q.bump();              // a copy made before: 304
    out[n++] = i << (i -= 2);                           // 5 << 3
    int p[3] = {1, 2, 3}, o[3] = {10, 20, 30}, *r = p;
    out[n++] = r[(r = o, 1)] + *r;
}
"""

OBJECTS = """
struct A {
    int d[3];
    __device__ int &operator[](int i) { return d[i]; }
    __device__ int operator()(int a, int b) const { return d[a] * 100 + d[b]; }
};
struct R {
    int v;
    __device__ int f(int a) { return v * 100 + a; }
    __device__ R &add(int a) { v += a; return *this; }
};
struct P { int a, b, c; };
struct Q { int a, b; __device__ Q(int x, int y) : a(x), b(y) {} };
struct L { int a, b; __device__ L(const int &x, int y) : a(x), b(y) {} };
__device__ int bump(int &x) { x += 3; return x; }
__device__ int both(int &x, const int &y) { x += 7; return x * 100 + y; }

__global__ void objects(const int *in, int *out)
{
    int n = 0, i = 0;
    A a{{1, 2, 3}};
    a[i++] = i; out[n++] = a.d[0] * 10 + i;             // 01
    R t[3] = {{1}, {2}, {3}}, *p = t;
    i = 0; out[n++] = t[i].f(i++);                      // the object before the argument: 100
    out[n++] = p->f((p = t + 2, 7)) + p->v;             // 107 + 3
    i = 1; out[n++] = t[i].add(++i).add(i).v;           // 2 + 2 + 2
    A e[2] = {{{1, 2, 3}}, {{4, 5, 6}}};
    i = 0; out[n++] = e[i](i + 1, ++i + 1);
    out[n++] = both(t[0].v, t[0].v);                    // 808
}
__global__ void lists(const int *in, int *out)
{
    int n = 0, i = in[0];
    P p{i, i++, i};
    out[n++] = p.a * 100 + p.b * 10 + p.c;              // 334
    Q q{i, bump(i)}; out[n++] = q.a * 10 + q.b;         // 47
    L l{i, bump(i)}; out[n++] = l.a * 100 + l.b;        // refers to i: 10, 10
    int v[3] = {i, i += 2, i}; out[n++] = v[0] * 10000 + v[1] * 100 + v[2];
    int2 w{i, i++}; out[n++] = w.x * 100 + w.y;
}
"""

PLACES = """
#include <utility>
struct Node {
    int v;
    Node *l, *r;
    __device__ Node(int v) : v(v), l(nullptr), r(nullptr) {}
};
struct N { int v; int *l, *r; };
struct P { int v; __device__ int inc() { return ++v; } };
struct C {
    int v, n;
    __device__ C(int v) : v(v), n(0) {}
    __device__ C(const C &c) : v(c.v), n(c.n + 1) {}
};
__device__ void insert(Node *&t, Node *one)
{
    if (!t) t = one;
    else insert(one->v < t->v ? t->l : t->r, one);
}
__device__ int sum(Node *t, int d)
{
    return t ? t->v * d + sum(t->l, d + 1) + sum(t->r, d + 1) : 0;
}
__device__ void add(int &x) { x += 100; }
template <class T> __device__ void put(T &x, T v) { x = v; }
__device__ P *id(P *p) { return p; }
__device__ C *counted(C *p, int &k) { k++; return p; }
__device__ void past(int *&p) { p++; }

__global__ void trees(const int *in, int *out)
{
    Node *root = nullptr, nodes[5] = {Node(5), Node(2), Node(8), Node(1), Node(9)};
    for (int i = 0; i < in[0] + 2; i++) insert(root, nodes + i);
    out[0] = sum(root, 1);
}

__global__ void places(const int *in, int *out)
{
    bool c = in[0] > 5;                                 // false
    int a = 1, b = 2, i = 0;
    add(c ? a : b); put(c ? b : a, 7); out[i++] = a; out[i++] = b;
    int x[4] = {1, 2, 3, 4};
    N n{1, x, x}, m{2, x + 1, x + 2}, &r = c ? n : m;
    out[i++] = (c ? n : m).v; r.v = 9; r.l = x + 3; out[i++] = m.v * 10 + *m.l + n.v * 100;
    N d = c ? n : N{6, x, x + 1}; out[i++] = d.v + *d.r; out[i++] = (c ? N{1} : N{5}).v;
    (c ? n : m).v = 12; (c ? n : m).r = x; out[i++] = m.v * 100 + *m.r * 10 + *n.r;
    P p{1}, q{2}; (c ? *id(&p) : *id(&q)).v = 5; out[i++] = q.v;
    (c ? p : q).inc(); (c ? *id(&p) : q).inc(); out[i++] = q.v * 10 + p.v;
    const int &same = c ? a : b; b = 77; out[i++] = same;
    const int *y = x, *z = x + 1, *const &to = c ? y : z; z = x + 3; out[i++] = *to;
    (c ? y : z)--; ++(c ? y : z); (c ? y : z) += -2; out[i++] = (z - x) * 10 + (y - x);
    int *f = x, *g = x + 1, *h = x + 2; past(c ? f : g); out[i++] = (g - x) * 10 + (f - x);
    int u = 1, v = 2, w = 3; (c ? u : c ? v : w) = 30; (c ? u : c ? v : w)++; out[i++] = w;
    (c ? f : c ? g : h) = x + 3; (c ? f : !c ? g : h) = x; out[i++] = *h * 100 + *f * 10 + *g;
    int k = 0; C one(1), two(2); (c ? *counted(&one, k) : *counted(&two, k)).v = 50;
    C three = c ? one : *counted(&two, k); out[i++] = two.v * 100 + three.v + k + three.n;
    int **pp = c ? &f : &g; *pp = x + 2; out[i++] = *g;
    pp = &(c ? f : g); *pp = x + 1; out[i++] = *g;
    auto &ag = c ? f : g; ag = x; out[i++] = *g; auto &am = c ? n : m; am.v = 3; out[i++] = m.v;
    (k > 0 ? (k++, a) : b) = 4; out[i++] = a * 10 + k;
    Node s(1), t(2); Node *&last = c ? s.l : t.r; last = &s; out[i++] = t.r->v + 10 * !s.l;
    Node *at = &s; (c ? at->r : at->l) = &t; out[i++] = at->l->v; int *const none = nullptr;
    std::swap(c ? a : b, u); std::swap(c ? f : g, h);
    out[i++] = b * 100 + u + *g * 10 + *h + !none;
}
"""

SWAPS = """
#include <array>
#include <optional>
#include <tuple>
#include <utility>
struct C {
    int v;
    __device__ C(int v) : v(v) {}
    __device__ C(const C &c) : v(c.v + 100) {}
    __device__ C &operator=(const C &c) { v = c.v + 1; return *this; }
};
struct M {
    int n;
    __device__ M(int n) : n(n) {}
    __device__ M(M &&o) : n(o.n + 1) { o.n = -1; }
    __device__ M &operator=(M &&o) { n = o.n + 10; o.n = -2; return *this; }
};
struct D {
    int *o, v;
    __device__ D(int *o, int v) : o(o), v(v) {}
    __device__ D(const D &d) : o(d.o), v(d.v) { *o += 1; }
    __device__ ~D() { *o += 10; }
};
struct Pt { int x; __device__ bool operator==(const Pt &o) const { return x == o.x; } };
struct A {
    int v;
    __device__ explicit operator int() const { return v; }
    __device__ explicit operator bool() const { return v > 0; }
};
template <class D> struct Sums {
    friend __device__ D operator+(D a, const D &b) { a += b; return a; }
};
struct I : Sums<I> {
    int v;
    __device__ I(int v) : v(v) {}
    __device__ I &operator+=(const I &o) { v += o.v; return *this; }
};
namespace ns {
struct Q { int q; };
__device__ int get(const Q &q) { return q.q; }
namespace in { struct Z : Q { int z; }; }
}
struct E2 { Pt p[2]; int n; };
struct Taker {
    int v;
    __device__ Taker(int v) : v(v) {}
    __device__ operator int() const { return v + 100; }
    __device__ Taker &operator=(const int &x) { v = -x; return *this; }
};
template <class T> __device__ int kind(T) { return 1; }
__device__ int kind(...) { return 0; }
template <class T> __device__ int pointed(T *) { return 1; }
__device__ int pointed(...) { return 0; }
template <class T> __device__ auto method(T t) -> decltype(t.m(), 0) { return 1; }
__device__ int method(...) { return 2; }
struct Mm { __device__ void m() {} };
#define IS(...) out[i++] = (__VA_ARGS__);

__global__ void swaps(const int *in, int *out)
{
    int i = 0, n = in[0], ends = 0;
    C a(1), b(n); std::swap(a, b); IS(a.v) IS(b.v)
    M m(10), w(n); std::swap(m, w); IS(m.n) IS(w.n)
    M e = std::exchange(w, M(5)); IS(e.n) IS(w.n)
    C two[2] = {C(3), C(4)}; std::swap(two[n - 3], two[1]); IS(two[0].v) IS(two[1].v)
    M many[2] = {M(3), M(4)}; std::swap(many[0], many[1]); IS(many[0].n) IS(many[1].n)
    std::array<int, 2> x{1, 2}, y{3, 4}; std::swap(x, y); IS(x[0] * 10 + y[1])
    int g[2][2] = {{1, 2}, {3, 4}}, h[2] = {5, 6};
    std::swap(g[1], h); IS(g[1][0] * 10 + h[1]) std::swap(g[0], g[1]); IS(g[0][1])
    int big[20], other[20];
    for (int j = 0; j < 20; j++) { big[j] = j; other[j] = -j; }
    std::swap(big, other); IS(big[19] - other[18])
    { D d(&ends, 1), f(&ends, 2); std::swap(d, f); IS(d.v * 10 + f.v) IS(ends) } IS(ends)
    std::array<C, 2> ca{{C(1), C(2)}}, cb{{C(3), C(4)}}; std::swap(ca, cb); IS(ca[0].v + cb[1].v)
    std::pair<C, int> pc(C(5), 1), pd(C(6), 2); std::swap(pc, pd); IS(pc.first.v)
    pc.swap(pd); IS(pc.first.v * 1000 + pd.first.v)
    int *p = g[0], *old = std::exchange(p, nullptr); IS(old == g[0] && !p)
    IS(std::exchange(n, 9) + n)
}

__global__ void bases_and_braces(const int *in, int *out)
{
    int i = 0;
    I p(in[0]), q(2); IS((p + q).v)
    ns::in::Z z; z.q = in[0]; IS(get(z))
    Pt one{in[0]}; std::array<Pt, 2> a{one, Pt{5}}, b{one}, c{a};
    IS(a[1].x + b[0].x + b[1].x + c[1].x)
    E2 e{one, Pt{4}, 6}; IS(e.p[1].x * 10 + e.n)
    std::optional<std::pair<int, float>> pair{{in[0], 2.f}}; IS(pair->first + (int)pair->second)
}

__global__ void overloads(const int *in, int *out)
{
    int i = 0, x = in[0];
    Taker a(1), b(x); a = b; IS(a.v) a = 7; IS(a.v) a = Taker(4); IS(a.v)
    IS(kind(x)) IS(kind(1.f)) IS(pointed(&x)) IS(pointed(x)) IS(method(Mm{})) IS(method(x))
    std::optional<int> e = x, n, g = 5; e = g; IS(*e) e = n; IS(e.has_value()) std::swap(e, g);
    IS(*e) IS(g.has_value())
    std::optional<float> f = std::optional<int>(x); IS(*f == 3.f) f = n; IS(f.has_value()) f = e;
    IS(*f == 5.f) std::optional<float> h(n); IS(h.has_value())
}

__global__ void optionals(const int *in, int *out)
{
    int i = 0;
    std::optional<int> e = in[0], g = 5, n; std::optional<float> h = 2.5f, z;
    IS(e > 2) IS(e < 2) IS(e >= 3) IS(2 < e) IS(e < g) IS(n < 0) IS(h > 2) IS(h == 2.5) IS(e == h)
    IS(e == true) IS(e == 3) IS(e == g) IS(e != 3) IS(n == n) IS(n < e) IS(e < n) IS(n <= n)
    IS(n >= e) IS(e >= n) IS(0 > n) IS(0 < n) IS(n != z) IS(n == z) IS(3 == e) IS(4 != e)
    IS(e > std::nullopt) IS(std::nullopt < e) IS(std::nullopt >= n) IS(e < std::nullopt)
    e = {}; IS(!e) e = 4; IS(*e) e = n; IS(e.has_value()) e = g; IS(*e)
    std::optional<Pt> p = Pt{1}, q = Pt{2}; IS(p == q) IS(p == Pt{1}) p = {};
    IS(p == q) IS(!q || !p)
    A a{in[0]}; int direct(a); bool truth{a};
    IS(direct + (int)a + truth) IS(a ? !a : 5) IS(a && true)
}
"""


def results(device, source, kernel, count, inputs=(3,)):
    out = td.zeros(count + 1, dtype=td.int32, device=device)
    values = td.asarray(np.array(inputs, np.int32), device=device)
    td.cuda_module(source).kernel(kernel)[1, 1](values, out)
    found = out.tolist()
    assert found.pop() == 0
    return found


CASES = [
    (ORDER, "assignments", [8, 37, 404, 403, 404, 6, 1, 3, 3]),
    (ORDER, "left_first", [404, 3345, 304, 40, 12]),
    (OBJECTS, "objects", [1, 100, 110, 6, 203, 808]),
    (OBJECTS, "lists", [334, 47, 1010, 101212, 1212]),
    # those of g++
    (SWAPS, "overloads", [3, -7, 4, 1, 1, 1, 0, 1, 2, 5, 0, 5, 0, 1, 0, 1, 0]),
    (SWAPS, "bases_and_braces", [5, 3, 13, 46, 5]),
    (PLACES, "trees", [55]),
    (
        PLACES,
        "places",
        [
            7,
            102,
            2,
            194,
            8,
            5,
            1211,
            5,
            71,
            77,
            4,
            10,
            20,
            31,
            411,
            5053,
            3,
            2,
            1,
            3,
            43,
            11,
            2,
            219,
        ],
    ),
    (
        SWAPS,
        "swaps",
        [
            4,
            102,
            13,
            21,
            22,
            15,
            5,
            104,
            14,
            14,
            32,
            54,
            6,
            -37,
            21,
            11,
            31,
            107,
            107,
            207208,
            1,
            12,
        ],
    ),
    (
        SWAPS,
        "optionals",
        [
            1,
            0,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            0,
            1,
            0,
            0,
            1,
            1,
            0,
            1,
            0,
            1,
            1,
            0,
            0,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            1,
            4,
            0,
            5,
            0,
            1,
            0,
            1,
            7,
            0,
            1,
        ],
    ),
]


@pytest.mark.parametrize(("source", "kernel", "expected"), CASES, ids=[c[1] for c in CASES])
def test_order_of_evaluation(device, source, kernel, expected):
    with doubles_if_any(device):
        assert results(device, source, kernel, len(expected)) == expected


def test_an_optional_whose_class_has_a_pointer_and_a_destructor(device):
    source = """
    #include <optional>
    struct T { int *p; __device__ T(int *p) : p(p) {} __device__ ~T() { *p += 1; } };
    __global__ void k(int *out) { std::optional<T> none, t(out); none = std::nullopt; }
    """
    out = td.zeros(1, dtype=td.int32, device=device)
    td.cuda_module(source).k[1, 1](out)
    assert out.tolist() == [1 + 1]  # the temporary object ends, too
