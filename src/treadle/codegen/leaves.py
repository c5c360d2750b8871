"""For printers that hold every value as scalars: the scalar leaves of a type, and which expressions
must not be speculated (evaluated where the source would skip them)."""

from __future__ import annotations

from functools import cache

from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import Array, Scalar, Struct, Type, Vector, leaves


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


def must_not_speculate(node: n.Expression) -> bool:
    """Whether evaluating an expression that the source would skip could fault or take long."""
    return any(isinstance(part, (n.Load, n.Call)) for part in walk(node))
