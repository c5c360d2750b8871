"""Objects and pointers as those of a base of their class, and back."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.objects import load, load_by_fields, member
from treadle.cuda_cpp.lower.pointers import address, base_offset, follow, moved_by_bytes
from treadle.cuda_cpp.lower.values import (
    ChoiceLvalue,
    Lvalue,
    PointerValue,
    Rvalue,
    SplitStruct,
    Value,
)
from treadle.cuda_cpp.semantics.bases import all_bases, derives, way_to_base
from treadle.cuda_cpp.semantics.types import VOID, ClassType, CppType, Field, all_fields


def as_base(cx: Context, value: Value, base: CppType, span: Span) -> Value:
    """The base subobject of an object, for a reference to its base or a method of it. Other values
    as they are."""
    given = getattr(value, "type", None)
    if not isinstance(base, ClassType) or given is None or not derives(given, base):
        return value
    refuse_ambiguous_base(cx, given, base, span)
    match value:
        case Rvalue() | Lvalue() | SplitStruct() if way := way_to_base(given, base):
            return as_base(cx, _part_of(cx, value, way, span), base, span)
        case Rvalue():
            return base_part(cx, value, base, span)
        case Lvalue():
            return replace(value, type=base)  # the derived class has all its fields
        case ChoiceLvalue(tag, choices):
            parts = tuple(c if c is None else as_base(cx, c, base, span) for c in choices)
            return ChoiceLvalue(tag, parts, base)
        case SplitStruct(fields=fields):
            inherited = {one.name: fields[one.name] for one in all_fields(base)}
            return SplitStruct(base, inherited, value.const, whole=value.whole or value)
    return follow(cx, base_pointer(cx, address(cx, value, span), base), span)


def _part_of(cx: Context, value: Value, way: tuple[Field, ...], span: Span) -> Value:
    """The base that fields of an object lead to."""
    for field in way:
        if isinstance(value, SplitStruct):
            whole = value.whole or value
            value = replace(value.fields[field.name], const=value.const, whole=whole)
        else:
            value = member(cx, value, field.name, field.type, span)
    return value


def refuse_ambiguous_base(cx: Context, type: CppType, base: ClassType, span: Span) -> None:
    """CompileError for a base that an object has several times, by several bases."""
    assert isinstance(type, ClassType)
    if base not in type.bases and sum(one == base for one in all_bases(type)) > 1:
        raise cx.wrong(
            f"{type} has {base} several times, as a base of several bases: cast to one of these "
            "first",
            span,
        )


def base_part(cx: Context, value: Value, base: ClassType, span: Span) -> Value:
    """The base subobject of an object, as a copy of its fields."""
    type: CppType = getattr(value, "type", VOID)
    assert isinstance(type, ClassType)
    value = _part_of(cx, value, way_to_base(type, base), span)
    whole = getattr(value, "type", None) == base
    return load(cx, value, span) if whole else load_by_fields(cx, value, base, span)


def base_pointer(cx: Context, pointer: PointerValue, base: ClassType) -> PointerValue:
    """A pointer to an object converted to one to its base, which may have an offset in it."""
    assert isinstance(pointer.to, ClassType)
    return moved_by_bytes(cx, pointer, base_offset(pointer.to, base), base)


def derived_pointer(cx: Context, pointer: PointerValue, type: ClassType) -> PointerValue:
    """A pointer to a base cast to one to the derived object that contains it."""
    assert isinstance(pointer.to, ClassType)
    return moved_by_bytes(cx, pointer, -base_offset(type, pointer.to), type)
