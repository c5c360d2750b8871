"""Members of classes in the less common forms: nested classes that are defined outside of theirs.

The expected values are those of g++, for the same functions as host code.
"""

from __future__ import annotations

import re

import pytest

import treadle as td
from treadle.core.errors import CompileErrors

COUNT = 8


def results(device, source):
    """`test(0)`, `test(1)`, … of a source with `__device__ int test(int k)`."""
    kernel = "__global__ void run(int *out) { out[threadIdx.x] = test(threadIdx.x); }"
    out = td.zeros(COUNT, dtype=td.int32, device=device)
    td.cuda_module(f"{source}\n{kernel}").run[1, COUNT](out)
    return out.tolist()


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


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (NESTED, [427, 3529, 6633, 9739, 12847, 15957, 19069, 22183]),
        (NESTED_IN_TEMPLATES, [5157, 5208, 5259, 5310, 5361, 5412, 5463, 5514]),
        (NESTED_IN_NAMESPACES, [24, 30, 38, 48, 60, 74, 90, 108]),
    ],
    ids=["of classes", "of templates", "of namespaces"],
)
def test_nested_classes_defined_outside(device, source, expected):
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
