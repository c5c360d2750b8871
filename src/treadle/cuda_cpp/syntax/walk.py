"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import Token
from treadle.cuda_cpp.syntax import tree


@cache
def _parts(kind: type) -> tuple[str, ...] | None:
    """The attributes of a class of nodes that may hold nodes, the last one first; None for
    other classes."""
    if not is_dataclass(kind) or kind is Span:
        return None
    names = [field.name for field in fields(kind) if field.name not in ("span", "tokens")]
    return tuple(reversed(names))


def children(node: Any) -> Iterator[Any]:
    """The nodes that a node holds."""
    pending = [getattr(node, name) for name in _parts(node.__class__) or ()]
    while pending:
        one = pending.pop()
        if isinstance(one, tuple) and not isinstance(one, Token):
            pending.extend(reversed(one))
        elif _parts(one.__class__) is not None:
            yield one


def walk_tree(node: Any) -> Iterator[Any]:
    """A node and its descendants in preorder, without recursion."""
    pending = [node]
    while pending:
        one = pending.pop()
        parts = _parts(one.__class__)
        if parts is not None:
            yield one
            pending.extend([getattr(one, name) for name in parts])
        elif isinstance(one, tuple) and not isinstance(one, Token):
            pending.extend(reversed(one))


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
