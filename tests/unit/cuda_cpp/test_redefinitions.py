"""A second definition of a name is an error of the file: one of the two would be lost."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import CompileError, CompileErrors

KERNEL = "__global__ void k(int *x) { x[0] = 1; }\n"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        (KERNEL + KERNEL, 2, "k is defined twice: the first definition is in line 1"),
        (
            "__device__ int f(int a) { return 1; }\n__device__ int f(int b) { return 2; }\n",
            2,
            "f is defined twice",
        ),
        ("struct A { int a; };\nstruct A { int b; };\n", 2, "A is defined twice"),
        (
            "namespace m {\nstruct A { int a; };\nstruct A { int b; };\n}\n",
            3,
            "A is defined twice",
        ),
        (
            "namespace m { __device__ int f() { return 1; } }\n"
            "namespace m { __device__ int f() { return 2; } }\n",
            2,
            "f is defined twice: the first definition is in line 1",
        ),
        ("__device__ int a;\n__device__ float a;\n", 2, "a is defined twice"),
        ("const int N = 1;\nconst int N = 2;\n", 2, "N is defined twice"),
        ("enum E { A, B };\nenum F { C, A };\n", 2, "A is an enumerator twice"),
        ("enum class E { A,\nA };\n", 1, "A is an enumerator twice"),
        ("struct S { int a;\nfloat a; };\n", 2, "a is declared here already, in line 1"),
        ("__device__ void f(int a,\nint a) {}\n", 2, "a is declared here already"),
        ("__device__ void f(int a) {\nint a; }\n", 2, "a is declared here already"),
        ("__device__ void f() { int a = 1;\nint a = 2; }\n", 2, "a is declared here already"),
        ("__device__ void f() { for (int i = 0;;) {\nint i; } }\n", 2, "i is declared here"),
        ("__device__ void f() { if (int i = 1) {} else {\nint i; } }\n", 2, "i is declared here"),
        ("__device__ void f() { while (1) { {\nint i, j, i; } } }\n", 2, "i is declared here"),
        (
            "template <class T> struct S { void __device__ f(T t) { switch (1) { case 1:\n"
            "int a; int a; } } };\n",
            2,
            "a is declared here already",
        ),
    ],
)
def test_a_second_definition_is_refused(source: str, line: int, message: str) -> None:
    with pytest.raises(CompileErrors, match=message) as caught:
        td.cuda_module(source)
    assert caught.value.line == line


def test_other_scopes_and_declarations_are_no_second_definitions() -> None:
    module = td.cuda_module(
        'extern "C" const int N;\nextern "C" const int N = 1;\nextern __device__ int d;\n'
        "__device__ int d;\nenum class E { A }; enum class F { A };\n"
        "namespace m { __device__ int d; const int N = 3; }\n"
        "struct S { static const int N = 2; union { int a; float b; }; };\n"
        "__global__ void k(int *x) {\n"
        "  extern __shared__ int s[];\n"
        "  { int a = 1; x[0] = a; } { int a = 2; x[1] = a; } int a = 3; { int a = 4; x[2] = a; }\n"
        "  for (int i = 0; i < 1; i++) { for (int i = 7; i < 8; i++) x[3] = i; }\n"
        "  for (int i = 0; i < 1; i++) { { int i = 5; x[4] = i; } }\n"
        "  if (int b = a) x[5] = b; else x[5] = 0;\n"
        "  if (int b = a + 1) x[6] = b;\n"
        "}\n"
    )
    x = td.zeros(7, dtype=td.int32, device="cpu")
    module.k[1, 1](x)
    assert x.numpy().tolist() == [1, 2, 4, 7, 5, 3, 4]


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ("case 1: x[1] = 1; break; case 2 - 1: break;", "case 1 is in this switch already"),
        ("case E_A: x[1] = 1; break; case 7: break;", "case 7 is in this switch already"),
        ("default: x[1] = 1; case 3: break; default: break;", "default is in this switch already"),
    ],
)
def test_a_label_twice(cases: str, words: str) -> None:
    source = f"enum {{ E_A = 7 }};\n__global__ void k(int *x) {{ switch (x[0]) {{ {cases} }} }}\n"
    with pytest.raises(CompileError, match=words):
        td.cuda_module(source).k.source("ir")


def test_declarations_overloads_and_specializations_are_no_second_definitions() -> None:
    module = td.cuda_module(
        "struct A;\nstruct A { int a; };\n__device__ int f(int a);\n"
        "__device__ int f(int a) { return 1; }\n__device__ int f(float a) { return 2; }\n"
        "template <class T> __device__ T g(T a) { return a; }\n"
        "template <> __device__ int g<int>(int a) { return 3; }\n"
        "namespace m { __device__ int f(int a) { return 4; } }\n"
        "__global__ void k(int *x) { x[0] = f(1); x[1] = f(1.0f); x[2] = g(1); x[3] = m::f(1); }\n"
    )
    x = td.zeros(4, dtype=td.int32, device="cpu")
    module.k[1, 1](x)
    assert x.numpy().tolist() == [1, 2, 3, 4]
