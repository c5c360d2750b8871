"""The heap of a kernel, which is a variable of the file (`source/library/heap.cuh`): `free`."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.builtin_calls import Handler
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.guards import HEAP, check_given_back
from treadle.cuda_cpp.lower.overloads import resolve_overload
from treadle.cuda_cpp.lower.pointers import pointer_of
from treadle.cuda_cpp.lower.values import (
    MemoryTarget,
    Null,
    NullTarget,
    PointerValue,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.semantics.types import VOID
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def free(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`free(p)`"""
    if len(values) == 1 and isinstance(values[0], Null):
        return VoidValue(VOID)
    if len(values) != 1:
        raise cx.wrong(f"free takes 1 argument, not {len(values)}")
    pointer = pointer_of(cx, values[0])
    if pointer is None:
        raise cx.unfit(f"free takes a pointer, not {describe(values[0])}", values[0], cx.span)
    return give_back(cx, pointer, cx.span)


def give_back(cx: Context, pointer: PointerValue, span: Span) -> Value:
    """Give a piece back to the heap, if the pointer is not null."""
    at = next(
        (
            at
            for at, one in enumerate(pointer.targets)
            if isinstance(one, MemoryTarget) and one.memory == HEAP
        ),
        None,
    )
    if at is None:
        if any(not isinstance(one, NullTarget) for one in pointer.targets):
            raise cx.error("free and delete take what malloc and new gave", span)
        return VoidValue(VOID)
    piece = PointerValue(
        (pointer.targets[at],), pointer.offset, pointer.unit, cx.lowering.types.vectors["uint4"]
    )
    with cx.separate_block() as body:
        fits = check_given_back(cx, piece, span)
        with cx.separate_block() as given:
            call_library(cx, "__treadle_give_back", [piece], span)
        cx.emit(*given if fits is None else (n.If(fits, tuple(given), (), span),))
    if pointer.tag is None:
        cx.emit(*body)
    else:
        test = n.Binary("eq", pointer.tag, constant(at, ir.I32), ir.BOOL, span)
        cx.emit(n.If(test, tuple(body), (), span))
    return VoidValue(VOID)


def call_library(cx: Context, name: str, values: Sequence[Value], span: Span) -> Value:
    """A call of a function of the headers of our own."""
    group = cx.scope.find(name)
    assert isinstance(group, Functions), name
    chosen = resolve_overload(cx, name, group.overloads, values, None, span)
    return cx.rules.call_chosen(cx, chosen, values, None, span)


HANDLERS: dict[str, Handler] = {"free": free}
