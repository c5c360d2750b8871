"""Types without 64-bit integers, with the memory layout of the types that they replace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from treadle.ir.types import (
    COMPONENTS,
    U32,
    Array,
    Field,
    Scalar,
    Struct,
    Type,
    Vector,
    align_of,
    field_offset,
    scalars_in,
    size_of,
)

PAIR = Vector(U32, 2)


def is_wide(type: Type) -> bool:
    """Whether a type is one integer of 64 bits."""
    return isinstance(type, Scalar) and type.is_integer and type.bits == 64


def is_wide_vector(type: Type) -> bool:
    """Whether a type is a vector of integers of 64 bits."""
    return isinstance(type, Vector) and is_wide(type.element)


@cache
def holds_wide(type: Type) -> bool:
    """Whether there is an integer of 64 bits in a type."""
    return any(map(is_wide, scalars_in(type)))


@cache
def paired(type: Type) -> Type:
    """The type with a pair of words for every integer of 64 bits."""
    if not holds_wide(type):
        return type
    if isinstance(type, Vector):
        names = COMPONENTS[: type.count]
        return Struct(f"pairs{type.count}", tuple(Field(name, PAIR) for name in names))
    if isinstance(type, Array):
        return Array(paired(type.element), type.length)
    return at_old_offsets(type, paired, _padding) if isinstance(type, Struct) else PAIR


def at_old_offsets(
    type: Struct, paired: Callable[[Type], Type], padding: Callable[[int], Field]
) -> Struct:
    """A struct of other types with every field at its old offset. A vector may have been aligned to
    more than its pairs are: then words of padding stand before them, or at the end."""
    fields: list[Field] = []
    end = 0
    for field in type.fields:
        own = paired(field.type)
        start = field_offset(type, field.name)
        end += -end % align_of(own)
        while end < start:
            fields.append(padding(len(fields)))
            end += 4
        fields.append(Field(field.name, own))
        end += size_of(own)
    most = max(align_of(field.type) for field in fields)
    while end + -end % most < size_of(type):
        fields.append(padding(len(fields)))
        end += 4
    return Struct(type.name, tuple(fields))


def _padding(number: int) -> Field:
    return Field(f"padding.{number}", U32)
