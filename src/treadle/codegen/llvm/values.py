"""Values while they are printed: every vector and struct is the tuple of its scalars.

LLVM vectorizes loops over scalars; it does not vectorize what is a vector already. So a float4 is
four scalars, in memory order, and only memory sees them together.
"""

from __future__ import annotations

from functools import cache

from treadle.codegen.llvm.spelling import constant
from treadle.ir.types import Array, Scalar, Struct, Type, Vector, leaves

Interval = tuple[int, int]


class Value:
    """The operands of a value's leaves.

    `width` is 1, or the lanes that differ. `interval` bounds an integer, if known. `linear`, for an
    integer in lanes, is its value in lane 0 (a scalar operand) and the step from lane to lane.
    """

    __slots__ = ("interval", "leaves", "linear", "width")

    def __init__(
        self,
        leaves: tuple[str, ...],
        width: int = 1,
        interval: Interval | None = None,
        linear: tuple[str, int] | None = None,
    ) -> None:
        self.leaves = leaves
        self.width = width
        self.interval = interval
        self.linear = linear


@cache
def leaf_types(type: Type) -> tuple[Scalar, ...]:
    """The scalars in a type, in memory order."""
    return tuple(scalar for _, scalar in leaves(type))


@cache
def leaf_range(type: Type, name: str) -> tuple[int, int]:
    """Which leaves of a vector or struct its component or field `name` is: start and stop."""
    if isinstance(type, Vector):
        start = "xyzw".index(name)
        return start, start + 1
    assert isinstance(type, Struct)
    start = 0
    for field in type.fields:
        count = len(leaf_types(field.type))
        if field.name == name:
            return start, start + count
        start += count
    raise KeyError(name)


@cache
def holds_array(type: Type) -> bool:
    """Whether a type has a fixed array somewhere in it."""
    if isinstance(type, Array):
        return True
    return isinstance(type, Struct) and any(holds_array(field.type) for field in type.fields)


def zero(type: Type) -> Value:
    """The zero of any type."""
    return Value(tuple(constant(scalar, 0) for scalar in leaf_types(type)))


# --- intervals ------------------------------------------------------------------------------------


def combine(op: str, a: Interval | None, b: Interval | None) -> Interval | None:
    """Where the exact result of an operation on two intervals lies; None if not known."""
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
