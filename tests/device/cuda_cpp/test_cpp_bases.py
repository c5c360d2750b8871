"""Bases of classes: references and pointers to them, their functions, their places in objects."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

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
