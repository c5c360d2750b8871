"""Branches on the tag of a pointer."""

from __future__ import annotations

from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.guards import check_not_null
from treadle.ir import nodes as n
from treadle.ir import types as ir


def for_each_choice(
    cx: Context, tag: n.Expression, choices: tuple[Any, ...], do: Any, span: Span
) -> None:
    """Emit `do` for the target that the tag selects; checks report that it is null, and leave it
    out."""
    present = [(number, one) for number, one in enumerate(choices) if one is not None]
    given = check_not_null(cx, tag, choices, span)
    if given is None:
        choose(cx, tag, present, do, span)
        return
    with cx.separate_block() as body:
        choose(cx, tag, present, do, span)
    cx.emit(n.If(given, tuple(body), (), span))


def choose(
    cx: Context, tag: n.Expression, present: list[tuple[int, Any]], do: Any, span: Span
) -> None:
    """Emit `do` for the choice that the tag selects, of those that exist."""
    with cx.numbered_apart(("choice", cx.calls, span)):
        choose_among(cx, tag, present, do, span)


def choose_among(
    cx: Context, tag: n.Expression, present: list[tuple[int, Any]], do: Any, span: Span
) -> None:
    """`choose`, for what numbers its calls apart itself."""
    number, one = present[0]
    if len(present) == 1:
        with cx.numbered_apart(number):
            do(one)
        return
    with cx.separate_block() as then, cx.numbered_apart(number):
        do(one)
    with cx.separate_block() as otherwise:
        choose_among(cx, tag, present[1:], do, span)
    test = n.Binary("eq", tag, constant(number, ir.I32), ir.BOOL, span)
    cx.emit(n.If(test, tuple(then), tuple(otherwise), span))
