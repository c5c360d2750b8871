"""C++17's order of evaluation, and when objects that references are bound to are read."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

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
]


@pytest.mark.parametrize(("source", "kernel", "expected"), CASES, ids=[c[1] for c in CASES])
def test_order_of_evaluation(device, source, kernel, expected):
    assert results(device, source, kernel, len(expected)) == expected
