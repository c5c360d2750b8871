"""Virtual functions, beside g++: overriding, construction and destruction, slices, and objects that
one kernel makes and others use."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_host import check, in_one_kernel
from treadle.core.errors import CompileError

SHAPES = """
struct Shape {
    int first;
    float area;
    __device__ Shape() : area(1) { first = kind(); }
    __device__ virtual int kind() const { return 1; }
    __device__ virtual int scaled(int by, int more = 1) { return by * kind() + more; }
    __device__ virtual int pure(int) const = 0;
    __device__ int plain() const { return kind() * 100 + pure(3); }
    __device__ virtual ~Shape() {}
};
struct Circle : Shape {
    int r;
    __device__ Circle(int r) : r(r) {}
    __device__ int kind() const override { return 2; }
    __device__ int pure(int x) const override { return r * x; }
};
struct Ring : public Circle {
    int inner;
    __device__ Ring(int r, int i) : Circle(r), inner(i) {}
    __device__ int kind() const final { return 3 + Circle::kind() * 10; }
    __device__ int scaled(int by, int more) override { return Circle::scaled(by) + inner; }
};
struct Box final : Shape {
    int w, h, *counter;
    __device__ Box(int w, int h, int *c) : w(w), h(h), counter(c) {}
    __device__ int pure(int x) const override { return w * h * x; }
    __device__ ~Box() { *counter += w + kind(); }
};
__device__ int use(const Shape &s) { return s.kind() * 1000 + s.plain(); }
__device__ int scaled(Shape *s, int n) { return s->scaled(n) + s->first; }
"""
FEATURES = {
    "references, pointers and qualified names": (
        SHAPES,
        """
Circle c(n); Ring r(n + 1, 5); int count = 0; Box b(2, n, &count);
out[k++] = use(c); out[k++] = use(r); out[k++] = use(b);
out[k++] = scaled(&c, 2); out[k++] = scaled(&r, 2); out[k++] = scaled(&b, 2);
out[k++] = c.kind(); out[k++] = r.kind(); out[k++] = r.Circle::kind();
Circle sliced = r; out[k++] = sliced.kind();
c = r; out[k++] = c.kind(); out[k++] = c.r;
Circle from = Ring(7, 8); out[k++] = from.kind();
Shape *list[4] = {&c, &r, &b, &sliced};
for (int i = 0; i < 4; i++) out[k++] = list[i]->plain();
Shape *chosen = n > 2 ? (Shape *)&r : &c; out[k++] = chosen->scaled(3);
        """,
    ),
    "objects in the heap, and their ends": (
        SHAPES,
        """
Shape *made[3];
int count = 0;
for (int i = 0; i < 3; i++) {
    if (i == n % 3) made[i] = new Circle(i);
    else if (i == (n + 1) % 3) made[i] = new Ring(i, n);
    else made[i] = new Box(i, 3, &count);
}
for (int i = 0; i < 3; i++) {
    out[k++] = made[i]->plain(); out[k++] = scaled(made[i], i);
    delete made[i];
}
out[k++] = count;
        """,
    ),
    "templates, abstract classes between, results and const": (
        """
struct Base {
    __device__ virtual Base *next() { return this; }
    __device__ virtual int at(int) { return 1; }
    __device__ virtual int at(int) const { return 2; }
    __device__ virtual int at(float) { return 3; }
    __device__ virtual int operator()(int x) const = 0;
    __device__ virtual void put(int &x) const { x += 5; }
};
struct Middle : Base {
    __device__ virtual int more() const = 0;
    __device__ int at(float) override { return more(); }
};
template <class T> struct Leaf : Middle {
    T v;
    __device__ Leaf(T v) : v(v) {}
    __device__ int operator()(int x) const override { return x + (int)v; }
    __device__ int more() const override { return 10 * (int)v; }
    __device__ Leaf *next() override { v += 1; return this; }
};
struct Own : Leaf<int> {
    using Leaf<int>::Leaf;
    __device__ int at(int) const override { return 20; }
    __device__ void put(int &x) const override { Base::put(x); x *= 2; }
};
__device__ int all(Base &b) {
    const Base &c = b;
    int x = 3;
    b.put(x);
    return b.at(1) + 10 * c.at(1) + 100 * b.at(1.0f) + 10000 * c(x) + (*b.next())(2);
}
        """,
        """
Leaf<int> a(4); Leaf<float> f(2.5f); Own o(n);
out[k++] = all(a); out[k++] = all(f); out[k++] = all(o); out[k++] = o(3); out[k++] = o.next()->v;
out[k++] = a(1) + f.more();
        """,
    ),
}


def test_beside_the_host(device):
    check(in_one_kernel(list(FEATURES.values())), device, 2)


WORLD = """
struct Material { __device__ virtual int color(int x) const = 0; };
struct Plain : Material {
    int c;
    __device__ Plain(int c) : c(c) {}
    __device__ int color(int x) const override { return c + x; }
};
struct Mixed : Material {
    Material *a, *b;
    __device__ Mixed(Material *a, Material *b) : a(a), b(b) {}
    __device__ int color(int x) const override { return 2 * a->color(x) - b->color(x + 1); }
};
struct Thing { __device__ virtual int hit(int x) const = 0; __device__ virtual ~Thing() {} };
struct Ball : Thing {
    int r;
    Material *m;
    __device__ Ball(int r, Material *m) : r(r), m(m) {}
    __device__ int hit(int x) const override { return x % r == 0 ? m->color(x) : 0; }
    __device__ ~Ball() { delete m; }
};
struct List : Thing {
    Thing **list;
    int n;
    __device__ List(Thing **l, int n) : list(l), n(n) {}
    __device__ int hit(int x) const override {
        int sum = 0;
        for (int i = 0; i < n; i++) sum = 3 * sum + list[i]->hit(x);
        return sum;
    }
    __device__ ~List() { for (int i = 0; i < n; i++) delete list[i]; delete[] list; }
};
__global__ void make(Thing **world) {
    Thing **list = new Thing *[2], **inner = new Thing *[1];
    inner[0] = new Ball(2, new Plain(7));
    list[0] = new Ball(3, new Mixed(new Plain(1), new Plain(5)));
    list[1] = new List(inner, 1);
    *world = new List(list, 2);
}
__global__ void render(int *out, Thing **world) { out[threadIdx.x] = (*world)->hit(threadIdx.x); }
__global__ void done(Thing **world) { delete *world; }
"""


def test_a_kernel_makes_what_others_use(device):
    module = td.cuda_module(WORLD, heap_bytes=1 << 14)
    for _ in range(3):
        world, out = [None], np.zeros(13, np.int32)
        module.make[1, 1](world)
        module.render[1, 13](out, world)
        module.done[1, 1](world)
        assert out.tolist() == [
            3 * (2 * (1 + x) - (5 + x + 1) if x % 3 == 0 else 0) + (7 + x if x % 2 == 0 else 0)
            for x in range(13)
        ]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            f"{WORLD} __global__ void k(int *x, Plain p) {{ x[0] = p.c; }}",
            "p is an object with virtual functions, which cannot be passed from the host",
        ),
        (
            f"{WORLD} __device__ Plain kept; __global__ void k(int *x) {{ x[0] = kept.c; }}",
            "kept is an object with virtual functions, which no constructor makes",
        ),
        (
            "struct A { __device__ virtual int f() { return 1; } };"
            "struct B { __device__ virtual int g() { return 2; } }; struct C : A, B {};"
            "__global__ void k(int *x) { C c; x[0] = c.f(); }",
            "a second base class with virtual functions: .*; make it the first base",
        ),
        (
            f"{WORLD} __global__ void k(int *x, Thing **t) "
            "{ x[0] = dynamic_cast<Ball *>(t[0]) != nullptr; }",
            "dynamic_cast: ",
        ),
    ],
)
def test_what_is_refused(source, words):
    with pytest.raises(CompileError, match=words):
        td.cuda_module(source).k.source("ir")
