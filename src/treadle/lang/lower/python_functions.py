"""Calls of functions of Python, `math` and NumPy, as what they are in kernels."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from treadle.core.dtypes import DType
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.builtins import NAMES, BuiltinFunction
from treadle.lang.equivalents import LibraryFunction, of_constants
from treadle.lang.lower import mathematics
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import cast, condition, scalar
from treadle.lang.lower.expressions import in_order, items_of, one_argument, positional
from treadle.lang.lower.functions import call_function, call_with
from treadle.lang.lower.names import from_python
from treadle.lang.lower.operators import binary
from treadle.lang.lower.values import Counter, PythonObject, Value, Zipped
from treadle.lang.rules import Literal
from treadle.lang.source import source_of


def equivalent_call(cx: Context, callee: PythonObject, meant: Any, node: ast.Call) -> Value:
    """A call of a function of Python, `math` or NumPy, as what it is in kernels."""
    if isinstance(meant, DType):
        if meant.is_complex:
            raise cx.refusal("complex", node)
        return cast(cx, one_argument(cx, node, callee.name), t.SCALARS[meant.short], node)
    if isinstance(meant, FunctionType) and node.keywords:
        return call_function(cx, meant, source_of(meant), node, False)
    values = positional(cx, node)
    if values and all(isinstance(value, Literal) for value in values):
        return _of_constants(cx, callee, values, node)
    if meant in (NAMES["minimum"], NAMES["maximum"]) and callee.value in (min, max):
        if len(values) == 1:  # the items of a tuple or a vector
            values = items_of(cx, values[0], node)
        return mathematics.lower_math(cx, meant.name, values, node)
    least, most = _arity(meant)
    if not least <= len(values) <= most:
        s = "" if most == 1 else "s"
        raise cx.error(f"{callee.name} takes {most} argument{s}, not {len(values)}", node)
    if isinstance(meant, FunctionType):
        for value in values:
            scalar(cx, value, node, f"an argument of {callee.name}")
        missing = (meant.__defaults__ or ())[len(values) - most or most :]
        values += [from_python(cx, value, callee.name, node) for value in missing]
        return call_with(cx, meant, source_of(meant), values, node)
    if isinstance(meant, LibraryFunction):
        operands = [scalar(cx, value, node, f"an argument of {callee.name}") for value in values]
        return mathematics.library_call(cx, meant.name, operands, node)
    if isinstance(meant, str):
        return binary(cx, meant, values[0], values[1], node)
    return mathematics.lower_math(cx, meant.name, values, node)


def _arity(meant: Any) -> tuple[int, int]:
    if isinstance(meant, BuiltinFunction):
        return meant.arity
    if isinstance(meant, FunctionType):
        most = meant.__code__.co_argcount
        return most - len(meant.__defaults__ or ()), most
    return (2, 2) if isinstance(meant, str) or meant.name == "remainder" else (3, 4)


def _of_constants(
    cx: Context, callee: PythonObject, values: Sequence[Value], node: ast.Call
) -> Value:
    numbers = [value.value for value in values if isinstance(value, Literal)]
    try:
        found = of_constants(callee.value, numbers)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise cx.error(f"{ast.unparse(node)}: {error}", node) from None
    return from_python(cx, found, callee.name, node)


def _sum(cx: Context, callee: PythonObject, values: list[Value], node: ast.Call) -> Value:
    """`sum` of a tuple or a vector."""
    if not 1 <= len(values) <= 2:
        raise cx.error(f"sum takes one or two arguments, not {len(values)}", node)
    items = [*values[1:], *items_of(cx, values[0], node)]
    total = items[0] if items else Literal(0)
    for item in items[1:]:
        total = binary(cx, "+", total, item, node)
    return total


def _any_or_all(cx: Context, callee: PythonObject, values: list[Value], node: ast.Call) -> Value:
    """`any` and `all` of a tuple."""
    if len(values) != 1:
        raise cx.error(f"{callee.name} takes one argument, not {len(values)}", node)
    decides = callee.value is any
    result: n.Expression | Literal = Literal(not decides)
    for item in items_of(cx, values[0], node):
        each = condition(cx, item, node)
        if isinstance(each, Literal):
            if bool(each.value) == decides:
                return Literal(decides)
        elif isinstance(result, Literal):
            result = each
        else:
            op = "logical_or" if decides else "logical_and"
            result = n.Binary(op, result, each, t.BOOL, cx.span(node))
    return result


def iteration(cx: Context, callee: PythonObject, node: ast.Call) -> Zipped:
    """`enumerate(x, start)` and `zip(…)` in a for."""
    known = "strict" if callee.value is zip else "start"
    named = [each.value for each in node.keywords]
    if any(each.arg != known for each in node.keywords):
        raise cx.error(f"{callee.name} takes its arguments by position, and {known}", node)
    if callee.value is zip and any(ast.unparse(each) != "False" for each in named):
        raise cx.error("a kernel can't raise exceptions: leave strict=True of zip out", node)
    start = [] if callee.value is zip else named
    values = in_order(cx, [*node.args, *start])
    if callee.value is zip:
        if not values:
            raise cx.error("zip takes one argument or more", node)
        return Zipped(tuple(values))
    if not 1 <= len(values) <= 2:
        raise cx.error(f"enumerate takes one or two arguments, not {len(values)}", node)
    return Zipped((Counter(values[1] if len(values) > 1 else Literal(0)), values[0]))


OF_ITEMS: dict[Any, Callable[[Context, PythonObject, list[Value], ast.Call], Value]] = {
    sum: _sum,
    any: _any_or_all,
    all: _any_or_all,
}
