"""Fields and other members of classes by name, in a class itself and in its bases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.special_members import is_word, own_members, written_name
from treadle.cuda_cpp.semantics.bases import all_bases, derives
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.semantics.types import BitField, ClassType, Field, parts_of_bases

# Before the name of a field in the scope of a class: the base whose field `using B::x` names.
USED = "<used>"


def find_field(type: ClassType, name: str) -> tuple[tuple[Field, ...], Field] | None:
    """A field by name, after the anonymous members that contain it; None if there is none."""
    for field in type.fields:
        if (field.name == name or written_name(field) == name) and not is_word(field):
            return (), field
    for field in type.fields:
        if field.name.startswith("anonymous") and isinstance(field.type, ClassType):
            inner = find_field(field.type, name)
            if inner is not None:
                return (field, *inner[0]), inner[1]
    for base, part in bases_with(type, name):
        inner = find_field(base, name)
        if inner is not None:
            return ((*_as_way(part), *inner[0]), inner[1])
    return None


def bases_with(type: ClassType, name: str) -> tuple[tuple[ClassType, Field | None], ...]:
    """The bases in which a member is searched: the one that a using-declaration names for it, or
    else all."""
    used = type.scope.names.get(f"{USED}{name}") if type.bases and type.scope is not None else None
    bases = parts_of_bases(type)
    return bases if used is None else tuple(b for b in bases if b[0] == used or derives(b[0], used))


def _as_way(part: Field | None) -> tuple[Field, ...]:
    return () if part is None else (part,)


def find_bits(type: ClassType, name: str) -> tuple[tuple[Field, ...], BitField] | None:
    """A bit field by name, after the anonymous members that contain it; None if there is none."""
    for bits in type.bits:
        if bits.name == name:
            return (), bits
    for field in type.fields:
        if field.name.startswith("anonymous") and isinstance(field.type, ClassType):
            inner = find_bits(field.type, name)
            if inner is not None:
                return (field, *inner[0]), inner[1]
    for base, part in bases_with(type, name):
        inner = find_bits(base, name)
        if inner is not None:
            return ((*_as_way(part), *inner[0]), inner[1])
    return None


def has_field(type: ClassType, name: str) -> bool:
    """Whether a class has a field or bit field of this name."""
    return find_field(type, name) is not None or find_bits(type, name) is not None


def refuse_ambiguous(cx: Context, type: ClassType, name: str, span: Span) -> None:
    """CompileError for a name that two bases of a class declare, if neither hides the other's. For
    types it may be one type."""
    if not any(len(one.bases) > 1 for one in (type, *all_bases(type))):
        return
    found = list(_declaring(type, name))
    if len(found) < 2 or not all(_is_field_or_function(one, name) for one in found):
        return
    first, second = found[:2]
    if first != second:
        raise cx.wrong(
            f"{type} has {name} of {first} and {name} of {second}: write {first}::{name} or "
            f"{second}::{name}",
            span,
        )
    if has_own_field(first, name):
        raise cx.wrong(
            f"{type} has {first} several times as a base, and {name} is in each: name the base "
            "before it",
            span,
        )


def _declaring(type: ClassType, name: str) -> Iterator[ClassType]:
    """The classes in which the search for a name ends: the class itself, or else those of bases."""
    own: Any = None if type.scope is None else type.scope.names.get(name)
    if own is not None or has_own_field(type, name):
        yield type
    else:
        for base, _ in bases_with(type, name):
            yield from _declaring(base, name)


def has_own_field(type: ClassType, name: str) -> bool:
    """Whether a class declares a field itself."""
    if any(written_name(one) == name for one in own_members(type)):
        return True
    anonymous = (one.type for one in type.fields if one.name.startswith("anonymous"))
    return any(isinstance(one, ClassType) and has_field(one, name) for one in anonymous)


def _is_field_or_function(type: ClassType, name: str) -> bool:
    return has_own_field(type, name) or isinstance(type.scope.names.get(name), Functions)
