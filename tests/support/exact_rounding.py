"""Fractions rounded to a float type in any direction: what directed rounding is held against."""

from __future__ import annotations

import math
from fractions import Fraction

from treadle.ir import arithmetic
from treadle.ir import types as t

INF = math.inf


def neighbour(value: float, type: t.Scalar, up: bool) -> float:
    """The next number of a type."""
    if value == 0:
        return arithmetic.from_bits(1 if up else 1 | 1 << (type.bits - 1), type)  # type: ignore[return-value]
    bits = arithmetic.to_bits(value, type)
    return arithmetic.from_bits(bits + (1 if (value > 0) == up else -1), type)  # type: ignore[return-value]


def rounded(value: Fraction, type: t.Scalar, mode: str) -> float:
    """A fraction rounded in a direction."""
    near = arithmetic.round_exact(value, type)
    if mode == "rz":
        mode = "rd" if value > 0 else "ru"
    above = near == INF or (near != -INF and Fraction(near) > value)
    below = near == -INF or (near != INF and Fraction(near) < value)
    if mode == "ru" and below:
        return neighbour(near, type, True)
    if mode == "rd" and above:
        return neighbour(near, type, False)
    return near
