"""Types for literals, implicit conversions (lossless) and casts (which may lose information)."""

from __future__ import annotations

import ast

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.builtins import BuiltinVariable
from treadle.lang.lower.context import Context
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    Position,
    PythonObject,
    TupleValue,
    Value,
    describe,
    is_expression,
    spelled,
)
from treadle.lang.rules import Literal, Number, default_type, fits, holds, round_to, too_wide


def literal(cx: Context, value: Number, node: ast.AST) -> Literal:
    """A number without a type. CompileError for an integer far beyond every type."""
    if too_wide(value):
        raise cx.refusal("wide_integer", node, bits=f"{int(value).bit_length():,}")
    return Literal(value)


def text(cx: Context, value: str, node: ast.AST) -> str:
    """Text for a report. CompileError if it is not Unicode."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise cx.refusal("text", node, character=ascii(value[error.start])) from None
    return value


def constant(value: Number, type: t.Scalar, cx: Context, node: ast.AST) -> n.Constant:
    """A literal as a constant of a type, rounded to it."""
    return n.Constant(round_to(value, type), type, cx.span(node))


def number(cx: Context, value: Value, node: ast.AST) -> n.Expression | Literal:
    """The value, if it is a number, vector or struct; otherwise an error that describes it."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, ArrayView) and value.fragment is not None:
        raise cx.refusal("whole_fragment", node, kind=describe(value))
    if isinstance(value, (ArrayView, FixedArrayPlace)):
        raise cx.refusal("whole_array", node)
    if isinstance(value, PythonObject) and isinstance(value.value, str):
        raise cx.refusal("string", node)
    if isinstance(value, PythonObject) and value.value is None and value.name != "None":
        raise cx.refusal("nothing_returned", node, name=value.name)
    if isinstance(value, PythonObject) and isinstance(value.value, BuiltinVariable):
        raise cx.refusal("whole_variable", node, name=value.name)
    if isinstance(value, PythonObject) and callable(value.value):
        usage = getattr(value.value, "usage", None) or f"{value.name}(…)"
        raise cx.refusal("uncalled", node, name=value.name, usage=usage)
    if isinstance(value, Position):
        raise cx.error(
            "a position is not a number: neighbours are read with constant offsets, as in "
            "pos.at(u, 1) or pos.east(u), and pos.index has the indices of the cell",
            node,
        )
    if not is_expression(value):
        raise cx.refusal("value_needed", node, given=describe(value))
    return value  # type: ignore[return-value]


def typed(cx: Context, value: Value, node: ast.AST) -> n.Expression:
    """The value as an expression; a literal takes its default type."""
    found = number(cx, value, node)
    if isinstance(found, Literal):
        return constant(found.value, default_type(found.value), cx, node)
    return found


def type_of(value: n.Expression | Literal) -> t.Type:
    """The type of a number, the default one for a literal."""
    return default_type(value.value) if isinstance(value, Literal) else value.type


def scalar(cx: Context, value: Value, node: ast.AST, what: str) -> n.Expression | Literal:
    """The value, if it is one number."""
    found = number(cx, value, node)
    if not isinstance(found, Literal) and not isinstance(found.type, t.Scalar):
        raise cx.error(f"{what} is a number, not a {spelled(found.type)}: use one component", node)
    return found


def convert(cx: Context, value: Value, wanted: t.Type, node: ast.AST, what: str) -> n.Expression:
    """The value as type `wanted`, where that is lossless; the error names the use, `what`."""
    if isinstance(value, TupleValue) and isinstance(wanted, t.Vector):
        raise cx.error(f"{what} is a vector: write {spelled(wanted)}(…) instead of a tuple", node)
    found = number(cx, value, node)
    if isinstance(found, Literal):
        if isinstance(wanted, t.Scalar):
            if _literal_fits(found.value, wanted):
                return constant(found.value, wanted, cx, node)
            raise cx.refusal(
                "lossy", node, what=what, wanted=wanted, given=f"the literal {found.value!r}"
            )
    elif found.type == wanted:
        return found
    elif isinstance(found.type, t.Scalar) and isinstance(wanted, t.Scalar):
        if holds(wanted, found.type):
            return cast(cx, found, wanted, node)
        raise cx.refusal("lossy", node, what=what, wanted=wanted, given=found.type)
    way = ""
    if isinstance(wanted, t.Vector):
        way = f": write {spelled(wanted)}(…)"
    elif not isinstance(found, Literal) and isinstance(found.type, t.Vector):
        way = ": take one component, as in v.x"
    elif not isinstance(found, Literal) and isinstance(found.type, t.Struct):
        way = f": take one field, as in .{found.type.fields[0].name}"
    raise cx.error(f"{what} is {spelled(wanted)}, and this is {describe(found)}{way}", node)


def convert_for_store(
    cx: Context, value: Value, wanted: t.Type, node: ast.AST, what: str
) -> n.Expression:
    """The value as the type of an array's element, as in NumPy: integers wrap and floats round to
    the element's width. Only a float for an integer, which would lose its fraction, is refused."""
    if isinstance(wanted, t.Scalar) and is_expression(value):
        given = value.type  # type: ignore[union-attr]
        if isinstance(given, t.Scalar) and (
            (given.is_integer and wanted.is_integer) or (given.is_float and wanted.is_float)
        ):
            return cast(cx, value, wanted, node)
    return convert(cx, value, wanted, node, what)


def _literal_fits(value: Number, wanted: t.Scalar) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, float):
        return wanted.is_float
    if wanted.kind == "bool":
        return False
    return wanted.is_float or fits(value, wanted)


def cast(cx: Context, value: Value, wanted: t.Type, node: ast.AST) -> n.Expression:
    """The value cast to type `wanted`, for a cast in the source."""
    found = number(cx, value, node)
    if isinstance(found, Literal):
        assert isinstance(wanted, t.Scalar)
        return constant(found.value, wanted, cx, node)
    if found.type == wanted:
        return found
    if isinstance(found, n.Constant) and isinstance(wanted, t.Scalar):
        return constant(found.value, wanted, cx, node)
    if isinstance(found.type, t.Struct) or isinstance(wanted, t.Scalar) != isinstance(
        found.type, t.Scalar
    ):
        raise cx.error(f"{describe(found)} can't be cast to {spelled(wanted)}", node)
    return n.Cast(found, wanted, cx.span(node))


def with_type(value: Value, wanted: t.Scalar, cx: Context, node: ast.AST) -> n.Expression:
    """A number as the operand type that the typing rules chose."""
    if isinstance(value, Literal):
        return constant(value.value, wanted, cx, node)
    return cast(cx, value, wanted, node)


def condition(cx: Context, value: Value, node: ast.AST) -> n.Expression | Literal:
    """The truth of a number, as `if` and `not` take it: whether it is not 0."""
    found = scalar(cx, value, node, "a condition")
    if isinstance(found, Literal):
        return Literal(bool(found.value))
    return cast(cx, found, t.BOOL, node)


def broadcast(cx: Context, value: n.Expression, wanted: t.Vector) -> n.Expression:
    """A scalar as a vector of equal components."""
    one = cx.spill(value)
    return n.Construct((one,) * wanted.count, wanted, value.span)
