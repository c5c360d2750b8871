"""A second definition of a name is an error of the file: one of the two would be lost."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import CompileErrors

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
    ],
)
def test_a_second_definition_is_refused(source: str, line: int, message: str) -> None:
    with pytest.raises(CompileErrors, match=message) as caught:
        td.cuda_module(source)
    assert caught.value.line == line


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
