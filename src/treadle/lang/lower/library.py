"""A function in the kernel language that the lowering itself needs."""

from __future__ import annotations

from typing import Any


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
