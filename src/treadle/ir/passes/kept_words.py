"""Values as 32-bit words, in which they are kept in a buffer from one launch to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.types import (
    BOOL,
    COMPONENTS,
    F32,
    F64,
    I32,
    U16,
    U32,
    U64,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
)

_UNROLLED = 8  # items of an array that are copied without a loop

Place = Callable[[n.Expression], n.Element]  # of a word of the buffer, from its number
Copy = Callable[[n.Place, n.Expression], n.Block]  # of a number, from or to the word


def words_of(type: Type) -> int:
    """The words that a value takes."""
    match type:
        case Scalar():
            return 2 if type.bits == 64 else 1
        case Vector():
            return type.count * words_of(type.element)
        case Struct():
            return sum(words_of(field.type) for field in type.fields)
        case Array():
            return type.length * words_of(type.element)
    raise AssertionError(type)


def save(place: n.Place, first: n.Expression, words: Place, fresh: Callable[[str], str]) -> n.Block:
    """Store what is at a place, from word `first` on."""
    return tuple(_copies(place, first, lambda one, at: _save_number(one, at, words), fresh))


def restore(
    place: n.Place, first: n.Expression, words: Place, fresh: Callable[[str], str]
) -> n.Block:
    """Put into a place what was stored."""
    return tuple(_copies(place, first, lambda one, at: _restore_number(one, at, words), fresh))


def plus(first: n.Expression, more: int) -> n.Expression:
    """The number of a word behind another one."""
    if isinstance(first, n.Constant):
        return b.constant(int(first.value) + more, I32)
    return b.add(first, more) if more else first


def _copies(
    place: n.Place, first: n.Expression, copy: Copy, fresh: Callable[[str], str]
) -> Iterator[n.Statement]:
    """The copies of the numbers at a place; long arrays as loops."""
    type = place.type
    match type:
        case Vector() | Struct():
            for name in _members(type):
                member = b.member(place, name)
                yield from _copies(member, first, copy, fresh)
                first = plus(first, words_of(member.type))
        case Array() if type.length <= _UNROLLED:
            for index in range(type.length):
                at = plus(first, index * words_of(type.element))
                yield from _copies(b.item(place, index), at, copy, fresh)
        case Array():
            variable = n.Variable(fresh("item"), I32)
            at = b.add(first, b.mul(variable, words_of(type.element)))
            body = tuple(_copies(b.item(place, variable), at, copy, fresh))
            yield n.For(variable, b.constant(0, I32), b.constant(type.length, I32), 1, body)
        case _:
            yield from copy(place, first)


def _members(type: Vector | Struct) -> tuple[str, ...]:
    if isinstance(type, Vector):
        return COMPONENTS[: type.count]
    return tuple(field.name for field in type.fields)


def _value_at(place: n.Place) -> n.Expression:
    """The value at a place, which may be a part of a variable."""
    match place:
        case n.Variable():
            return place
        case n.Member(base, name, type):
            value = _value_at(base)
            if isinstance(value, n.Load):
                return n.Load(place, type)
            return n.Extract(value, name, type)
    return n.Load(place, place.type)


def _save_number(place: n.Place, at: n.Expression, words: Place) -> n.Block:
    value, type = _value_at(place), place.type
    assert isinstance(type, Scalar)
    if type.bits == 64:
        bits = n.Bitcast(value, U64) if type == F64 else b.cast(value, U64)
        high = b.cast(b.binary("shr", bits, 32), U32)
        return (n.Assign(words(at), b.cast(bits, U32)), n.Assign(words(plus(at, 1)), high))
    return (n.Assign(words(at), _as_word(value, type)),)


def _as_word(value: n.Expression, type: Scalar) -> n.Expression:
    if type == F32:
        return n.Bitcast(value, U32)
    if type.is_float:
        return b.cast(n.Bitcast(value, U16), U32)
    return b.cast(value, U32)


def _restore_number(place: n.Place, at: n.Expression, words: Place) -> n.Block:
    type = place.type
    assert isinstance(type, Scalar)
    low = n.Load(words(at), U32)
    if type.bits == 64:
        high = b.binary("shl", b.cast(n.Load(words(plus(at, 1)), U32), U64), 32)
        bits = b.binary("or", b.cast(low, U64), high)
        return (n.Assign(place, n.Bitcast(bits, F64) if type == F64 else b.cast(bits, type)),)
    return (n.Assign(place, _from_word(low, type)),)


def _from_word(word: n.Expression, type: Scalar) -> n.Expression:
    if type == BOOL:
        return b.binary("ne", word, 0)
    if type == F32:
        return n.Bitcast(word, F32)
    if type.is_float:
        return n.Bitcast(b.cast(word, U16), type)
    return b.cast(word, type)
