"""Calls for which two functions are equally good: refused as g++ refuses them, others made as g++
makes them."""

from __future__ import annotations

import subprocess

import pytest

import treadle as td
from treadle.core.errors import CompileError, CompileErrors

BASES = "struct B { int a; }; struct D : B { int b; }; struct E : D { };"
# Functions that return their number, and a call. `g` is an int, `e` an E, `s` a short.
CASES = [
    ("f(long) f(float)", "f(1)"),
    ("f(long) f(unsigned)", "f(1)"),
    ("f(int) f(long)", "f(s)"),
    ("f(float) f(int)", "f(1.5)"),
    ("f(double) f(int)", "f(1.5f)"),
    ("f(int, double) f(double, int)", "f(1, 1)"),
    ("f(int, double) f(double, double)", "f(1, 1)"),
    ("f(int, long) f(long, int)", "f(1, 1)"),
    ("f(float, int) f(int, float)", "f(1.0f, 1.0f)"),
    ("f(int, float, double) f(float, int, double)", "f(1, 1, 1)"),
    ("f(int, float, float) f(float, int, int)", "f(1, 1, 1)"),
    ("f(int, float, float) f(int, int, int)", "f(1, 1, 1)"),
    ("f(int) f(int, int = 2)", "f(1)"),
    ("f(int) f(int, int = 2)", "f(1, 2)"),
    ("f(const int &) f(int)", "f(g)"),
    ("f(const int &) f(long)", "f(g)"),
    ("f(int &) f(int &&)", "f(1)"),
    ("f(int *) f(float *)", "f(nullptr)"),
    ("f(int *) f(long)", "f(0)"),
    ("f(int *) f(int)", "f(0)"),
    ("f(void *) f(const int *)", "f(&g)"),
    ("f(bool) f(void *)", "f(&g)"),
    ("f(bool) f(long)", "f(1.5)"),
    ("f(unsigned char) f(signed char)", "f('a')"),
    ("f(float) f(char)", "f(true)"),
    ("f(int) f(float)", "f(1ull)"),
    ("f(long long) f(double)", "f(1l)"),
    ("f(unsigned) f(int)", "f((unsigned char)1)"),
    ("f(char) f(int) f(double)", "f(s)"),
    ("f(B) f(D)", "f(e)"),
    ("f(const B &) f(const D &)", "f(e)"),
    ("f(B *) f(D *)", "f(&e)"),
    ("f(void *) f(B *)", "f(&e)"),
    ("f(long) f(float)", "f(X)"),
    ("f(int) f(float)", "f(X)"),
    ("f(P) f(Q)", "f(1)"),
    ("f(P, int) f(int, Q)", "f(1, 1)"),
    ("operator+(P, long) operator+(P, float)", "P(1) + 1"),
    ("operator+(P, long) operator+(P, int)", "P(1) + 1"),
]
CLASSES = (
    "struct P { int v; __device__ P(int a) : v(a) { } };"
    "struct Q { int v; __device__ Q(int a) : v(a) { } }; enum Kind { X };"
)


def _source(functions: str, call: str) -> tuple[str, str]:
    """The declarations and the call as a statement."""
    made = [
        f"__device__ int {one.strip()}) {{ return {number}; }}"
        for number, one in enumerate(functions.split(")")[:-1], 1)
    ]
    start = "int g = 1; short s = 2; E e; (void)g; (void)s; (void)e;"
    return f"{BASES}\n{CLASSES}\n" + "\n".join(made), f"{start} int answer = {call};"


def test_as_gxx_has_it(tmp_path):
    programs = []
    for number, (functions, call) in enumerate(CASES):
        declarations, statement = _source(functions, call)
        source = tmp_path / f"{number}.cpp"
        source.write_text(
            f"#define __device__\n{declarations}\nint main() {{ {statement} return answer; }}\n"
        )
        command = ["g++", "-std=c++17", "-w", str(source), "-o", str(tmp_path / str(number))]
        programs.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        if number % 4 == 3:
            for each in programs[-4:]:
                each.wait()
    refused = 0
    for number, ((functions, call), compiler) in enumerate(zip(CASES, programs, strict=True)):
        _, said = compiler.communicate()
        declarations, statement = _source(functions, call)
        text = f"{declarations}\n__global__ void k(int *o) {{ {statement} o[0] = answer; }}"
        if compiler.returncode:
            assert "ambiguous" in said
            refused += 1
            with pytest.raises(CompileError, match=r"the call .* is ambiguous: .* of line .* and"):
                td.cuda_module(text)
            continue
        module = td.cuda_module(text)
        out = td.zeros(1, dtype=td.int32, device="cpu")
        module.k[1, 1](out)
        wanted = subprocess.run([str(tmp_path / str(number))]).returncode
        assert out.tolist() == [wanted], (functions, call)
    assert 15 <= refused <= len(CASES) - 15


def test_the_candidates_are_named():
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module("""
__device__ int f(long a) { return 1; }
__device__ int f(float a) { return 2; }
struct S {
    int v;
    __device__ S(long a) : v(1) { }
    __device__ S(float a) : v(2) { }
    __device__ int f(long a) { return 1; }
    __device__ int f(float a) { return 2; }
};
__global__ void call(int *o) { o[0] = f(1); }
__global__ void method(S *s) { s->v = s->f(1); }
__global__ void made(int *o) { S s(1); o[0] = s.v; }
""")
    for error, text in zip(
        caught.value.errors,
        (
            "f(int) is ambiguous: f(long) of line 2 and f(float) of line 3 are",
            "f(int) is ambiguous: f(long) of line 8 and f(float) of line 9 are",
            "S(int) is ambiguous: S(long) of line 6 and S(float) of line 7 are",
        ),
        strict=True,
    ):
        assert error.message.startswith(f"the call {text} equally good: cast an argument")
