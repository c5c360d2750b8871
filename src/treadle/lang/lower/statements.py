"""The table of statements, and the simple ones: branches, returns, expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.errors import DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.lower.assignments import lower_annotated, lower_assign, lower_augmented
from treadle.lang.lower.calls import lower_call
from treadle.lang.lower.context import Context
from treadle.lang.lower.conversions import text, typed
from treadle.lang.lower.expressions import (
    lower_condition,
    lower_expression,
)
from treadle.lang.lower.loops import leaves, lower_break, lower_continue, lower_for, lower_while
from treadle.lang.lower.results import return_value
from treadle.lang.lower.values import (
    PythonObject,
)
from treadle.lang.rules import Literal


def lower_body(cx: Context, body: Sequence[ast.stmt]) -> None:
    """Lower statements into the current block, until one leaves it."""
    for statement in body:
        lower_statement(cx, statement)
        if cx.statements and leaves(cx.statements[-1]):
            break


def lower_statement(cx: Context, node: ast.stmt) -> None:
    """Lower one statement."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise cx.refusal(type(node).__name__, node, name=getattr(node, "name", ""))
    try:
        handler(cx, node)
    except DtypeError as error:
        raise cx.error(str(error), node) from None


# --- branches ------------------------------------------------------------------------------------


def _if(cx: Context, node: ast.If) -> None:
    test = lower_condition(cx, node.test)
    if isinstance(test, Literal):  # decided at compile time: the other side is not lowered
        chosen = node.body if test.value else node.orelse
        with cx.taken(id(chosen)):
            lower_body(cx, chosen)
        return
    with cx.block(id(node.body)) as then:
        lower_body(cx, node.body)
    with cx.block(id(node.orelse)) as otherwise:
        lower_body(cx, node.orelse)
    cx.emit(n.If(test, tuple(then), tuple(otherwise), cx.span(node)))


# --- other statements ----------------------------------------------------------------------------


def _return(cx: Context, node: ast.Return) -> None:
    nothing = node.value is None or (
        isinstance(node.value, ast.Constant) and node.value.value is None
    )
    if nothing:
        if not cx.is_kernel and cx.result not in (None, t.VOID):
            raise cx.refusal("missing_return", node, name=cx.function.__name__)
        if not cx.is_kernel:
            cx.result = t.VOID
        cx.emit(n.Return(None, cx.span(node)))
        return
    assert node.value is not None
    if cx.is_kernel:
        raise cx.refusal("kernel_result", node)
    value = lower_expression(cx, node.value)
    if isinstance(value, PythonObject) and value.value is None:
        cx.emit(n.Return(None, cx.span(node)))
        return
    cx.emit(n.Return(return_value(cx, value, node), cx.span(node)))


def _expression(cx: Context, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return  # a docstring
    if isinstance(node.value, ast.Constant) and node.value.value is Ellipsis:
        return
    if isinstance(node.value, ast.Call):
        value = lower_call(cx, node.value, unused=True)
    else:
        value = lower_expression(cx, node.value)
    if isinstance(value, PythonObject) and callable(value.value):
        raise cx.refusal("bare_function", node, name=ast.unparse(node.value))
    if isinstance(value, n.Call):
        return  # a function without effects, whose result is discarded


def _assert(cx: Context, node: ast.Assert) -> None:
    message = ""
    if node.msg is not None:
        found = lower_expression(cx, node.msg) if not isinstance(node.msg, ast.JoinedStr) else None
        if not isinstance(found, PythonObject) or not isinstance(found.value, str):
            raise cx.error("the message of assert is literal text", node.msg)
        message = text(cx, found.value, node.msg)
    test = lower_condition(cx, node.test)
    if not message:
        message = ast.unparse(node.test)
    cx.emit(n.Assert(typed(cx, test, node.test), message, span=cx.span(node)))


def _pass(cx: Context, node: ast.Pass) -> None:
    return


_HANDLERS: dict[type[ast.stmt], Callable[[Context, Any], None]] = {
    ast.Assign: lower_assign,
    ast.AnnAssign: lower_annotated,
    ast.AugAssign: lower_augmented,
    ast.If: _if,
    ast.While: lower_while,
    ast.For: lower_for,
    ast.Break: lower_break,
    ast.Continue: lower_continue,
    ast.Return: _return,
    ast.Expr: _expression,
    ast.Assert: _assert,
    ast.Pass: _pass,
}
