"""Comparisons that no operator function of the file does itself: `= default` functions compare
member by member, and other comparisons are written by `==` and `<=>`, as in C++20."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.calls import converts_by_itself, defaulted_operator
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import condition, number
from treadle.cuda_cpp.lower.evaluation_order import with_fixed_place
from treadle.cuda_cpp.lower.names import is_auto, lookup, named_type, resolve
from treadle.cuda_cpp.lower.objects import part_of, subscript
from treadle.cuda_cpp.lower.operators import binary, unary
from treadle.cuda_cpp.lower.special_members import written_name
from treadle.cuda_cpp.lower.values import Rvalue, SplitArray, Value
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    INT,
    ArrayOf,
    ClassType,
    CppType,
    Field,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def rewritten(cx: Context, op: str, left: Value, right: Value, span: Span) -> Value | None:
    """`left op right` for objects without an operator function for it; None for what no other
    operator function gives either."""
    left, right = _kept(cx, left, span), _kept(cx, right, span)
    if op == "==":
        return _equal(cx, left, right, span, direct=False)
    if op == "!=":
        equal = _equal(cx, left, right, span)
        return None if equal is None else unary(cx, "!", equal, span)
    if op == "<=>":
        return _ordered(cx, left, right, span, direct=False)
    order = _ordered(cx, left, right, span)
    return None if order is None else binary(cx, op, order, _ZERO, span)


_ZERO = Rvalue(constant(0, ir.I32), INT, literal_zero=True)


def _kept(cx: Context, value: Value, span: Span) -> Value:
    """An operand that is read several times."""
    if isinstance(value, Rvalue):
        return replace(value, expression=cx.copied(value.expression))
    return with_fixed_place(cx, value, span)


def _equal(cx: Context, left: Value, right: Value, span: Span, direct: bool = True) -> Value | None:
    """`left == right` by a function for `==`, with the operands in either order."""
    made = cx.rules.call_operator(cx, "==", [left, right], span) if direct else None
    if made is not None:
        return made
    type = getattr(left, "type", None)
    # A defaulted <=> declares a defaulted == too.
    if isinstance(type, ClassType) and any(
        defaulted_operator(cx, op, [left, right]) for op in ("==", "<=>")
    ):
        return _all_equal(cx, left, right, type, span)
    if converts_by_itself(left) or converts_by_itself(right):
        return None  # in C++17 the results of the conversions are compared
    return cx.rules.call_operator(cx, "==", [right, left], span)


def _ordered(
    cx: Context, left: Value, right: Value, span: Span, direct: bool = True
) -> Value | None:
    """`left <=> right` by a function for `<=>`, with the operands in either order."""
    made = cx.rules.call_operator(cx, "<=>", [left, right], span) if direct else None
    if made is not None:
        return made
    function = defaulted_operator(cx, "<=>", [left, right])
    type = getattr(left, "type", None)
    if function is not None and isinstance(type, ClassType):
        return _ordered_members(cx, left, right, function.declaration, function.scope, span)
    made = cx.rules.call_operator(cx, "<=>", [right, left], span)
    return None if made is None else binary(cx, "<=>", _ZERO, made, span)


# --- member by member ----------------------------------------------------------------------------


def _members(
    cx: Context, left: Value, right: Value, type: CppType, span: Span
) -> Iterator[tuple[Value, Value]]:
    """The corresponding parts of two objects: bases, members, and the elements of arrays."""
    if isinstance(type, ArrayOf):
        for at in range(type.length or 0):
            index = constant(at, ir.I32)
            one, other = (subscript(cx, each, index, span) for each in (left, right))
            yield from _part(cx, one, other, type.element, span)
        return
    assert isinstance(type, ClassType)
    for base in type.bases:
        yield as_base(cx, left, base, span), as_base(cx, right, base, span)
    if type.is_union:
        raise cx.wrong(f"{type} is a union, which has no defaulted comparison", span)
    if type.bits:
        for name in type.names:
            written = tree.Name(name, span=span)
            yield (
                cx.rules.member_of(cx, left, written, span),
                cx.rules.member_of(cx, right, written, span),
            )
        return
    for field in type.fields:
        one, other = (_field(cx, each, field, span) for each in (left, right))
        yield from _part(cx, one, other, field.type, span)


def _field(cx: Context, value: Value, field: Field, span: Span) -> Value:
    if written_name(field) != field.name:
        return part_of(cx, value, field, span)
    return cx.rules.member_of(cx, value, tree.Name(field.name, span=span), span)


def _part(
    cx: Context, left: Value, right: Value, type: CppType, span: Span
) -> Iterator[tuple[Value, Value]]:
    if isinstance(type, ArrayOf) or isinstance(left, SplitArray):
        yield from _members(cx, left, right, type, span)
    else:
        yield left, right


def _all_equal(cx: Context, left: Value, right: Value, type: ClassType, span: Span) -> Rvalue:
    result: n.Expression = n.TRUE
    for one, other in _members(cx, left, right, type, span):
        equal = condition(cx, binary(cx, "==", one, other, span), span)
        made = n.Binary("logical_and", result, equal, ir.BOOL, span)
        result = cx.copied(folded(made))
    return Rvalue(result, BOOL)


_STRENGTHS = ("partial_ordering", "weak_ordering", "strong_ordering")


def _ordered_members(
    cx: Context,
    left: Value,
    right: Value,
    function: tree.FunctionDeclaration,
    scope: object,
    span: Span,
) -> Value:
    """What a defaulted <=> gives: the order of the first members that differ."""
    type = getattr(left, "type", None)
    assert isinstance(type, ClassType)
    orders: list[n.Expression] = []
    weakest = len(_STRENGTHS) - 1
    for one, other in _members(cx, left, right, type, span):
        made = binary(cx, "<=>", one, other, span)
        category = getattr(getattr(made, "type", None), "name", "").rpartition("::")[2]
        if category not in _STRENGTHS:
            raise cx.wrong("a member's <=> does not give an ordering of <compare>", span)
        weakest = min(weakest, _STRENGTHS.index(category))
        orders.append(_number(cx, made, span))
    result: n.Expression = constant(0, ir.I32)
    for order in reversed(orders):
        differs = n.Binary("ne", order, constant(0, ir.I32), ir.BOOL, span)
        result = n.Select(differs, order, result, ir.I32, span)
    if function.result is not None and not is_auto(function.result):
        with cx.in_scope(scope):  # type: ignore[arg-type]
            wanted = resolve(cx, function.result)
    else:
        wanted = _ordering(cx, _STRENGTHS[weakest], span)
    return _made(cx, wanted, result, span)


def _number(cx: Context, ordering: Value, span: Span) -> n.Expression:
    order = cx.rules.member_of(cx, ordering, tree.Name("order", span=span), span)
    value, _ = number(cx, order, span)
    return cx.copied(n.Cast(value, ir.I32, span))


def _ordering(cx: Context, name: str, span: Span) -> CppType:
    written = tree.Name(name, (tree.Name("", span=span), tree.Name("std", span=span)), span=span)
    if lookup(cx, written) is None:
        raise cx.wrong(f"<=> gives a std::{name}: #include <compare>", span)
    return named_type(cx, written, span)


def _made(cx: Context, type: CppType, order: n.Expression, span: Span) -> Value:
    """An ordering of a class of <compare>."""
    inner = ir_type(type)
    assert isinstance(inner, ir.Struct)
    narrow = inner.fields[0].type
    assert isinstance(narrow, ir.Scalar)
    return Rvalue(n.Construct((n.Cast(order, narrow, span),), inner, span), type)


def three_way(cx: Context, left: Value, right: Value, span: Span) -> Value:
    """`left <=> right` of numbers or pointers."""
    less = condition(cx, binary(cx, "<", left, right, span), span)
    more = condition(cx, binary(cx, ">", left, right, span), span)
    equal = condition(cx, binary(cx, "==", left, right, span), span)
    is_float = any(
        getattr(getattr(each, "type", None), "scalar", ir.I32).is_float for each in (left, right)
    )
    other: n.Expression = constant(2 if is_float else 1, ir.I32)
    result: n.Expression = n.Select(more, constant(1, ir.I32), other, ir.I32, span)
    result = n.Select(equal, constant(0, ir.I32), result, ir.I32, span)
    result = n.Select(less, constant(-1, ir.I32), result, ir.I32, span)
    category = "partial_ordering" if is_float else "strong_ordering"
    return _made(cx, _ordering(cx, category, span), result, span)
