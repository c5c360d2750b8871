"""`std::swap` of numbers, pointers, objects and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.assignment import (
    assign,
)
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import is_lvalue
from treadle.cuda_cpp.lower.objects import load, subscript
from treadle.cuda_cpp.lower.pointers import ZERO, pointer_of
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.values import (
    Rvalue,
    SplitArray,
    Value,
    VoidValue,
    describe,
    with_category,
)
from treadle.cuda_cpp.semantics.types import VOID, ArrayOf, ClassType
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_UNROLLED = 16  # elements of an array that are exchanged without a loop


def _swap(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "swap", values, 2)
    first, second = values
    type = getattr(first, "type", VOID)
    if not is_lvalue(first) or not is_lvalue(second):
        lacking = second if is_lvalue(first) else first
        raise cx.unfit(
            f"swap takes two variables, and one is {describe(lacking)}", lacking, cx.span
        )
    if isinstance(type, (ArrayOf, ClassType)) and type != getattr(second, "type", VOID):
        raise cx.wrong(
            f"swap takes two objects of one type, not {describe(first)} and {describe(second)}",
            cx.span,
        )
    _exchange(cx, first, second)
    return VoidValue(VOID)


def _exchange(cx: Context, first: Value, second: Value) -> None:
    type = getattr(first, "type", VOID)
    if isinstance(type, ArrayOf):
        _exchange_items(cx, first, second, type)
    elif isinstance(type, ClassType):
        _exchange_objects(cx, first, second, type)
    else:
        _exchange_numbers(cx, first, second)


def _exchange_objects(cx: Context, first: Value, second: Value, type: ClassType) -> None:
    """By a move construction and two move assignments, which the class may define."""
    cx.calls += 1
    key = (cx.path, "swap", cx.calls)
    kept = declare_object(cx, "kept", type, key, with_category(first, "xvalue"), cx.span)
    assign(cx, "=", first, with_category(second, "xvalue"), cx.span)
    assign(cx, "=", second, with_category(kept, "xvalue"), cx.span)
    cx.rules.destroy(cx, kept, type, cx.span)


def _exchange_items(cx: Context, first: Value, second: Value, type: ArrayOf) -> None:
    length = type.length or 0

    def exchange(index: n.Expression) -> None:
        one, other = (subscript(cx, each, index, cx.span) for each in (first, second))
        _exchange(cx, one, other)

    if length <= _MOST_UNROLLED or isinstance(first, SplitArray):
        for at in range(length):
            exchange(constant(at, ir.I32))
        return
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, cx.span)
    with cx.separate_block() as body:
        exchange(variable)
    cx.emit(n.For(variable, ZERO, constant(length, ir.I32), 1, tuple(body), span=cx.span))


def _exchange_numbers(cx: Context, first: Value, second: Value) -> None:
    one, other = pointer_of(cx, first), pointer_of(cx, second)
    if one is not None and other is not None:
        kept = replace(
            one, offset=cx.copied(one.offset), tag=None if one.tag is None else cx.copied(one.tag)
        )
        assign(cx, "=", first, second, cx.span)
        assign(cx, "=", second, kept, cx.span)
        return
    read = load(cx, first, cx.span)
    kept_value = Rvalue(cx.copied(read.expression), read.type)
    assign(cx, "=", first, load(cx, second, cx.span), cx.span)
    assign(cx, "=", second, kept_value, cx.span)


HANDLERS: dict[str, Handler] = {"swap": _swap}
