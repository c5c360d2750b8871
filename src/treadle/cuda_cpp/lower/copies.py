"""Loads and stores with hints, memcpy and memset, and promises to the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.arithmetic import cast, constant, folded
from treadle.cuda_cpp.lower.builtin_names import expect, handler, number_argument
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.objects import load
from treadle.cuda_cpp.lower.operators import assign
from treadle.cuda_cpp.lower.pointers import ZERO, as_index, follow, moved, pointer_of, seen_as
from treadle.cuda_cpp.lower.values import Nothing, PointerValue, Rvalue, Value, describe
from treadle.cuda_cpp.meaning.types import ARITHMETIC, UNSIGNED, VOID, CppType, Void
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def _pointer(cx: Context, name: str, value: Value) -> PointerValue:
    pointer = pointer_of(cx, value)
    if pointer is None:
        raise cx.error(f"{name} takes a pointer, not {describe(value)}")
    return pointer


@handler("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv")
def _hinted_load(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__ldg", values, 1)
    place = follow(cx, _pointer(cx, "__ldg", values[0]), cx.span)
    return load(cx, place, cx.span)


@handler("__stwb", "__stcg", "__stcs", "__stwt")
def _hinted_store(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "__stwb", values, 2)
    assign(cx, "=", follow(cx, _pointer(cx, "__stwb", values[0]), cx.span), values[1], cx.span)
    return Nothing(VOID)


@handler("__builtin_expect")
def _expect(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    return values[0]


@handler("__builtin_assume", "__builtin_unreachable", "__assume", "__builtin_assume_aligned")
def _assume(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    return values[0] if values and pointer_of(cx, values[0]) is not None else Nothing(VOID)


@handler("swap")
def _swap(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "swap", values, 2)
    first, second = values
    one, other = pointer_of(cx, first), pointer_of(cx, second)
    if one is not None and other is not None:
        from dataclasses import replace

        kept = replace(
            one, offset=cx.copied(one.offset), tag=None if one.tag is None else cx.copied(one.tag)
        )
        assign(cx, "=", first, second, cx.span)
        assign(cx, "=", second, kept, cx.span)
        return Nothing(VOID)
    read = load(cx, first, cx.span)
    kept_value = Rvalue(cx.copied(read.expression), read.type)
    assign(cx, "=", first, load(cx, second, cx.span), cx.span)
    assign(cx, "=", second, kept_value, cx.span)
    return Nothing(VOID)


@handler("memcpy", "memmove")
def _memcpy(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "memcpy", values, 3)
    to, come = _pointer(cx, "memcpy", values[0]), _pointer(cx, "memcpy", values[1])
    size = folded(number_argument(cx, values[2], ir.I32, cx.span))
    unit = _copied_type(to, come, size)

    def copy(index: n.Expression) -> None:
        one = follow(cx, moved(cx, seen_as(to, unit), index, cx.span), cx.span)
        other = follow(cx, moved(cx, seen_as(come, unit), index, cx.span), cx.span)
        assign(cx, "=", one, load(cx, other, cx.span), cx.span)

    _repeat(cx, size, unit, copy)
    return to


def _copied_type(to: PointerValue, come: PointerValue, size: n.Expression) -> CppType:
    """What is copied at a time: words where both sides and the size are made of words."""
    known = isinstance(size, n.Constant) and int(size.value) % 4 == 0
    if known and to.unit % 4 == 0 and come.unit % 4 == 0:
        return UNSIGNED
    if not isinstance(to.to, Void) and to.to == come.to:
        return to.to
    return ARITHMETIC["unsigned char"]


@handler("memset")
def _memset(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "memset", values, 3)
    to = _pointer(cx, "memset", values[0])
    byte = folded(number_argument(cx, values[1], ir.U32, cx.span))
    size = folded(number_argument(cx, values[2], ir.I32, cx.span))
    whole = isinstance(byte, n.Constant) and to.unit % 4 == 0
    unit: CppType = UNSIGNED if whole else ARITHMETIC["unsigned char"]
    if whole:
        assert isinstance(byte, n.Constant)
        value: n.Expression = constant((int(byte.value) & 255) * 0x01010101, ir.U32)
    else:
        value = cx.let(cast(byte, ir.U8))

    def clear(index: n.Expression) -> None:
        one = follow(cx, moved(cx, seen_as(to, unit), index, cx.span), cx.span)
        assign(cx, "=", one, Rvalue(value, unit), cx.span)

    _repeat(cx, size, unit, clear)
    return to


def _repeat(cx: Context, size: n.Expression, unit: CppType, do: Any) -> None:
    from treadle.cuda_cpp.meaning.types import size_of

    step = constant(size_of(unit), ir.I32)
    count = folded(n.Binary("div", size, step, ir.I32))
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, cx.span)
    with cx.aside() as body:
        do(as_index(cx, variable))
    cx.emit(n.For(variable, ZERO, count, 1, tuple(body), span=cx.span))
