"""What is wrong with a file whatever is launched of it is said when it is opened, all of it."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import CompileErrors, CompileWarning

KERNEL = "__global__ void k(int *x) { x[0] = 1; }\n"


def errors_of(source: str) -> list[tuple[int, str]]:
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(source)
    return [(error.line, error.message) for error in caught.value.errors]


def test_all_of_a_file():
    found = errors_of(
        "__device__ int f(int a, int b = 2) { return a + b; }\n"
        "__device__ int unused() { return zork; }\n"
        "template <typename T> __device__ T made(T t) { return t + zork2; }\n"
        "struct S { int a; __device__ int get() const { return a + late + gone; } int late; };\n"
        "__global__ void k(int *x) {\n"
        "    x[0] = f();\n"
        "    Vec3 v;\n"
        "    x[1] = f(1, 2, 3) + sqrtff(2.0f);\n"
        "    x[2] = f(1) + f(1, 2) + missing + missing;\n"
        "}\n"
    )
    assert [line for line, _ in found] == [2, 3, 4, 6, 7, 8, 8, 9]
    for (_, message), words in zip(
        found,
        [
            "zork is not declared",
            "zork2 is not declared (did you mean zork?)"[:21],
            "gone is not declared",
            "f of line 1 takes 1 to 2 arguments, not 0",
            "Vec3 is not declared",
            "f of line 1 takes 1 to 2 arguments, not 3",
            "sqrtff is not declared (did you mean sqrtf?)",
            "missing is not declared",
        ],
        strict=True,
    ):
        assert message.startswith(words), message


def test_several_functions_of_a_name():
    (found,) = errors_of(
        "__device__ int f(int a) { return a; }\n"
        "__device__ int f(int a, int b, int c) { return a; }\n"
        "__global__ void k(int *x) { x[0] = f(1, 2); }\n"
    )
    assert found == (
        3,
        "no function f takes 2 arguments: f of line 1 takes 1 argument; "
        "f of line 2 takes 3 arguments",
    )


@pytest.mark.parametrize(
    "source",
    [
        # the host's code, and what both compile
        "int host() { return zork; }\n",
        "__host__ __device__ int both() { return zork; }\n",
        "struct A { int get() { return zork; } __device__ int one() { return 1; } };\n",
        "class A { Zork z; int get() { return z.a; } };\n",
        # names that are declared later, elsewhere, or by others
        "struct A { __device__ int get() { return later; } int later; };\n",
        "struct B { int of_base; }; struct A : B { __device__ int f() { return of_base; } };\n",
        "namespace a { __device__ int g() { return 1; } }\n"
        "__device__ int f() { using namespace a; return g(); }\n",
        "enum E { ONE }; __device__ int f() { return ONE; }\n",
        "template <typename... T> __device__ int f(T... t) { return 1; }\n"
        "__device__ int g() { return f() + f(1, 2); }\n",
        "__device__ int f(int a, ...) { return a; } __device__ int g() { return f(1, 2, 3); }\n",
        "struct F { int a; __device__ int operator()(int b, int c) const { return b + c; } };\n"
        "__device__ int f(int a) { return a; }\n"
        "__device__ int g(F f) { return f(1, 2); }\n",
        "__device__ int max(int a, int b, int c) { return a; }\n"
        "__device__ int g() { return max(1, 2) + max(1, 2, 3); }\n",
        "using namespace std; __device__ int f() { pair<int, int> p; return 1; }\n",
        "#include <cutlass/gemm.h>\n__device__ int f(cutlass::Array *s) { return zork; }\n",
        "using namespace thrust; __device__ int f() { return zork(1); }\n",
        "#define N 3\n__device__ int f() { return N + __LINE__ + INT_MAX + (int)FLT_MAX; }\n",
        "__device__ int f() { return cudaSomethingNew(1) + __nv_new(2) + CUDART_NEW; }\n",
        "__device__ int f() { int a = 1; auto g = [&](int b) { return a + b; }; return g(a); }\n",
    ],
)
def test_what_is_none(source):
    assert td.cuda_module(source + KERNEL).kernels[-1] == "k"


def test_all_of_many():
    statements = "\n".join(f"x[{k}] = none{k};" for k in range(50))
    assert len(errors_of(f"__global__ void k(int *x) {{\n{statements}\n}}")) == 50


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("__globl__ void f(int *x) {}", (1, 1), "did you mean __global__?"),
        ("__device___ int f() { return 1; }", (1, 1), "did you mean __device__?"),
        ("static __devce__ int f() { return 1; }", (1, 8), "did you mean __device__?"),
        ("__device__ void f() { __sharred__ int s[2]; }", (1, 23), "did you mean __shared__?"),
        ("struct S { __global__ void f(int *x) {} };", (1, 28), "which cannot be a member"),
        ("template <class T, int N struct S { T a[N]; };", (1, 10), "lack their '>'"),
        ("template <class T, int N void f(T *x) { x[0] = N; }", (1, 10), "lack their '>'"),
        (
            "__global__ void f() { extern __shared__ float s[]; }\n"
            "__global__ void g() { extern __shared__ int s[]; }",
            (2, 45),
            "s is an array of int here, and of float in line 1",
        ),
    ],
)
def test_declarations(source, place, words):
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(f"{source}\n{KERNEL}")
    error = caught.value.errors[0]
    assert (error.line, error.column) == place
    assert words in error.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x[0] = __syncthread();", "did you mean __syncthreads?"),
        ("atomicadd(x, 1);", "did you mean atomicAdd?"),
        ("x[0] = __shfl_dwn_sync(~0u, x[0], 1);", "did you mean __shfl_down_sync?"),
        ("curandState s;", "declared in <curand_kernel.h>: write #include <curand_kernel.h>"),
        ("__nv_fp8x2_e4m3 v;", "declared in <cuda_fp8.h>"),
        ("auto b = cooperative_groups::this_thread_block();", "in <cooperative_groups.h>"),
        ("cub::BlockReduce<int, 32> r;", "declared in <cub/cub.cuh>"),
        ("using namespace nvcuda; wmma::fragment<wmma::accumulator> a;", "declared in <mma.h>"),
        ("x[0] = 089;", "089 begins with 0, so it is octal"),
        ('asm("mov.f32 %0, %1;" : "=r"(y[0]) : "f"(1.0f));', 'float, and its constraint "r"'),
        ('asm("mov.b32 %0, %1;" : "=r"(x[0]) : "r"(l));', 'is long, and its constraint "r"'),
        ('asm("mov.b64 %0, 1;" : "=l"(x[0]));', 'constraint "l" is for integers of 64 bits'),
        ('asm("mov.f32 %0, %1;" : "=f"(y[0]) : "f"(1.0));', "is double"),
        ('asm("mov.b32 %0, %2;" : "=r"(x[0]) : "r"(1));', "names the operand %2"),
        ('asm("mov.b32 %0, 1;" : "r"(x[0]));', 'has the constraint "=r", or "+r" if it is read'),
        ('asm("mov.b32 %0, %1;" : "=r"(x[0]) : "=r"(x[1]));', "an input of asm has the constr"),
        ('asm("mov.b32 %0, %1;" : "=r"(x[0]) : "m"(x[1]));', '"m" of asm is none of CUDA\'s'),
        ('asm("mov.b32 %0, 1;" : "=n"(x[0]));', "for constants, which cannot be outputs"),
        ('asm("mov.b32 %0, %1;" : "=r"(x[0]) : "n"(x[1] + (int)l));', "and l is a variable"),
        ('asm("mov.b32 %0, %1;" : "=r"(x[0]) : "n"(1.5f));', "must be an integer, not 1.5"),
        ("asm(x);", "the text of asm is a string literal"),
        ("if (l) goto none; x[0] = 1;", "the function has no label none"),
        ("on: auto f = [] { goto on; }; f();", "the function has no label on"),
        ("on: x[0] = 1; on: x[1] = 1;", "the function has a label on already, in line 2"),
        ("__constant__ int a[2];", "a is a variable of the function, which cannot be __constant__"),
        ("int a = 1; auto f = [a, a] { return a; };", "a is captured twice"),
        ("int a = 1; auto f = [&, &a] { return a; };", "[&] captures a already"),
        ("mutable int a = 1; x[0] = a;", "a is mutable, which only members of classes are"),
    ],
)
def test_names_and_operands(body, words):
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(f"__global__ void k(int *x, float *y, long l) {{\n{body}\n}}")
    assert caught.value.line == 2
    assert words in caught.value.errors[0].message


def test_operands_like_these():
    lines = (
        'asm("mov.b32 %0, %1;" : "=r"(x[0]) : "r"((unsigned)l));',
        'asm("mov.b64 %0, %1;" : "=l"(l) : "l"(x));',
        'asm("mov.f32 %0, %1;" : "+f"(y[0]) : "f"(1.0f));',
        'asm("mov.b32 %0, %1;" : "=r"(x[0]) : "n"(3));',
        'short s; asm("mov.b16 %0, %1;" : "=h"(s) : "h"((short)1));',
        'asm("mov.f64 %0, 0d3FF0000000000000;" : "=d"(d[0]));',
    )
    body = "\n".join(lines)
    td.cuda_module(f"__global__ void k(int *x, float *y, double *d, long l) {{\n{body}\n}}")


@pytest.mark.parametrize(
    "source",
    [
        "namespace cub { struct A { int a; }; } __device__ int f(cub::A a) { return a.a; }",
        "typedef int __device_t__; __device__ __device_t__ f(__device_t__ a) { return a; }",
        "template <class T, int N = int{3}, class U = decltype(T{})> struct S { T a[N]; };",
        "template <class T, int N = (3 > 2)> struct S { T a[N]; };",
        "struct S { friend __global__ void f(S *s); };",
        "__global__ void f() { extern __shared__ float s[]; }\n"
        "__global__ void g() { extern __shared__ __align__(16) float s[]; }\n"
        "namespace n { __global__ void g() { extern __shared__ int s[]; } }",
    ],
)
def test_declarations_like_these(source):
    assert td.cuda_module(f"{source}\n{KERNEL}").kernels


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "the text is empty"),
        ("int main() { return 0; }", "kernels are the functions with __global__"),
        ("import numpy\n\ndef f(x):\n    return x\n", "This is Python"),
    ],
)
def test_no_kernels(source, words):
    with pytest.warns(CompileWarning, match=f"there are no kernels.*{words}"):
        assert td.cuda_module(source).kernels == ()
