"""Declarations of one name that C++ does not let stand beside each other: functions that differ in
their result alone, a name for two kinds of things, a default argument that is given twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.semantics.malformed import is_of_user
from treadle.cuda_cpp.syntax import tree


def conflicts(declarations: tuple[tree.Declaration, ...], file: str) -> Iterator[CompileError]:
    """An error for each declaration of the user's files that another one before it excludes."""
    own = tuple(one for one in declarations if is_of_user(one, file))
    yield from _found(own, (), _Known())


@dataclass(slots=True)
class _Known:
    """What was declared so far, by the namespaces and classes around it and by its name."""

    kinds: dict[Any, tuple[str, Span]] = field(default_factory=dict)
    types: dict[Any, tree.TypedefDeclaration] = field(default_factory=dict)
    functions: dict[Any, tree.FunctionDeclaration] = field(default_factory=dict)
    defaults: dict[Any, Span] = field(default_factory=dict)  # also by the parameter's position


_Path = tuple[str, ...]


def _found(
    declarations: tuple[tree.Declaration, ...],
    path: _Path,
    known: _Known,
    owner: tree.StructDeclaration | None = None,
) -> Iterator[CompileError]:
    for one in declarations:
        yield from _kind_conflicts(one, path, known)
        match one:
            case tree.NamespaceDeclaration(alias=None):
                yield from _found(one.members, (*path, one.name), known)
            case tree.StructDeclaration(complete=True):
                if one.name and one.specialized is None:
                    yield from _found(
                        one.members, (*path, *_texts(one.scope), one.name), known, one
                    )
                else:
                    yield from _found(one.members, (), _Known(), one)
            case tree.TypedefDeclaration():
                yield from _type_conflict(one, path, known)
            case tree.FunctionDeclaration() if "friend" not in one.specifiers:
                yield from _function_conflicts(one, path, known, owner)


# --- kinds of things -----------------------------------------------------------------------------


def _kind_conflicts(one: tree.Declaration, path: _Path, known: _Known) -> Iterator[CompileError]:
    """A name that stands for two kinds of things. A class or enum may have that of a variable or
    function, which hides it."""
    for name, kind, hideable in _kinds(one):
        earlier = known.kinds.setdefault((path, name, hideable), (kind, one.span))
        if earlier[0] != kind:
            yield CompileError(
                f"{name} is {kind} here, and {earlier[0]} in line {earlier[1].line}: rename one "
                "of them",
                one.span,
            )


def _kinds(one: tree.Declaration) -> Iterator[tuple[str, str, bool]]:
    match one:
        case tree.VariableDeclaration() if one.name and "::" not in one.name:
            yield one.name, "a variable", False
        case tree.FunctionDeclaration() if not (one.name.scope or "friend" in one.specifiers):
            if one.result is not None:
                yield one.name.text, "a function", False
        case tree.NamespaceDeclaration() if one.name:
            yield one.name, "a namespace", False
        case tree.StructDeclaration(scope=()) if one.name and one.specialized is None:
            template = one.template is not None
            yield one.name, "a class template" if template else "a class", not template
        case tree.EnumDeclaration(scope=()):
            if one.name:
                yield one.name, "an enum", True
            if not one.scoped:
                for name, _ in one.enumerators:
                    yield name, "an enumerator", False


def _type_conflict(
    one: tree.TypedefDeclaration, path: _Path, known: _Known
) -> Iterator[CompileError]:
    earlier = known.types.setdefault((path, one.name), one)
    if one.template is None and earlier.template is None and _surely_differ(one.type, earlier.type):
        yield CompileError(
            f"{one.name} is another type in line {earlier.span.line}: give one another name",
            one.span,
        )


# --- functions -----------------------------------------------------------------------------------


def _function_conflicts(
    one: tree.FunctionDeclaration,
    path: _Path,
    known: _Known,
    owner: tree.StructDeclaration | None,
) -> Iterator[CompileError]:
    if one.specialization or one.constraint is not None or one.note == "host":
        return
    types = tuple(_without_const(each.type) for each in one.parameters)
    around = (*path, *_texts(one.name.scope))
    signature = (one.name.arguments, types, one.const, one.reference, one.variadic)
    key = (around, one.name.text, signature, one.template)
    for at, parameter in enumerate(one.parameters):
        if parameter.default is None:
            continue
        first = known.defaults.setdefault((*key, at), parameter.span)
        if first is not parameter.span:
            yield CompileError(
                f"the default argument of {parameter.name or 'this parameter'} is given in line "
                f"{first.line} already: leave it out here",
                parameter.span,
            )
    if one.template is not None:
        return
    earlier = known.functions.setdefault(key, one)
    if earlier is one:
        return
    if _surely_differ(one.result, earlier.result):
        yield CompileError(
            f"{one.name.text} has the same parameters in line {earlier.span.line} and another "
            "result: functions of one name differ in their parameters",
            one.span,
        )
    elif owner is not None and not one.name.scope:  # that of a nested class is its definition
        yield CompileError(
            f"{owner.name} declares {one.name.text} with these parameters in line "
            f"{earlier.span.line} already",
            one.span,
        )


def _texts(scope: tuple[tree.Name, ...]) -> _Path:
    return tuple(one.text for one in scope)


def _without_const(type: tree.TypeTree) -> tree.TypeTree:
    """The type of a parameter, whose own const is not part of the function's type."""
    return type.of if isinstance(type, tree.ConstType) else type


def _surely_differ(one: Any, other: Any) -> bool:
    """Whether two types are different ones whatever names stand for: both are spelled out."""
    return one != other and _is_spelled_out(one) and _is_spelled_out(other)


def _is_spelled_out(type: Any) -> bool:
    while isinstance(type, (tree.ConstType, tree.PointerType, tree.ReferenceType)):
        type = type.of if isinstance(type, tree.ConstType) else type.to
    return isinstance(type, tree.BuiltinType)
