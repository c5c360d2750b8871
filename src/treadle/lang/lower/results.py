"""The results of device functions: one value, a tuple as a struct, or a struct that holds arrays.

A struct that holds arrays is not a value in the IR: the caller passes memory for it.
"""

from __future__ import annotations

import ast

from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.lower.arrays import store
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, convert, number, typed
from treadle.lang.lower.values import TupleValue, Value, contains_array
from treadle.lang.rules import Literal, common_type


def return_value(cx: Context, value: Value, node: ast.AST) -> n.Expression | None:
    """The value of a return, in the function's result type (which the first return sets); None if
    it holds an array and is stored in the caller's memory."""
    if isinstance(value, TupleValue):
        return _return_tuple(cx, value, node)
    found = number(cx, value, node)
    if cx.result is None:
        result = typed(cx, found, node)
        cx.result = result.type
        if not contains_array(result.type):
            return result
    if cx.result == t.VOID:
        raise cx.error(f"{cx.function.__name__} is annotated to return nothing", node)
    wanted = cx.result
    if contains_array(wanted):
        store(
            cx,
            _result_place(cx, wanted, node),
            found,
            node,
            f"the result of {cx.function.__name__}",
        )
        return None
    if (
        not cx.result_declared
        and not isinstance(found, Literal)
        and isinstance(found.type, t.Scalar)
        and isinstance(wanted, t.Scalar)
        and found.type != wanted
    ):
        # The type is still open: take the wider one; the function is lowered again with it.
        cx.result = common_type(found.type, wanted)
        return cast(cx, found, cx.result, node)
    return convert(cx, found, wanted, node, f"the result of {cx.function.__name__}")


def _result_place(cx: Context, type: t.Type, node: ast.AST) -> n.Element:
    """The caller's memory for a function's result."""
    if cx.result_place is None:
        memory = cx.unique("result.0")
        cx.result_place = n.Element(memory, n.Constant(0, t.I32), type, (), cx.span(node))
    return cx.result_place


def _return_tuple(cx: Context, value: TupleValue, node: ast.AST) -> n.Expression | None:
    wanted = cx.result if isinstance(cx.result, t.Struct) and cx.tuple_result else None
    if cx.result is not None and wanted is None:
        raise cx.error(f"{cx.function.__name__} returns a tuple here and {cx.result} before", node)
    if wanted is None:
        items = [typed(cx, item, node) for item in value.items]
        names = "_".join(str(item.type).translate(_PLAIN) for item in items)
        fields = tuple(t.Field(f"item{at}", item.type) for at, item in enumerate(items))
        wanted = t.Struct(f"tuple_{names}", fields)
        cx.result, cx.tuple_result = wanted, True
    elif len(wanted.fields) != len(value.items):
        raise cx.error("every return of a function gives a tuple of one length", node)
    if contains_array(wanted):
        place = _result_place(cx, wanted, node)
        for field, item in zip(wanted.fields, value.items, strict=True):
            part = n.Member(place, field.name, field.type, cx.span(node))
            store(cx, part, item, node, f"{field.name} of the result")
        return None
    operands = tuple(
        convert(cx, item, field.type, node, f"item {at} of the result")
        for at, (item, field) in enumerate(zip(value.items, wanted.fields, strict=True))
    )
    return n.Construct(operands, wanted, cx.span(node))


_PLAIN = str.maketrans({"<": "_", ">": "", ",": "_", " ": ""})
