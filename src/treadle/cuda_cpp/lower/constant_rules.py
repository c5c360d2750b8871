"""What cannot be in a constant expression, whatever its value: variables that are known only at run
time, and calls of functions that are not constexpr."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import lookup
from treadle.cuda_cpp.lower.values import Lvalue
from treadle.cuda_cpp.semantics.scopes import Functions, Scope
from treadle.cuda_cpp.semantics.types import Arithmetic, Pointer
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import children

# What is in these is not evaluated, or evaluates to something else than its parts.
_NOT_EVALUATED = (tree.SizeOf, tree.Lambda, tree.Requires, *tree.TYPES)


def refuse_run_time(cx: Context, expression: Any, what: str) -> None:
    """CompileError for an expression that reads a variable or parameter of the function, which is
    known only at run time."""
    for one in _evaluated(expression, (tree.Call, tree.Member)):
        if isinstance(one, tree.Name) and not one.scope and _is_run_time(cx, one.text):
            raise cx.wrong(
                f"{what} must be known when the kernel is compiled, and {one.text} is a variable",
                one.span,
            )


def refuse_other_calls(cx: Context, expression: Any, what: str) -> None:
    """CompileError for a call of a function that is not constexpr."""
    for one in _evaluated(expression, ()):
        if not isinstance(one, tree.Call) or not isinstance(one.function, tree.Name):
            continue
        found = lookup(cx, one.function)
        if not isinstance(found, Functions):
            continue
        functions = [each.declaration for each in found.overloads]
        if all(not cx.lowering.is_ours(each) and _is_plain(each) for each in functions):
            raise cx.wrong(
                f"{what} must be known when the kernel is compiled, and {one.function.text} of "
                f"line {functions[0].span.line} is not constexpr",
                one.span,
            )


def _is_plain(function: tree.FunctionDeclaration) -> bool:
    return "constexpr" not in function.specifiers and not function.note


def _is_run_time(cx: Context, name: str) -> bool:
    """Whether a name is surely a number or pointer that is known only at run time: a parameter, or
    a local variable that may change."""
    scope: Scope | None = cx.scope
    while scope is not None:
        found = scope.names.get(name)
        if found is not None:
            type = getattr(found, "type", None)
            if scope.kind == "function":
                return isinstance(type, (Arithmetic, Pointer))
            changes = isinstance(found, Lvalue) and not found.const
            return changes and isinstance(type, Arithmetic)
        if scope.kind in ("class", "namespace", "global"):
            return False
        scope = scope.parent
    return False


def _evaluated(expression: Any, without: tuple[type, ...]) -> Iterator[Any]:
    """The nodes of an expression that are surely evaluated."""
    pending = [expression]
    while pending:
        one = pending.pop()
        if isinstance(one, (*_NOT_EVALUATED, *without)):
            continue
        yield one
        if isinstance(one, tree.Conditional):
            pending.append(one.condition)
        elif isinstance(one, tree.Binary) and one.op in ("&&", "||"):
            pending.append(one.left)
        else:
            pending += children(one)
