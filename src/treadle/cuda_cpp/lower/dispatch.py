"""Expressions: the dispatch by the class of a node, and constant expressions."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.constant_evaluation import TooLong, evaluate
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    condition,
    is_const_object,
    is_lvalue,
    rvalue,
)
from treadle.cuda_cpp.lower.values import (
    FunctionSet,
    Lvalue,
    Rvalue,
    Value,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    CppType,
    Reference,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n


def lower(cx: Context, expression: Any) -> Value:
    """The value of an expression; its side effects are emitted to the current block."""
    handler = cx.rules.expressions.get(expression.__class__)
    if handler is None:
        raise cx.error("this is not an expression", expression.span)
    return handler(cx, expression)


def lower_condition(cx: Context, expression: tree.Expression) -> n.Expression:
    """An expression as a condition."""
    return condition(cx, lower(cx, expression), expression.span)


def constant_rvalue(cx: Context, expression: Any, what: str) -> Rvalue:
    """A constant expression."""
    outer, cx.lowering.unevaluated = cx.lowering.unevaluated, 0
    cx.lowering.constants += 1
    try:
        with cx.separate_block() as emitted:
            value = rvalue(cx, lower(cx, expression), expression.span)
    finally:
        cx.lowering.unevaluated = outer
        cx.lowering.constants -= 1
    try:
        result = evaluate(
            emitted, value.expression, cx.lowering.functions, cx.memories,
            cx.lowering.constant_results,
        )  # fmt: skip
    except TooLong as reason:
        raise cx.error(f"{what} {reason}", expression.span) from None
    if not isinstance(result, n.Constant):
        raise _unknown_constant(cx, expression, f"{what} must be known when the kernel is compiled")
    return Rvalue(result, value.type)


_LENGTH = (
    ": make it a constant or a template parameter, or the array extern __shared__, whose bytes are "
    "the third number of a launch"
)


def _unknown_constant(cx: Context, expression: Any, message: str) -> CompileError:
    """The error of what is not a constant expression, as far as can be evaluated here. C++ forbids
    it if it has the value of a variable that may change."""
    for node in () if cx.is_in_template() else walk_tree(expression):
        if isinstance(node, tree.Name) and not node.scope:
            found = cx.scope.find(node.text)
            if isinstance(found, Lvalue) and not found.const and isinstance(found.type, Arithmetic):
                hint = _LENGTH if message.startswith("the length") else ""
                return cx.wrong(f"{message}, and {node.text} is a variable{hint}", expression.span)
    return cx.error(message, expression.span)


def constant_value(cx: Context, expression: Any, what: str) -> bool | int | float:
    """A constant expression as a Python number."""
    result = constant_rvalue(cx, expression, what).expression
    assert isinstance(result, n.Constant)
    return result.value


def type_of(cx: Context, expression: Any) -> CppType:
    """The type of an expression that is not evaluated (sizeof, auto)."""
    type: CppType = getattr(unevaluated(cx, expression), "type", VOID)
    return type


def exact_type_of(cx: Context, expression: Any) -> CppType:
    """The type of an expression that is not evaluated, as a reference if it is an lvalue or names
    an object that may be moved from."""
    return exact_type(unevaluated(cx, expression))


def exact_type(value: Any) -> CppType:
    """The type of a value, as a reference if it is an lvalue or may be moved from."""
    type: CppType = getattr(value, "type", VOID)
    if isinstance(type, Reference):
        return type
    if is_lvalue(value):
        return Reference(type, is_const_object(value))
    if getattr(value, "category", "") == "xvalue":
        return Reference(type, is_const_object(value), rvalue=True)
    return type


def unevaluated(cx: Context, expression: Any) -> Any:
    """The value of an expression whose side effects are left out: it has the right type."""
    value = lower_unevaluated(cx, expression)
    if isinstance(value, FunctionSet):
        return cx.rules.function_pointer(cx, value, None, expression.span)
    return value


def lower_unevaluated(cx: Context, expression: Any) -> Any:
    """An expression without its side effects; functions and types as they are."""
    cx.lowering.unevaluated += 1
    calls = cx.calls
    try:
        with cx.separate_block():
            return lower(cx, expression)
    finally:
        cx.lowering.unevaluated -= 1
        cx.calls = calls  # closures have the same types when it is evaluated


def static_assert(cx: Context, node: tree.StaticAssert) -> None:
    """`static_assert(condition, "message")`. One that cannot be evaluated, as it uses the host's
    library, is noted in the report."""
    try:
        holds = constant_value(cx, node.condition, "the condition of static_assert")
    except CompileError as error:
        cx.note("noted", "static_assert", f"not checked: {error.message}", node.span)
        return
    if not holds:
        raise cx.wrong(
            f"static_assert failed: {node.message or 'its condition is false'}", node.span
        )
