"""Redefinitions, which C++ forbids: one of two definitions would be silently ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree


def redefinitions(
    declarations: tuple[tree.Declaration, ...],
) -> Iterator[CompileError]:
    """An error for each redefinition of a function or class."""
    yield from _found(declarations, (), {})


def _found(
    declarations: tuple[tree.Declaration, ...], path: tuple[str, ...], known: dict[Any, Span]
) -> Iterator[CompileError]:
    """The errors of one namespace, which may be opened several times, and of those in it."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration) and one.alias is None:
            yield from _found(one.members, (*path, one.name), known)
        for key, what in _keys(one):
            earlier = known.setdefault((path, key), one.span)
            if earlier is not one.span:
                first = f"the first definition is in line {earlier.line}"
                yield CompileError(f"{what}: {first}", one.span)
                break


def _keys(one: tree.Declaration) -> Iterator[tuple[Any, str]]:
    if isinstance(one, tree.StructDeclaration):
        if one.name and one.complete and one.specialized is None:
            yield ("class", one.name), f"{one.name} is defined twice"
    elif isinstance(one, tree.FunctionDeclaration) and one.body is not None:
        if one.specialization:
            return
        if one.template is None:
            types = tuple(parameter.type for parameter in one.parameters)
            yield (
                ("function", _path(one.name), types, one.const),
                f"{one.name.text} is defined twice",
            )


def _path(name: tree.Name) -> tuple[Any, ...]:
    return (*((part.text, part.arguments) for part in name.scope), name.text)


def redeclaration(function: tree.FunctionDeclaration) -> CompileError | None:
    """The error of a variable that its block declares already, or that has the name of a parameter
    in the outermost block of a function."""
    if function.body is None:
        return None
    parameters = {one.name: one.span for one in function.parameters if one.name}
    found = _declared_twice(function.body, parameters)
    for node in walk_tree(function.body):
        if found is not None:
            break
        if isinstance(node, tree.Compound) and node is not function.body:
            found = _declared_twice(node, {})
    return found


def _declared_twice(block: tree.Compound, known: dict[str, Span]) -> CompileError | None:
    for statement in block.body:
        if not isinstance(statement, tree.DeclarationStatement):
            continue
        for one in statement.declarations:
            if not isinstance(one, tree.VariableDeclaration) or "extern" in one.specifiers:
                continue
            earlier = known.setdefault(one.name, one.span)
            if earlier is not one.span:
                return CompileError(
                    f"{one.name} is declared here already, in line {earlier.line}: another "
                    "variable needs another name, and a new value no type before it",
                    one.span,
                )
    return None
