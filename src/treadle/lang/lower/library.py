"""Functions in the kernel language that the lowering itself needs."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import f32, f64, i32, i64
from treadle.lang.builtins import bitcast


def integer_power(base: Any, exponent: Any) -> Any:
    """Base ** exponent for integers; 0 for a negative exponent (of 1 and -1 too)."""
    result = base * 0 + 1
    if exponent < 0:
        result = base * 0
    while exponent > 0:
        if exponent & 1 == 1:
            result = result * base
        base = base * base
        exponent = exponent >> 1
    return result


def nextafter_f32(x: Any, y: Any) -> Any:
    """The neighbour of x towards y: floats of one sign are ordered as their bits."""
    if x != x or y != y:
        return x + y
    if x == y:
        return y
    if x == 0.0:
        smallest = bitcast(i32(1), f32)
        return smallest if y > 0.0 else -smallest
    bits = bitcast(x, i32)
    away = (y > x) == (x > 0.0)
    return bitcast(bits + 1 if away else bits - 1, f32)


def nextafter_f64(x: Any, y: Any) -> Any:
    """The neighbour of x towards y: floats of one sign are ordered as their bits."""
    if x != x or y != y:
        return x + y
    if x == y:
        return y
    if x == 0.0:
        smallest = bitcast(i64(1), f64)
        return smallest if y > 0.0 else -smallest
    bits = bitcast(x, i64)
    away = (y > x) == (x > 0.0)
    return bitcast(bits + 1 if away else bits - 1, f64)


OWN: dict[str, Any] = {"nextafter_f32": nextafter_f32, "nextafter_f64": nextafter_f64}
