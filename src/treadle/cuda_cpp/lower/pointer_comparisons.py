"""Differences, order and equality of pointers."""

from __future__ import annotations

import math

from treadle.core.source import Span
from treadle.cuda_cpp.lower.address_numbers import (
    is_argument,
    memory_number,
    number_of_target,
)
from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded, minus, over, wider
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import target_exists
from treadle.cuda_cpp.lower.pointers import in_steps_of, unit_of
from treadle.cuda_cpp.lower.values import NullTarget, PointerValue
from treadle.cuda_cpp.semantics.types import count_of
from treadle.ir import nodes as n
from treadle.ir import types as ir


def difference(cx: Context, left: PointerValue, right: PointerValue, span: Span) -> n.Expression:
    """`left - right` in elements, as a 64-bit number."""
    arguments = [any(is_argument(cx, one) for one in each.targets) for each in (left, right)]
    if not (set(left.targets) & set(right.targets) or all(arguments) or cx.lowering.checking):
        raise cx.error("these pointers point into different arrays, so they have no distance", span)
    one, other = same_steps(cx, left, right)
    steps = minus(one.offset, other.offset)
    size = unit_of(left.to) * count_of(left.to)
    if size % one.unit:
        steps, size = n.Binary("mul", steps, constant(one.unit, ir.I32), steps.type), size
        return cast(over(steps, size), ir.I64)
    return cast(over(steps, size // one.unit), ir.I64)


def same_steps(
    cx: Context, left: PointerValue, right: PointerValue
) -> tuple[PointerValue, PointerValue]:
    """The offsets of two pointers into one memory in the same units and type."""
    unit = math.gcd(left.unit, right.unit)
    one, other = in_steps_of(cx, left, unit), in_steps_of(cx, right, unit)
    assert one is not None
    assert other is not None
    first, second = wider(one.offset, other.offset)
    return (
        PointerValue(one.targets, first, unit, one.to, one.tag),
        PointerValue(other.targets, second, unit, other.to, other.tag),
    )


def ordered(
    cx: Context, op: str, left: PointerValue, right: PointerValue, span: Span
) -> n.Expression:
    """`left op right`, an order of pointers: of different arrays, that of the memories' numbers."""
    one, other = same_steps(cx, left, right)
    by_offset = n.Binary(op, one.offset, other.offset, ir.BOOL, span)
    if _into_one_memory(left, right):
        return by_offset
    first, second = (memory_number(cx, each, span) for each in (left, right))
    same = n.Binary("eq", first, second, ir.BOOL, span)
    return n.Select(same, by_offset, n.Binary(op, first, second, ir.BOOL, span), ir.BOOL, span)


def _into_one_memory(left: PointerValue, right: PointerValue) -> bool:
    """Whether two pointers certainly point into the same array, if they are not null."""
    if left.targets == right.targets and left.tag == right.tag:
        return True
    places = {one for one in (*left.targets, *right.targets) if not isinstance(one, NullTarget)}
    return len(places) <= 1


def same_place(cx: Context, left: PointerValue, right: PointerValue, span: Span) -> n.Expression:
    """Whether two pointers are equal: the same memory and offset, or both null."""
    result: n.Expression = n.FALSE
    for at, one in enumerate(left.targets):
        for other_at, other in enumerate(right.targets):
            if one != other:
                equal = _are_both_null(one, other, span)
                if is_argument(cx, one) and is_argument(cx, other):
                    first, second = (number_of_target(cx, each) for each in (one, other))
                    same = n.Binary("eq", first, second, ir.BOOL, span)
                    place = _both(same, _same_offset(cx, left, right, span), span)
                    equal = n.Binary("logical_or", equal, place, ir.BOOL, span)
                elif equal == n.FALSE:
                    continue
            elif isinstance(one, NullTarget):
                equal = n.TRUE
            else:
                equal = _same_offset(cx, left, right, span)
            for tag, number in ((left.tag, at), (right.tag, other_at)):
                if tag is not None:
                    test = n.Binary("eq", tag, constant(number, ir.I32), ir.BOOL, span)
                    equal = _both(test, equal, span)
            result = n.Binary("logical_or", result, equal, ir.BOOL, span)
    return folded(result)


def _both(one: n.Expression, other: n.Expression, span: Span) -> n.Expression:
    return n.Binary("logical_and", one, other, ir.BOOL, span)


def _same_offset(cx: Context, left: PointerValue, right: PointerValue, span: Span) -> n.Expression:
    first, second = same_steps(cx, left, right)
    return n.Binary("eq", first.offset, second.offset, ir.BOOL, span)


def _are_both_null(one: object, other: object, span: Span) -> n.Expression:
    exist = n.Binary("logical_or", target_exists(one), target_exists(other), ir.BOOL, span)
    return folded(n.Unary("not", folded(exist), ir.BOOL, span))
