"""A function that may end without the value that it returns is warned of, as compilers do."""

from __future__ import annotations

import warnings

import pytest

import treadle as td
from treadle.core.errors import CompileWarning


@pytest.mark.parametrize(
    "body",
    [
        "a++;",
        "if (a) return 1;",
        "if (a) return 1; else a = 2;",
        "for (int i = 0; i < a; i++) return i;",
        "while (a) return 1;",
        "while (true) { if (a) break; return 1; }",
        "switch (a) { case 1: return 1; case 2: return 2; }",
        "switch (a) { case 1: break; default: return 2; }",
        "switch (a) { case 1: return 1; default: a = 3; }",
        "do { if (a) continue; return 1; } while (a > 3);",
        "{ if (a) { return 1; } }",
        "if (a) goto end; return 1; end: a++;",
    ],
)
def test_it_is_warned_of(body):
    with pytest.warns(CompileWarning, match="f may end without a return") as caught:
        td.cuda_module(f"\n__device__ int f(int a) {{ {body} }}\n__global__ void k(int *x) {{}}")
    assert caught[0].lineno == 2


@pytest.mark.parametrize(
    "function",
    [
        "int f(int a) { return a; }",
        "int f(int a) { if (a) return 1; else { return 2; } }",
        "int f(int a) { if (a) return 1; __trap(); }",
        "int f(int a) { for (;;) { if (a) return 1; a--; } }",
        "int f(int a) { while (1) { switch (a) { case 1: break; default: return 2; } } }",
        "int f(int a) { do { return 1; } while (false); }",
        "int f(int a) { again: if (a) goto end; a--; goto again; end: return 1; }",
        "int f(int a) { switch (a) { case 1: a = 2; default: { return 2; } } }",
        "void f(int a) { a++; }",
        'void stop() { printf("no"); __trap(); a(); } __device__ int f(int a) { stop(); }',
        "auto f(int a) { a++; }",
        "S::S(int b) { a = b; }",
        "S &S::operator=(int b) { a = b; return *this; }",
    ],
)
def test_it_is_not(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.cuda_module(
            "__device__ void a();\n"
            "struct S { int a; __device__ S(int b); __device__ S &operator=(int b); };\n"
            f"__device__ {function}\n__global__ void k(int *x) {{}}"
        )
