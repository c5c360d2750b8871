"""The types of the IR, and their layout in memory: the one C and NumPy (`align=True`) give.

Every type is a frozen value; equality is structural. Memory is bytes on every target, so sizes,
alignments and field offsets are decided here once and never by a printer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number. `name` is the short name that people type: f32, i64, bool."""

    name: str
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")


@dataclass(frozen=True, slots=True)
class Vector:
    """Two to four numbers: components x, y, z, w."""

    element: Scalar
    count: int

    def __str__(self) -> str:
        return f"vec{self.count}<{self.element}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a struct."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields in C order and C alignment."""

    name: str
    fields: tuple[Field, ...]

    def __hash__(self) -> int:
        return hash(self.name)  # each launch with a struct hashes its type

    def __str__(self) -> str:
        return self.name

    def field_type(self, name: str) -> Type:
        """The type of field `name`; KeyError if there is none."""
        for field in self.fields:
            if field.name == name:
                return field.type
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Array:
    """A fixed number of elements, inside a struct."""

    element: Type
    length: int

    def __str__(self) -> str:
        return f"array<{self.element}, {self.length}>"


@dataclass(frozen=True, slots=True)
class Void:
    """The result of a function that returns nothing."""

    def __str__(self) -> str:
        return "void"


Type: TypeAlias = Scalar | Vector | Struct | Array | Void

BOOL = Scalar("bool", "bool", 8)
I8, I16, I32, I64 = (Scalar(f"i{bits}", "int", bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (Scalar(f"u{bits}", "uint", bits) for bits in (8, 16, 32, 64))
F16 = Scalar("f16", "float", 16)
BF16 = Scalar("bf16", "float", 16)
F32 = Scalar("f32", "float", 32)
F64 = Scalar("f64", "float", 64)
# What is printed of a pair of float32 whose sum is a number. Nothing else has this type.
PAIR_OF_FLOATS = Scalar("pair of f32", "float", 64)
VOID = Void()

SCALARS: dict[str, Scalar] = {
    scalar.name: scalar
    for scalar in (BOOL, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64)
}
COMPONENTS = ("x", "y", "z", "w")


@cache
def size_of(type: Type) -> int:
    """Bytes that one value takes in memory, padding included."""
    match type:
        case Scalar():
            return type.bits // 8
        case Vector():
            return size_of(type.element) * type.count
        case Array():
            return size_of(type.element) * type.length
        case Struct():
            end = 0
            for field in type.fields:
                end = _round_up(end, align_of(field.type)) + size_of(field.type)
            return _round_up(end, align_of(type))
        case Void():
            raise ValueError("void has no size")


@cache
def align_of(type: Type) -> int:
    """The alignment in bytes. Vectors of two and four align to their size, as CUDA's float2 and
    float4 do; vectors of three pack like three scalars, as float3 does."""
    match type:
        case Scalar():
            return type.bits // 8
        case Vector():
            return size_of(type) if type.count != 3 else size_of(type.element)
        case Array():
            return align_of(type.element)
        case Struct():
            return max((align_of(field.type) for field in type.fields), default=1)
        case Void():
            raise ValueError("void has no alignment")


@cache
def field_offset(type: Struct, name: str) -> int:
    """Bytes from the start of a struct to its field `name`; KeyError if there is none."""
    end = 0
    for field in type.fields:
        start = _round_up(end, align_of(field.type))
        if field.name == name:
            return start
        end = start + size_of(field.type)
    raise KeyError(name)


@cache
def matrix_type(rows: int, columns: int, element: Scalar) -> Struct:
    """The type of a small matrix: a struct of its rows, so that it lies in memory row by row, as in
    NumPy, and printers need no rules for it."""
    fields = tuple(Field(f"row{i}", Vector(element, columns)) for i in range(rows))
    return Struct(f"mat{rows}x{columns}_{element}", fields)


def matrix_shape(type: Type) -> tuple[int, int] | None:
    """The rows and columns of a small matrix; None for other types."""
    if not isinstance(type, Struct) or not type.name.startswith("mat"):
        return None
    rows, first = len(type.fields), type.fields[0].type if type.fields else None
    if not 2 <= rows <= 4 or not isinstance(first, Vector):
        return None
    return (rows, first.count) if type == matrix_type(rows, first.count, first.element) else None


def numbers_in(type: Type) -> tuple[tuple[int, ...], Scalar] | None:
    """The shape of a vector or a small matrix, and the type of its numbers; None for others."""
    if isinstance(type, Vector):
        return (type.count,), type.element
    shape = matrix_shape(type)
    if shape is None:
        return None
    assert isinstance(type, Struct)
    row = type.fields[0].type
    assert isinstance(row, Vector)
    return shape, row.element


def member_type(type: Type, name: str) -> Type:
    """The type of component or field `name`; KeyError if `type` has none of that name."""
    if isinstance(type, Struct):
        return type.field_type(name)
    if isinstance(type, Vector) and name in COMPONENTS[: type.count]:
        return type.element
    raise KeyError(name)


# How the names of fields begin that only take room, and of words with bit fields in them.
PADDING, BITS = "padding.", "bits."
NAMELESS = (PADDING, BITS)


def padding(number: int, start: int, end: int) -> list[Field]:
    """The fields that fill a struct from byte `start` to `end`, after `number` other fields."""
    words = start % 4 == end % 4 == 0
    count, type = ((end - start) // 4, U32) if words else (end - start, U8)
    return [Field(f"{PADDING}{number}.{at}", type) for at in range(count)]


def named_leaves(type: Type, named: bool = True) -> Iterator[tuple[int, Scalar, bool]]:
    """Every scalar in a value of `type`, with its byte offset; and whether it is that of a field
    with a name: padding has none, nor have the words with the bit fields of CUDA C++."""
    if isinstance(type, Struct):
        for field in type.fields:
            start, has_name = field_offset(type, field.name), not field.name.startswith(NAMELESS)
            for at, leaf, known in named_leaves(field.type, named and has_name):
                yield start + at, leaf, known
    elif isinstance(type, Array):
        step, inner = size_of(type.element), tuple(named_leaves(type.element, named))
        for i in range(type.length):
            yield from ((step * i + at, leaf, known) for at, leaf, known in inner)
    else:
        yield from ((at, leaf, named) for at, leaf in leaves(type))


def leaves(type: Type) -> tuple[tuple[int, Scalar], ...]:
    """Every scalar in a value of `type`, with its byte offset, in memory order."""
    match type:
        case Scalar():
            return ((0, type),)
        case Vector():
            step = size_of(type.element)
            return tuple((step * i, type.element) for i in range(type.count))
        case Array():
            step = size_of(type.element)
            inner = leaves(type.element)
            return tuple((step * i + at, leaf) for i in range(type.length) for at, leaf in inner)
        case Struct():
            starts = [field_offset(type, field.name) for field in type.fields]
            return tuple(
                (start + at, leaf)
                for start, field in zip(starts, type.fields, strict=True)
                for at, leaf in leaves(field.type)
            )
        case Void():
            return ()


@cache
def scalars_in(type: Type) -> frozenset[Scalar]:
    """The types of the scalars in a value of `type`, without going through a long array."""
    match type:
        case Scalar():
            return frozenset({type})
        case Vector() | Array():
            return scalars_in(type.element)
        case Struct():
            return frozenset().union(*(scalars_in(field.type) for field in type.fields))
        case Void():
            return frozenset()


@cache
def leaf_count(type: Type) -> int:
    """How many scalars are in a value of `type`."""
    match type:
        case Scalar():
            return 1
        case Vector():
            return type.count
        case Array():
            return type.length * leaf_count(type.element)
        case Struct():
            return sum(leaf_count(field.type) for field in type.fields)
        case Void():
            return 0


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
