"""printf, assert, traps and clocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from treadle.cuda_cpp.lower.arithmetic import cast
from treadle.cuda_cpp.lower.builtin_names import expect, handler
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import condition, number, promoted
from treadle.cuda_cpp.lower.memory import describe, in_steps_of, pointer_of
from treadle.cuda_cpp.lower.values import Nothing, Null, Rvalue, Text, Value
from treadle.cuda_cpp.meaning.types import INT, LONG, LONG_LONG, VOID
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?P<precision>\.(?:\*|\d*))?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<letter>[diouxXcsfFeEgGaAp%])"
)


@handler("printf")
def _printf(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    if not values or not isinstance(values[0], Text):
        raise cx.error("printf takes a literal format first: formats are read when compiling")
    text = values[0].text
    rest = list(values[1:])
    parts: list[str | n.Expression | n.Formatted] = []
    at = 0
    for found in _CONVERSION.finditer(text):
        parts.append(_without_percent(cx, text[at : found.start()]))
        at = found.end()
        parts.append(_part(cx, found, rest))
    parts.append(_without_percent(cx, text[at:]))
    if rest:
        raise cx.error(f"printf has {len(rest)} arguments more than its format uses")
    cx.emit(n.Print(_joined(parts), "", cx.span))
    cx.note("emulated", "printf", "written to a buffer, formatted on the host", cx.span)
    return Rvalue(n.Constant(len(values) - 1, ir.I32), INT)


def _without_percent(cx: Context, text: str) -> str:
    if "%" in text:
        raise cx.error(f"printf: {text[text.index('%') :][:4]!r} is no conversion that C knows")
    return text


def _joined(
    parts: Sequence[str | n.Expression | n.Formatted],
) -> tuple[str | n.Expression | n.Formatted, ...]:
    joined: list[str | n.Expression | n.Formatted] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def _part(cx: Context, found: re.Match[str], rest: list[Value]) -> str | n.Expression | n.Formatted:
    if found["letter"] == "%":
        return "%"
    stars = tuple(
        cx.let(cast(number(cx, _next(cx, rest), cx.span)[0], ir.I32))
        for piece in (found["width"], found["precision"])
        if piece and "*" in piece
    )
    value = _next(cx, rest)
    if found["letter"] == "s":
        if not isinstance(value, Text) or stars:
            raise cx.error(f"printf: %s takes a literal string on devices, not {describe(value)}")
        spec = found[0].replace(found["length"] or "", "")
        return str(spec % value.text)
    return n.Formatted(found[0], _number(cx, value), stars, cx.span)


def _next(cx: Context, rest: list[Value]) -> Value:
    if not rest:
        raise cx.error("printf has fewer arguments than its format uses")
    return rest.pop(0)


def _number(cx: Context, value: Value) -> n.Expression:
    """An argument as C passes it: small integers as int."""
    if isinstance(value, Null):
        return n.Constant(0, ir.U64)
    pointer = pointer_of(cx, value)
    if pointer is not None:  # its bytes from the start of its memory
        in_bytes = in_steps_of(cx, pointer, 1)
        assert in_bytes is not None
        return cast(in_bytes.offset, ir.U64)
    expression, type = number(cx, value, cx.span)
    return cx.let(cast(expression, promoted(type).scalar))


@handler("__treadle_assert", "assert")
def _assert(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "assert", values, 1, 2)
    text = values[1].text if len(values) == 2 and isinstance(values[1], Text) else "condition"
    holds = condition(cx, values[0], cx.span)
    cx.emit(n.Assert(holds, text, True, cx.name, cx.span))
    return Nothing(VOID)


@handler("__trap", "__brkpt")
def _trap(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Assert(n.FALSE, "__trap()", True, cx.name, cx.span))
    return Nothing(VOID)


@handler("clock", "clock64", "__nv_ptx_builtin_clock", "globaltimer")
def _clock(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    result = cx.variable("cycles", ir.U64)
    cx.emit(n.Clock(result, cx.span))
    cx.note("used", "clock64", "cycles of the device; WebGPU has no clock", cx.span)
    assert isinstance(node.function, tree.Name)
    if node.function.text == "clock":
        return Rvalue(n.Cast(result, ir.I64, cx.span), LONG)
    return Rvalue(n.Cast(result, ir.I64, cx.span), LONG_LONG)
