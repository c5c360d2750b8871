"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree

# The types of attributes that hold no nodes.
_PLAIN = frozenset(("str", "bool", "int", "float", "bytes", "int | None", "str | None", "Span"))

_Getter = Callable[[Any], tuple[Any, ...]]


class _Parts(dict[type, _Getter | None]):
    """What gives the attributes of a class of nodes that may hold nodes, the last one first; None
    for other classes."""

    def __missing__(self, kind: type) -> _Getter | None:
        self[kind] = found = _getter(kind)
        return found


def _getter(kind: type) -> _Getter | None:
    if not is_dataclass(kind) or kind is Span:
        return None
    names = [
        field.name
        for field in reversed(fields(kind))
        if field.name not in ("span", "tokens") and field.type not in _PLAIN
    ]
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return _nothing
    only = attrgetter(names[0])
    return lambda node: (only(node),)


def _nothing(node: Any) -> tuple[Any, ...]:
    return ()


_PARTS = _Parts()


def children(node: Any) -> Iterator[Any]:
    """The nodes that a node holds."""
    get = _PARTS[node.__class__]
    pending = [] if get is None else list(get(node))
    while pending:
        one = pending.pop()
        if one.__class__ is tuple:
            pending.extend(one[::-1])
        elif _PARTS[one.__class__] is not None:
            yield one


def walk_tree(node: Any) -> Iterator[Any]:
    """A node and its descendants in preorder, without recursion."""
    pending = [node]
    pop, extend, parts = pending.pop, pending.extend, _PARTS
    while pending:
        one = pop()
        kind = one.__class__
        if kind is tuple:
            extend(one[::-1])
            continue
        get = parts[kind]
        if get is not None:
            yield one
            extend(get(one))


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A tree in which names, as those of template parameters, are others."""
    if isinstance(node, tuple) and type(node) is tuple:
        return tuple(renamed(one, names) for one in node)
    if not is_dataclass(node) or isinstance(node, (Span, type)):
        return node
    parts = {part.name: renamed(getattr(node, part.name), names) for part in fields(node)}
    if isinstance(node, tree.Name) and not node.scope and node.text in names:
        parts["text"] = names[node.text]
    return replace(node, **parts)
