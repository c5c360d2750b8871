"""Bit fields, and members of packed structs at any byte: where they are, and how words hold them.

The fields of such a class are whole words, which are copied and passed as any fields are. Each
member is read from bits of one or more of them, and written to these. The layout is that of g++
and of NVIDIA's compilers (the Itanium ABI).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.semantics.types import (
    ARITHMETIC,
    OF_SCALAR,
    WORDS,
    ArrayOf,
    BitField,
    CppType,
    Field,
    Piece,
    align_of,
    ir_type,
    size_of,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir


@dataclass(frozen=True, slots=True)
class Declared:
    """A member as it is declared; `width` of a bit field, which may have no name."""

    name: str
    type: CppType
    width: int | None = None
    unsigned: bool = False  # an enum without negative enumerators
    alignment: int = 0  # by alignas or __align__


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a class, the members that are bits of them, all names in order, and the
    class's alignment in bytes (0: that of its fields)."""

    fields: tuple[Field, ...]
    bits: tuple[BitField, ...] = ()
    names: tuple[str, ...] = ()
    alignment: int = 0


class Unplaced(Exception):
    """A member that words cannot hold: the message says why."""


def laid_out(
    members: Sequence[Declared], start: int, is_union: bool, packing: int | None, own: str
) -> Layout:
    """The layout of a class whose members follow `start` bytes of its bases."""
    if not _has_bits(members, start, is_union, packing):
        return Layout(tuple(Field(one.name, one.type, one.alignment) for one in members))
    if is_union:
        return _union(members, own)
    places, end = _places(members, start, packing)
    named = [one for one in members if one.width is None or one.name]
    alignment = max((_align(one.type, packing) for one in named), default=1)
    total = -(-end // (8 * alignment)) * alignment
    fields: list[Field] = []
    words: list[tuple[str, int, int]] = []  # of each word its name, first bit and bits
    at = start
    for one, place in zip(members, places, strict=True):
        if _is_loose(one, place, alignment):
            continue
        at = _add_words(fields, words, own, at, place // 8, alignment)
        fields.append(Field(one.name, one.type, one.alignment))
        at += size_of(one.type)
    _add_words(fields, words, own, at, total, alignment)
    bits = []
    for one, place in zip(members, places, strict=True):
        if one.name and _is_loose(one, place, alignment):
            bits.append(_bit_field(one, place, words))
    return Layout(
        tuple(fields), tuple(bits), tuple(one.name for one in members if one.name), alignment
    )


def _has_bits(members: Sequence[Declared], start: int, is_union: bool, packing: int | None) -> bool:
    """Whether a class has bit fields, or members that its packing leaves unaligned."""
    if any(one.width is not None for one in members):
        return True
    if packing is None or is_union:
        return False
    places, end = _places(members, start, packing)
    natural = max((align_of(one.type) for one in members), default=1)
    return end % (8 * natural) > 0 or any(
        place % (8 * align_of(one.type)) for one, place in zip(members, places, strict=True)
    )


def _align(type: CppType, packing: int | None) -> int:
    return min(align_of(type), packing or 1 << 30)


def _is_loose(member: Declared, place: int, alignment: int) -> bool:
    """Whether a member is not a field of the IR's struct, but bits of words."""
    if member.width is not None:
        return True
    natural = align_of(member.type)
    return natural > alignment or place % (8 * natural) > 0


def _places(members: Sequence[Declared], start: int, packing: int | None) -> tuple[list[int], int]:
    """The first bit of each member, and the end of the last one."""
    at, found = 8 * start, []
    for one in members:
        align = 8 * _align(one.type, packing)
        if one.width is None:
            at = -(-at // align) * align
            found.append(at)
            at += 8 * size_of(one.type)
            continue
        size = 8 * size_of(one.type)
        if one.width == 0:
            at = -(-at // size) * size
        elif packing is None and at // size != (at + one.width - 1) // size:
            at = -(-at // align) * align
        found.append(at)
        at += one.width
    return found, at


def _add_words(
    fields: list[Field],
    words: list[tuple[str, int, int]],
    own: str,
    start: int,
    end: int,
    alignment: int,
) -> int:
    """Cover the bytes from `start` to `end` with words; return `end`."""
    while start < end:
        size = next(
            one for one in (4, 2, 1) if one <= alignment and start % one == 0 and end - start >= one
        )
        name = f"{WORDS}{own}.{len(words)}"
        fields.append(Field(name, OF_SCALAR[_OF_SIZE[size]]))
        words.append((name, 8 * start, 8 * size))
        start += size
    return end


_OF_SIZE = {1: ir.U8, 2: ir.U16, 4: ir.U32, 8: ir.U64}


def _bit_field(member: Declared, place: int, words: Sequence[tuple[str, int, int]]) -> BitField:
    width = member.width
    if width is None:
        if not isinstance(ir_type(member.type), ir.Scalar):
            raise Unplaced(f"{member.name} has parts, and is not at a multiple of their sizes")
        width = 8 * size_of(member.type)
    if width > 8 * size_of(member.type):
        raise Unplaced(f"{member.name} has {width} bits, more than its type {member.type}")
    if member.type == OF_SCALAR[ir.BOOL]:
        width = 1
    pieces = []
    for name, first, count in words:
        low, high = max(place, first), min(place + width, first + count)
        if low < high:
            pieces.append(Piece(name, low - first, high - low, low - place))
    return BitField(member.name, member.type, width, tuple(pieces), member.unsigned)


def _union(members: Sequence[Declared], own: str) -> Layout:
    """The members of a union, each bit field in a word of its own."""
    fields: list[Field] = []
    bits: list[BitField] = []
    for at, one in enumerate(members):
        if one.width is None:
            fields.append(Field(one.name, one.type, one.alignment))
        elif one.name:
            name = f"{WORDS}{own}.{at}"
            scalar = _OF_SIZE[size_of(one.type)]
            fields.append(Field(name, OF_SCALAR[scalar]))
            bits.append(_bit_field(one, 0, [(name, 0, 8 * size_of(one.type))]))
        elif one.width:  # padding, which has a size and no alignment
            room = ArrayOf(ARITHMETIC["unsigned char"], -(-one.width // 8))
            fields.append(Field(f"{WORDS}{own}.{at}", room))
    return Layout(tuple(fields), tuple(bits), tuple(one.name for one in members if one.name))


# --- values --------------------------------------------------------------------------------------


def joined(words: Sequence[n.Expression], field: BitField, span: Span) -> n.Expression:
    """The value of a bit field, from those of the words that hold its pieces."""
    type = ir_type(field.type)
    assert isinstance(type, ir.Scalar)
    wide = _wide(field)
    result: n.Expression | None = None
    for word, piece in zip(words, field.pieces, strict=True):
        part = _shifted("shr", cast(word, wide, span), piece.shift, span)
        part = _masked(part, piece.count, span)
        part = _shifted("shl", part, piece.position, span)
        result = part if result is None else n.Binary("or", result, part, wide, span)
    assert result is not None
    if type == ir.BOOL:
        return n.Binary("ne", result, constant(0, wide), ir.BOOL, span)
    if type.is_float:
        bits = cast(result, _OF_SIZE[ir.size_of(type)], span)
        return n.Bitcast(bits, type, span)
    if type.is_signed and not field.unsigned and field.width < wide.bits:
        signed = ir.I64 if wide == ir.U64 else ir.I32
        high = _shifted("shl", cast(result, signed, span), signed.bits - field.width, span)
        result = _shifted("shr", high, signed.bits - field.width, span)
    return folded(cast(result, type, span))


def replaced(
    word: n.Expression | None, value: n.Expression, field: BitField, piece: Piece, span: Span
) -> n.Expression:
    """A word with the bits of a new value. A word that has no other bits is not read: None."""
    part = _shifted("shr", value, piece.position, span)
    if word is None:
        return part
    scalar = word.type
    assert isinstance(scalar, ir.Scalar)
    wide = ir.U64 if scalar.bits == 64 else ir.U32
    mask = ((1 << piece.count) - 1) << piece.shift
    part = cast(_masked(part, piece.count, span), wide, span)
    part = _shifted("shl", part, piece.shift, span)
    kept = n.Binary("and", cast(word, wide, span), constant(~mask, wide), wide, span)
    return cast(n.Binary("or", kept, part, wide, span), scalar, span)


def as_bits(value: n.Expression, field: BitField, span: Span) -> n.Expression:
    """A value of a bit field's type as the unsigned number that `replaced` takes."""
    type = value.type
    assert isinstance(type, ir.Scalar)
    if type.is_float:
        value = n.Bitcast(value, _OF_SIZE[ir.size_of(type)], span)
    return cast(value, _wide(field), span)


def _wide(field: BitField) -> ir.Scalar:
    most = max(piece.shift + piece.count for piece in field.pieces)
    return ir.U64 if max(field.width, most) > 32 else ir.U32


def _shifted(op: str, value: n.Expression, by: int, span: Span) -> n.Expression:
    if not by:
        return value
    type = value.type
    assert isinstance(type, ir.Scalar)
    return n.Binary(op, value, constant(by, type), type, span)


def _masked(value: n.Expression, bits: int, span: Span) -> n.Expression:
    type = value.type
    assert isinstance(type, ir.Scalar)
    if bits >= type.bits:
        return value
    return n.Binary("and", value, constant((1 << bits) - 1, type), type, span)
