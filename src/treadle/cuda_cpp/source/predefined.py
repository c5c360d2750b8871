"""The macros that are there before a file begins: the compiler's, the user's, and computed ones."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping

import numpy as np

from treadle.core.source import Span
from treadle.cuda_cpp.source.diagnostics import Diagnostics
from treadle.cuda_cpp.source.expansion import Expander
from treadle.cuda_cpp.source.macros import Macro
from treadle.cuda_cpp.source.tokens import NUMBER, STRING, Token

ALWAYS_INCLUDED = ("cuda_runtime.h",)  # nvcc includes it unasked

_PREDEFINED = {
    "TREADLE": "1",
    # The language
    "__cplusplus": "201703L",
    "__STDC__": "1",
    "__STDC_HOSTED__": "1",
    # CUDA. All code is compiled for the device, so host code sees __CUDA_ARCH__ as well.
    "__CUDA_ARCH__": "900",
    "__CUDA_ARCH_LIST__": "900",
    "__CUDACC__": "1",
    "__NVCC__": "1",
    "__CUDACC_VER_MAJOR__": "12",
    "__CUDACC_VER_MINOR__": "8",
    "__CUDACC_VER_BUILD__": "0",
    "CUDART_VERSION": "12080",
    "CUDA_VERSION": "12080",
}


def predefined_text() -> str:
    """Our macros, as a file."""
    return "".join(f"#define {name} {value}\n" for name, value in _PREDEFINED.items())


_NAME = re.compile(r"[^\W\d][\w$]*(?:\([^()\n]*\))?")


def definitions(defines: Mapping[str, object], place: Span, diagnostics: Diagnostics) -> str:
    """The user's macros, as a file. A name may have parameters: `{"TWICE(x)": "((x) * 2)"}`."""
    lines = []
    for name, value in defines.items():
        text = _written(value)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            diagnostics.error(f"defines: {name!r} is no name of a macro", place)
        elif text is None:
            diagnostics.error(
                f"defines: {name} has the value {value!r}; a macro's value is a number, a text of "
                "one line, or None for 1",
                place,
            )
        else:
            lines.append(f"#define {name} {text}\n")
    return "".join(lines)


def _written(value: object) -> str | None:
    """A value as C++ writes it, or None if it cannot."""
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

    def count(expander: Expander, token: Token, pending: list[Token]) -> list[Token]:
        return [Token(NUMBER, str(next(counter)), *token[2:])]

    return {
        "__FILE__": Macro("__FILE__", special=_file),
        "__LINE__": Macro("__LINE__", special=_line),
        "__COUNTER__": Macro("__COUNTER__", special=count),
    }


def _file(expander: Expander, token: Token, pending: list[Token]) -> list[Token]:
    text = token.file.replace("\\", "\\\\").replace('"', '\\"')
    return [Token(STRING, f'"{text}"', *token[2:])]


def _line(expander: Expander, token: Token, pending: list[Token]) -> list[Token]:
    return [Token(NUMBER, str(token.line), *token[2:])]
