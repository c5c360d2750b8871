"""Macros, conditions and headers, as C++ has them; and files that are wrong in every way."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.core.errors import CompileError
from treadle.cuda_cpp.source.preprocessor import Preprocessed, preprocess
from treadle.cuda_cpp.source.tokens import Token

FILE = "kernel.cu"


def user_tokens(result: Preprocessed) -> list[Token]:
    """The tokens without those of our own headers and without the END."""
    return [token for token in result.tokens[:-1] if not token.file.startswith("<")]


def expanded(text: str, **options: object) -> str:
    """The text after preprocessing, its tokens a space apart; it must have no errors."""
    result = preprocess(text, FILE, **options)  # type: ignore[arg-type]
    assert [str(error) for error in result.errors] == []
    return " ".join(token.text for token in user_tokens(result))


def errors(text: str, **options: object) -> list[CompileError]:
    result = preprocess(text, FILE, **options)  # type: ignore[arg-type]
    assert result.tokens[-1].kind == "end"
    return list(result.errors)


def error(text: str, **options: object) -> CompileError:
    (only,) = errors(text, **options)
    return only


# --- macros ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 4\nint a[N];", "int a [ 4 ] ;"),
        ("#define EMPTY\na EMPTY b", "a b"),
        ("#define N 4\n#undef N\nN", "N"),
        ("#define A B\n#define B A\nA B", "A B"),
        ("#define A A + 1\nA", "A + 1"),
        ("#define SQ(x) ((x) * (x))\nSQ(a + 1)", "( ( a + 1 ) * ( a + 1 ) )"),
        ("#define SQ(x) x*x\nSQ SQ(2) SQ\n(3)", "SQ 2 * 2 3 * 3"),
        ("#define F(x) x\nF(F(F(1)))", "1"),
        ("#define F (x)\nF", "( x )"),
        ("#define F() 1\nF() F( )", "1 1"),
        ("#define F(x) [x]\nF() F((a, b)) F({a})", "[ ] [ ( a , b ) ] [ { a } ]"),
        ("#define F(a, b) a-b\nF(1,\n 2)", "1 - 2"),
        ("#define P(a, b) a ## b\nP(x, 1) P(, y) P(z, ) P(<, <=)", "x1 y z <<="),
        ("#define P(a, b) a ## b\n#define N 4\nP(N, N)", "NN"),
        ("#define P(a, b) a ## b\n#define Q(a, b) P(a, b)\n#define N 4\nQ(N, N)", "44"),
        ("#define X a ## b\nX", "ab"),
        ("#define P(a, b, c) a##b##c\nP(1,,2) P(,,3) P(,,)", "12 3"),
        (
            '#define S(x) #x\nS(a  +  b) S( ) S(\'"\') S("\\n")',
            '"a + b" "" "\'\\"\'" "\\"\\\\n\\""',
        ),
        ("#define S(x) #x\n#define T(x) S(x)\n#define N 4\nS(N) T(N)", '"N" "4"'),
        ("#define F(...) f(__VA_ARGS__)\nF(1, 2) F()", "f ( 1 , 2 ) f ( )"),
        ("#define F(a, ...) a(__VA_ARGS__)\nF(f) F(f, 1, 2)", "f ( ) f ( 1 , 2 )"),
        ("#define F(a, args...) a(args)\nF(f, 1, 2)", "f ( 1 , 2 )"),
        ("#define L(f, ...) p(f, ##__VA_ARGS__)\nL(a) L(a, 1, 2)", "p ( a ) p ( a , 1 , 2 )"),
        ("#define L(f, ...) p(f __VA_OPT__(,) __VA_ARGS__)\nL(a) L(a, 1)", "p ( a ) p ( a , 1 )"),
        ("#define L(...) #__VA_ARGS__\nL(a, b  c)", '"a, b c"'),
        ("#define if(x) while (x)\nif(1) 2", "while ( 1 ) 2"),
        ("a and b or not c", "a && b || ! c"),
        ("#define G(x) F(x)\n#define F(x) G(x)\nF(1)", "F ( 1 )"),
        ("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)", "2 * 9 * g"),
        ("#define h hh(\n#define hh(x) <x>\nh 1)", "< 1 >"),
        ("#define N 1\n#define N 2\nN", "2"),
        ("#define X(a) a\nX(\n#if 0\n1\n#else\n2\n#endif\n) 3", "2 3"),
        ("__COUNTER__ __COUNTER__", "0 1"),
        ("\n__LINE__ __FILE__", f'2 "{FILE}"'),
        ("#define HERE __LINE__\n\nHERE", "3"),
        ("defined(X) __has_include(<x>)", "defined ( X ) __has_include ( < x > )"),
    ],
)
def test_macros(text: str, expected: str) -> None:
    assert expanded(text) == expected


def test_a_painted_name_stays_as_it_is() -> None:
    text = """
#define z z[0]
#define f(a) a + f(a)
#define t(a) a
t(t(f)(z)) f(f(1))
"""
    assert expanded(text) == "z [ 0 ] + f ( z [ 0 ] ) 1 + f ( 1 ) + f ( 1 + f ( 1 ) )"


def test_a_call_does_not_begin_across_a_directive() -> None:
    assert expanded("#define F(x) <x>\nF\n#define N\n(1)") == "F ( 1 )"


def test_what_a_macro_made_stands_where_it_was_used() -> None:
    text = "#define MAX(a, b) ((a) > (b) ? (a) : (b))\n\nint m = MAX(x, yy);\n"
    found = user_tokens(preprocess(text, FILE))
    assert {(t.line, t.column) for t in found if t.text in "(?:)>"} == {(3, 9)}
    assert {(t.line, t.column) for t in found if t.text == "yy"} == {(3, 16)}
    assert [(t.line, t.column) for t in found if t.text == ";"] == [(3, 19)]


def test_adjacent_tokens_stay_adjacent() -> None:
    text = "#define LAUNCH(k, g, b) k<<<g, b>>>\nLAUNCH(f, 1, 2)()"
    found = user_tokens(preprocess(text, FILE))
    assert [t.spaced for t in found if t.text in ("<", ">")] == [False, False]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("#define", (1, 2), "name to define"),
        ("#define 1 2", (1, 9), "name to define"),
        ("#define defined 1", (1, 9), "cannot be defined"),
        ("#define F(a", (1, 10), "no closing )"),
        ("#define F(a, a) a", (1, 14), "each once"),
        ("#define F(a b) a", (1, 13), "comma"),
        ("#define F(a,) a", (1, 12), "comma"),
        ("#define F(..., a) a", (1, 14), ") is expected"),
        ("#define F(1) a", (1, 11), "each once"),
        ("#define F(a) #b", (1, 14), "not followed by a parameter"),
        ("#define F(a) ## a", (1, 14), "both sides"),
        ("#define F(a) a ##", (1, 16), "both sides"),
        ("#define F(a) __VA_ARGS__", (1, 14), "..."),
        ("#define F(...) __VA_OPT__ x", (1, 16), "needs ( and )"),
        ("#define F(...) __VA_OPT__(__VA_OPT__())", (1, 16), "another"),
        ("#define F(a, b) a\nx F(1)", (2, 3), "2 arguments, not 1"),
        ("#define F(a) a\nF(1, 2)", (2, 1), "1 argument, not 2"),
        ("#define F(a, b, ...) a\nF(1)", (2, 1), "at least 2 arguments, not 1"),
        ("#define F() a\nF(1)", (2, 1), "no arguments, not 1"),
        ("#define F(a) a\nF(1", (2, 1), "no closing )"),
        ("#define P(a, b) a ## b\nP(+, x)", (2, 1), "cannot join + and x"),
        ("#undef", (1, 2), "needs a name"),
    ],
)
def test_wrong_macros(text: str, place: tuple[int, int], said: str) -> None:
    found = error(text)
    assert said in found.message
    assert (found.file, found.line, found.column) == (FILE, *place)
    assert "^" in str(found)


# --- conditions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "1",
        "defined X && X == 3 && !defined(Y)",
        "Y == 0",
        "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "-1 > 0u",
        "-1 < 0",
        "0xFFFFFFFFFFFFFFFF == -1u",
        "9223372036854775807 + 1 < 0",
        "18446744073709551615u + 1 == 0",
        "1 << 63 < 0 && 1u << 63 > 0",
        "-16 >> 2 == -4 && 1 << -1 == 0",
        "(1 ? -1 : 0u) > 0",
        "1 || 1 / 0",
        "!(0 && 1 / 0)",
        "1 ? 2 : 1 / 0",
        "0 ? 1 : 0 ? 1 : 5",
        "'a' == 97 && '\\n' == 10 && '\\377' == -1 && 'ab' == 24930 && '\\\\' == 92",
        "L'a' == 97 && u'\\xffff' == 65535",
        "0b101 == 5 && 017 == 15 && 1'000 == 1000 && 5ull == 5 && 7LU == 7",
        "true && !false",
        "true and not false",
        "~0 == -1 && !!5 == 1 && - -1 == 1 && +3 == 3",
        "(6 & 3) == 2 && (6 | 1) == 7 && (6 ^ 3) == 5",
        "F(2) == 3",
        "HAS_X",
        "defined F && defined(__has_include)",
        '__has_include(<math.h>) && !__has_include(<nothing/here.h>) && !__has_include("no.h")',
        "__CUDA_ARCH__ >= 700 && defined(__CUDACC__) && !defined(_WIN32) && !defined(NDEBUG)",
        "__cplusplus == 201703L && __CUDACC_VER_MAJOR__ >= 11 && TREADLE",
        "__SIZEOF_POINTER__ == 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__",
    ],
)
def test_conditions_that_hold(condition: str) -> None:
    start = "#define X 3\n#define F(x) (x + 1)\n#define HAS_X (defined(X) && !defined Y)\n"
    assert expanded(f"{start}#if {condition}\nyes\n#else\nno\n#endif") == "yes"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("", "no condition"),
        ("1 +", "too early"),
        ("(1", "no )"),
        ("1 2", "operator is expected"),
        ("1 ? 2", "no :"),
        ("1.5", "not an integer"),
        ("0x", "not an integer"),
        ("08", "not an integer"),
        ("18446744073709551616", "64 bits"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("defined", "defined needs a name"),
        ("defined(", "no closing )"),
        ("defined(1)", "defined needs a name"),
        ('"a"', "a value is expected"),
        ("f(1)", "not a macro"),
        ("__has_include", "needs ("),
        ("__has_include(a)", "needs (<name>"),
        ("1 = 1", "operator is expected"),
        ("@", "a value is expected"),
        ("(" * 1000 + "1" + ")" * 1000, "levels deep"),
    ],
)
def test_conditions_that_make_no_sense(condition: str, said: str) -> None:
    found = error(f"#if {condition}\n#endif")
    assert said in found.message
    assert found.line == 1


def test_branches() -> None:
    text = "#if A == {0}\na\n#elif A == 2\nb\n#elif A == 3\nc\n#else\nd\n#endif"
    chosen = [expanded(text.format(1), defines={"A": a}) for a in (1, 2, 3, 4)]
    assert chosen == ["a", "b", "c", "d"]


def test_ifdef_and_its_kin() -> None:
    text = "#ifdef A\na\n#elifdef B\nb\n#elifndef C\nneither\n#else\nc\n#endif\n"
    text += "#ifndef A\nx\n#endif"
    names = ("A", "B", "C")
    chosen = [expanded(text, defines={name: None}) for name in names]
    assert chosen == ["a", "b x", "c x"]
    assert expanded(text) == "neither x"


def test_what_is_skipped_may_be_anything() -> None:
    text = """#if 0
don't "open @ `
#error never
#nonsense
#if 1 /
#elif also nonsense (
x
#else
#include <nothing.h>
#define N 1
#endif
#elif 1
N
#elif 1 / 0
#endif"""
    assert expanded(text) == "N"
    assert preprocess(text, FILE).unknown_headers == ()


def test_several_errors_in_reading_order() -> None:
    text = "a \"open\n#error it is wrong\n#else\n#nonsense\n'' #\n#if\n#if 1\n#else\n#else\n"
    assert [(e.line, e.message) for e in errors(text)] == [
        (1, 'the literal that begins here has no closing "'),
        (2, "#error it is wrong"),
        (3, "#else has no #if before it"),
        (4, "#nonsense is not a directive"),
        (5, "there is no character between the quotes"),
        (6, "#if: there is no condition"),
        (6, "#if has no #endif in this file"),
        (7, "#if has no #endif in this file"),
        (9, "#else stands after #else"),
    ]


def test_comment_without_an_end() -> None:
    found = error("a\n /* b")
    assert (found.line, found.column) == (2, 2)
    assert "no */" in found.message


def test_directives_that_say_nothing_here() -> None:
    assert expanded('#\n#line 7 "x.c"\n# 1 "y.c"\n#warning careful\n#ident "x"\na') == "a"


@pytest.mark.parametrize("name", ["import <a>", "include_next <a>", "assert a(b)"])
def test_refused_directives(name: str) -> None:
    found = error(f"#{name}")
    assert f"#{name.split()[0]} " in found.message


# --- pragmas ---------------------------------------------------------------------------------


def pragmas(text: str) -> list[tuple[str, int]]:
    result = preprocess(text, FILE)
    assert result.errors == ()
    return [(token.text, token.line) for token in result.tokens if token.kind == "pragma"]


def test_pragmas_for_device_code_are_kept() -> None:
    text = """#define N 4
#pragma unroll
#pragma unroll N
#pragma unroll (N + 1)
#pragma nounroll
#pragma nv_diag_suppress 177
#pragma pack(push, 1)
#pragma omp parallel for
#pragma once
#pragma
_Pragma("unroll N") _Pragma("omp simd")
#define UNROLLED(n) _Pragma("unroll") for (int i = 0; i < n; i++)
UNROLLED(3)
"""
    assert pragmas(text) == [
        ("unroll", 2),
        ("unroll 4", 3),
        ("unroll (4 + 1)", 4),
        ("nounroll", 5),
        ("nv_diag_suppress 177", 6),
        ("pack(push, 1)", 7),
        ("unroll 4", 11),
        ("unroll", 13),
    ]


@pytest.mark.parametrize(
    "text", ["_Pragma", "_Pragma()", "_Pragma(unroll)", "_Pragma(", "_Pragma('a')"]
)
def test_wrong_pragma_operator(text: str) -> None:
    assert any("_Pragma" in found.message for found in errors(text))


# --- the user's defines ----------------------------------------------------------------------


def test_defines() -> None:
    defines = {
        "BLOCK": 128,
        "F": "x+1",
        "FLAG": None,
        "ON": True,
        "OFF": False,
        "HALF": 0.5,
        "NUMPY": np.int64(7),
        "SINGLE": np.float32(0.25),
        "TWICE(x)": "((x) * 2)",
        "EMPTY": "",
        "__CUDA_ARCH__": 700,
    }
    text = "BLOCK F FLAG ON OFF HALF NUMPY SINGLE TWICE(3) EMPTY __CUDA_ARCH__"
    assert expanded(text, defines=defines) == "128 x + 1 1 1 0 0.5 7 0.25 ( ( 3 ) * 2 ) 700"


def test_defines_that_are_not_finite() -> None:
    text = "#if 1\nA B\n#endif"
    assert "0x7f800000" in expanded(text, defines={"A": float("-inf"), "B": float("nan")})


@pytest.mark.parametrize(
    ("defines", "said"),
    [
        ({"a b": 1}, "not a name"),
        ({3: 1}, "not a name"),
        ({"A": [1]}, "has the value [1]"),
        ({"A": "1\n#error"}, "one line"),
        ({"A": 1j}, "has the value 1j"),
    ],
)
def test_wrong_defines(defines: dict[str, object], said: str) -> None:
    assert said in error("int a;", defines=defines).message


# --- headers ---------------------------------------------------------------------------------


def test_headers_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "inc" / "deep").mkdir(parents=True)
    (tmp_path / "beside.h").write_text('#pragma once\n#include "inc/other.h"\nbeside\n')
    (tmp_path / "inc" / "other.h").write_text(
        '#ifndef O\n#define O\n#include "same.h"\nother\n#endif\n'
    )
    (tmp_path / "inc" / "same.h").write_text("same /* in inc */\n")
    (tmp_path / "inc" / "deep" / "searched.cuh").write_text("searched\n")
    main = tmp_path / "main.cu"
    text = """#include "beside.h"
#include "./beside.h"
#include "inc/other.h"
#define NAME <deep/searched.cuh>
#include NAME
#define QUOTED "deep/searched.cuh"
#include QUOTED
main
"""
    main.write_text(text)
    result = preprocess(text, str(main), include=[tmp_path / "inc"])
    assert result.errors == ()
    words = [(token.text, Path(token.file).name) for token in user_tokens(result)]
    assert words == [
        ("same", "same.h"),
        ("other", "other.h"),
        ("beside", "beside.h"),
        ("searched", "searched.cuh"),
        ("searched", "searched.cuh"),
        ("main", "main.cu"),
    ]
    assert {Path(name).name for name in result.texts} > {"main.cu", "same.h", "other.h"}
    assert result.texts[str(tmp_path / "inc" / "same.h")] == "same /* in inc */\n"


def test_angle_brackets_do_not_look_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("a")
    main = tmp_path / "main.cu"
    main.write_text("")
    assert preprocess("#include <a.h>", str(main)).errors
    found = preprocess("#include <a.h>", str(main), include=[tmp_path])
    assert [token.text for token in user_tokens(found)] == ["a"]


def test_unknown_headers_are_noted_once_with_their_place() -> None:
    text = "a\n#include <vector>\n#include <vector>\n#include <a//b.h>\n"
    result = preprocess(text, FILE, skip_missing_headers=True)
    assert result.errors == ()
    assert [(name, span.line, span.column) for name, span in result.unknown_headers] == [
        ("vector", 2, 10),
        ("a//b.h", 4, 10),
    ]


@pytest.mark.parametrize(
    "text", ["#include", "#include a", "#include <a", "#include < >", "#include 1"]
)
def test_wrong_includes(text: str) -> None:
    assert "#include needs" in error(text).message


def test_errors_in_a_header_name_it(tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text("\n#error no\n#if 1\n")
    first, second = preprocess("#include <a.h>", FILE, include=[tmp_path]).errors
    assert (first.file, first.line, first.message) == (str(header), 2, "#error no")
    assert str(first).endswith("^^^^^")
    assert (second.file, second.line) == (str(header), 3)


def test_a_header_cannot_be_what_is_no_file(tmp_path: Path) -> None:
    text = '#include "/dev/zero"\n#include "/dev/stdin"\n#include "."\n'
    assert len(preprocess(text, FILE, include=[tmp_path]).errors) == 3
    odd = ["\0", "\ud800", "\udc80", "x" * 5000]
    for name in odd:
        read = preprocess(f"#include <{name}>", FILE, None, [tmp_path], skip_missing_headers=True)
        ((noted, _),) = read.unknown_headers
        assert len(noted) == len(name)


@pytest.mark.parametrize("name", ['"config.h"', "<sizes.cuh>", '"helper_math.h"'])
def test_a_missing_header_is_an_error(name: str) -> None:
    text = f"#include {name}\n#ifndef N\n#define N 8\n#endif\nN"
    (found,) = preprocess(text, FILE).errors
    assert found.line == 1
    assert found.message.startswith(f"{name[1:-1]} is neither in the folder of the file")
    assert "name the folder that holds it" in found.message
    assert found.message.endswith("pass skip_missing_headers=True")
    assert not preprocess(f"#if 0\n#include {name}\n#endif", FILE).errors
    assert not preprocess(text, FILE, skip_missing_headers=True).errors


@pytest.mark.parametrize("name", ["iostream", "helper_cuda.h", "pybind11/stl.h", "cublas_v2.h"])
def test_headers_for_the_host_are_skipped(name: str) -> None:
    read = preprocess(f"#include <{name}>", FILE)
    assert not read.errors
    assert [each for each, _ in read.unknown_headers] == [name]


def test_a_file_too_large_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "big.h").open("wb") as file:
        file.truncate(5 << 20)
    (found,) = preprocess("#include <big.h>", FILE, include=[tmp_path]).errors
    assert "too large" in found.message
    assert "too large" in error("\n" * (5 << 20)).message


def test_an_include_inside_of_arguments_is_an_error() -> None:
    found = errors("#define F(x) x\nF(1\n#include <math.h>\n)")
    assert [e.line for e in found] == [2]


# --- bounds ----------------------------------------------------------------------------------


def laughs(names: str, each: int) -> str:
    """Macros of which each repeats the next one."""
    pairs = itertools.pairwise(names)
    return "\n".join(f"#define {a} {' '.join(b * each)}" for a, b in pairs) + f"\n{names[0]}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (laughs("ABCDEFGHIJ", 9), "grows past"),
        ("#define M(a, b) ((a) > (b) ? (a) : (b))\n" + "M(" * 40 + "1" + ", 2)" * 40, "grows past"),
        ("#define F(x) x\n" + "F(" * 600 + "1" + ")" * 600, "deep"),
        ("#define P(a, b) a##b\n#define D(x) P(x, x)\n" + "D(" * 40 + "q" + ")" * 40, "characters"),
        ("#define S(x) #x\n#define T(x) S(x)\n" + "T(" * 40 + '"\\\\"' + ")" * 40, "characters"),
    ],
)  # fmt: skip
def test_macros_that_explode(text: str, said: str) -> None:
    start = time.perf_counter()
    result = preprocess(text, FILE)
    assert said in result.errors[-1].message
    assert [token.kind for token in result.tokens] == ["end"]
    assert time.perf_counter() - start < 30  # some 2 s where nothing else runs


def test_headers_that_include_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#include <a.h>\n")
    (tmp_path / "b.h").write_text("#if __COUNTER__ < 60000\n#include <b.h>\n#include <b.h>\n#endif")
    for name in "ab":
        (found,) = [
            e
            for e in preprocess(f"#include <{name}.h>", FILE, include=[tmp_path]).errors
            if "#endif" not in e.message
        ]
        assert "deep" in found.message


def test_many_small_includes_end(tmp_path: Path) -> None:
    (tmp_path / "leaf.h").write_text("")
    for level, name in enumerate("abcde"):
        following = "bcde"[level : level + 1] or "leaf"
        (tmp_path / f"{name}.h").write_text(f"#include <{following}.h>\n" * 16)
    (found,) = preprocess("#include <a.h>", FILE, include=[tmp_path]).errors
    assert "grows past" in found.message


def test_a_thousand_lines_take_little_time() -> None:
    body = [
        "#define CHECK(call) do { auto e = (call); if (e) fail(#call, __LINE__); } while (0)",
        *(
            f"__global__ void k{i}(float *a, int n) {{\n"
            f"  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= {i}.5f; }}\n"
            f"void run{i}() {{ CHECK(launch(k{i}, a, n)); }}"
            for i in range(333)
        ),
    ]
    text = "\n".join(body)
    assert text.count("\n") == 999
    times = []
    for _ in range(5):
        start = time.process_time()
        preprocess(text, FILE)
        times.append(time.process_time() - start)
    assert min(times) < 0.15


# --- anything at all ---------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        "#", "##", "define", "undef", "if", "ifdef", "else", "elif", "endif", "include", "pragma",
        "error", "defined", "__VA_ARGS__", "__VA_OPT__", "__has_include", "_Pragma", "unroll",
        "__LINE__", "__COUNTER__", "F", "G", "H", "x", "y", "(", ")", "(", ")", ",", ",", "...",
        "<", ">", "<math.h>", "<cuda_runtime.h>", "assert", "1", "0", "1.5e+", "0x", "'a'", "'",
        '"s"', '"', 'R"(', ')"', "/*", "*/", "//", "\\\n", "\n", "\n", "\n#", "\n#define F",
        "\n#define G(x)", "\n#define H(x, ...)", "\n#if", "\n#endif", "?", ":", "&&", "||", "/",
        "%", "-", "!", "@", "\0", "\udc80", "\ufeff", "é", "u8", "L", "$", "\r", "\x0c", "\u2028",
    ]
)  # fmt: skip


def check_any(text: str) -> None:
    result = preprocess(text, FILE)
    assert result.tokens[-1].kind == "end"
    kinds = {"identifier", "number", "character", "string", "punctuator", "pragma", "other", "end"}
    assert {token.kind for token in result.tokens} <= kinds
    for found in result.errors:
        assert isinstance(found, CompileError)
        assert found.line > 0
        str(found).encode()
    lines = len(result.texts[FILE].splitlines()) + 1
    assert all(token.line <= lines for token in result.tokens if token.file == FILE)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=60), st.sampled_from(["", " "]))
def test_any_soup_of_tokens_ends_well(pieces: list[str], between: str) -> None:
    check_any(between.join(pieces))


SEED = """#include <cuda_runtime.h>
#define BLOCK 256
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define LOG(format, ...) printf(format, ##__VA_ARGS__)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700 // new enough
template <typename T> __global__ void scale(T *out, const T *in, int n, T factor) {
    __shared__ T tile[BLOCK];
#pragma unroll
    for (int i = threadIdx.x; i < MAX(n, 1); i += 0x1p+2f) /* a step */ tile[i] = in[i] * factor;
    LOG("%d 'x' \\"y\\"\\n", n);
}
#else
#error too old
#endif
int main() { scale<<<1, 'a'>>>(R"x(raw)x"); }
"""


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SEED)), st.integers(0, 12), st.one_of(PIECES, st.text(max_size=3))
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_change_of_a_file_ends_well(changes: list[tuple[int, int, str]]) -> None:
    text = SEED
    for place, removed, added in changes:
        text = text[:place] + added + text[place + removed :]
    check_any(text)
