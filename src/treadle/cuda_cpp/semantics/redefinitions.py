"""Redefinitions, which C++ forbids: one of two definitions would be silently ignored.

They are found when a file is opened, in functions that nothing calls too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_argument


def redefinitions(
    declarations: tuple[tree.Declaration, ...],
) -> Iterator[CompileError]:
    """An error for each redefinition of a function, class, variable or enumerator."""
    yield from _found(declarations, (), {})


def _found(
    declarations: tuple[tree.Declaration, ...], path: tuple[str, ...], known: dict[Any, Span]
) -> Iterator[CompileError]:
    """The errors of one namespace, which may be opened several times, and of those in it."""
    for one in declarations:
        if isinstance(one, tree.NamespaceDeclaration) and one.alias is None:
            yield from _found(one.members, (*path, one.name), known)
        own = set()
        for key, what in _keys(one):
            earlier = known.setdefault((path, key), one.span)
            if earlier is not one.span or key in own:
                first = f"the first definition is in line {earlier.line}"
                yield CompileError(f"{what}: {first}", one.span)
                break
            own.add(key)
        yield from _inside(one)


def _keys(one: tree.Declaration) -> Iterator[tuple[Any, str]]:
    if isinstance(one, tree.StructDeclaration):
        if one.name and one.complete:
            special = (one.specialized, one.template, one.constraint, _path_of(one.scope))
            key = ("class", one.name, None if one.specialized is None else special)
            yield key, f"{one.name} is defined twice{_for_arguments(one.specialized)}"
    elif isinstance(one, tree.VariableDeclaration):
        if one.name and "::" not in one.name and _is_definition(one):
            yield ("variable", one.name), f"{one.name} is defined twice"
    elif isinstance(one, tree.EnumDeclaration):
        for name, _ in one.enumerators:
            scope = one.name if one.scoped else ""
            yield ("enumerator", scope, name), f"{name} is an enumerator twice"
    elif isinstance(one, tree.FunctionDeclaration) and one.body is not None:
        if one.specialization and one.template is None:
            types = tuple(parameter.type for parameter in one.parameters)
            given = (one.name.arguments, types, one.result, one.const, one.constraint)
            twice = f"{one.name.text} is defined twice{_for_arguments(one.name.arguments)}"
            yield ("specialization", _path(one.name), given), twice
        elif one.template is None:
            types = tuple(parameter.type for parameter in one.parameters)
            yield (
                ("function", _path(one.name), types, one.const),
                f"{one.name.text} is defined twice",
            )


def _is_definition(one: tree.VariableDeclaration) -> bool:
    """Whether it surely is one: `extern "C" int a;` is none, and its linkage is not kept."""
    if "extern" in one.specifiers or one.template is not None:
        return False
    in_device_memory = one.specifiers & {"device", "constant", "managed"}
    return one.initializer is not None or bool(in_device_memory)


def _path(name: tree.Name) -> tuple[Any, ...]:
    return (*_path_of(name.scope), name.text)


def _path_of(scope: tuple[tree.Name, ...]) -> tuple[Any, ...]:
    return tuple((part.text, part.arguments) for part in scope)


def _for_arguments(arguments: tuple[tree.TemplateArgument, ...] | None) -> str:
    if not arguments:
        return ""
    return f" for <{', '.join(map(spell_argument, arguments))}>"


# --- in functions and classes --------------------------------------------------------------------


def _inside(one: tree.Declaration) -> Iterator[CompileError]:
    """The redeclarations of parameters, members and local variables."""
    if isinstance(one, tree.StructDeclaration):
        fields: dict[str, Span] = {}
        for member in one.members:
            if isinstance(member, tree.VariableDeclaration) and member.name:
                yield from _again(member, fields)
            yield from _inside(member)
    elif isinstance(one, tree.FunctionDeclaration):
        names: dict[str, Span] = {}
        for parameter in one.parameters:
            if parameter.name:
                yield from _again(parameter, names)
        if one.body is not None:
            yield from _in_statement(one.body, names)


def _again(one: tree.VariableDeclaration | tree.Parameter, known: dict[str, Span]) -> Any:
    earlier = known.setdefault(one.name, one.span)
    if earlier is not one.span:
        yield CompileError(
            f"{one.name} is declared here already, in line {earlier.line}: another variable needs "
            "another name, and a new value no type before it",
            one.span,
        )


def _in_statement(node: tree.Statement | None, known: dict[str, Span]) -> Iterator[CompileError]:
    """The redeclarations in a statement; `known` are the names of the block that it is in, if a
    redeclaration in the statement itself would be one of these."""
    match node:
        case tree.DeclarationStatement(declarations=declarations):
            for one in declarations:
                if isinstance(one, tree.VariableDeclaration) and "extern" not in one.specifiers:
                    yield from _again(one, known)
                elif isinstance(one, tree.StructDeclaration):
                    yield from _inside(one)
        case tree.Compound(body=body):
            for statement in body:
                own = {} if isinstance(statement, tree.Compound) else known
                yield from _in_statement(statement, own)
        case tree.If(initializer=initializer, condition=condition, then=then, otherwise=other):
            yield from _with_head((initializer, condition), (then, other))
        case tree.For(initializer=initializer, body=body):
            yield from _with_head((initializer,), (body,))
        case tree.RangeFor(variable=variable, body=body):
            yield from _with_head((variable,), (body,))
        case tree.While(condition=condition, body=body):
            yield from _with_head((condition,), (body,))
        case tree.DoWhile(body=body):
            yield from _in_statement(body, {})
        case tree.Switch(initializer=initializer, body=body):
            yield from _with_head((initializer,), (body,))


def _with_head(heads: tuple[Any, ...], bodies: tuple[Any, ...]) -> Iterator[CompileError]:
    """The bodies of a statement redeclare what its head declares, and not what others do."""
    declared: dict[str, Span] = {}
    for head in heads:
        if isinstance(head, tree.VariableDeclaration):
            yield from _again(head, declared)
        elif head is not None:
            yield from _in_statement(head, declared)
    for body in bodies:
        yield from _in_statement(body, dict(declared))
