"""A function in the kernel language that the lowering itself needs."""

from __future__ import annotations

from typing import Any


def integer_power(base: Any, exponent: Any) -> Any:
    """Base ** exponent for integers. With a negative exponent it is the fraction without what is
    behind the point: 1 for 1, 1 or -1 for -1, 0 for all others (0 too), as PyTorch has it."""
    result = base * 0 + 1
    if exponent < 0:
        result = base * 0
        if base == 1 or base + 1 == 0:
            result = base if exponent & 1 == 1 else base * base
    while exponent > 0:
        if exponent & 1 == 1:
            result = result * base
        base = base * base
        exponent = exponent >> 1
    return result
