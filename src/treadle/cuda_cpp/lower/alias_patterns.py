"""Alias templates in the types of parameters: `template <class T> using A = B<T, 4>;` makes `A<T>`
the pattern `B<T, 4>`, from which template arguments are deduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import lookup
from treadle.cuda_cpp.semantics.scopes import DeclaredType
from treadle.cuda_cpp.syntax import tree

_Arguments = Mapping[str, tuple[Any, ...]]  # of each parameter; several of a pack


def pattern_of(cx: Context, name: tree.Name) -> tree.Name:
    """What an alias of an instance of a class template stands for; other names as they are."""
    entity = lookup(cx, name)
    declaration = entity.declaration if isinstance(entity, DeclaredType) else None
    if not isinstance(declaration, tree.TypedefDeclaration) or declaration.template is None:
        return name
    of = declaration.type
    if not isinstance(of, tree.NamedType) or of.name.scope or of.name.arguments is None:
        return name
    arguments = _bound(declaration.template, name.arguments or ())
    return name if arguments is None else pattern_of(cx, _replaced(of.name, arguments))


def _bound(parameters: Sequence[tree.TemplateParameter], given: Sequence[Any]) -> _Arguments | None:
    """The arguments of each parameter; None if there are not enough, as where defaults follow."""
    found: dict[str, tuple[Any, ...]] = {}
    for at, parameter in enumerate(parameters):
        if parameter.pack:
            found[parameter.name] = tuple(given[at:])
        elif at < len(given) and not isinstance(given[at], tree.PackExpansion):
            found[parameter.name] = (given[at],)
        else:
            return None
    return found


def _replaced(node: Any, arguments: _Arguments) -> Any:
    """A tree with a template's arguments instead of its parameters."""
    if isinstance(node, tuple):
        return tuple(new for one in node for new in _spliced(one, arguments))
    if not is_dataclass(node) or isinstance(node, (Span, type)):
        return node
    given = _given(node, arguments)
    if len(given) == 1:
        return given[0]
    values = {each.name: getattr(node, each.name) for each in fields(node)}
    changed = {
        key: new for key, old in values.items() if (new := _replaced(old, arguments)) is not old
    }
    return replace(node, **changed) if changed else node


def _spliced(node: Any, arguments: _Arguments) -> tuple[Any, ...]:
    """A template argument, or those of a pack that is expanded alone."""
    if isinstance(node, tree.PackExpansion) and (given := _given(node.pattern, arguments)):
        return given
    return (_replaced(node, arguments),)


def _given(node: Any, arguments: _Arguments) -> tuple[Any, ...]:
    """The arguments of the parameter that a tree names; none of other trees."""
    name = node.name if isinstance(node, tree.NamedType) else node
    if not isinstance(name, tree.Name) or name.scope or name.arguments is not None:
        return ()
    return arguments.get(name.text, ())
