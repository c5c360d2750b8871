"""Types with a pair of float32 for each double, in the same memory layout.

A pair has a double's size and alignment, and a vector of doubles becomes a struct of pairs.
"""

from __future__ import annotations

from functools import cache

from treadle.cuda_cpp.semantics.types import PADDING
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
    align_of,
    field_offset,
    scalars_in,
    size_of,
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
        return _struct(type)
    return type


def _struct(type: Struct) -> Struct:
    """A struct with every field at its old offset: a vector was aligned to more than its pairs."""
    fields: list[Field] = []
    end = 0
    for field in type.fields:
        own = paired(field.type)
        start = field_offset(type, field.name)
        end += -end % align_of(own)
        while end < start:
            fields.append(_padding(len(fields)))
            end += 4
        fields.append(Field(field.name, own))
        end += size_of(own)
    while end + -end % max(align_of(field.type) for field in fields) < size_of(type):
        fields.append(_padding(len(fields)))
        end += 4
    return Struct(type.name, tuple(fields))


def _padding(number: int) -> Field:
    return Field(f"{PADDING}pair{number}", U32)
