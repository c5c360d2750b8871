"""Predefined macros: the compiler's, the user's, and those that are computed at each use."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping

import numpy as np

from treadle.core.source import Span
from treadle.cuda_cpp.source.diagnostics import Diagnostics
from treadle.cuda_cpp.source.macros import Expanding, Macro
from treadle.cuda_cpp.source.tokens import NUMBER, STRING, Token

ALWAYS_INCLUDED = ("cuda_runtime.h",)  # by nvcc, in every file

# Those of GCC on 64-bit Linux, which CUDA code that tests them expects.
PREDEFINED = """
#define TREADLE 1

#define __cplusplus 201703L
#define __STDC__ 1
#define __STDC_HOSTED__ 1
#define and &&
#define and_eq &=
#define bitand &
#define bitor |
#define compl ~
#define not !
#define not_eq !=
#define or ||
#define or_eq |=
#define xor ^
#define xor_eq ^=

// All code is compiled for the device, so host code sees __CUDA_ARCH__ as well.
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_LIST__ 900
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDACC_VER_BUILD__ 0

#define __linux__ 1
#define __linux 1
#define __gnu_linux__ 1
#define __unix__ 1
#define __unix 1
#define __ELF__ 1
#define _GNU_SOURCE 1
#define __x86_64__ 1
#define __x86_64 1
#define __amd64__ 1
#define __amd64 1
#define __LP64__ 1
#define _LP64 1

#define __GNUC__ 12
#define __GNUC_MINOR__ 0
#define __GNUC_PATCHLEVEL__ 0
#define __GNUG__ 12
#define __has_attribute(name) 0
#define __has_builtin(name) 0
#define __has_cpp_attribute(name) 0
#define __extension__
#define __inline inline
#define __inline__ inline
#define __const const
#define __const__ const
#define __signed signed
#define __signed__ signed
#define __volatile volatile
#define __volatile__ volatile
#define __restrict __restrict__
#define __asm asm
#define __asm__ asm

#define __ORDER_LITTLE_ENDIAN__ 1234
#define __ORDER_BIG_ENDIAN__ 4321
#define __ORDER_PDP_ENDIAN__ 3412
#define __BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__
#define __FLOAT_WORD_ORDER__ __ORDER_LITTLE_ENDIAN__
#define __CHAR_BIT__ 8
#define __SIZEOF_SHORT__ 2
#define __SIZEOF_INT__ 4
#define __SIZEOF_LONG__ 8
#define __SIZEOF_LONG_LONG__ 8
#define __SIZEOF_FLOAT__ 4
#define __SIZEOF_DOUBLE__ 8
#define __SIZEOF_POINTER__ 8
#define __SIZEOF_SIZE_T__ 8
#define __SIZEOF_PTRDIFF_T__ 8
#define __SCHAR_MAX__ 0x7f
#define __SHRT_MAX__ 0x7fff
#define CLOCKS_PER_SEC ((clock_t)1000000)
#define __INT_MAX__ 0x7fffffff
#define __LONG_MAX__ 0x7fffffffffffffffL
#define __LONG_LONG_MAX__ 0x7fffffffffffffffLL
#define __SIZE_MAX__ 0xffffffffffffffffUL
#define __SIZE_TYPE__ unsigned long
#define __PTRDIFF_TYPE__ long
#define __INT8_TYPE__ signed char
#define __INT16_TYPE__ short
#define __INT32_TYPE__ int
#define __INT64_TYPE__ long
#define __UINT8_TYPE__ unsigned char
#define __UINT16_TYPE__ unsigned short
#define __UINT32_TYPE__ unsigned int
#define __UINT64_TYPE__ unsigned long
#define __FLT_MAX__ 3.40282347e+38F
#define __FLT_MIN__ 1.17549435e-38F
#define __FLT_EPSILON__ 1.19209290e-7F
#define __DBL_MANT_DIG__ 53
#define __DBL_DIG__ 15
#define __DBL_DECIMAL_DIG__ 17
#define __DBL_MIN_EXP__ (-1021)
#define __DBL_MIN_10_EXP__ (-307)
#define __DBL_MAX_EXP__ 1024
#define __DBL_MAX_10_EXP__ 308
#define __DBL_MAX__ 1.7976931348623157e+308
#define __DBL_MIN__ 2.2250738585072014e-308
#define __DBL_DENORM_MIN__ 4.9406564584124654e-324
#define __DBL_EPSILON__ 2.2204460492503131e-16
#define __DBL_HAS_DENORM__ 1
"""

# What is defined differently where `double` has a float's bits.
DOUBLE_IS_FLOAT: dict[str, str] = {
    "__SIZEOF_DOUBLE__": "4",
    "__DBL_MANT_DIG__": "24",
    "__DBL_DIG__": "6",
    "__DBL_DECIMAL_DIG__": "9",
    "__DBL_MIN_EXP__": "(-125)",
    "__DBL_MIN_10_EXP__": "(-37)",
    "__DBL_MAX_EXP__": "128",
    "__DBL_MAX_10_EXP__": "38",
    "__DBL_MAX__": "((double)3.40282347e+38F)",
    "__DBL_MIN__": "((double)1.17549435e-38F)",
    "__DBL_DENORM_MIN__": "((double)1.40129846e-45F)",
    "__DBL_EPSILON__": "((double)1.19209290e-7F)",
}

_NAME = re.compile(r"[^\W\d][\w$]*(?:\([^()\n]*\))?")


def definitions(defines: Mapping[str, object], place: Span, diagnostics: Diagnostics) -> str:
    """The user's macros, as a file. A name may have parameters: `{"TWICE(x)": "((x) * 2)"}`."""
    lines = []
    for name, value in defines.items():
        text = _written(value)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            diagnostics.error(f"defines: {name!r} is not a name for a macro", place)
        elif text is None:
            diagnostics.error(
                f"defines: {name} has the value {value!r}; a macro's value is a number, one line "
                "of text, or None for 1",
                place,
            )
        else:
            lines.append(f"#define {name} {text}\n")
    return "".join(lines)


def _written(value: object) -> str | None:
    """A value as C++ text; None if it has none."""
    if value is None:
        return "1"
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isnan(number):
            return "NAN"
        return repr(number) if math.isfinite(number) else "INFINITY" if number > 0 else "-INFINITY"
    if isinstance(value, str):
        return None if len(value.splitlines()) > 1 else value
    return None


def special_macros() -> dict[str, Macro]:
    """The macros whose value depends on where they are used."""
    counter = itertools.count()

    def count(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
        return [Token(NUMBER, str(next(counter)), *token[2:])]

    return {
        "__FILE__": Macro("__FILE__", special=_file),
        "__LINE__": Macro("__LINE__", special=_line),
        "__COUNTER__": Macro("__COUNTER__", special=count),
    }


def _file(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
    text = token.file.replace("\\", "\\\\").replace('"', '\\"')
    return [Token(STRING, f'"{text}"', *token[2:])]


def _line(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
    return [Token(NUMBER, str(token.line), *token[2:])]
