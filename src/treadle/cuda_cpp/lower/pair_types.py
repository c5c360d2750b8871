"""Types with a pair of float32 for each double, in the same memory layout.

A pair has a double's size and alignment, and a vector of doubles becomes a struct of pairs.
"""

from __future__ import annotations

from functools import cache

from treadle.cuda_cpp.semantics.types import PADDING
from treadle.ir.passes.wide.layout import at_old_offsets
from treadle.ir.types import (
    COMPONENTS,
    F32,
    F64,
    U32,
    Array,
    Field,
    Struct,
    Type,
    Vector,
    scalars_in,
)

PAIR = Vector(F32, 2)


@cache
def holds_double(type: Type) -> bool:
    """Whether there is a double in a type."""
    return F64 in scalars_in(type)


@cache
def paired(type: Type) -> Type:
    """The type with a pair for every double."""
    if type == F64:
        return PAIR
    if isinstance(type, Vector) and type.element == F64:
        fields = tuple(Field(name, PAIR) for name in COMPONENTS[: type.count])
        return Struct(f"double{type.count}", fields)
    if isinstance(type, Array):
        return Array(paired(type.element), type.length)
    if isinstance(type, Struct) and holds_double(type):
        return at_old_offsets(type, paired, _padding)
    return type


def _padding(number: int) -> Field:
    return Field(f"{PADDING}pair{number}", U32)
