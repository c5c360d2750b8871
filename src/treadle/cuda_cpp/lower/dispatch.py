"""Expressions: the dispatch by the class of a node, and constant evaluation.

C++ evaluates `constexpr` functions at compile time. A call is lowered to IR statements, which are
interpreted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import (
    condition,
    rvalue,
)
from treadle.cuda_cpp.lower.values import (
    FunctionSet,
    Rvalue,
    Value,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    CppType,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import rewrite


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
    result = evaluate(emitted, value.expression, cx.lowering.functions)
    if result is None:
        raise cx.error(f"{what} must be known when the kernel is compiled", expression.span)
    return Rvalue(result, value.type)


def constant_value(cx: Context, expression: Any, what: str) -> bool | int | float:
    """A constant expression as a Python number."""
    result = constant_rvalue(cx, expression, what).expression
    assert isinstance(result, n.Constant)
    return result.value


def type_of(cx: Context, expression: Any) -> CppType:
    """The type of an expression that is not evaluated (decltype, sizeof, auto)."""
    cx.lowering.unevaluated += 1
    try:
        with cx.separate_block():
            value = lower(cx, expression)
    finally:
        cx.lowering.unevaluated -= 1
    if isinstance(value, FunctionSet):
        return cx.rules.function_pointer(cx, value, None, expression.span).type
    type: CppType = getattr(value, "type", VOID)
    return type


def static_assert(cx: Context, node: tree.StaticAssert) -> None:
    """`static_assert(condition, "message")`. One that cannot be evaluated, as it uses the host's
    library, is noted in the report."""
    try:
        holds = constant_value(cx, node.condition, "the condition of static_assert")
    except CompileError as error:
        cx.note("noted", "static_assert", f"not checked: {error.message}", node.span)
        return
    if not holds:
        raise cx.error(
            f"static_assert failed: {node.message or 'its condition is false'}", node.span
        )


# --- interpretation of constant functions --------------------------------------------------------


_MOST_STEPS = 20_000  # statements that are interpreted for one constant


class NotConstant(Exception):
    """A value is known only when the kernel runs."""


def evaluate(
    statements: Sequence[n.Statement],
    expression: n.Expression,
    functions: Mapping[str, n.Function],
) -> n.Constant | None:
    """The value of an expression after the statements; None if it is not constant."""
    run = _Evaluator(functions)
    numbers: _Numbers = {}
    try:
        run.block(statements, numbers)
        return run.value(expression, numbers)
    except NotConstant:
        return None


_Numbers = dict[str, n.Constant]  # of variables


class _Evaluator:
    def __init__(self, functions: Mapping[str, n.Function]) -> None:
        self.functions = functions
        self.steps = 0

    def value(self, expression: n.Expression, numbers: _Numbers) -> n.Constant:
        def known(node: object) -> object:
            if isinstance(node, n.Variable):
                if node.name not in numbers:
                    raise NotConstant
                return numbers[node.name]
            if isinstance(node, n.Call):
                return self.call(node, numbers)
            return node

        result = folded(rewrite(expression, known))
        if not isinstance(result, n.Constant):
            raise NotConstant
        return result

    def call(self, node: n.Call, numbers: _Numbers) -> n.Constant:
        function = self.functions.get(node.function)
        if function is None or function.memories:
            raise NotConstant
        given: _Numbers = {}
        for parameter, argument in zip(function.parameters, node.arguments, strict=True):
            if isinstance(argument, n.MemoryReference):
                raise NotConstant
            given[parameter.name] = self.value(argument, numbers)
        left = self.block(function.body, given)
        if not isinstance(left, n.Constant):
            raise NotConstant
        return left

    def block(
        self, statements: Sequence[n.Statement], numbers: _Numbers
    ) -> n.Statement | n.Constant | None:
        """Interpret statements; the result is the break, continue or value that ends the block."""
        for statement in statements:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise NotConstant
            left = self.statement(statement, numbers)
            if left is not None:
                return left
        return None

    def statement(
        self, statement: n.Statement, numbers: _Numbers
    ) -> n.Statement | n.Constant | None:
        match statement:
            case n.Declare(variable, value):
                numbers[variable.name] = (
                    _zero(variable.type) if value is None else self.value(value, numbers)
                )
            case n.Assign(place=n.Variable(name), value=value):
                numbers[name] = self.value(value, numbers)
            case n.If(condition, then, otherwise):
                chosen = then if self.value(condition, numbers).value else otherwise
                return self.block(chosen, numbers)
            case n.While(condition, body, update):
                while self.value(condition, numbers).value:
                    left = self.block((*body, n.Continue()), numbers)
                    if isinstance(left, n.Break):
                        break
                    if isinstance(left, n.Constant):
                        return left
                    self.block(update, numbers)
            case n.For(variable, start, stop, step, body):
                first, last = self.value(start, numbers), self.value(stop, numbers)
                for at in range(int(first.value), int(last.value), step):
                    assert isinstance(variable.type, ir.Scalar)
                    numbers[variable.name] = constant(at, variable.type)
                    left = self.block((*body, n.Continue()), numbers)
                    if isinstance(left, n.Break):
                        break
                    if isinstance(left, n.Constant):
                        return left
            case n.Break() | n.Continue():
                return statement
            case n.Return(value=value) if value is not None:
                return self.value(value, numbers)
            case _:
                raise NotConstant
        return None


def _zero(type: ir.Type) -> n.Constant:
    if not isinstance(type, ir.Scalar):
        raise NotConstant
    return constant(0, type)
