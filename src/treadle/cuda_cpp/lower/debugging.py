"""printf, assert, traps and clocks."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.core.printf import (
    FLOAT_KINDS,
    TAKES,
    TEXT_KINDS,
    Conversion,
    FormatError,
    format_text,
    parse,
)
from treadle.cuda_cpp.lower.arithmetic import cast, folded
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import condition, number, promoted
from treadle.cuda_cpp.lower.pointers import in_steps_of, pointer_of
from treadle.cuda_cpp.lower.values import (
    ChosenText,
    Null,
    PointerVariable,
    Rvalue,
    Text,
    Value,
    VoidValue,
    describe,
)
from treadle.cuda_cpp.semantics.types import INT, LONG, LONG_LONG, VOID, Arithmetic
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_MOST_CHOSEN = 6  # string operands of `?:` in a printf: each doubles the code


def _printf(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    values = [_literal(cx, value) for value in values]
    if not values or not isinstance(values[0], Text):
        given = getattr(values[0], "type", None) if values else None
        is_number = isinstance(given, Arithmetic) and not getattr(values[0], "literal_zero", False)
        raise (cx.wrong if is_number or not values else cx.error)(
            "the format of printf must be a string literal: it is parsed at compile time"
        )
    try:
        read = parse(values[0].text)
    except FormatError as error:
        raise cx.error(f"printf: {error}") from None
    _print(cx, read, values[1:], _MOST_CHOSEN)
    cx.note("emulated", "printf", "written to a buffer, formatted on the host", cx.span)
    return Rvalue(n.Constant(len(values) - 1, ir.I32), INT)


def _literal(cx: Context, value: Value) -> Value:
    """The literal of a pointer to one that is never assigned; other values as they are."""
    if not isinstance(value, PointerVariable) or value.key in cx.lowering.facts.assigned:
        return value
    known: Value = cx.lowering.literals.get(value.key, value)
    return known


def _print(
    cx: Context, read: Sequence[str | Conversion], values: Sequence[Value], choices: int
) -> None:
    """Print the values; if one is a `?:` of strings, with a branch for each string."""
    for at, value in enumerate(values):
        if not isinstance(value, ChosenText):
            continue
        if not choices:
            raise cx.error("printf: too many ?: between strings: split this up")
        before, after = values[:at], values[at + 1 :]
        with cx.separate_block() as then:
            _print(cx, read, (*before, value.one, *after), choices - 1)
        with cx.separate_block() as otherwise:
            _print(cx, read, (*before, value.other, *after), choices - 1)
        cx.emit(n.If(value.test, tuple(then), tuple(otherwise), cx.span))
        return
    rest = list(values)
    parts: list[str | n.Expression | n.Formatted] = []
    for one in read:
        part = one if isinstance(one, str) else _part(cx, one, rest)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part != "":
            parts.append(part)
    if rest:
        raise cx.error(f"printf has {_counted(rest)} more than its format uses")
    cx.emit(n.Print(tuple(parts), "", cx.span))


def _counted(rest: Sequence[Value]) -> str:
    return "an argument" if len(rest) == 1 else f"{len(rest)} arguments"


def _part(cx: Context, one: Conversion, rest: list[Value]) -> str | n.Formatted:
    """What a conversion specification prints: a number, or constant text."""
    given = [number(cx, _next(cx, rest), cx.span)[0] for _ in range(one.stars)]
    stars = tuple(cx.let(folded(cast(star, ir.I32))) for star in given)
    value = _next(cx, rest)
    if one.kind in TEXT_KINDS:
        if not isinstance(value, Text):
            raise cx.error(f"printf: %s takes a literal string on devices, not {describe(value)}")
        if not all(isinstance(star, n.Constant) for star in stars):
            raise cx.error(f"printf: the * of {one} must be a constant expression")
        known = tuple(int(star.value) for star in stars if isinstance(star, n.Constant))
        return format_text(one, value.text, known)
    printed = _number(cx, value)
    assert isinstance(printed.type, ir.Scalar)
    if printed.type.is_float != (one.kind in FLOAT_KINDS):
        raise cx.error(
            f"printf: {one} prints {TAKES[one.kind]}, not {describe(value)}: cast it, or change "
            "the conversion"
        )
    return n.Formatted(str(one), printed, stars, cx.span)


def _next(cx: Context, rest: list[Value]) -> Value:
    if not rest:
        raise cx.error("printf has fewer arguments than its format uses")
    return rest.pop(0)


def _number(cx: Context, value: Value) -> n.Expression:
    """An argument after C's default promotions, but for float to double: not every device has
    double, and both print the same."""
    if isinstance(value, Null):
        return n.Constant(0, ir.U64)
    pointer = pointer_of(cx, value)
    if pointer is not None:  # its offset in bytes in its memory
        in_bytes = in_steps_of(cx, pointer, 1)
        assert in_bytes is not None
        return cast(in_bytes.offset, ir.U64)
    expression, type = number(cx, value, cx.span)
    if type.scalar == ir.F64 and isinstance(expression, n.Cast):
        inner = expression.operand.type
        if isinstance(inner, ir.Scalar) and inner.is_float:
            return cx.let(expression.operand)
    return cx.let(cast(expression, promoted(type).scalar))


def _assert(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    expect(cx, "assert", values, 1, 2)
    text = values[1].text if len(values) == 2 and isinstance(values[1], Text) else "condition"
    holds = condition(cx, values[0], cx.span)
    cx.emit(n.Assert(holds, text, True, cx.name, span=cx.span))
    return VoidValue(VOID)


def _trap(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    cx.emit(n.Assert(n.FALSE, "__trap()", True, cx.name, span=cx.span))
    return VoidValue(VOID)


def _clock(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    result = cx.variable("cycles", ir.U64)
    cx.emit(n.Clock(result, cx.span))
    cx.note("used", "clock64", "cycles of the device; WebGPU has no clock", cx.span)
    assert isinstance(node.function, tree.Name)
    if node.function.text == "clock":
        return Rvalue(n.Cast(result, ir.I64, cx.span), LONG)
    return Rvalue(n.Cast(result, ir.I64, cx.span), LONG_LONG)


HANDLERS: dict[str, Handler] = {
    "printf": _printf,
    **dict.fromkeys(("__treadle_assert", "assert"), _assert),
    **dict.fromkeys(("__trap", "__brkpt"), _trap),
    **dict.fromkeys(("clock", "clock64", "__nv_ptx_builtin_clock", "globaltimer"), _clock),
}
