"""The headers of C: macros and typedefs. Functions and types are built in.

Sizes are those of 64-bit Linux.
"""

from __future__ import annotations

_ASSERT = """
// Each #include of it tests NDEBUG again.
#undef assert
#ifdef NDEBUG
#define assert(...) ((void)0)
#else
#define assert(...) __treadle_assert((__VA_ARGS__), #__VA_ARGS__)
#endif
"""

_FLOAT = """
#pragma once
#define FLT_RADIX 2
#define FLT_ROUNDS 1
#define FLT_EVAL_METHOD 0
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_EXP 128
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.40282347e+38F
#define FLT_MIN 1.17549435e-38F
#define FLT_TRUE_MIN 1.40129846e-45F
#define FLT_EPSILON 1.19209290e-7F
#define FLT_HAS_SUBNORM 1
#define DBL_MANT_DIG __DBL_MANT_DIG__
#define DBL_DIG __DBL_DIG__
#define DBL_DECIMAL_DIG __DBL_DECIMAL_DIG__
#define DBL_MIN_EXP __DBL_MIN_EXP__
#define DBL_MIN_10_EXP __DBL_MIN_10_EXP__
#define DBL_MAX_EXP __DBL_MAX_EXP__
#define DBL_MAX_10_EXP __DBL_MAX_10_EXP__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_TRUE_MIN __DBL_DENORM_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define DBL_HAS_SUBNORM __DBL_HAS_DENORM__
"""

_LIMITS = """
#pragma once
#define CHAR_BIT 8
#define MB_LEN_MAX 16
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1L)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1LL)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define LONG_LONG_MIN LLONG_MIN
#define LONG_LONG_MAX LLONG_MAX
#define ULONG_LONG_MAX ULLONG_MAX
"""

_MATH = """
#pragma once
#define INFINITY (__int_as_float(0x7f800000))
#define NAN (__int_as_float(0x7fc00000))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__longlong_as_double(0x7ff0000000000000LL))
#define MAXFLOAT 3.40282347e+38F
#define M_E 2.718281828459045
#define M_LOG2E 1.4426950408889634
#define M_LOG10E 0.4342944819032518
#define M_LN2 0.6931471805599453
#define M_LN10 2.302585092994046
#define M_PI 3.141592653589793
#define M_PI_2 1.5707963267948966
#define M_PI_4 0.7853981633974483
#define M_1_PI 0.3183098861837907
#define M_2_PI 0.6366197723675814
#define M_2_SQRTPI 1.1283791670955126
#define M_SQRT2 1.4142135623730951
#define M_SQRT1_2 0.7071067811865476
#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)
typedef float float_t;
typedef double double_t;
"""

_STDBOOL = """
#pragma once
#define __bool_true_false_are_defined 1
"""

_STDDEF = """
#pragma once
#define NULL nullptr
#define offsetof(type, member) __builtin_offsetof(type, member)
typedef long ptrdiff_t;
"""

_STDIO = """
#pragma once
#include <stddef.h>
#define EOF (-1)
"""

_STDLIB = """
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
"""

_STRING = """
#pragma once
#include <stddef.h>
"""


def _stdint() -> str:
    """<stdint.h>, generated, as the lines differ in the width only."""
    types = {8: "char", 16: "short", 32: "int", 64: "long"}
    suffixes = {8: "", 16: "", 32: "", 64: "L"}
    unsigned_suffixes = {8: "", 16: "", 32: "U", 64: "UL"}
    lines = ["#pragma once"]
    for bits, type_ in types.items():
        signed = "signed char" if bits == 8 else type_
        largest, suffix = f"{(1 << bits - 1) - 1}{suffixes[bits]}", unsigned_suffixes[bits]
        for kind in ("", "_least"):
            lines += [
                f"typedef {signed} int{kind}{bits}_t;",
                f"typedef unsigned {type_} uint{kind}{bits}_t;",
            ]
        for kind in ("", "_LEAST"):
            lines += [
                f"#define INT{kind}{bits}_MIN (-{largest} - 1)",
                f"#define INT{kind}{bits}_MAX {largest}",
                f"#define UINT{kind}{bits}_MAX {(1 << bits) - 1}{suffix}",
            ]
        lines += [
            f"#define INT{bits}_C(value) value" + (" ## L" if bits == 64 else ""),
            f"#define UINT{bits}_C(value) value" + (f" ## {suffix}" if suffix else ""),
        ]
    lines += [
        "typedef signed char int_fast8_t;",
        "typedef unsigned char uint_fast8_t;",
        *(f"typedef long int_fast{bits}_t;" for bits in (16, 32, 64)),
        *(f"typedef unsigned long uint_fast{bits}_t;" for bits in (16, 32, 64)),
        "#define INT_FAST8_MIN INT8_MIN",
        "#define INT_FAST8_MAX INT8_MAX",
        "#define UINT_FAST8_MAX UINT8_MAX",
    ]
    wide = [f"FAST{bits}" for bits in (16, 32, 64)] + ["MAX", "PTR"]
    for name in wide:
        joined = name if name in ("MAX", "PTR") else f"_{name}"
        lines += [
            f"#define INT{joined}_MIN INT64_MIN",
            f"#define INT{joined}_MAX INT64_MAX",
            f"#define UINT{joined}_MAX UINT64_MAX",
        ]
    lines += [
        "typedef long intmax_t;",
        "typedef unsigned long uintmax_t;",
        "typedef long intptr_t;",
        "typedef unsigned long uintptr_t;",
        "#define INTMAX_C(value) value ## L",
        "#define UINTMAX_C(value) value ## UL",
        "#define PTRDIFF_MIN INT64_MIN",
        "#define PTRDIFF_MAX INT64_MAX",
        "#define SIZE_MAX UINT64_MAX",
    ]
    return "\n".join(lines) + "\n"


C_HEADERS = {
    "assert.h": _ASSERT,
    "float.h": _FLOAT,
    "limits.h": _LIMITS,
    "math.h": _MATH,
    "stdbool.h": _STDBOOL,
    "stddef.h": _STDDEF,
    "stdint.h": _stdint(),
    "stdio.h": _STDIO,
    "stdlib.h": _STDLIB,
    "string.h": _STRING,
}

# The same headers by other names.
SAME_AS = {
    **{f"c{name.removesuffix('.h')}": name for name in C_HEADERS},
    "inttypes.h": "stdint.h",
    "cinttypes": "stdint.h",
    "memory.h": "string.h",
    "sys/types.h": "stdint.h",
}
