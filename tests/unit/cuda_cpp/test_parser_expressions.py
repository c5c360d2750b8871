"""Expressions: precedence, grouping, and what C++ makes ambiguous."""

import pytest

from tests.support.cuda_syntax import expression, parsed, statements
from treadle.cuda_cpp.syntax import tree


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a * b + c", "((a * b) + c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a << b + c", "(a << (b + c))"),
        ("a < b == c > d", "((a < b) == (c > d))"),
        ("a & b == c", "(a & (b == c))"),
        ("a | b ^ c & d", "(a | (b ^ (c & d)))"),
        ("a || b && c || d", "((a || (b && c)) || d)"),
        ("a and not b or c", "((a && (!b)) || c)"),
        ("a = b += c", "(a = (b += c))"),
        ("a = b ? c : d ? e : f", "(a = (b ? c : (d ? e : f)))"),
        ("a ? b, c : d = e", "(a ? (b , c) : (d = e))"),
        ("a, b, c", "((a , b) , c)"),
        ("a = b, c", "((a = b) , c)"),
        ("-a * !b", "((-a) * (!b))"),
        ("- -a", "(-(-a))"),
        ("~a++", "(~(a++))"),
        ("*p++", "(*(p++))"),
        ("++*p", "(++(*p))"),
        ("&a[i]", "(&a[i])"),
        ("*a.b", "(*a.b)"),
        ("a->b.c[d](e)", "a->b.c[d](e)"),
        ("a % b / c", "((a % b) / c)"),
        ("a >> b >> c", "((a >> b) >> c)"),
        ("a >>= b <<= c", "(a >>= (b <<= c))"),
        ("a != b <= c", "(a != (b <= c))"),
        ("(a, b)", "(a , b)"),
        ("f()(a)[b]", "f()(a)[b]"),
        ("f(a, {b, c}, {})", "f(a, {b, c}, {})"),
        ("a = {1, 2}", "(a = {1, 2})"),
        ("this->x = 3", "(this->x = 3)"),
        ("sizeof a + b", "(sizeof(a) + b)"),
        ("sizeof(int) * 2", "(sizeof(int) * 2)"),
        ("sizeof(a) * 2", "(sizeof(a) * 2)"),
        ("sizeof(a[0])", "sizeof(a[0])"),
        ("sizeof(float4 *)", "sizeof(pointer to float4)"),
        ("sizeof(int[4])", "sizeof(array[4] of int)"),
        ("alignof(double)", "alignof(double)"),
        ("sizeof...(args)", "sizeof...(args)"),
        ("nullptr == p", "(nullptr == p)"),
        ("NULL == p", "(nullptr == p)"),
        ("true || false", "(true || false)"),
        ("::f(a)", "::f(a)"),
        ("a::b::c", "a::b::c"),
        ("new int[a + 3] + b", "(new int[(a + 3)] + b)"),
        ("new (p) float(3)", "new (p) float {3}"),
        ("new float *", "new pointer to float"),
        ("new int2{1, a}", "new int2 {1, a}"),
        ("delete p, b", "(delete p , b)"),
        ("delete[] a++", "delete[] (a++)"),
    ],
)
def test_operators_group_as_in_cpp(text: str, wanted: str) -> None:
    before = "__device__ int a, b, c, d, e, *p, i;"
    assert expression(text, before) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("(float)a * b", "(c<float>(a) * b)"),
        ("(float)a[0]", "c<float>(a[0])"),
        ("(float)-a", "c<float>((-a))"),
        ("(float4 *)p", "c<pointer to float4>(p)"),
        ("(unsigned char)(a + b)", "c<unsigned char>((a + b))"),
        ("(int)(float)a", "c<int>(c<float>(a))"),
        ("(const float *const)p", "c<const pointer to const float>(p)"),
        ("(void)a", "c<void>(a)"),
        ("(float (*)[4])p", "c<pointer to array[4] of float>(p)"),
        ("(a) * b", "(a * b)"),
        ("(a)(b)", "a(b)"),
        ("(a) - b", "(a - b)"),
        ("(S) - b", "c<S>((-b))"),
        ("(S)b", "c<S>(b)"),
        ("(Unknown)b", "c<Unknown>(b)"),
        ("(Unknown *)b", "c<pointer to Unknown>(b)"),
        ("(Unknown *)&b", "c<pointer to Unknown>((&b))"),
        ("(Unknown) - b", "(Unknown - b)"),
        ("(Unknown) * b", "(Unknown * b)"),
        ("(S){1, 2}", "new_value S{1, 2}"),
        ("-float(a)", "(-new_value float(a))"),
        ("float(a) + b", "(new_value float(a) + b)"),
        ("-unsigned(a)", "(-new_value unsigned int(a))"),
        ("int{3}", "new_value int{3}"),
        ("S(a, b).x", "new_value S(a, b).x"),
        ("S{a}.x", "new_value S{a}.x"),
        ("float4{1, 2, 3, 4}.w", "new_value float4{1, 2, 3, 4}.w"),
        ("dim3(1, 2)", "new_value dim3(1, 2)"),
        ("static_cast<int>(a)", "static_cast<int>(a)"),
        ("const_cast<float *>(p)[1]", "const_cast<pointer to float>(p)[1]"),
        (
            "reinterpret_cast<const float4 *>(&a)[b]",
            "reinterpret_cast<pointer to const float4>((&a))[b]",
        ),
        ("static_cast<V<V<int>>>(a)", "static_cast<V<V<int>>>(a)"),
    ],
)
def test_casts_are_told_from_parentheses(text: str, wanted: str) -> None:
    before = """struct S { int x; }; template <class T> struct V { T x; };
        __device__ int a, b; __device__ float *p;"""
    assert expression(text, before) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a < b", "(a < b)"),
        ("a < b && c > (a)", "((a < b) && (c > a))"),
        ("a < b > (c)", "((a < b) > c)"),
        ("f<3>(a)", "f<3>(a)"),
        ("f<float, 4>(a) < b", "(f<float, 4>(a) < b)"),
        ("f<float>", "f<float>"),
        ("f<a + 1>(b)", "f<(a + 1)>(b)"),
        ("f<(a > b)>(c)", "f<(a > b)>(c)"),
        ("f<a >= b>(c)", "f<(a >= b)>(c)"),
        ("f<V<float>>(a)", "f<V<float>>(a)"),
        ("f<V<V<float>>, 3>(a)", "f<V<V<float>>, 3>(a)"),
        ("f<V<V<V<int>>>>(a)", "f<V<V<V<int>>>>(a)"),
        ("f<const float *>(a)", "f<pointer to const float>(a)"),
        ("f<a, b>(c) >> 2", "(f<a, b>(c) >> 2)"),
        ("f<>(a)", "f<>(a)"),
        ("unknown<float>(a)", "unknown<float>(a)"),
        ("unknown<3>(a)", "unknown<3>(a)"),
        ("unknown < a && b > (c)", "((unknown < a) && (b > c))"),
        ("(unknown < a, b > c)", "((unknown < a) , (b > c))"),
        ("ns::unknown<float, 3>(a)", "ns::unknown<float, 3>(a)"),
        ("ns::unknown<V<float>>::value", "ns::unknown<V<float>>::value"),
        ("V<float>::value < 3", "(V<float>::value < 3)"),
        ("V<float>{a}", "new_value V<float>{a}"),
        ("-V<float>(a)", "(-new_value V<float>(a))"),
        ("a.x < b.x", "(a.x < b.x)"),
        ("a.x < b.x && b.y > (c)", "((a.x < b.x) && (b.y > c))"),
        ("a.get<3>(b)", "a.get<3>(b)"),
        ("a.template get<3>(b)", "a.get<3>(b)"),
        ("blockIdx.x < a", "(blockIdx.x < a)"),
        ("a < (b >> 2)", "(a < (b >> 2))"),
        ("min(a < b, c > a)", "min((a < b), (c > a))"),
        ("variable<float> + 1", "(variable<float> + 1)"),
    ],
)
def test_angle_brackets(text: str, wanted: str) -> None:
    before = """template <class T, int N = 3> __device__ T f(T a);
        template <class T> struct V { T x; }; template <class T> __device__ T variable;
        __device__ int a, b, c;"""
    assert expression(text, before) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", "0"),
        ("42u", "42u"),
        ("0xFFul", "255ul"),
        ("0b101", "5"),
        ("017", "15"),
        ("1'000'000LL", "1000000ll"),
        ("18446744073709551615ULL", "18446744073709551615ull"),
        ("1.5", "1.5"),
        ("1.f", "1.0f"),
        (".5F", "0.5f"),
        ("1e-3", "0.001"),
        ("0x1.8p3", "12.0"),
        ("1.5L", "1.5l"),
        ("'a'", "char 97"),
        (r"'\n'", "char 10"),
        (r"'\x41'", "char 65"),
        (r"'\377'", "char -1"),
        (r"'\0'", "char 0"),
        (r"'\''", "char 39"),
        ('"a" "b\\n"', r"'ab\n'"),
        ('"%d\\t\\"x\\""', "'%d\\t\"x\"'"),
        ('R"(a\\n)"', "'a\\\\n'"),
        ("L'a'", "REFUSED wide_character"),
        ("'ab'", "24930"),
        ('L"a"', "REFUSED wide_string"),
        ("12_km", "12_km"),
        ("'a'_x", "char 97_x"),
        ('"a"_x', "'a'_x"),
    ],
)
def test_literals(text: str, wanted: str) -> None:
    assert expression(text) == wanted


def test_decimal_literals_are_told_from_others() -> None:
    found = [
        statement.expression.decimal
        for statement in statements("10; 0x10; 010; 0b1; 0;")
        if isinstance(statement, tree.ExpressionStatement)
        and isinstance(statement.expression, tree.IntegerLiteral)
    ]
    assert found == [True, False, False, False, False]


def test_a_float_is_rounded_once() -> None:
    # Just above the middle between 1 and the next float, which a double can't tell from the middle.
    (found,) = statements("1.000000059604644775390625000000000001f;")
    assert isinstance(found, tree.ExpressionStatement)
    assert isinstance(found.expression, tree.FloatLiteral)
    assert found.expression.value > 1 + 2.0**-24


@pytest.mark.parametrize(
    "text", ["08", "1.5x", "0x", "1uu", "99999999999999999999", r"'\q'", "1..2"]
)
def test_what_is_no_literal(text: str) -> None:
    (error,) = parsed(f"__device__ void f() {{ int a = {text}; }}").errors
    assert error.line == 1


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("throw 3", "throw"),
        ("a ? b : throw 3", "throw"),
        ("dynamic_cast<S *>(p)", "dynamic_cast"),
        ("typeid(a)", "typeid"),
        ("co_await a", "coroutine"),
    ],
)
def test_what_is_refused_by_name(text: str, construct: str) -> None:
    assert f"REFUSED {construct}" in expression(text, "struct S {}; __device__ int a, b;")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[](int x) { return x; }", "lambda[](x: int -> auto const)"),
        (
            "[&, a, this](int x, float) { return x; }",
            "lambda[& a this](x: int, float -> auto const)",
        ),
        (
            "[=, &b] __device__ (auto x) mutable -> int { return x; }",
            "lambda[= &b](x: auto:0 -> int)",
        ),
        ("[x = a + 1, y{b}] { return x; }", "lambda[x = (a + 1) y = {b}]( -> auto const)"),
        ("[&] { return a; }()", "lambda[&]( -> auto const)()"),
        ("[*this]<typename T>(T x) noexcept { }", "lambda[this](x: T -> auto const)"),
    ],
)
def test_lambdas(text: str, expected: str) -> None:
    assert expression(text, "__device__ int a, b;") == expected


def test_a_launch_from_device_code() -> None:
    assert expression("child<<<a, b, 0, s>>>(x, y)") == "child<<<>>>(x, y)"
    assert expression("child<float><<<dim3(a, 1), b>>>(x)") == "child<float><<<>>>(x)"
    assert expression("child<<<(a + 3) >> 2, b>>>(x)") == "child<<<>>>(x)"


def test_places() -> None:
    (found,) = statements("a = b\n    + c.d;")
    assert isinstance(found, tree.ExpressionStatement)
    assert isinstance(found.expression, tree.Assign)
    value = found.expression.value
    assert isinstance(value, tree.Binary)
    assert (value.span.line, value.span.column) == (4, 5)
    assert isinstance(value.right, tree.Member)
    assert (value.right.span.line, value.right.span.column) == (4, 9)
