"""What a piece of code writes to: which variables need a place, which bounds stay."""

from __future__ import annotations

from typing import Any

from treadle.cuda_cpp.lower.context import (
    Context,
)
from treadle.cuda_cpp.lower.names import lookup
from treadle.cuda_cpp.meaning.redefinitions import redeclaration
from treadle.cuda_cpp.meaning.scopes import Functions
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree


def assigned_names(cx: Context, declaration: tree.FunctionDeclaration) -> frozenset[str]:
    """The names that a body may write to: assigned, stepped, their address taken, or handed to a
    function (which may take a reference)."""
    memo = cx.lowering.facts.assigned_names
    found = memo.get(id(declaration))
    if found is None:
        found = memo[id(declaration)] = changed_names(cx, declaration.body)
    return found


def refuse_redeclaration(cx: Context, declaration: tree.FunctionDeclaration) -> None:
    """CompileError for a function that declares a variable twice in one block."""
    checked = cx.lowering.facts.checked
    if id(declaration) not in checked:
        checked.add(id(declaration))
        error = redeclaration(declaration)
        if error is not None:
            raise cx.error(error.message, error.span)


def changed_names(cx: Context, body: Any) -> frozenset[str]:
    """The names that a piece of code may write to."""
    found: set[str] = set()
    for node in walk_tree(body):
        match node:
            case tree.Assign(target=target) | tree.Postfix(operand=target):
                found.add(_root_name(target))
            case tree.Unary("++" | "--" | "&", operand):
                found.add(_root_name(operand))
            case tree.Call(function=function, arguments=arguments):
                for place, argument in enumerate(arguments):
                    if isinstance(argument, tree.Name) and _takes_reference(cx, function, place):
                        found.add(argument.text)
                if isinstance(function, tree.Member):
                    found.add(_root_name(function.base))
            case tree.VariableDeclaration(type=type, initializer=tree.Name(text=name)) if (
                isinstance(type, tree.ReferenceType)
            ):
                found.add(name)
    return frozenset(found)


_CHANGING = frozenset({"swap"})  # functions of the language that write to their arguments


def _takes_reference(cx: Context, function: Any, place: int) -> bool:
    """Whether a function may write to a variable that is its argument: it takes a reference."""
    if not isinstance(function, tree.Name):
        return True
    entity = lookup(cx, function)
    if entity is None:
        return function.text in _CHANGING
    if not isinstance(entity, Functions):
        return True
    for one in entity.overloads:
        parameters = one.declaration.parameters
        if place < len(parameters) and isinstance(parameters[place].type, tree.ReferenceType):
            return True
    return False


def _root_name(expression: Any) -> str:
    """The variable that a target is (a part of); "" for what a pointer leads to."""
    while isinstance(expression, tree.Member) and not expression.arrow:
        expression = expression.base
    return expression.text if isinstance(expression, tree.Name) else ""
