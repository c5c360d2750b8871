"""Numbers as WGSL writes them."""

from __future__ import annotations

import numpy as np

from treadle.ir.types import Scalar

_SUFFIXES = {"i64": "li", "u64": "lu", "f64": "lf"}


def integer(value: int, type: Scalar) -> str:
    """An integer of the register type for `type`."""
    if type.bits < 64:
        if type.is_signed:
            return str(value)
        return f"{value:#010x}u" if value > 0xFFFF else f"{value}u"  # a mask, most likely
    if value == -(1 << 63):
        return "(-9223372036854775807li - 1li)"  # the literal after the minus would not fit
    return f"{value}{_SUFFIXES[type.name]}"


def real(value: float, register: str) -> str:
    """A finite number of the register type "f32", "f16" or "f64"."""
    if register == "f64":
        return _spelled(repr(float(value))) + "lf"
    if register == "f16":
        return _spelled(repr(float(np.float16(value)))) + "h"
    single = np.float32(value)
    shortest = _spelled(str(single))
    if abs(float(shortest)) > float(np.finfo(np.float32).max):
        shortest = _spelled(repr(float(single)))  # the shortest text rounds beyond the range
    normal = value == 0 or abs(value) >= float(np.finfo(np.float32).tiny)
    return shortest if normal else shortest + "f"


def _spelled(text: str) -> str:
    text = text.replace("e+", "e")
    return text if any(sign in text for sign in ".e") else text + ".0"
