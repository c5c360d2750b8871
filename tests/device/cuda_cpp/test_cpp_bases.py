"""Bases of classes: references and pointers to them, their functions, their places in objects."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_tables_of_programs import results

OVERLOADS = """
struct A { int x; __device__ int who() const { return 1; } };
struct B {
    int y, z;
    __device__ int who() const { return 2; }
    __device__ int ask() { return this->who() * 10 + who(); }
};
struct D : A, B { int w; __device__ int who() const { return 3 + A::who() * 10; } };
__device__ int f(const A &) { return 1; }
__device__ int f(const B &) { return 2; }
__device__ int f(const D &) { return 3; }
__device__ int through(const B *p) { return p->y; }
__device__ void set(B &b) { b = B{70, 80}; }
__device__ B copy(B b) { b.y++; return b; }
template <class T> __device__ int which(T &t) { return t.who(); }
struct E { int v; };
struct F { int v; __device__ F(const E &e) : v(e.v * 2) {} };
__device__ int made(const F &c) { return c.v; }

__global__ void overloads(const int *in, int *out)
{
    int n = 0;
    D d{{1}, {2, 3}, 4};
    B &b = d;
    A &a = d;
    const B &c = d;
    out[n++] = f(a) * 1000 + f(b) * 100 + f(c) * 10 + f(d);
    out[n++] = f(static_cast<B &>(d)) * 10 + f(*static_cast<B *>(&d));
    out[n++] = which(a) * 100 + which(b) * 10 + d.B::who();
    out[n++] = d.who() + d.ask();                       // 13 + 22
    E e{4};
    const F &g = e;
    out[n++] = made(e) * 10 + g.v;                      // converted, not derived: 88
    out[n++] = sizeof(b);
}
__global__ void places(const int *in, int *out)
{
    int n = 0;
    D d{{1}, {2, 3}, 4};
    B *p = &d;
    out[n++] = through(&d) * 10 + p->z;
    p->y = 20; out[n++] = d.y;
    set(d); out[n++] = d.x * 10000 + d.y * 100 + d.z;
    out[n++] = copy(d).y;
    B &b = d;
    b = B{5, 6}; out[n++] = d.y * 100 + d.z * 10 + d.w;
    D e[2] = {{{1}, {2, 3}, 4}, {{5}, {6, 7}, 8}};
    B *q = &e[1];
    out[n++] = q->y * 10 + static_cast<D *>(q)->w;
    out[n++] = (static_cast<B *>(e + 1) == q) + static_cast<D &>(*q).x;
    out[n++] = d.B::y + e[1].A::x;
}
"""


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("overloads", [1223, 22, 122, 35, 88, 8]),
        ("places", [23, 20, 17080, 71, 564, 68, 6, 10]),
    ],
)
def test_bases(device, kernel, expected):
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    values = td.asarray(np.zeros(1, np.int32), device=device)
    td.cuda_module(OVERLOADS).kernel(kernel)[1, 1](values, out)
    assert out.tolist() == [*expected, 0]


OF_ONE_NAME = """
struct B { int x = 3, y; __device__ B(int y) : y(y) {} __device__ int get() const { return x; } };
struct D : B { int x; __device__ D(int a) : B(a + 1), x(a) { B::x += 10; } };
struct E : D { int x = 7; float y = 2.5f; using D::D; };
__global__ void of_one_name(int *out)
{
    D d(5);
    E e(1), f = e;
    e.x++;
    f.D::x = 9;
    out[0] = d.x; out[1] = d.B::x; out[2] = d.get(); out[3] = d.y;
    out[4] = e.x; out[5] = e.D::x; out[6] = e.B::x; out[7] = (int)(e.y * 2);
    out[8] = f.x; out[9] = f.D::x; out[10] = static_cast<B &>(f).x; out[11] = sizeof(E);
}
"""


def test_fields_of_one_name(device):
    out = td.zeros(12, dtype=td.int32, device=device)
    td.cuda_module(OF_ONE_NAME).of_one_name[1, 1](out)
    assert out.tolist() == [5, 13, 13, 6, 8, 1, 13, 5, 7, 9, 13, 20]


def test_bases_without_members(device):
    """They take no room."""
    module = td.cuda_module("""
    struct Empty { static const int n = 3; __device__ int twice(int v) const { return 2 * v; } };
    struct More {};
    struct Both : Empty, More {
        int v; float w;
        __device__ int get() const { return twice(v) + n; }
    };
    __global__ void k(const Both *in, int *out, int *size)
    {
        out[threadIdx.x] = in[threadIdx.x].get();
        size[0] = sizeof(Both);
    }
    """)
    both = np.zeros(3, np.dtype([("v", "i4"), ("w", "f4")]))
    both["v"] = [1, 2, 3]
    out, size = (td.zeros(n, dtype=td.int32, device=device) for n in (3, 1))
    module.k[1, 3](both, out, size)
    assert out.tolist() == [5, 7, 9]
    assert size.tolist() == [8]


# --- bases with fields of one name, beside g++ ---

SAME_NAMES = """
struct A { int x; int a[2]; };
struct B { int x; int y; __device__ int get() const { return x * 10; } };
struct D : A, B { int z; };
struct L { int v; B b; };
struct M { int v; int x; };
struct H : D, M { int x; __device__ int all() const { return A::x + B::x + M::x + x + z; } };
__device__ int read(const B *b) { return b->x * 10 + b->y; }
__device__ void put(B *b, int v) { b->x = v; static_cast<D *>(b)->z = v + 1; }
__device__ B copy(B b) { b.x += 5; return b; }
__device__ D made(int k) { return D{{k, {1, 2}}, {k + 1, 3}, 4}; }
__device__ int test(int k)
{
    D d[2];
    for (int i = 0; i < 2; i++) {
        d[i].A::x = i; d[i].B::x = i + 5; d[i].y = k; d[i].z = 9; d[i].a[0] = 3; d[i].a[1] = k;
    }
    B *p = &d[k & 1];
    p->x += 1;
    put(&d[0], k);
    const A *a = &d[1];
    D &dd = static_cast<D &>(*p);
    B &rb = d[1];
    D &d2 = static_cast<D &>(rb);
    d2.z += 100;
    d2.A::x += 7;
    D c = d[1];
    B part = c;
    part.x += 2;
    c = d[0];
    B *q = k & 1 ? (B *)&d[0] : (B *)&c;
    q->y += 2;
    H h{{{1, {2, 3}}, {4, 5}, 6}, {7, k}, 9};
    H g = h;
    g.B::x += 10; static_cast<M &>(g).x++;
    return read(p) + read(&d[0]) * 3 + a->x + a->a[1] + dd.z + c.B::x + part.x + c.y + d[1].z +
        copy(d[1]).x * 7 + made(k).B::x * 11 + made(k).get() + (int)sizeof(D) + g.all() * 13 +
        h.all() + made(2).a[1];
}
"""
SEVERAL_TIMES = """
struct R { int v; __device__ int get() const { return v; } };
struct A : R { int a; };
struct B : R { int b; };
struct D : A, B { int d; };
template <class T> struct Counted { int n = 0; __device__ void up() { n++; } };
struct X : Counted<int>, Counted<float> {
    __device__ int both()
    {
        Counted<int>::up(); Counted<float>::up(); Counted<float>::up();
        return Counted<int>::n * 10 + this->Counted<float>::n;
    }
};
template <class... T> struct All : T... { __device__ int total() const { return (T::n + ...); } };
struct P { int x = 1; using T = int; __device__ int f() const { return 1; } };
struct Q { int x = 2; using T = short; __device__ int f() const { return 2 + x; } };
struct U : P, Q {
    using Q::x; using Q::f; using P::T;
    __device__ int g() { T t = 100000; return x * 10 + f() + t; }
};
struct S { __device__ int n() const { return 9; } int m; };
struct T : S { int n; __device__ int g() { return n * 2; } };  // hides the base's function
struct V { int x; bool operator==(const V &) const = default; };
struct W { int x; bool operator==(const W &) const = default; };
struct Y : V, W { int z; bool operator==(const Y &) const = default; };
__device__ int g(const R &r) { return r.v; }
__device__ int test(int k)
{
    D d;
    d.A::v = k; d.B::v = 2 * k + 1; d.a = 1; d.b = 2; d.d = 3;
    A &a = d;
    B &b = d;
    X x;
    All<Counted<int>, Counted<short>, Counted<char>> all;
    all.Counted<char>::up();
    static_cast<Counted<int> &>(all).n += k;
    U u;
    u.x += k;
    T t;
    t.n = k; t.m = 1;
    Y y{{1}, {2}, 3}, other{{1}, {k}, 3};
    int W::*p = &W::x;
    int Y::*q = p;
    int V::*r = &V::x;
    int Y::*s = r;
    other.*s += k;
    return g(a) + g(b) * 10 + d.A::get() * 100 + d.B::get() * 1000 + d.d + x.both() +
        all.total() * 7 + u.g() + u.x + u.P::x + u.f() + t.g() + t.S::n() + t.n +
        (y == other) * 1000 + y.*q * 10 + other.*q + other.*s * 100;
}
"""
IN_PARTS = """
struct A { int *p; int x; };
struct B { int *q; int x; };
struct D : A, B { int z; };
__device__ int by_value(B b) { b.q[0] += 1; b.x += 5; return b.x + b.q[1]; }
__device__ A first(D d) { return d; }
struct E { int &r; __device__ int get() { return r++; } };
struct F { int &r; __device__ int get() { return r += 10; } };
struct G : E, F { __device__ G(int &a, int &b) : E{a}, F{b} {} };
__device__ int test(int k)
{
    int u[2] = {1, k}, v[2] = {3, 4};
    D d{{u, 1}, {v, 2}, 3};
    D m[2] = {d, d};
    m[1].B::q = u;
    B b{v, 7};
    b = d;
    A a = m[1];
    a = first(d);
    static_cast<B &>(d) = b;
    D *p = &m[k & 1];
    B c = *p;
    A &ra = *p;
    ra.x = 9;
    int i = 1, j = k;
    G g(i, j);
    g.E::get(); g.F::get();
    return by_value(d) + by_value(m[1]) * 10 + b.x * 100 + c.q[1] * 1000 + a.p[1] + p->A::x +
        d.B::x + i + j * 3;
}
"""
BESIDE_THE_HOST = {
    "fields of one name": (SAME_NAMES, [675, 937, 841, 1081, 1007, 1225, 1173, 1369]),
    "bases of one name": (
        SEVERAL_TIMES,
        [101192, 103437, 105682, 107927, 110172, 112417, 114662, 116907],
    ),
    "with pointers": (IN_PARTS, [4324, 1338, 4352, 3366, 4380, 5394, 4408, 7422]),
}


@pytest.mark.parametrize("name", BESIDE_THE_HOST)
def test_names_of_several_bases(device, name):
    source, expected = BESIDE_THE_HOST[name]
    assert results(device, source) == expected


_TWO = "struct A { int x; __device__ int f(); }; struct B { int x; __device__ int f(int); };"
_TWICE = "struct R { int v; }; struct A : R {}; struct B : R {}; struct D : A, B {};"
AMBIGUOUS = [
    _TWO + "struct D : A, B {}; __device__ int g(D d) { return d.x; }",
    _TWO + "struct D : A, B { __device__ int g() { return x; } };",
    _TWO + "struct D : A, B { __device__ int g() { return f(2); } };",
    _TWO + "struct D : A, B {}; __device__ int g(D &d) { return d.f(2); }",
    _TWICE + "__device__ int g(D &d) { return d.v; }",
    _TWICE + "__device__ R *g(D *d) { return d; }",
]


@pytest.mark.parametrize("source", AMBIGUOUS)
def test_ambiguous_members_are_refused(source):
    with pytest.raises(td.errors.CompileError, match=r"write A::[xf] or B::|several times"):
        td.cuda_module(source)
