"""Sizes of windows over images, as users give them: one number, or one for each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.errors import ShapeError


def numbers_of(name: str, what: str, value: Any, axes: int) -> tuple[int, ...]:
    """An integer for each axis: one for all, or a sequence of so many. A sequence of one stands
    for all, as in PyTorch."""
    given = value if isinstance(value, Sequence) else (value,)
    try:
        numbers = tuple([number.__index__() for number in given])
    except AttributeError:
        raise TypeError(f"{name}: {what} is an integer, or {axes} of them, not {value!r}") from None
    if len(numbers) == 1:
        return numbers * axes
    if len(numbers) != axes:
        raise ShapeError(f"{name}: {what}={numbers} has {len(numbers)} numbers, not {axes}")
    return numbers


def check_positive(name: str, what: str, numbers: Sequence[int]) -> None:
    """ValueError unless all numbers are above 0."""
    if min(numbers) < 1:
        shown = numbers[0] if len(numbers) == 1 else tuple(numbers)
        raise ValueError(f"{name}: {what} must be positive, not {shown}")
