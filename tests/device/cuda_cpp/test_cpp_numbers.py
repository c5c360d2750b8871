"""Numbers of CUDA C++: types, promotions, conversions, operators, literals, order of evaluation.

Each table has expressions and their values by the rules of C++17, for `int` of 32 bits and `long`
of 64. It is computed twice: from variables that are known when the kernel runs, and from constants.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_tables import check_table, quotient, remainder, wrapped

# Corner cases: comparisons that are always true, among others.
pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")

TOP = 2**31 - 1
BOTTOM = -(2**31)
UNSIGNED = 3_000_000_000
VALUES = {
    "sc": ("signed char", -100),
    "uc": ("unsigned char", 200),
    "c": ("char", -56),
    "s": ("short", -30_000),
    "us": ("unsigned short", 60_000),
    "i": ("int", -7),
    "j": ("int", 3),
    "z": ("int", 0),
    "u": ("unsigned int", UNSIGNED),
    "v": ("unsigned int", 5),
    "top": ("int", TOP),
    "bottom": ("int", BOTTOM),
    "yes": ("bool", 1),
    "no": ("bool", 0),
}
WIDE = {
    "l": ("long", -9_876_543_210),
    "ul": ("unsigned long", 2**64 - 5),
    "ll": ("long long", 2**62 + 12_345),
    "ull": ("unsigned long long", 2**63 + 7),
    "least": ("long long", -(2**63)),
}


def declarations(values, constants: bool) -> tuple[str, list[int]]:
    """The variables, from constants or from `in`, and what `in` holds."""
    lines, inputs = [], []
    for name, (type, value) in values.items():
        if constants:
            suffix = "ull" if value >= 2**63 else "u" if value >= 2**31 else ""
            written = (
                f"{value}{suffix}" if value not in (-(2**63), -(2**31)) else f"{value + 1} - 1"
            )
            lines.append(f"    const {type} {name} = {written};")
        elif -(2**31) <= value < 2**32:
            lines.append(f"    {type} {name} = in[{len(inputs)}];")
            inputs.append(wrapped(value))
        else:
            at = len(inputs)
            upper = f"(unsigned long long)(unsigned int)in[{at + 1}] << 32"
            lines.append(f"    {type} {name} = ({type})(({upper}) | (unsigned int)in[{at}]);")
            inputs += [wrapped(value), wrapped(value >> 32)]
    return "\n".join(lines), inputs


def check(device, values, cases, result="int", before=""):
    for constants in (False, True):
        text, inputs = declarations(values, constants)
        check_table(device, text, cases, inputs or [0], result, before)


INTEGERS = [
    # Promotion: what is smaller than int is computed in int.
    ("sc + sc", -200), ("uc + uc", 400), ("uc * uc * uc", 8_000_000), ("s - us", -90_000),
    ("us * 2", 120_000), ("-uc", -200), ("~uc", -201), ("+sc", -100), ("uc - 201", -1),
    ("(uc << 8) + uc", 51_400), ("sc >> 2", -25), ("us >> 3", 7_500), ("yes + yes", 2),
    ("-yes", -1), ("~yes", -2), ("!i", 0), ("!z", 1), ("!!u", 1), ("yes * 7 - no", 7), ("c", -56),
    ("c < 0", 1), ("uc == c", 0), ("(unsigned char)c == uc", 1), ("sc == -100", 1),
    # Signed and unsigned meet in unsigned.
    ("i < 5u", 0), ("i < v", 0), ("i < (int)v", 1), ("-1 > 1u", 1), ("i + v > 0", 1),
    ("(i + v) / 2", ((-7 + 5) % 2**32) // 2), ("i / v", ((-7) % 2**32) // 5),
    ("i % v", ((-7) % 2**32) % 5), ("us > -1", 1), ("uc > -1", 1), ("u > -1", 0),
    ("v - 6 > 0", 1), ("v - 6 < v", 0), ("sc < v", 0), ("us * us", wrapped(60_000**2)),
    ("u > top", 1), ("(int)u < 0", 1), ("u == (unsigned)(int)u", 1), ("-v", -5),
    ("-u == 1294967296u", 1),
    ("(z - 1u) >> 31", 1), ("(z - 1) >> 31", -1),
    # Division and remainder.
    ("i / j", -2), ("i % j", -1), ("-i / -j", -2), ("-i % -j", 1), ("i / -j", 2), ("i % -j", -1),
    ("7 / 3", 2), ("-7 / 3", -2), ("7 / -3", -2), ("-7 % 3", -1), ("7 % -3", 1),
    ("u / v", 600_000_000),
    ("u % 7u", UNSIGNED % 7), ("bottom / 2", BOTTOM // 2), ("bottom % 3", remainder(BOTTOM, 3)),
    ("top / -1", -TOP), ("s / sc", 300), ("s % sc", 0), ("us / sc", -600), ("u / 3", UNSIGNED // 3),
    ("bottom / j", quotient(BOTTOM, 3)), ("i * j % 5 * 2", -2),
    # Shifts: the type is that of the promoted left operand.
    ("i >> 1", -4), ("u >> 1", UNSIGNED >> 1), ("j << 30", wrapped(3 << 30)), ("1u << 31", BOTTOM),
    ("1 << v", 32), ("bottom >> 31", -1), ("bottom >> v", BOTTOM >> 5),
    ("uc << 24", wrapped(200 << 24)),
    ("j << 2 << 1", 24), ("1 << 2 + 1", 8), ("u << v", wrapped(UNSIGNED << 5)), ("i >> v", -1),
    ("(unsigned)i >> 28", 15), ("(unsigned char)(uc << 1)", 144), ("(signed char)(sc << 1)", 56),
    ("u >> (v - v)", wrapped(UNSIGNED)), ("yes << 3", 8),
    # Bits.
    ("i & 0xff", 0xF9), ("sc & 0xff", 156), ("i | 1 << 4", -7), ("i ^ -1", 6),
    ("u & 0xf0f0f0f0", wrapped(UNSIGNED & 0xF0F0F0F0)),
    ("~0u >> 4", 0x0FFFFFFF), ("~z", -1), ("i & j | 4", 5), ("(i ^ j) & j", -7 & 3 ^ 3),
    ("us ^ s", 60_000 ^ -30_000),
    # Overflow wraps.
    ("u + u", wrapped(2 * UNSIGNED)), ("u * u", wrapped(UNSIGNED**2)),
    ("v - u", wrapped(5 - UNSIGNED)),
    ("u * 3u + 1u", wrapped(3 * UNSIGNED + 1)), ("65535u * 65537u + v", 4),
    # Casts.
    ("(signed char)uc", -56), ("(unsigned char)sc", 156), ("(unsigned char)i", 249),
    ("(short)us", -5_536),
    ("(unsigned short)s", 35_536), ("(unsigned short)u", UNSIGNED & 0xFFFF),
    ("(signed char)300", 44),
    ("(char)200", -56), ("(short)top", -1), ("(bool)i", 1), ("(bool)z", 0),
    ("(bool)256 + (bool)0", 1),
    ("(int)(unsigned char)-1", 255), ("static_cast<unsigned char>(us + us)", 120_000 & 255),
    ("int(sc) + unsigned(1)", -99), ("(unsigned)sc == 4294967196u", 1), ("(unsigned)sc >> 24", 255),
    ("(signed char)(unsigned short)s", wrapped(35_536, 8)), ("short(us) < 0", 1),
    ("(bool)sc == true", 1),
    # Comparisons and logic give bool, which is 0 or 1.
    ("(i < j) + (j > i) + (i == i)", 3), ("i < j < 1", 0), ("3 > 2 > 1", 0), ("i && j", 1),
    ("z || no", 0),
    ("!(i && z) + 1", 2), ("(i < 0) * 5", 5), ("yes == j", 0), ("yes == (bool)j", 1),
    ("i != j == yes", 1),
    # The conditional operator: both sides meet in one type.
    ("yes ? i : j", -7), ("no ? i : j", 3), ("(yes ? -1 : 1u) > 0", 1),
    ("(no ? uc : sc) - 1", -101),
    ("z ? 1 : j ? 2 : 3", 2), ("(i < 0 ? -i : i) * 2", 14), ("j ? z ? 4 : 5 : 6", 5),
    ("sizeof(yes ? uc : sc)", 4), ("sizeof(yes ? uc : uc)", 1), ("(yes ? i : 2.5f) == -7.0f", 1),
    ("(int)((no ? i : 2.5f) * 2)", 5), ("(yes ? sc : u) > 5u", 1),
    # Precedence.
    ("2 + 3 * 4 - 5", 9), ("(2 + 3) * 4", 20), ("100 / 10 / 5", 2), ("100 - 10 - 5", 85),
    ("2 * 7 % 5", 4),
    ("1 | 2 ^ 3 & 4", 3), ("1 + 2 << 3 & 0x1f", 24), ("5 & 6 == 6", 1), ("~1 + 2", 0),
    ("-2 * -3", 6),
    ("!0 + 1", 2), ("1 ? 2 : 3 ? 4 : 5", 2), ("- -j", 3), ("-j - -j", 0), ("1 < 2 == 2 > 1", 1),
    ("3 - 2 & 1 | 4 && 0", 0), ("1 || 0 && 0", 1), ("!i == z", 1), ("-i % 4 + j * 2 >> 1", 4),
    ("j+ +j", 6), ("(j, z, 9)", 9), ("sizeof (char) + 1", 2), ("sizeof(int) * 2 - 1", 7),
]  # fmt: skip


def test_integers(device):
    check(device, VALUES, INTEGERS)


LITERALS = [
    ("0x7fffffff", TOP), ("0x80000000 > 0", 1), ("0x80000000 - 1 > 0", 1), ("2147483648 > 0", 1),
    ("sizeof(2147483647)", 4), ("sizeof(2147483648)", 8), ("sizeof(0x80000000)", 4),
    ("sizeof(0x100000000)", 8), ("sizeof(1u)", 4), ("sizeof(1l)", 8), ("sizeof(1ULL)", 8),
    ("sizeof(4294967296u)", 8), ("sizeof(1Lu)", 8), ("sizeof(1.0)", 8), ("sizeof(1.0f)", 4),
    ("sizeof(1.F)", 4), ("sizeof('a')", 1), ("sizeof(true)", 1), ("sizeof(\"abc\")", 4),
    ("017", 15), ("0", 0), ("00", 0), ("0b1011", 11), ("0B1", 1), ("0xFfU", 255),
    ("1'000'000", 1_000_000),
    ("0x1'00", 256), ("'a'", 97), ("'\\n'", 10), ("'\\0'", 0), ("'\\x41'", 65), ("'\\101'", 65),
    ("'\\\\'", 92), ("'\\''", 39), ("'\"'", 34),
    ("'\\t' + '\\r' + '\\a' + '\\b' + '\\f' + '\\v'", 60),
    ("'\\xff'", -1), ("'\\377' < 0", 1), ("'z' - 'a'", 25), ("-1u > 0", 1),
    ("-2147483647 - 1", BOTTOM),
    ("(int)1e3", 1000), ("(int)1.5e+2f", 150), ("(int).5e1", 5), ("(int)5.", 5), ("(int)0x1p4", 16),
    ("(int)0x1.8p1f", 3), ("(int)1e-1", 0), ("true + true", 2), ("false", 0), ("nullptr == 0", 1),
    ("sizeof(1 + 'a')", 4), ("sizeof(1 + 1u)", 4), ("sizeof(1 + 1l)", 8), ("sizeof(1u + 1.0f)", 4),
    ("sizeof(1l + 1.0f)", 4), ("sizeof(1 + 1.0)", 8), ("sizeof('a' + 'b')", 4), ("sizeof(!1)", 1),
    ("sizeof(1 < 2)", 1), ("sizeof(1 << 2l)", 4), ("sizeof((char)1 << 1)", 4),
    ("sizeof(-(short)1)", 4),
]  # fmt: skip

SIZES = [
    (f"{op}({type})", value)
    for op in ("sizeof", "alignof")
    for type, value in {
        "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2,
        "short int": 2, "unsigned": 4, "int": 4, "signed": 4, "long": 8, "unsigned long int": 8,
        "long long": 8, "unsigned long long int": 8, "float": 4, "double": 8, "size_t": 8,
        "int8_t": 1, "uint16_t": 2, "int32_t": 4, "uint64_t": 8, "ptrdiff_t": 8, "int *": 8,
        "void *": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "Mode": 4, "Small": 1, "Sparse": 8,
    }.items()
] + [
    ("sizeof(float2)", 8), ("alignof(float2)", 8), ("sizeof(float3)", 12), ("alignof(float3)", 4),
    ("sizeof(float4)", 16), ("alignof(float4)", 16), ("sizeof(uchar4)", 4), ("alignof(uchar4)", 4),
    ("sizeof(char3)", 3), ("alignof(char3)", 1), ("sizeof(short2)", 4), ("sizeof(int1)", 4),
    ("sizeof(double2)", 16), ("alignof(double2)", 16), ("sizeof(half2)", 4), ("alignof(half2)", 4),
    ("sizeof(dim3)", 12), ("alignof(dim3)", 4), ("sizeof(longlong2)", 16), ("sizeof(ushort3)", 6),
    ("sizeof(double3)", 24), ("alignof(double3)", 8), ("sizeof(ulonglong4)", 32),
    ("sizeof(Pair)", 16), ("alignof(Pair)", 8), ("sizeof(Pair().flag)", 1), ("sizeof(Packed)", 8),
    ("sizeof(Aligned)", 16), ("alignof(Aligned)", 16), ("sizeof(Either)", 8), ("sizeof(Empty)", 1),
    ("sizeof(int[7])", 28), ("sizeof(float[3][5])", 60), ("sizeof(grid)", 48),
    ("sizeof(grid[0])", 16),
    ("sizeof(grid[0][0])", 4), ("sizeof grid / sizeof *grid", 3), ("sizeof i", 4),
    ("sizeof(&i)", 8),
    ("sizeof(i++)", 4), ("i", -7), ("sizeof(Pair[4])", 64), ("sizeof(Three)", 3),
    ("sizeof(Nested)", 24),
    ("sizeof(in)", 8), ("sizeof(in[0])", 4),
]  # fmt: skip
TYPES = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
enum Mode { FAST, SLOW = 7 };
enum class Small : unsigned char { A };
enum Sparse : long long { FAR = 1LL << 40 };
struct Pair { double value; bool flag; };
struct Packed { char a; short b; int c; };
struct __align__(16) Aligned { int a; int b; };
struct Three { char a, b, c; };
struct Nested { Three three; int number; Pair *none; char last; };
struct Empty { };
union Either { float x; int words[2]; char byte; };
"""


def test_literals_and_sizes(device):
    check(device, VALUES, LITERALS)
    text, inputs = declarations(VALUES, False)
    check_table(device, text + "\n    int grid[3][4];", SIZES, inputs, before=TYPES)


L, UL, LL, ULL, LEAST = (value for _, value in WIDE.values())
WIDE_INTEGERS = [
    ("l + 1", L + 1), ("l * l", L * L), ("l / 7", quotient(L, 7)), ("l % 7", remainder(L, 7)),
    ("ul + 10", UL + 10), ("ul / 10", UL // 10), ("ul % 1000003", UL % 1000003), ("ul >> 60", 15),
    ("ll << 1", LL << 1), ("ll >> 40", LL >> 40), ("least >> 63", -1), ("ull >> 63", 1),
    ("ull >> 33", ULL >> 33),
    ("l >> v", L >> 5), ("1ll << 40", 1 << 40), ("1 << 31", BOTTOM), ("1ull << v << 40", 1 << 45),
    ("-l", -L),
    ("~ul", 4), ("l < 0", 1), ("ul < 0", 0), ("l < ul", 0 if L % 2**64 >= UL else 1), ("l < u", 1),
    ("u + l", UNSIGNED + L),
    ("i + ul", (UL - 7)), ("i < ull", 0 if ULL <= (-7) % 2**64 else 1), ("l + i * j", L - 21),
    ("u * u * 1ll", wrapped(UNSIGNED**2 % 2**32, 64)),
    ("1ll * u * u", wrapped(UNSIGNED**2, 64)), ("top + 1ll", TOP + 1), ("top + 1u", TOP + 1),
    ("(long)top * top", TOP * TOP),
    ("bottom - 1l", BOTTOM - 1), ("(unsigned)l", L % 2**32), ("(int)l", wrapped(L)),
    ("(short)l", wrapped(L, 16)),
    ("(unsigned char)ll", LL & 255), ("(bool)ll", 1), ("(long long)u", UNSIGNED),
    ("(long long)(int)u", wrapped(UNSIGNED)),
    ("(unsigned long long)i", -7), ("(unsigned long long)i >> 32", 0xFFFFFFFF),
    ("(unsigned)i * 1ull", 2**32 - 7),
    ("sc * 1l", -100), ("uc * ll", 200 * LL), ("l & 0xff", L & 255), ("l | 1ll << 50", L | 1 << 50),
    ("ll ^ ull", LL ^ ULL),
    ("ll & ~ull", LL & ~ULL), ("u & l", UNSIGNED & L), ("(l > 0 ? l : -l)", -L),
    ("yes ? i : ul", -7), ("no ? 1u : l", L),
    ("ul == -5", 1), ("l == (long long)(int)l", 0), ("!l", 0), ("l && ll", 1),
    ("least / 3", quotient(LEAST, 3)),
    ("least % 10", remainder(LEAST, 10)), ("ull / 3", ULL // 3),
    ("ull * 3 % 1000", (ULL * 3 % 2**64) % 1000), ("ll / l", quotient(LL, L)),
    ("ll % l", remainder(LL, L)), ("-9223372036854775807 - 1", LEAST),
    ("18446744073709551615u", -1), ("0xffffffffffffffff", -1),
    ("4294967295 + 1", 2**32), ("0xffffffff + 1", 0), ("0xffffffffu + 1ll", 2**32),
    ("sizeof(ul) - 9 > 0", 1),
    ("(size_t)j * sizeof(double) - 25", -1), ("ll - ull < 0", 0), ("(1ull << 63) + ull", 7),
    ("l * 3 - l * 2 == l", 1),
]  # fmt: skip


def test_64_bit_integers(device):
    check(device, VALUES | WIDE, WIDE_INTEGERS, "long long")


FLOATS = [
    ("x + y", -0.5), ("x * y", -8.9375), ("x / 2", 1.375), ("7 / 2 * x", 8.25),
    ("7 / 2.0f * x", 9.625),
    ("(int)x", 2.0), ("(int)y", -3.0), ("(unsigned char)x", 2.0), ("(int)(x * 100) % 7", 275 % 7),
    ("i / 2", -3.0),
    ("i / 2.0f", -3.5), ("i + x", -4.25), ("u * 1.0f", 3e9), ("(float)u", 3e9),
    ("us * x", 165_000.0), ("-x", -2.75),
    ("x > y", 1.0), ("x < y || y < x", 1.0), ("!x", 0.0), ("x ? 2 : 3", 2.0), ("(bool)0.25f", 1.0),
    ("(bool)0.0f", 0.0),
    ("x == 2.75f", 1.0), ("x != x", 0.0), ("tiny > 0 ? 1 : 0", 1.0),
    ("(float)16777217", 16777216.0), ("16777216.0f + 1", 16777216.0),
    ("(float)top", 2147483648.0), ("x - (int)x", 0.75), ("(x, y)", -3.25), ("yes + 0.5f", 1.5),
    ("'a' * 0.5f", 48.5),
    ("1 / 3 * 3.0f", 0.0), ("(char)66.9f", 66.0), ("(short)-3.99f", -3.0), ("0.1f == 0.1f", 1.0),
    ("(i > 0 ? 1 : 2.5f)", 2.5),
    ("half_one + 0.25f", 1.25), ("(float)__float2half(0.1f)", float(np.float16(np.float32(0.1)))),
    ("__half2float(half_one * half_one + half_one)", 2.0),
    ("(float)((half)3.0f / (half)2.0f)", 1.5),
    ("(float)(__half)2049", 2048.0), ("(int)(half)7.9f", 7.0), ("half_one < (half)2", 1.0),
    ("(float)-half_one", -1.0),
    ("__bfloat162float(__float2bfloat16(1.005f))", 1.0078125),
    ("(float)((__nv_bfloat16)1.5f * (__nv_bfloat16)2.0f)", 3.0), ("half_one ? 1 : 0", 1.0),
]  # fmt: skip
FLOAT_SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void table(const int *in, const float *floats, float *out)
{{
    {integers}
    {floats}
    half half_one = __float2half(x - 1.75f);
    {writes}
}}
"""


def test_floats(device):
    writes = " ".join(f"out[{at}] = {written};" for at, (written, _) in enumerate(FLOATS))
    inputs = {"x": 2.75, "y": -3.25, "tiny": 1e-30}
    for constants in (False, True):
        integers, whole = declarations(VALUES, constants)
        floats = " ".join(
            f"const float {name} = {value}f;" if constants else f"float {name} = floats[{at}];"
            for at, (name, value) in enumerate(inputs.items())
        )
        module = td.cuda_module(
            FLOAT_SOURCE.format(integers=integers, floats=floats, writes=writes)
        )
        out = td.zeros(len(FLOATS), device=device)
        module.table[1, 1](
            td.asarray(np.array(whole or [0], np.int32), device=device),
            td.asarray(np.array(list(inputs.values()), np.float32), device=device),
            out,
        )
        wrong = [
            f"{written}: {value} came, not {np.float32(expected)}"
            for (written, expected), value in zip(FLOATS, out.numpy(), strict=True)
            if value != np.float32(expected)
        ]
        assert not wrong, "\n".join(wrong)


DOUBLES = [
    ("d + f", 0.1 + 2.75), ("d * 3", 0.1 * 3), ("d * d / 3", 0.1 * 0.1 / 3),
    ("f / 3", float(np.float32(2.75) / np.float32(3))),
    ("f / 3.0", 2.75 / 3), ("(float)d", float(np.float32(0.1))), ("(double)(float)d == d", 0.0),
    ("1 / 3.", 1 / 3), ("l * d", -9876543210 * 0.1),
    ("(double)l", -9876543210.0), ("(long long)(d * 1e15)", 1e14), ("i / 2 + d", -3 + 0.1),
    ("1e300 * 1e10", math.inf), ("big * 10", math.inf),
    ("-0.0", -0.0), ("u / 2.0", 1.5e9), ("9007199254740993 * 1.0", 9007199254740992.0),
    ("(int)-d * 10", 0.0), ("yes ? 1 : d", 1.0), ("no ? 1 : d", 0.1),
    ("(d < 0.1f) + 2", 3.0), ("d == 0.1f", 0.0), ("(unsigned char)(d * 1000)", 100.0),
    ("(bool)d", 1.0), ("0.1 + 0.2", 0.1 + 0.2),
]  # fmt: skip


def test_doubles(device):
    if "float64" not in device.features:
        module = td.cuda_module("__global__ void k(float *x) { double d = x[0]; x[1] = d * 3; }")
        with pytest.raises(td.errors.UnsupportedOnTarget, match="float64"):
            module.k[1, 1](td.zeros(2, device=device))
        return
    for constants in (False, True):
        text = (
            "const double d = 0.1; const float f = 2.75f; const double big = 1.7e308;"
            if constants
            else "double d = in[0]; float f = in[1]; double big = in[2];"
        )
        writes = " ".join(f"out[{at}] = {written};" for at, (written, _) in enumerate(DOUBLES))
        module = td.cuda_module(
            "__global__ void table(const double *in, double *out) { int i = -7; unsigned u = "
            f"3000000000u; bool yes = true, no = false; long l = -9876543210; {text} {writes} }}"
        )
        out = td.zeros(len(DOUBLES), dtype=td.float64, device=device)
        module.table[1, 1](td.asarray(np.array([0.1, 2.75, 1.7e308]), device=device), out)
        wrong = [
            f"{written}: {value!r} came, not {expected!r}"
            for (written, expected), value in zip(DOUBLES, out.tolist(), strict=True)
            if struct.pack("<d", value) != struct.pack("<d", expected)
        ]
        assert not wrong, "\n".join(wrong)


ASSIGNMENTS = """
__global__ void assigned(const int *in, int *out)
{
    int k = 0;
    unsigned char uc = in[0];              // 250
    out[k++] = uc += 10;                   // wraps
    out[k++] = uc -= 5;
    out[k++] = uc *= 3;
    out[k++] = uc <<= 1;
    out[k++] = uc |= 0x101;
    out[k++] = uc ^= -1;
    out[k++] = uc++;
    out[k++] = ++uc;
    uc = 255;
    out[k++] = uc++;
    out[k++] = uc--;
    out[k++] = uc;
    out[k++] = --uc;
    signed char sc = 127;
    out[k++] = ++sc;
    out[k++] = sc /= 3;
    out[k++] = sc %= 5;
    out[k++] = sc >>= 1;
    short s = -32768;
    out[k++] = --s;
    out[k++] = s -= 1.75f;                 // computed in float
    out[k++] = s *= 0.5f;
    int i = in[1];                         // 7
    out[k++] = i *= 2.5f;                  // 17.5 becomes 17
    out[k++] = i += i;
    out[k++] = i -= -i;
    out[k++] = i %= 5u;
    out[k++] = i <<= 3;
    out[k++] = (i = 5) + (i);
    out[k++] = i++ + 10;
    out[k++] = ++i * 2;
    out[k++] = i-- - 1;
    out[k++] = --i;
    int a, b, c;
    a = b = c = 4;
    out[k++] = a + b + c;
    a += b -= c *= 2;
    out[k++] = a;
    out[k++] = b;
    out[k++] = c;
    (a = 3) += 4;
    out[k++] = a;
    ++ ++a;
    out[k++] = a;
    (a > 5 ? a : b) = 100;
    out[k++] = a;
    unsigned u = 3;
    u -= 4;
    out[k++] = u > 0;
    u /= -1;
    out[k++] = u;
    bool flag = 5;
    out[k++] = flag;
    flag += 1;
    out[k++] = flag;
    flag &= 2;
    out[k++] = flag;
    flag = 0.5f;
    out[k++] = flag;
    float x = 3;
    out[k++] = x++ * 2;
    out[k++] = (int)(--x * 1.5f);
    x /= 2;
    out[k++] = x * 10;
    x = i = 7.9f;
    out[k++] = x * 10;
    i = 3;
    i = i++ + 1;                           // the old value and 1
    out[k++] = i;
    int cells[6] = {0, 1, 2, 3, 4, 5};
    i = 2;
    cells[i++] = i;                        // the right side comes first
    out[k++] = cells[2];
    out[k++] = i;
    cells[i] = i = 5;
    out[k++] = cells[5];
    i = 1;
    cells[i++] += 10;
    out[k++] = cells[1] * 10 + i;
    i = 1;
    out[k++] = (i++, i) * 10 + i;
    i = 4;
    out[k++] = i << (i = 1);               // the left side comes first
    out[k++] = -i++ + 5;
    out[k] = k + 100;
}
"""


def test_assignments(device):
    expected = [
        4, 255, 253, 250, 251, 4, 4, 6, 255, 0, 255, 254, -128, -42, -2, -1, 32767, 32765, 16382,
        17, 34, 68, 3, 24, 10, 15, 14, 6, 5, 12, 4 - 4, -4, 8, 7, 9, 100, 1, 1, 1, 1, 0, 1, 6, 4,
        15, 70, 4, 2, 3, 5, 112, 22, 8, 4,
    ]  # fmt: skip
    out = td.zeros(80, dtype=td.int32, device=device)
    module = td.cuda_module(ASSIGNMENTS)
    module.assigned[1, 1](td.asarray(np.array([250, 7], np.int32), device=device), out)
    found = out.tolist()
    count = len(expected)
    assert found[:count] == expected
    assert found[count] == count + 100


ORDER = """
__device__ int tick(int *counter, int result)
{
    *counter = *counter * 10 + result;
    return result;
}

__device__ int first(int a, int b) { return a; }

__global__ void order(int *out)
{
    int seen = 0, k = 0;
    tick(&seen, 0) && tick(&seen, 1);
    out[k++] = seen;                                     // 0
    seen = 5;
    bool both = tick(&seen, 1) && tick(&seen, 2) && !tick(&seen, 3) && tick(&seen, 4);
    out[k++] = seen * 10 + both;                         // 51230
    seen = 5;
    bool either = tick(&seen, 0) || tick(&seen, 2) || tick(&seen, 3);
    out[k++] = seen * 10 + either;                       // 5021
    seen = 5;
    int chosen = tick(&seen, 0) ? tick(&seen, 1) : tick(&seen, 2);
    out[k++] = seen * 10 + chosen;                       // 5022
    seen = 5;
    chosen = tick(&seen, 1) ? tick(&seen, 3), tick(&seen, 4) : tick(&seen, 2);
    out[k++] = seen * 10 + chosen;                       // 51344
    seen = 5;
    int cells[4] = {1, 2, 3, 4};
    cells[tick(&seen, 1)] = tick(&seen, 2);              // the right side first
    out[k++] = seen;                                     // 521
    out[k++] = cells[1];
    seen = 5;
    int shifted = tick(&seen, 3) << tick(&seen, 1);      // the left side first
    out[k++] = seen * 10 + shifted;                      // 5316
    seen = 1;
    if (seen++ == 1 && seen == 2 || seen++ > 100)
        out[k++] = seen;                                 // 2
    if (seen > 5 & seen++ > 1)
        out[k++] = 1000;
    out[k++] = seen;                                     // 3
    seen = 0;
    while (seen < 10 && (seen += 3) != 6)
        ;
    out[k++] = seen;                                     // 6
    int x = 7;
    out[k++] = x > 5 ? x++, x * 2 : x--;                 // 16
    out[k++] = x;                                        // 8
    x = 0;
    out[k++] = x && 10 / x > 1;                          // 0
    out[k++] = first(x += 2, 3) + x;                     // 4
    int steps = 0;
    for (int a = 0, b = 10; a++ < b--; steps++)
        ;
    out[k++] = steps;                                    // 5
}
"""


def test_order_of_evaluation(device):
    expected = [0, 51230, 5021, 5022, 51344, 521, 2, 5316, 2, 3, 6, 16, 8, 0, 4, 5]
    out = td.zeros(20, dtype=td.int32, device=device)
    td.cuda_module(ORDER).order[1, 1](out)
    assert out.tolist()[: len(expected)] == expected


CONSTANTS = """
#define COUNT (2 + 3)
enum { NONE, FEW = COUNT * 2, MORE, LAST = FEW << 2 | 1, NEGATIVE = -3, AFTER };
enum class Level : unsigned char { LOW = 'a', HIGH = LOW + 200 - 100 };
constexpr int SIZE = sizeof(double) * 2 - 1;
const int ROWS = SIZE / 4, COLUMNS = ROWS * 2 + (COUNT > 4 ? 1 : 100);
constexpr float SCALE = 1.0f / 4;
static const unsigned MASK = ~0u >> 28;
constexpr int square(int x) { return x * x; }
constexpr int triangle(int n)
{
    int sum = 0;
    for (int i = 1; i <= n; i++)
        sum += i;
    return sum;
}
static_assert(ROWS == 3 && COLUMNS == 7, "the sizes");
static_assert(square(COUNT) == 25);

__global__ void known(int *out)
{
    int table[ROWS][COLUMNS + 'b' - 'a'];
    const int local = ROWS * 2;
    float line[square(local) - 30];
    constexpr int sum = square(3) + local;
    int many[sum];
    out[0] = sizeof(table) / sizeof(int);
    out[1] = sizeof(line) / sizeof(float);
    out[2] = sizeof(many) / sizeof(many[0]);
    out[3] = MORE;
    out[4] = LAST;
    out[5] = AFTER;
    out[6] = (int)Level::HIGH;
    out[7] = SIZE;
    out[8] = (int)(SCALE * 100);
    out[9] = MASK;
    switch (out[10]) {
    case square(2) - 4: out[10] = 77; break;
    case FEW: out[10] = 1; break;
    case (int)Level::LOW: break;
    case -'a' + 1: break;
    }
    out[11] = triangle(10);
    out[12] = NONE - 1 + NEGATIVE;
}
"""


def test_constant_expressions(device):
    out = td.zeros(13, dtype=td.int32, device=device)
    td.cuda_module(CONSTANTS).known[1, 1](out)
    expected = [24, 6, 15, 11, 41, -2, 197, 15, 25, 15, 77, 55, -4]
    assert out.tolist() == expected


_NARROW = {"char": np.int8, "short": np.int16, "int": np.int32, "unsigned": np.uint32}
_LIMITS = (0, 5, -5, 100, 255, 65535, 2147483647, -2147483648, 4294967295, 4294967296)


@pytest.mark.parametrize("name", _NARROW)
def test_widened_numbers_compared_with_constants(device, name):
    """Mesa's llvmpipe compares them as if they were other numbers, where it sees both."""
    whole = np.iinfo(_NARROW[name])
    given = np.array([0, 1, 3, 5, 100, whole.max, whole.min, whole.max // 2], whole.dtype)
    tests = [f"a {op} {limit}LL" for limit in _LIMITS for op in ("<", "<=", ">", ">=")]
    tests += [f"{limit}LL {op} a" for limit in _LIMITS for op in ("<", ">=", "==")]
    lines = "".join(f"out[{k * 8} + i] = {test};" for k, test in enumerate(tests))
    lines += f"out[{len(tests) * 8} + i] = min(a, least) + (a < least ? 100 : a > 7);"
    kernel = (
        f"__global__ void k(const {name} *in, int *out) {{ int i = threadIdx.x; "
        f"long long a = in[i], least = 5; {lines} }}"
    )
    out = td.zeros((len(tests) + 1) * 8, dtype=td.int32, device=device)
    td.cuda_module(kernel).k[1, 8](td.asarray(given, device=device), out)
    found = out.numpy().reshape(-1, 8)
    wide = [int(one) for one in given]
    for test, row in zip(tests, found, strict=False):
        expected = [int(eval(test.replace("LL", ""), {"a": a})) for a in wide]
        assert row.tolist() == expected, test
    assert found[-1].tolist() == [min(a, 5) + (100 if a < 5 else a > 7) for a in wide]
