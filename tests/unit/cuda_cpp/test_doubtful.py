"""What compilers warn of is warned of when a file is opened, with its line; nothing else is."""

from __future__ import annotations

import re
import subprocess
import warnings

import treadle as td
from treadle.core.errors import CompileWarning

PRELUDE = """
struct V { float a; int list[4]; };
__device__ int f(int a) { return a; }
__device__ int by_reference(int &a) { a = 1; return a; }
template <class T> __device__ T same(T a) { return a; }
__device__ bool operator==(const V &a, const V &b) { return a.a == b.a; }
"""
KERNEL = "__global__ void k(int *x) {}\n"
ARGUMENTS = "int *x, float *y, int n, V v, long l"

# (body, words, whether g++ warns of it, too)
WARNED = [
    ("int a; x[0] = a;", "a is read here, and nothing has set it", True),
    ("int a; x[0] = a + 1;", "a is read", True),
    ("int a; x[0] = f(a);", "a is read", True),
    ("int a, b = a; x[0] = b;", "a is read", True),
    ("int a; a += 1; x[0] = a;", "a is read", True),
    ("int a; a++; x[0] = a;", "a is read", True),
    ("int a; x[a] = 1;", "a is read", True),
    ("int *p; p[0] = 1;", "p is read", True),
    ("int *p; *p = 1;", "p is read", True),
    ("int a; if (n) x[0] = a;", "a is read", True),
    ("int a; if (n) x[0] = 1; else x[1] = a;", "a is read", True),
    ("int a; n && (x[0] = a);", "a is read", True),
    ("int a; for (int i = 0; i < n; i++) a += x[i]; x[0] = a;", "a is read", True),
    ("int i; for (; i < n; i++) x[i] = 1;", "i is read", True),
    ("int a; while (a < n) a++;", "a is read", True),
    ("int a; switch (n) { case 1: x[0] = a; }", "a is read", True),
    ("float a; y[0] = sqrtf(a);", "a is read", True),
    ('int a; printf("%d", a);', "a is read", True),
    ("if (0 < n < 3) x[0] = 1;", "a < b < c is a < b && b < c", True),
    ("if (n = 3) x[0] = 1;", "this condition assigns (=) and is always the same", True),
    ("if (n); x[0] = 1;", "this if ends with the ; behind its condition", True),
    ("unsigned u = n; if (u >= 0) x[0] = 1;", "this is always true: unsigned int has no", True),
    ("unsigned u = n; x[0] = u < 0;", "this is always false: unsigned int has no", True),
    ("x[0] = n / 0;", "division by zero", True),
    ("x[0] %= 0;", "division by zero", True),
    ("x[0] = n << 32;", "a shift by 32 of an integer of 32 bits", True),
    ("x[0] = (char)n >> 40;", "a shift by 40 of an integer of 32 bits", True),
    ("x[0] = l >> 64;", "a shift by 64 of an integer of 64 bits", True),
    ("x[0] >>= -1;", "a shift by -1", True),
    ("int a[2] = {1, 2}; x[0] = a[2];", "index 2 is outside of a: it has 2 elements", False),
    ("__shared__ int a[3][2]; a[0][-1] = 1;", "index -1 is outside of a", False),
    ("x[0] == 1;", "no effect: = assigns, == compares", True),
    ("n;", "this statement has no effect", True),
    ("n + x[0];", "this statement has no effect", True),
    ("f;", "f is not called here", True),
]  # fmt: skip
FUNCTIONS = [
    ("__device__ int &r() { int a = 1; return a; }", "returns a reference to its variable a"),
    ("__device__ int &r(int a) { return a; }", "returns a reference to its variable a"),
    ("__device__ float &r() { V v; return v.a; }", "its variable v"),
    ("__device__ int &r() { int a[2] = {}; return a[1]; }", "its variable a"),
    ("__device__ int *r() { int a = 1; return &a; }", "returns the address of its variable a"),
    ("__device__ int *r() { int a[2] = {}; return a; }", "returns the address of its variable a"),
    ("__device__ int *r(int n) { if (n) { int a; return &a; } return nullptr; }", "the address"),
]
NOT_WARNED = [
    "int a; by_reference(a); x[0] = a;",
    "int a; x[0] = by_reference(a);",
    "int a; int *p = &a; *p = 1; x[0] = a;",
    "int a; int &r = a; r = 1; x[0] = a;",
    "int a; x[0] = a = 1;",
    "int a; int &r = (n, a); r = 1; x[0] = a;",
    "int a; int &r = n ? x[0] : a; r = 1; x[1] = a;",
    "int a, b = 1; (n ? a : b) = 1; x[0] = a;",
    "int a, b = 1; by_reference(n ? a : b); x[0] = a;",
    "int a; if (n) a = 1; else a = 2; x[0] = a;",
    "int a; if (n) a = 1; if (n) x[0] = a;",
    "int a; for (int i = 0; i < n; i++) { if (i) x[i] = a; a = i; }",
    "int a; for (int i = 0; i < n; i++) { if (!i) { a = 1; continue; } x[i] = a; }",
    "int a; for (int i = 0; i < n; i++) { for (int j = 0; j < i; j++) x[j] = a; a = i; }",
    "int a; do { a = n; } while (a < 3); x[0] = a;",
    "int a; switch (n) { case 0: a = 1; break; default: a = 2; } x[0] = a;",
    "int a; auto g = [&]() { a = 1; }; g(); x[0] = a;",
    "int a; (void)a;",
    "int a; x[0] = sizeof(a);",
    'unsigned a; asm("mov.u32 %0, %1;" : "=r"(a) : "r"(n)); x[0] = a;',
    'asm("shl.b32 %0, %0, 37; shr.u32 %0, %0, 40;" : "+r"(x[0]));',
    'asm("div.u32 %0, %0, 0; bmsk.clamp.b32 %0, 37, 38;" : "+r"(x[0]));',
    "float4 a; a.x = 1; y[0] = a.x;",
    "int a; x[0] = same(1); a = 2; x[1] = a;",
    "y[0] = y[1] / 0;",
    "if (int a = n) x[0] = a;",
    "if (n) {} x[0] = 1;",
    "if ((n < 3) == (n < 2) && n < 1) x[0] = n * *x;",
    "if (n) ; else x[0] = 1;",
    "unsigned u = n; if (u > 0 && 0 < u && u <= 0) x[0] = 1;",
    "x[0] = l >> 63; x[1] = n >> 31;",
    "int a[2] = {1, 2}; int *end = &a[2]; x[0] = end - a;",
    "x[0] = v.list[3];",
    "(void)n;",
    "v == v;",
    "f(n);",
    "n ? f(1) : f(2);",
    "x[0]++; --x[0];",
    "volatile int *p = x; *p;",
    'unsigned clock64; asm("mov.u32 %0, %clock;" : "=r"(clock64)); x[0] = clock64;',
    "int a; V *p = &v; x[0] = p->list[0]; a = p->a; y[0] = v.a;",
]


LASTING = [
    "__device__ int &r() { static int a; return a; }",
    "__device__ int &r(int &a) { return a; }",
    "__device__ int &r(int *a) { int *b = a; return b[1]; }",
    "__device__ int &r(int *a) { int *b[2] = {a, a}; return b[1][0]; }",
    "__device__ int *r(int *a) { int *b = a; return b; }",
    "__device__ int *r() { __shared__ int a[2]; return a; }",
    "struct P { int *a; __device__ int &at() { return a[0]; } };",
]


def _text(bodies, functions, arguments=ARGUMENTS) -> tuple[str, dict[int, int]]:
    """All as one text, each in a namespace, and the number of each line's."""
    text, owner = PRELUDE, {}
    rows = [f"__device__ void k({arguments}) {{\n{body}\n}}" for body in bodies]
    for number, row in enumerate([*rows, *functions]):
        first = text.count("\n") + 1
        text += f"namespace r{number} {{\n{row}\n}}\n"
        owner |= dict.fromkeys(range(first, text.count("\n") + 1), number)
    return text, owner


def test_warned_of():
    bodies = [body for body, _, _ in WARNED]
    text, owner = _text(bodies, [function for function, _ in FUNCTIONS])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        td.cuda_module(text + KERNEL)
    said = {owner[one.lineno]: str(one.message) for one in caught}
    assert all(issubclass(one.category, CompileWarning) for one in caught)
    assert len(caught) == len(said) == len(WARNED) + len(FUNCTIONS)  # each once
    for number, words in enumerate([*(row[1] for row in WARNED), *(row[1] for row in FUNCTIONS)]):
        assert words in said[number], (number, said[number])
    line = text.split("\n").index(WARNED[0][0]) + 1
    assert said[0].split("\n")[1:] == [f"{line:>5} | int a; x[0] = a;", f"      | {' ' * 14}^"]


def test_what_is_like_these():
    text, _ = _text(NOT_WARNED, LASTING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.cuda_module(text + KERNEL)


def test_a_compiler_warns_of_them_too(tmp_path):
    """Of all but wrong indices, which g++ sees with optimization."""
    text, owner = _text([body for body, _, _ in WARNED], [one for one, _ in FUNCTIONS])
    head = "#include <cmath>\n#include <cstdio>\n#define __device__\n#define __shared__\n"
    (tmp_path / "rows.cpp").write_text(f'{head}#line 1 "rows.cpp"\n{text}')
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-O1", "-c", "-o", "/dev/null", "rows.cpp"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stderr
    warned = {owner[int(line)] for line in re.findall(r"^rows\.cpp:(\d+):\d+: w", said, re.M)}
    sure = {at for at, (_, _, too) in enumerate(WARNED) if too}
    assert sure <= warned, [WARNED[at][0] for at in sure - warned]


JUMPS_AND_WORDS = """
#pragma onec
#pragma omp parallel for
[[nodicard, deprecated("a [b")]] [[gnu::unknown]] __device__ int g(int a) { return a; }
struct __attribute__((packd, __aligned__(4))) P { int a; };
__global__ void k(int *x, int n) {
    switch (n) {
        case 0: n++; break;
        case 1: int a = 2; x[a] = 1; break;
        case 2: int b; b = 3; x[0] = b; break;
        default: x[1] = 1;
    }
    switch (int m = n) { case 1: { int c = m; x[c] = 1; } case 2: x[0] = 1; }
    #pragma unrol 4
    for (int i = 0; i < 4; i++) x[i] = g(i);
    _Pragma("nounrol") for (int i = 0; i < 4; i++) x[i] = i;
}
"""


def test_jumps_of_cases_and_misspelled_words():
    """Those of which nvcc warns, and g++ does not or has an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        td.cuda_module(JUMPS_AND_WORDS)
    said = [(one.lineno, str(one.message).split("\n")[0]) for one in caught]
    jump = "jumps past the initialization of a in line 9"
    wanted = [
        (2, "#pragma onec is not known, and is ignored (did you mean once?)"),
        (4, "nodicard is not an attribute, and is ignored (did you mean nodiscard?)"),
        (5, "packd is not an attribute, and is ignored (did you mean packed?)"),
        (10, f"this case {jump}"),
        (11, f"this default {jump}"),
        (14, "#pragma unrol is not known, and is ignored (did you mean unroll?)"),
        (16, "#pragma nounrol is not known, and is ignored (did you mean nounroll?)"),
    ]
    assert [line for line, _ in said] == [line for line, _ in wanted]
    for (_, message), (_, words) in zip(said, wanted, strict=True):
        assert message.startswith(words), message
