"""Bounds of integers, as far as printers follow them: what an operation cannot exceed."""

from __future__ import annotations

from treadle.ir.nodes import Parameter
from treadle.ir.types import Scalar

Interval = tuple[int, int]

# A grid is launched only if its threads along each axis can be counted in an i32.
LARGEST_EXTENT = (1 << 31) - 1
_NEVER_NEGATIVE = frozenset({"shape", "size", "threads", "grid", "length"})


def parameter_interval(parameter: Parameter) -> Interval | None:
    """What is known of a scalar parameter: extents are not negative."""
    if parameter.type.is_integer and parameter.origin and parameter.origin[0] in _NEVER_NEGATIVE:
        return 0, (1 << (parameter.type.bits - 1)) - 1
    return None


def combine(op: str, a: Interval | None, b: Interval | None) -> Interval | None:
    """Where the exact result of an operation on two intervals lies; None if not known."""
    if op == "and" and b is not None and b[0] >= 0 and (a is None or a[0] < 0):
        return 0, b[1]
    if a is None or b is None:
        return None
    if op == "add":
        return a[0] + b[0], a[1] + b[1]
    if op == "sub":
        return a[0] - b[1], a[1] - b[0]
    if op == "mul":
        products = [x * y for x in a for y in b]
        return min(products), max(products)
    if op in ("div", "floordiv") and a[0] >= 0 and b[0] > 0:
        return a[0] // b[1], a[1] // b[0]
    if op in ("rem", "mod") and a[0] >= 0 and b[0] > 0:
        return 0, min(a[1], b[1] - 1)
    if op == "and" and a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1])
    if op == "shr" and a[0] >= 0 and 0 <= b[0] == b[1] < 64:
        return a[0] >> b[0], a[1] >> b[0]
    return None


def extreme(op: str, a: Interval | None, b: Interval | None) -> Interval | None:
    """Where the min or max of two integers lies."""
    if a is None or b is None:
        return None
    choose = min if op == "min" else max
    return choose(a[0], b[0]), choose(a[1], b[1])


def union(a: Interval | None, b: Interval | None) -> Interval | None:
    """Where one of two integers lies."""
    return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))


def fits(interval: Interval | None, type: Scalar) -> bool:
    """Whether all of an interval can be represented in an integer type."""
    if interval is None:
        return False
    low = -(1 << (type.bits - 1)) if type.is_signed else 0
    high = (1 << (type.bits - 1)) - 1 if type.is_signed else (1 << type.bits) - 1
    return low <= interval[0] and interval[1] <= high
