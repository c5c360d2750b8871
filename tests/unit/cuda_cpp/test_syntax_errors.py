"""Errors in device code: where they are, what was expected, and that reading goes on after them."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cuda_syntax import FILE, error_lines, parsed
from treadle.cuda_cpp.source.preprocessor import preprocess
from treadle.cuda_cpp.source.tokens import Token
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.translation_unit import parse


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("int a = 3 int b;", 2, "expected ';' after the declaration, found 'int'"),
        ("int a = 3\n int b;", 2, "expected ';' after the declaration, found 'int'"),
        ("a = ;", 2, "expected an expression, found ';'"),
        ("a + b c;", 2, "expected ';' after the expression, found 'c'"),
        ("f(a b);", 2, "expected ',' or ')' after the argument, found 'b'"),
        ("f(a;", 2, "expected ',' or ')' after the argument, found ';'"),
        ("(a;", 2, "expected ')' after the expression, found ';'"),
        ("a[3;", 2, "expected ']' after the index, found ';'"),
        ("if a) b;", 2, "expected '(' after 'if', found 'a'"),
        ("for (int i = 0; i < 3) a;", 2, "expected ';' after the condition of 'for', found ')'"),
        ("while (3 b;", 2, "expected ')' after the condition of 'while', found 'b'"),
        ("do a(); until (b);", 2, "expected 'while' after the body of 'do', found 'until'"),
        ("else a;", 2, "'else' without an 'if' before it"),
        ("switch (a) { case 1 b; }", 2, "expected ':' after the value of 'case', found 'b'"),
        ("int 3;", 2, "expected a name to declare, found '3'"),
        ("a.3;", 2, "expected ';' after the expression, found '.3'"),
        ("a->;", 2, "expected the name of a member, found ';'"),
        ("static_cast<int a;", 2, "expected '>' after the type of the cast, found 'a'"),
        ("unsigned float x;", 2, "'unsigned float' is not a type"),
        ("break int;", 2, "expected ';' after 'break', found 'int'"),
        ("int x = 09;", 2, "09 begins with 0, so it is octal, which has no digits 8 and 9"),
        ("a ? b;", 2, "expected ':' between the two operands after '?', found ';'"),
        ("@ a;", 2, "'@' is not a token of C++: expected an expression, found '@'"),
        ("__shared__ float s[4;", 2, "expected ']' after the size of the array, found ';'"),
        ("int a[] = {1, 2;", 1, "the '{' of the function's body is never closed"),
        ("int a[] = {1, 2;}", 2, "expected '}' at the end of the list, found ';'"),
    ],
)
def test_what_was_expected(text: str, line: int, message: str) -> None:
    errors = parsed(f"__device__ void f() {{\n{text}\n}}\n__device__ int after;").errors
    assert [error.message for error in errors] == [message]
    assert errors[0].line == line


def test_an_error_shows_its_line_and_a_caret() -> None:
    (error,) = parsed("__device__ void f() {\n    int a = 3 int b;\n}").errors
    assert str(error).splitlines() == [
        f"{FILE}:2:15: expected ';' after the declaration, found 'int'",
        "    2 |     int a = 3 int b;",
        "      |               ^^^",
    ]


def test_a_function_without_a_type() -> None:
    (error,) = parsed("__global__ k(float *x) { x[0] = 1; }").errors
    assert error.message == "expected a type before 'k'"
    assert error.column == 12


def test_several_errors_of_a_file_and_none_twice() -> None:
    text = """__global__ void first(int *p) {
    p[0] = ;
    int x = 3
    p[1] = x;
    if (p[2] { p[3] = 1; }
    for (int i = 0; i < 3; ++i { p[i] = 0; }
    { { p[4] = = 5; } p[6] = 7 8; }
}
__device__ int good(int a) { return a; }
__device__ int bad(int a { return a; }
struct S {
    __device__ int m() { return 3 4; }
    int x y;
    int z;
};
__device__ int last() { return 1 }
"""
    assert error_lines(text) == [2, 3, 5, 6, 7, 7, 10, 12, 13, 16]


def test_what_follows_an_error_is_read() -> None:
    result = parsed(
        "__device__ void f() { int = ; int good; }\n__device__ int x = ;\n__device__ int y;"
    )
    first, *_, last = result.unit.declarations
    assert isinstance(first, tree.FunctionDeclaration)
    assert first.body is not None
    assert len(first.body.body) == 1
    assert isinstance(last, tree.VariableDeclaration)
    assert last.name == "y"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("struct S { __device__ S(); int x; }\n__global__ void k() { }", 1),
        ("__device__ int x\n__global__ void k() { }", 1),
        ("__device__ int f(int a)\n__global__ void k() { }", 1),
        ("__global__ void j() {\n if (a) {\n}\n__global__ void k() { }", 1),
        ("__global__ void j() { } }\n__global__ void k() { }", 1),
        ("template <class T __device__ T f();\n__global__ void k() { }", 1),
        ("__device__ S<int f();\n__global__ void k() { }", 1),
        ("__constant__ int a[3;\n__global__ void k() { }", 1),
    ],
)
def test_a_kernel_after_an_error_is_found(text: str, line: int) -> None:
    result = parsed(text)
    assert [error.line for error in result.errors] == [line]
    kernels = [d for d in result.unit.declarations if isinstance(d, tree.FunctionDeclaration)]
    assert kernels[-1].name.text == "k"


def test_there_are_no_more_errors_than_one_reads() -> None:
    text = "__device__ void f() {\n" + "int = ;\n" * 100 + "}\n" + "__device__ = ;\n" * 100
    assert len(parsed(text).errors) == 20


DEEP = 5_000
NESTED = {
    "parentheses": f"a = {'(' * DEEP}a{')' * DEEP};",
    "brackets": f"{'a[' * DEEP}0{']' * DEEP};",
    "subscripts": f"a{'[0]' * DEEP};",
    "blocks": "{" * DEEP + "}" * DEEP,
    "ifs": "if (a) " * DEEP + ";",
    "prefixes": "- " * DEEP + "a;",
    "casts": "(int)" * DEEP + "a;",
    "calls": "f(" * DEEP + ")" * DEEP + ";",
    "braces": f"int a[] = {'{' * DEEP}{'}' * DEEP};",
    "sums": "a" + " + a" * DEEP + ";",
    "commas": "a" + ", a" * DEEP + ";",
    "assignments": "a" + " = a" * DEEP + ";",
    "conditions": "a" + " ? a : a" * DEEP + ";",
    "template arguments": "x<" * DEEP + "a" + "> " * DEEP + " y;",
    "comparisons": "x" + " < x" * DEEP + ";",
    "stars": f"int {'*' * DEEP}p;",
    "declarators": f"int {'(*' * DEEP}p{')' * DEEP};",
    "functions": f"int p{'(int' * DEEP}{')' * DEEP};",
    "structs": "struct A {" * DEEP + "};" * DEEP,
    "else ifs": "if (a) ;" + " else if (a) ;" * DEEP,
    "deletes": "delete " * DEEP + "a;",
    "sizeofs": "sizeof " * DEEP + "a;",
    "lambdas": "[] { " * DEEP + "} " * DEEP + ";",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_ends_in_an_error(name: str) -> None:
    text = f"__device__ void f(int a) {{ {NESTED[name]} }}\n__device__ int after;"
    result = parsed(text)
    if name != "lambdas":  # they are refused without being read
        assert [error.line for error in result.errors] == [1]
    assert isinstance(result.unit.declarations[-1], tree.VariableDeclaration)


@pytest.mark.parametrize(
    "text",
    ["namespace a {" * DEEP, 'extern "C" {' * DEEP, "template <" * DEEP, "x < " * DEEP, "}" * DEEP,
     "template <class " * DEEP, "struct A : " * DEEP, "__device__ x<a, " * DEEP, "x ( " * DEEP,
     "template <template <" * DEEP, "__device__ void f() { x<y<" * DEEP, "A::" * DEEP,
     "__device__ } " * DEEP, "struct A { void f() { " * DEEP, "operator " * DEEP],
)  # fmt: skip
def test_nonsense_takes_linear_time(text: str) -> None:
    own = preprocess(text, FILE)
    started = time.process_time()
    parse(own.tokens, own.texts, FILE)
    assert time.process_time() - started < 2


def test_a_thousand_lines_take_a_fraction_of_a_second() -> None:
    kernel = """__global__ void k%d(const float *__restrict__ x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float s[16][17];
    for (int j = 0; j < n && j < 16; ++j) {
        s[j][threadIdx.x %% 16] = fmaf(x[i * n + j], 2.0f, (float)(j + 1));
        y[i] += s[j][(threadIdx.x + 1) %% 16] * x[j] - (i < n ? y[j] : 0.0f);
    }
    if (i < n) y[i] = sqrtf(y[i]);
}
"""
    own = preprocess("".join(kernel % number for number in range(110)), FILE)
    started = time.process_time()
    assert not parse(own.tokens, own.texts, FILE).errors
    assert time.process_time() - started < 0.5


SOURCES = (
    """template <typename T, int N = 4> struct V { T x[N]; __device__ V(T a) : x{a} { }
       __host__ __device__ T &operator[](int i) { return x[i]; } };
       template <class T> __global__ void __launch_bounds__(256)
       k(const V<T> *__restrict__ v, T *o) {
         __shared__ T s[16][17]; int i = blockIdx.x * blockDim.x + threadIdx.x, *p = &i;
         #pragma unroll 4
         for (int j = 0; j < 4 && i > (j); ++j) { s[j][i] += (T)v[i][j] * T(3.0f); }
         if (i < 3) o[i] = f<3>(s[0][i] >> 2); else if (i == 4) return; else { goto end; }
         switch (*p) { case 1: case 'a': break; default: o[0] = a ? b : sizeof(float4); }
         end: child<<<1, 2>>>(o); do { i--; } while (i); float4 q = {1, .y = 2}; }""",
    """namespace a { enum class E : int { A, B = 3 }; typedef struct { float x; } S;
       using F = float;
       constexpr int f(int x) { return x << 2; } __constant__ float c[3] = {1, 2, 3}; }
       int main() { std::vector<int> v{1}; k<<<1, 2>>>(v); return [&] { return 1; }(); }
       extern "C" __device__ auto g(float (*p)[4], unsigned long x = 3u) -> float { asm("x");
       try { } catch (...) { } auto [m, n] = h();
       for (auto &e : es) e->f<int>(1) = new int[3]; return *p[1]; }""",
)
TOKENS = tuple(
    [token for token in preprocess(source, FILE).tokens if token.file == FILE] for source in SOURCES
)


def mutated(which: int, seed: int) -> list[Token]:
    """The tokens of a source, some removed, doubled, swapped or replaced."""
    drawn = random.Random(seed)
    tokens = list(TOKENS[which])
    for _ in range(drawn.choice((1, 1, 2, 4, 16))):
        at, other = drawn.randrange(len(tokens)), drawn.randrange(len(tokens))
        change = drawn.randrange(5)
        if change == 0:
            del tokens[at]
        elif change == 1:
            tokens.insert(at, tokens[at])
        elif change == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif change == 3:
            tokens[at] = tokens[other]
        else:
            tokens[at:at] = tokens[other : other + 12]
    return tokens


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(SOURCES) - 1), st.integers(0, 1 << 32))
def test_any_tokens_give_errors_only(which: int, seed: int) -> None:
    started = time.process_time()
    result = parse(mutated(which, seed), {}, FILE)
    assert time.process_time() - started < 1
    assert all(str(error) for error in result.errors)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="abx 019(){}[]<>;:,.*&=+-!?~#'\"\\\n@_/", max_size=200))
def test_any_text_gives_errors_only(text: str) -> None:
    read = preprocess("__device__ void f() {" + text, FILE)
    parse(read.tokens, read.texts, FILE)


@pytest.mark.parametrize(
    "text", ["namespace [[ x {", "namespace __attribute__ {", "namespace", "inline"]
)
def test_a_namespace_that_is_none(text: str) -> None:
    assert not parsed(f"{text}\n;\n").errors


def test_a_fold_of_nothing() -> None:
    (error,) = parsed("__device__ int f() { return (...); }").errors
    assert "expected an operator beside '...'" in error.message


def test_no_tokens_at_all() -> None:
    assert parse((), {}, FILE).unit.declarations == ()
