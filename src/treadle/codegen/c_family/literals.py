"""Numbers as C++ writes them."""

from __future__ import annotations

import numpy as np

from treadle.ir.types import Scalar


def integer(value: int, type: Scalar, suffixes: dict[str, str]) -> str:
    """An integer; those narrower than an int have its type."""
    suffix = suffixes.get(type.name, "")
    if type.is_signed and value == -(1 << (type.bits - 1)) and type.bits >= 32:
        return f"(-{-(value + 1)}{suffix} - 1)"  # the number behind the minus would not fit
    if not type.is_signed and value > 0xFFFF:
        return f"0x{value:0{8 if value >> 32 == 0 else 16}x}{suffix}"  # a mask, most likely
    return f"{value}{suffix}"


def single(value: float) -> str:
    """A finite float32."""
    number = np.float32(value)
    if number == int(number) and 1e6 <= abs(number) < 1e10:
        return f"{int(number)}.0f"
    shortest = _spelled(str(number))
    if abs(float(shortest)) > float(np.finfo(np.float32).max):
        shortest = _spelled(repr(float(number)))  # the shortest text rounds beyond the range
    return shortest + "f"


def half(value: float) -> str:
    """A finite float16 without a suffix."""
    return _spelled(repr(float(np.float16(value))))


def double(value: float) -> str:
    """A finite float64."""
    return _spelled(repr(float(value)))


def _spelled(text: str) -> str:
    text = text.replace("e+", "e")
    return text if any(sign in text for sign in ".e") else text + ".0"
