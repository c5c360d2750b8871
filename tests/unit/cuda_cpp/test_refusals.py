"""What C++ has and kernels can't have: each is refused with its place, the reason and a way out."""

from __future__ import annotations

import re

import pytest

import treadle as td
from treadle.core import nesting
from treadle.core.errors import CompileError, CompileErrors
from treadle.cuda_cpp.lower import constant_evaluation


def refused(source: str) -> CompileError:
    """The error of the kernel k. What is wrong is marked by /**/ before it."""
    with pytest.raises(CompileError) as caught:
        td.cuda_module(source).k.source("ir")
    error = caught.value
    if isinstance(error, CompileErrors):
        (error,) = error.errors
    lines = source.split("\n")
    line = next(number for number, text in enumerate(lines, 1) if "/**/" in text)
    column = lines[line - 1].index("/**/") + 5
    assert error.file == "<cuda source>"
    assert (error.line, error.span.column) == (line, column)
    assert f"<cuda source>:{line}:{column}: " in str(error)
    assert lines[line - 1].strip() in str(error)  # the line itself is shown
    return error


def kernel(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void k(float *x, int n)\n{{\n    {body}\n}}\n"


F = "__device__ int f(int a) { return a; }"
DERIVED = "struct A { int a; }; struct B : A { };"
# A name, the code, and words of the message: what it is, why, and what to do instead.
CONSTRUCTS = [
    ("goto into a block", kernel("/**/goto in; if (n) { in: x[0] = 1; }"),
     "goto in leads into a block: put the label in a block around the goto"),
    ("goto back over an object",
     kernel("again: D d; if (n) /**/goto again;", "struct D { __device__ ~D() { clock(); } };"),
     "goto again leads back over an object that ends by code of its class: use a loop"),
    ("an object without bytes", kernel("E /**/e; x[0] = sizeof(e);", "struct E { int a[0]; };"),
     "an object of E has no bytes, as its arrays have length 0: give it a member"),
    ("asm", kernel('/**/asm("mov.u32 %0, %smid;" : "=r"(n));'),
     "inline assembly: %smid is not translated; use"),
    ("asm volatile", kernel('/**/asm volatile("call f;");'),
     "inline assembly: call calls a function by its name"),
    ("try", kernel("/**/try { x[0] = 1; } catch (...) { }"), "try and catch: .*; return an error"),
    ("throw", kernel("if (n) /**/throw 1;"), "throw: device code has no exceptions.*; return"),
    ("calloc", kernel("float *p = (float *)/**/calloc(4, 4);"),
     "calloc: calloc, realloc and alloca .*; use malloc"),
    ("free", kernel("/**/free(x);"), "free and delete take what malloc and new gave"),
    ("two bases with virtual functions",
     kernel("C c; x[0] = c.f();", "struct A { virtual __device__ int f() { return 1; } };\n"
            "struct B { virtual __device__ int g() { return 1; } };\nstruct C : A, /**/B {};"),
     "a second base class with virtual functions: .*; make it the first base"),
    ("recursion that waits",
     kernel("f(x, n);",
            "__device__ void f(float *p, int n) { /**/__syncthreads(); if (n) f(p + 1, n - 1); }"),
     "a function that calls itself waits for other threads here"),
    ("recursion without an end",
     kernel("x[0] = f<0>();", "template <int N> __device__ int f() { return /**/f<N + 1>(); }"),
     "f is a call in 64 others, each of another function"),
    ("a pointer to no member", kernel("A a; int A::*const p = 0; x[0] = a/**/.*p;",
                                      "struct A { int b; };"),
     "this pointer to a member is always null where it is used"),
    ("the size of a pointer to member functions",
     kernel("x[0] = /**/sizeof(A);", "struct A { int (A::*f)(); };"),
     "sizeof of an object with a pointer to member functions"),
    ("a launch of a function", kernel("/**/f<<<1, 1>>>(x);", "__device__ void f(float *x) { }"),
     "f is not a kernel"),
    ("a launch with shared memory",
     kernel("__shared__ float s[2]; /**/c<<<1, 1>>>(s);", "__global__ void c(float *x) { }"),
     "gets pointers to arguments of that kernel"),
    ("a kernel called", kernel("/**/child(x);", "__global__ void child(float *x) { }"),
     "a kernel called as a function: .*; write kernel<<<grid, block>>>"),
    ("a kernel named like a function of CUDA's",
     kernel("x[0] = /**/fabs(x[0]);", "__global__ void fabs(float x) { }"),
     "a kernel called .* \\(fabs is the kernel of line 1 here: rename it to call CUDA's fabs\\)"),
    ("a surface reference", kernel("surf2Dwrite(x[0], /**/s, 0, 0);", "surface<void, 2> s;"),
     "a surface reference: .*; give the kernel a parameter"),
    ("a pointer to functions in memory",
     "struct S { int (*f)(int); };\n__global__ void k(S */**/s) { s->f(1); }",
     "parameter s leads to a pointer to a function in memory"),
    ("a pointer of the file", kernel("g[0] = x[0];", "__device__ float h[4], */**/g = h;"),
     "g has pointers in it, and an initializer: set it on the host"),
    ("a base with padding at its end",
     "struct A { int a; char b; };\nstruct /**/B : A { char c; };\n"
     "__global__ void k(B *x) { x[0].c = 1; }",
     "a base class whose size .*; put a member of that size at the end"),
    ("a struct in itself", "struct S { S /**/a; };\n__global__ void k(S *x) { x[0] = x[1]; }",
     "S contains itself: store an index"),
    ("a number as a pointer", kernel("float *p = /**/(float *)n;"), "an address has 64 bits, and"),
    ("dynamic_cast", kernel("B b; A *a = &b; x[0] = /**/dynamic_cast<B *>(a) != 0;", DERIVED),
     "dynamic_cast: .*; use static_cast"),
    ("typeid", kernel("x[0] = /**/typeid(n).hash_code();"), "typeid: .*; use a tag"),
    ("a wide character", kernel("x[0] = /**/L'a';"), "a character with a prefix .*; write"),
    ("a bit field's address", kernel("B b; int *p = /**/&b.a;", "struct B { int a : 3; };"),
     "a is bits of a word, which has no address"),
    ("a reference to a bit field", kernel("B b; /**/f(b.a);",
                                          "__device__ void f(int &x) {} struct B { int a : 3; };"),
     r"no function f takes \(int\)"),
    ("a wide bit field", kernel("B b;", "struct /**/B { char a : 9; };"), "more than its type"),
    ("a vector in a packed struct", kernel(
        "B b;", "struct __attribute__((packed)) /**/B { char c; float2 v; };"),
     "v has parts, .*a packed struct"),
    ("128 bits", kernel("/**/__int128 a = n;"), "__int128 has 128 bits.*: use two"),
    ("a coroutine", kernel("/**/co_await n;"), "a coroutine: .*; write the steps"),
    ("a lasting variable of a template", kernel(
        "x[0] = f(n);", "template <class T> __device__ T f(T x) { static T /**/c; return c; }"),
     "c is static in a template.*: declare it __device__"),
    ("a variable of a host thread", kernel("thread_local int /**/a = 1;"), "thread_local.*: leave"),
    ("an array of any length", kernel("float a[/**/n];"), "length of an array must be known"),
]  # fmt: skip
# Mistakes rather than constructs.
MISTAKES = [
    ("a recursion without an end", kernel("constexpr int a = f(0); x[0] = a;",
     "constexpr int f(int a) { return /**/f(a + 1); }"), "f calls itself more than 64 levels deep"),
    ("a barrier that is not called", kernel("/**/__syncthreads; x[0] = 1;"),
     "__syncthreads is not called: write __syncthreads"),
    ("an unknown name", kernel("x[0] = /**/y;"), "y is not declared: declare it, or include"),
    ("a function with a typing error", kernel("x[0] = /**/sqrtff(n);"), "did you mean sqrtf"),
    ("a function without a body", kernel("x[0] = /**/f(n);", "__device__ int f(int);"),
     "f is declared here, but not defined in any included file: include its definition"),
    ("a wrong number of arguments", kernel("x[0] = /**/f(n, n);", F),
     "f of line 1 takes 1 argument, not 2"),
    ("no such member", kernel("A a; x[0] = a./**/z;", DERIVED), "A has no member z; its fields: a"),
    ("a method with a typing error",
     kernel("M m; x[0] = m./**/gte();", "struct M { int a; __device__ int get() { return a; } };"),
     "did you mean get.*its methods: get"),
    ("a member of a pointer", kernel("A *a = new A; x[0] = a./**/a;", DERIVED), "write ->a"),
    ("a remainder of floats", kernel("x[0] = x[1] /**/% 2;"), "integers, not float: use fmod"),
    ("a shift of floats", kernel("x[0] = x[1] /**/<< 2;"), "integers, not float and int: multiply"),
    ("a sum of vectors", kernel("float4 a = {1}; a = a /**/+ a;"), r"no operator \+ for float4"),
    ("writing a constant", kernel("c /**/= 1;", "__constant__ int c;"),
     "c is __constant__, so kernels only read it. Set it on the host"),
    ("writing a value", kernel("n + 1 /**/= 2;"), "cannot be assigned to"),
    ("a break without a loop", kernel("/**/break;"), "break is not in a loop or switch"),
    ("a continue in a switch", kernel("switch (n) { case 1: if (n) /**/continue; n++; }"),
     "continue is not in a loop"),
    ("a case without a switch", kernel("/**/case 1: ;"), "case and default must be directly in"),
    ("a value returned", kernel("/**/return 1;"), "k returns void, so a return has no value"),
    ("a kernel with a result", "__global__ int /**/k(int *x) { return 1; }",
     "k returns a value: a kernel returns void"),
    ("a void pointer followed", "__global__ void k(void *x) { /**/*x = 1; }",
     "cast it to another type"),
    ("a struct as a number", kernel("A a = {1}; x[0] /**/= a;", DERIVED),
     "does not convert to float"),
    ("a pointer to something else", kernel("int */**/p = x;"), "cast it to access its bytes"),
    ("a null pointer followed", kernel("float *p = 0; p/**/[0] = 1;"), "is always null"),
    ("pointers into different arrays",
     "__global__ void k(float *x) { float y[2]; *x = y /**/- x; }", "point into different arrays"),
    ("an assertion", kernel("x[0] = 1;", '/**/static_assert(sizeof(int) == 8, "small");'),
     "static_assert failed: small"),
    ("an assertion in a kernel", kernel("/**/static_assert(sizeof(n) > 4);"),
     "static_assert failed: its condition is false"),
    ("an assertion in a class",
     kernel("A a;", "struct A { int a;\n/**/static_assert(sizeof(int) == 2, \"two\"); };"),
     "static_assert failed: two"),
    ("a jump over a first value", kernel("switch (n) { case 0: /**/int a = 1; case 1: x[a] = 1; }"),
     "a later case jumps past the initialization of this variable: put the case in braces"),
    ("the host's library", kernel("/**/std::vector<int> v;", "#include <vector>"),
     r"std::vector is from the C\+\+ standard library.*: use an array"),
    ("output streams", kernel("/**/std::cout << n;", "#include <iostream>"),
     "std::cout is for host code: kernels print by printf"),
    ("CUDA's own library", kernel("/**/cudaMemcpy(x, x, 4, cudaMemcpyHostToDevice);"),
     "host library, which a kernel can't call"),
    ("a function of the host", kernel("x[0] = /**/f(n);", "int f(int a) { return a; }"),
     r"f is a host function: declare it __device__ \(or __host__ __device__\), so"),
    ("a variable of the host", kernel("x[0] = /**/h;", "int h = 4;"),
     "h is a host variable: declare it __device__ or __constant__"),
    ("a scoped enum as a number", kernel("x/**/[E::A] = 1;", "enum class E { A };"),
     "a number is "),
    ("an ambiguous list", kernel("auto /**/a = {1, 2.5f};"),
     "cannot be deduced: the list has a value of type int and one of type float"),
    ("a list without its header", kernel("auto /**/a = {1, 2};"), "#include <initializer_list>"),
    ("a pointer in a template of variables", kernel("x[0] = *many<int>;",
                                                    "template <class T> __device__ T */**/many;"),
     "many<int> is an instance of a template of variables, and has pointers in it"),
    ("a template of variables that is not defined", kernel(
        "x[0] = /**/M<int>::many<float>;",
        "template <class T> struct M { template <class U> static __device__ U many; };"
        "template <class T> template <class U> __device__ U M<T>::many = 2;"),
     "make it inline, with its initializer in the class"),
    ("a kept pointer to an instance of variables", kernel(
        "kept /**/= &many<float>;",
        "template <class T> __device__ T many = 2; __device__ float *kept;"),
     "is not kept in memory that other kernels read"),
    ("an empty reference", kernel("int &/**/r;"), "has no initializer"),
    ("too many values", kernel("int /**/a[2] = {1, 2, 3};"), "3 values for an array of 2"),
    ("a field that is none", kernel("A a = /**/{.z = 1};", DERIVED), "A has no field z"),
    ("a write through a pointer to const",
     kernel("const float *p = x; p[1] /**/= 2;"), "this float is const, so it cannot be"),
    ("a write to a constant", kernel("const int c = x[0]; c /**/= 2;"),
     "int is const, so it cannot be"),
    ("a write to a constant array",
     kernel("const int c[2] = {1, 2}; c[0] /**/= 2;"), "int is const, so it cannot be"),
    ("a write to a constant's field", kernel("const A a{1}; a = 1;", "struct A { int b;"
     "__device__ A &operator=(int v) { b /**/= v; return *this; } };"),
     "int is const, so it cannot be"),
    ("a write in a const method", kernel("A a; a.f();",
     "struct A { int b; __device__ void f() const { b /**/= 1; } };"),
     "f is declared const, so it cannot change its object"),
    ("a write through a reference to const",
     kernel("f(x[0]);", "__device__ void f(const float &r) { r /**/= 1; }"),
     "is const, so it cannot be"),
    ("an atomic on what is const",
     kernel("const float *p = x; /**/atomicAdd(p, 1);"), "float is const, so it cannot be"),
    ("a constant pointer",
     kernel("float *const p = x; p /**/= x + 1;"), "this pointer is const"),
    ("a pointer that loses its const",
     kernel("const float *p = x; float */**/q = p;"),
     r"a const float\* does not convert to float\*"),
    ("a const argument", kernel("const float *p = x; /**/f(p);", "__device__ void f(float *q) {}"),
     r"a const float\* does not convert to float\*"),
    ("a reference to another type", kernel("int &/**/r = x[0];"), "cannot refer to a value"),
    ("a second variable of a name",
     kernel("int a = 1;\nint /**/a = 2; x[0] = a;"), "a is declared here already, in line"),
    ("a variable called as a parameter",
     kernel("x[0] = f(1);", "__device__ int f(int a) { int /**/a = 2; return a; }"),
     "a is declared here already"),
    ("half a number in braces", kernel("int i{/**/2.5};"), "2.5 in braces does not convert to int"),
    ("a large number in braces", kernel("int a[2] = {1, /**/5000000000};"),
     "does not convert to int"),
    ("a number in a field", kernel("A a{/**/300};", "struct A { char c; };"),
     "does not convert to char"),
    ("a number in a constant", kernel("x[0] = c[0];", "__constant__ unsigned c[1] = {/**/-1};"),
     "-1 in braces does not convert to unsigned int"),
    ("a volatile number as a constant",
     kernel("x[0] = /**/v;", "static volatile int v = 3;"), "v is a host variable"),
    ("a lasting variable without a constant", kernel("static int /**/v = n; x[0] = v++;"),
     "v is static"),
]  # fmt: skip


def cases(table):
    return pytest.mark.parametrize(
        ("source", "words"), [pytest.param(*rest, id=name) for name, *rest in table]
    )


@cases(CONSTRUCTS)
def test_constructs(source, words):
    message = refused(source).message
    assert re.search(words, message), message


@pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")
@cases(MISTAKES)
def test_mistakes(source, words):
    message = refused(source).message
    assert re.search(words, message), message


ALLOWED = """
struct M { int a; mutable int m; __device__ int get() const { m++; return a + m; } };
template <class T> __device__ T last(T *p, int n) { T *q = p; q += n - 1; return *q; }
struct D { int a = 2.5; };
__global__ void k(const int *in, int *x) {
    const M m{3, 4}; x[0] = m.get();
    x[1] = last(in, 2);
    const int *p = in; p++; x[2] = *p;
    int *w = const_cast<int *>((const int *)x); w[3] = 6;
    const int &r = x[4]; const_cast<int &>(r) = 8;
    int *const f = x; f[5] = 9;
    volatile bool done = false; volatile int n = 0; while (!done) { n++; if (n > 3) done = true; }
    x[6] = n;
    D d; int i(3.7); const unsigned char text[] = "\xc3"; float q{1e-50}; x[7] = d.a + i + text[0];
    { int i = 1; x[8] = i; }
}
"""


def test_what_looks_like_these_mistakes():
    x = td.zeros(9, dtype=td.int32, device="cpu")
    td.cuda_module(ALLOWED).k[1, 1](td.asarray([5, 7], dtype=td.int32, device="cpu"), x)
    assert x.tolist() == [8, 7, 7, 6, 8, 9, 4, 2 + 3 + 0xC3, 1]


def test_a_constant_without_an_end(monkeypatch):
    monkeypatch.setattr(constant_evaluation, "_MOST_STEPS", 1000)
    source = kernel(
        "constexpr int /**/a = f(); x[0] = a;",
        "constexpr int f() { int a = 0; while (true) { a++; } return a; }",
    )
    assert "a takes more than 1,000 statements to compute" in refused(source).message


def test_instances_without_an_end(monkeypatch):
    monkeypatch.setattr(nesting, "_FRAMES", 4000)
    source = kernel(
        "/**/x[0] = F<0>::v;", "template <int N> struct F { static const int v = F<N + 1>::v; };"
    )
    assert "instances of F need other instances of it" in refused(source).message
