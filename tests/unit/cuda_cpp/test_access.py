"""Members that are not public, members and variables that are const, and members for the host."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import CompileError


def refused(declarations: str, body: str) -> str:
    with pytest.raises(CompileError) as caught:
        td.cuda_module(f"{declarations}\n__global__ void k(int *x) {{ {body} }}").k.source("ir")
    return str(caught.value.message)


def value(declarations: str, body: str) -> int:
    module = td.cuda_module(f"{declarations}\n__global__ void k(int *x) {{ {body} }}")
    x = td.zeros(1, dtype=td.int32, device="cpu")
    module.k[1, 1](x)
    return int(x.item())


@pytest.mark.parametrize(
    ("declarations", "body"),
    [
        ("class S { int a; public: int b; };", "S s; x[0] = s.a;"),
        ("struct S { private: int a; };", "S s; S *p = &s; x[0] = p->a;"),
        ("struct S { protected: int a; };", "S s; x[0] = s.a;"),
        ("class S { __device__ int a() const { return 1; } };", "S s; x[0] = s.a();"),
        ("class B { int a; }; struct S : B { int b; };", "S s; x[0] = s.a;"),
        ("template <class T> class S { T a; };", "S<int> s; x[0] = s.a;"),
        ("class S { public: int b; private: static const int a = 3; };", "S s; x[0] = s.a;"),
        ("class S { int a; friend class F; };", "S s; x[0] = s.a;"),
        (
            "class S { int a; friend class F; template <class T> friend struct G; };\n"
            "struct H { __device__ int of(const S &s) { return s.a; } };",
            "S s; x[0] = H().of(s);",
        ),
    ],
)
def test_members_that_are_not_public(declarations, body):
    assert "a is not a public member of " in refused(declarations, body)


@pytest.mark.parametrize(
    ("declarations", "body"),
    [
        (
            "class S { int a; public: __device__ S(int v) : a(v) {}\n"
            "__device__ int get(const S &o) const { return a + o.a; } };",
            "S s(3), t(4); x[0] = s.get(t);",
        ),
        (
            "class S { int a; friend __device__ int get(const S &s); public:\n"
            "__device__ S(int v) { a = v; } };\n"
            "__device__ int get(const S &s) { return s.a; }",
            "S s(7); x[0] = get(s);",
        ),
        (
            "class S { int a; public: __device__ S(int v) { a = v; }\n"
            "struct I { __device__ int of(const S &s) { return s.a; } }; };",
            "S s(7); S::I i; x[0] = i.of(s);",
        ),
        (
            "class B { protected: int a; };\n"
            "struct S : B { __device__ void set(int v) { this->a = v; }\n"
            "__device__ int get() { return this->a; } };",
            "S s; s.set(7); x[0] = s.get();",
        ),
        (
            "template <class T> class S { T a; public: __device__ S(T v) : a(v) {}\n"
            "template <class U> __device__ T plus(const S<U> &o) const; };\n"
            "template <class T> template <class U> __device__ T S<T>::plus(const S<U> &o) const\n"
            "{ return a + o.a; }",
            "S<int> s(3), t(4); x[0] = s.plus(t);",
        ),
        (
            "class S { int a; public: __device__ S(int v) : a(v) {}\n"
            "__device__ int twice() { auto f = [this](int n) { return this->a * n; };\n"
            "return f(2) + 1; } };",
            "S s(3); x[0] = s.twice();",
        ),
        ("struct S { private: int f(); public: __device__ int f(int a) { return a; } };",
         "S s; x[0] = s.f(7);"),
    ],
)  # fmt: skip
def test_functions_of_a_class_may(declarations, body):
    assert value(declarations, body) == 7


@pytest.mark.parametrize(
    ("declarations", "body", "words"),
    [
        ("", "const int a = 1; a = 2; x[0] = a;", "a is const, so it cannot be assigned to"),
        ("", "constexpr int a = 1; a++; x[0] = a;", "a is const, so it cannot be assigned to"),
        ("enum E { A };", "--A;", "A is const"),
        (
            "enum E { A };",
            "E e = A; e++; x[0] = e;",
            "not the enum E: write x = E(x + 1)",
        ),
        ("const int a = 3;", "a += 2;", "a is const"),
        ("struct S { const int a; int b; };", "S s{1, 2}; s.a = 2;", "this int is const"),
        (
            "struct S { int a; int size() { return a; } };",
            "S s{1}; x[0] = s.size();",
            "S::size() is for the host: declare it __device__",
        ),
        ("", "thrust::device_vector<int> v;", "thrust::device_vector is from Thrust"),
        ("", "x[0] = cutlass::gemm(1);", "cutlass::gemm is from CUTLASS"),
    ],
)
def test_const_host_and_libraries(declarations, body, words):
    assert words in refused(declarations, body)


HOST = """
struct S { int v; S() {} };
struct D { int v; ~D() {} };
struct C { int v; C(const C &o) : v(o.v) {} __device__ C(int) : v(3) {} };
struct A { int v; A &operator=(const A &o) { v = o.v; return *this; } };
struct O { S s; int y; };
struct B : S { int y; };
struct U { int v; U(unknown::type y) : v(1) {} };
struct W { int v; W(@) : v(1) {} };
struct F { int v; __device__ int f(float) { return 1; } int f(int) { return 2; } };
struct N { int v; operator float() const { return 1; } N operator-() const { return *this; } };
struct P { int v; P(); P(int); __device__ P(float); friend P operator+(P a, P b) { return a; } };
__device__ P::P(float) : v(7) {}
struct L { int v; L(); };
__device__ L::L() : v(4) {}
struct T { int v; template <class U> T(U u) : v(u) {} __device__ T(int a, int b) : v(a + b) {} };
template <class U> struct G { U v; G(U u) : v(u) {} };
__device__ int taken(C c) { return c.v; }
"""


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("S s;", "S::S()"), ("S s[3];", "S::S()"), ("S s = S();", "S::S()"),
        ("auto s = S{};", "S::S()"),
        ("S *s = new S;", "S::S()"), ("S *s = new S[x[0]];", "S::S()"), ("O o;", "S::S()"),
        ("O o{};", "S::S()"), ("B b;", "S::S()"), ("D d;", "D::~D()"),
        ("D *d = (D *)x; delete d;", "D::~D()"), ("C d = c;", "C::C(const C&)"),
        ("x[0] = taken(c);", "C::C(const C&)"), ("C *p = &c; C d(*p);", "C::C(const C&)"),
        ("auto f = [=] { return c.v; }; x[0] = f();", "C::C(const C&)"),
        ("A a, b; a = b;", "A::operator=(const A&)"), ("F f; x[0] = f.f(1);", "F::f(int)"),
        ("N n; float f = n;", "N::operator float()"),
        ("N n; x[0] = (int)n;", "N::operator float()"),
        ("N n; n = -n;", "N::operator-()"), ("P p;", "P::P()"), ("P p(1);", "P::P(int)"),
        ("P p(1.0f); p + p;", "operator+(P, P)"), ("T t(1);", "T::T(U)"),
        ("G<int> g(1);", "G<int>::G(U)"), ("W w(1);", "the constructor of W in line 9"),
    ],
)  # fmt: skip
def test_what_a_kernel_uses_is_not_for_the_host(body, named):
    with pytest.raises(CompileError) as caught:
        td.cuda_module(f"{HOST}__global__ void k(int *x, C c) {{ {body} }}").k.source("ir")
    assert caught.value.message.startswith(f"{named} is for the host: declare it __device__")


def test_other_members_of_such_classes_work():
    body = """
    C d(1); D *e = new D; F f; P p(1.5f); L l; T t(2, 3); __shared__ S s; S *q = &s; S r = *q;
    x[0] = c.v + d.v + f.f(1.0f) + p.v + l.v + t.v + (int)(sizeof(S) + sizeof(D)) + taken(C(1)); """
    module = td.cuda_module(f"{HOST}__global__ void k(int *x, C c) {{ {body} }}")
    x = td.zeros(1, dtype=td.int32, device="cpu")
    module.k[1, 1](x, {"v": 20})
    assert x.tolist() == [20 + 3 + 1 + 7 + 4 + 5 + 8 + 3]
