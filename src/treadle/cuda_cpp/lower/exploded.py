"""Structs with pointers in them and arrays of pointers, which have no place in memory: their parts
are values of their own, and an item whose number is known at run time is one of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.pointers import in_steps_of, pointer_of
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChoiceLvalue,
    ChosenPointer,
    Exploded,
    Items,
    ObjectAddress,
    PointerValue,
    Target,
    Value,
)
from treadle.ir import nodes as n
from treadle.ir import types as ir

MOST_ITEMS = 64  # of an array of pointers


def part_at(cx: Context, array: Items | ObjectAddress, index: n.Expression, span: Span) -> Value:
    """`array[index]`"""
    if isinstance(array, ObjectAddress):
        return _pointed_to(cx, array, index, span)
    count = len(array.items)
    if isinstance(index, n.Constant):
        at = int(index.value)
        if not 0 <= at < count:
            raise cx.error(f"item {at} of an array of {count}", span)
        found: Value = array.items[at]
        return found
    return _one_of(cx, cx.copied(cast(index, ir.I32)), array.items, span)


def _pointed_to(cx: Context, pointer: ObjectAddress, index: n.Expression, span: Span) -> Exploded:
    if not isinstance(index, n.Constant) or int(index.value):
        raise cx.error(
            f"a {pointer.type} that points to one struct is indexed: only 0 is in it", span
        )
    return pointer.object


def _one_of(cx: Context, place: n.Expression, values: Sequence[Any], span: Span) -> Value:
    """The value with this number."""
    first = values[0]
    match first:
        case Exploded():
            fields = {
                name: _one_of(cx, place, [value.fields[name] for value in values], span)
                for name in first.fields
            }
            return Exploded(first.type, fields)
        case Items():
            columns = zip(*(value.items for value in values), strict=True)
            return Items(first.type, tuple(_one_of(cx, place, one, span) for one in columns))
        case ArrayValue(type=type):
            return ArrayValue(_one_pointer(cx, place, [value.first for value in values]), type)
    pointer = pointer_of(cx, first)
    if pointer is not None:
        return ChosenPointer(tuple(values), place, pointer.to)
    return ChoiceLvalue(place, tuple(values), first.type)


def chosen_pointer(cx: Context, value: ChosenPointer) -> PointerValue:
    """Where the pointer with this number points now."""
    pointers = [pointer_of(cx, one) for one in value.items]
    return _one_pointer(cx, value.place, [one for one in pointers if one is not None])


def _one_pointer(
    cx: Context, place: n.Expression, pointers: Sequence[PointerValue]
) -> PointerValue:
    """The pointer with this number: it may point into whatever any of them does."""
    targets: list[Target] = []
    for one in pointers:
        targets += [target for target in one.targets if target not in targets]
    unit = math.gcd(*(one.unit for one in pointers))
    aligned = [in_steps_of(cx, one, unit) for one in pointers]
    offsets = [one.offset for one in aligned if one is not None]
    wide = any(offset.type == ir.I64 for offset in offsets)
    offset = _selected(place, [cast(one, ir.I64 if wide else ir.I32) for one in offsets])
    tag = None
    if len(targets) > 1:
        tag = cx.copied(_selected(place, [_tag_among(targets, one) for one in pointers]))
    return PointerValue(tuple(targets), cx.copied(offset), unit, pointers[0].to, tag)


def _tag_among(targets: list[Target], pointer: PointerValue) -> n.Expression:
    """Which of `targets` a pointer points into."""
    places = [constant(targets.index(target), ir.I32) for target in pointer.targets]
    return places[0] if pointer.tag is None else _selected(pointer.tag, places)


def _selected(place: n.Expression, values: Sequence[n.Expression]) -> n.Expression:
    """The value with this number; the last one for all numbers behind."""
    result = values[-1]
    for at in reversed(range(len(values) - 1)):
        if values[at] != result:
            test = n.Binary("eq", place, constant(at, ir.I32), ir.BOOL)
            result = n.Select(test, values[at], result, result.type)
    return result
