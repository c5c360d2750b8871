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
        ("const int a = 3;", "a += 2;", "a is const"),
        ("struct S { const int a; int b; };", "S s{1, 2}; s.a = 2;", "this int is const"),
        (
            "struct S { int a; int size() { return a; } };",
            "S s{1}; x[0] = s.size();",
            "size of S is for the host: declare it __device__",
        ),
        ("", "thrust::device_vector<int> v;", "thrust::device_vector is from Thrust"),
        ("", "x[0] = cutlass::gemm(1);", "cutlass::gemm is from CUTLASS"),
    ],
)
def test_const_host_and_libraries(declarations, body, words):
    assert words in refused(declarations, body)
