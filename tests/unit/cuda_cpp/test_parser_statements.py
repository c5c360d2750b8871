"""Statements of every kind, and declarations told from expressions."""

import pytest

from tests.support.cuda_syntax import function, shown, statements, variable
from treadle.cuda_cpp.syntax import tree


def kinds(text: str) -> list[str]:
    return [type(statement).__name__ for statement in statements(text)]


def test_each_statement() -> None:
    assert kinds("if (a) b = 1; else b = 2;") == ["If"]
    assert kinds("for (int i = 0; i < 3; ++i) { continue; }") == ["For"]
    assert kinds("for (;;) break;") == ["For"]
    assert kinds("while (a) a--; do a++; while (a < 3);") == ["While", "DoWhile"]
    assert kinds("return; return 3; return {1, 2};") == ["Return"] * 3
    assert kinds("; {} { { } }") == ["Compound"] * 3
    assert kinds("switch (a) { case 1: case 2: b(); break; default: ; }") == ["Switch"]
    assert kinds("for (auto &x : xs) x = 1;") == ["RangeFor"]
    assert kinds("int a; a = 3; a * 3;") == [
        "DeclarationStatement", "ExpressionStatement", "ExpressionStatement",
    ]  # fmt: skip


def test_else_belongs_to_the_nearest_if() -> None:
    (outer,) = statements("if (a) if (b) c(); else d();")
    assert isinstance(outer, tree.If)
    assert outer.otherwise is None
    assert isinstance(outer.then, tree.If)
    assert outer.then.otherwise is not None


def test_a_long_chain_of_else_ifs() -> None:
    (chain,) = statements("if (a == 0) ;" + "".join(f" else if (a == {i}) ;" for i in range(900)))
    length = 0
    while isinstance(chain, tree.If):
        chain, length = chain.otherwise, length + 1
    assert length == 901


def test_heads_of_statements() -> None:
    first, second, third, fourth, fifth = statements(
        """if (int n = f(); n > 2) ; if (int m = g()) ; if constexpr (sizeof(int) == 4) ;
        while (T *p = next()) ; switch (int k = h()) { default: ; }""",
    )
    assert isinstance(first, tree.If)
    assert isinstance(first.initializer, tree.DeclarationStatement)
    assert shown(first.condition) == "(n > 2)"
    assert isinstance(second, tree.If)
    assert shown(second.condition) == "m: int = g()"
    assert isinstance(third, tree.If)
    assert third.constexpr
    assert isinstance(fourth, tree.While)
    assert shown(fourth.condition) == "p: pointer to T = next()"
    assert isinstance(fifth, tree.Switch)
    assert shown(fifth.condition) == "k"
    assert fifth.initializer is not None


def test_for_has_all_parts() -> None:
    (loop,) = statements("for (int i = 0, j = n; i < j; ++i, --j) a[i] = j;")
    assert isinstance(loop, tree.For)
    assert isinstance(loop.initializer, tree.DeclarationStatement)
    assert len(loop.initializer.declarations) == 2
    assert shown(loop.condition) == "(i < j)"
    assert shown(loop.update) == "((++i) , (--j))"


@pytest.mark.parametrize(
    ("pragma", "wanted"),
    [
        ("unroll", 0),
        ("unroll 4", 4),
        ("unroll(8)", 8),
        ("unroll (2 * 3)", "(2 * 3)"),
        ("unroll N", "N"),
        ("unroll 1", 1),
        ("nounroll", 1),
        ("GCC ivdep", None),
    ],
)
def test_unrolling(pragma: str, wanted: object) -> None:
    loops = statements(
        f"int b;\n#pragma {pragma}\nfor (;;) ;\nwhile (b) ;\n#pragma {pragma}\nwhile (b) ;"
    )
    _, first, second, third = loops
    assert isinstance(first, tree.For)
    assert isinstance(second, tree.While)
    assert isinstance(third, tree.While)
    found = [loop.unroll if isinstance(loop.unroll, int | None) else shown(loop.unroll)
             for loop in (first, second, third)]  # fmt: skip
    assert found == [wanted, None, wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int a = 1, *b, &c = a, d[3];",
         "a: int = 1; b: pointer to int; c: reference to int = a; d: array[3] of int"),
        ("float x(1.0f);", "x: float direct {1.0f}"),
        ("auto x([](int i) { return i; });", "x: auto direct {lambda[](i: int -> auto const)}"),
        ("float4 v{1, 2, 3, 4};", "v: float4 direct {1, 2, 3, 4}"),
        ("float4 v(a, b, 0, 1);", "v: float4 direct {a, b, 0, 1}"),
        ("float4 v = {a, b};", "v: float4 = {a, b}"),
        ("S s = {.x = 1, .y = {2, 3}};", "s: S = {.x=1, .y={2, 3}}"),
        ("const float *p;", "p: pointer to const float"),
        ("float const *p;", "p: pointer to const float"),
        ("float *const p = q;", "p: const pointer to float = q"),
        ("const float *__restrict__ p;", "p: restrict pointer to const float"),
        ("volatile int v;", "v: volatile int"),
        ("float (*p)[16];", "p: pointer to array[16] of float"),
        ("float *p[16];", "p: array[16] of pointer to float"),
        ("float (&r)[4] = a;", "r: reference to array[4] of float = a"),
        ("float m[2][3] = {{1, 2, 3}, {4, 5, 6}};",
         "m: array[2] of array[3] of float = {{1, 2, 3}, {4, 5, 6}}"),
        ("float (*f)(int, float) = g;", "f: pointer to function(int, float) to float = g"),
        ("float (*t[2])(int);", "t: array[2] of pointer to function(int) to float"),
        ("int (*p) = q;", "p: pointer to int = q"),
        ("int (x) = 3, (y), *(z);", "x: int = 3; y: int; z: pointer to int"),
        ("int ((*p)) = q;", "p: pointer to int = q"),
        ("int (x[2]);", "x: array[2] of int"),
        ("int (*p)(q);", "p: pointer to int direct {q}"),
        ("int (*const p){q};", "p: const pointer to int direct {q}"),
        ("float4 (&x) = y;", "x: reference to float4 = y"),
        ("auto x = 3;", "x: auto = 3"),
        ("const auto &x = y;", "x: reference to const auto = y"),
        ("auto &&x = y;", "x: rvalue reference to auto = y"),
        ("decltype(a) x = 3;", "x: decltype(a) = 3"),
        ("typename T::value_type x;", "x: T::value_type"),
        ("__shared__ float s[16][16 + 1];", "shared s: array[16] of array[(16 + 1)] of float"),
        ("extern __shared__ char s[];", "extern shared s: array[] of char"),
        ("extern __shared__ __align__(16) char s[];", "extern shared s: array[] of char"),
        ("static const int k = 3;", "static k: const int = 3"),
        ("constexpr int k = 3;", "constexpr k: int = 3"),
        ("struct S s;", "s: S"),
        ("Unknown x;", "x: Unknown"),
        ("Unknown *x;", "x: pointer to Unknown"),
        ("Unknown *x = y;", "x: pointer to Unknown = y"),
        ("const Unknown &x = y;", "x: reference to const Unknown = y"),
        ("Unknown<float, 3> x(y);", "x: Unknown<float, 3> direct {y}"),
        ("ns::Unknown<float>::type x = 1;", "x: ns::Unknown<float>::type = 1"),
        ("ns::Unknown x = 1;", "x: ns::Unknown = 1"),
        ("cg::thread_block_tile<32> t = cg::tiled_partition<32>(b);",
         "t: cg::thread_block_tile<32> = cg::tiled_partition<32>(b)"),
        ("unsigned long long x = 1ull << 40;", "x: unsigned long long = (1ull << 40)"),
        ("int x = a < b, y = c > d;", "x: int = (a < b); y: int = (c > d)"),
        ("__half2 h;", "h: __half2"),
        ("int a[] = {1, 2, 3,};", "a: array[] of int = {1, 2, 3}"),
    ],
)  # fmt: skip
def test_variables(text: str, wanted: str) -> None:
    assert variable(text) == wanted


def test_fundamental_types_in_any_order() -> None:
    spelled = {
        "unsigned": "unsigned int",
        "long unsigned int": "unsigned long",
        "long long": "long long",
        "int long unsigned long": "unsigned long long",
        "signed": "int",
        "short unsigned": "unsigned short",
        "char signed": "signed char",
        "double long": "long double",
        "unsigned char": "unsigned char",
    }
    for written, wanted in spelled.items():
        assert variable(f"{written} x;") == f"x: {wanted}"


def test_products_are_told_from_declarations() -> None:
    before = "__device__ int a, b; typedef float F;"
    for text, wanted in {
        "a * b;": "ExpressionStatement",
        "F * b;": "DeclarationStatement",
        "unknown * b;": "DeclarationStatement",
        "a & b;": "ExpressionStatement",
        "a < b;": "ExpressionStatement",
        "unknown && f();": "ExpressionStatement",
        "a(b);": "ExpressionStatement",
        "F(b);": "DeclarationStatement",  # as in C++
        "F(b + 1);": "ExpressionStatement",
        "F(b) + 1;": "ExpressionStatement",
        "F(a(b));": "ExpressionStatement",
        "a.b = 3;": "ExpressionStatement",
        "f<3>(b);": "ExpressionStatement",
        "ns::f(b);": "ExpressionStatement",
        "unknown[a] * b;": "ExpressionStatement",
    }.items():
        (found,) = statements(text, before)
        assert type(found).__name__ == wanted, text


def test_a_variable_hides_a_type_until_its_block_ends() -> None:
    first, _, last = statements("{ int S = 1; S * b; } int c; S * b;", "struct S {};")
    assert isinstance(first, tree.Compound)
    assert isinstance(first.body[1], tree.ExpressionStatement)
    assert isinstance(last, tree.DeclarationStatement)


def test_local_types() -> None:
    found = statements(
        "struct L { int a; } l = {1}; enum { P, Q = 3 }; typedef int T; using U = T; T t;"
    )
    names = [
        type(declared).__name__
        for statement in found
        if isinstance(statement, tree.DeclarationStatement)
        for declared in statement.declarations
    ]
    assert names == [
        "StructDeclaration", "VariableDeclaration", "EnumDeclaration", "TypedefDeclaration",
        "TypedefDeclaration", "VariableDeclaration",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ('asm volatile("bra end;");', "asm"),
        ('asm("call f;");', "asm"),
        ("try { f(); } catch (const E &e) { } catch (...) { }", "try"),
        ("co_return 3;", "coroutine"),
    ],
)
def test_refused_statements(text: str, construct: str) -> None:
    first, second = statements(f"{text} int z;")
    assert isinstance(first, tree.RefusedStatement)
    assert first.construct == construct
    assert isinstance(second, tree.DeclarationStatement)


def test_attributes_say_nothing_in_statements() -> None:
    assert kinds("[[maybe_unused]] int a; [[likely]] a = 3; switch (a) { [[fallthrough]]; }") == [
        "DeclarationStatement", "ExpressionStatement", "Switch",
    ]  # fmt: skip


def test_a_kernel() -> None:
    kernel = function(
        """__global__ void saxpy(float a, const float *__restrict__ x, float *y, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] += a * x[i];
        }""",
    )
    assert kernel.specifiers == {"global"}
    assert kernel.name.text == "saxpy"
    assert shown(kernel.result) == "void"
    assert [(p.name, shown(p.type)) for p in kernel.parameters] == [
        ("a", "float"),
        ("x", "restrict pointer to const float"),
        ("y", "pointer to float"),
        ("n", "int"),
    ]
