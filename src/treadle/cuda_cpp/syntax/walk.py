"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import Token


@cache
def _parts(kind: type) -> tuple[str, ...] | None:
    """The attributes of a class of nodes that may hold nodes, the last one first; None for
    other classes."""
    if not is_dataclass(kind) or kind is Span:
        return None
    names = [field.name for field in fields(kind) if field.name not in ("span", "tokens")]
    return tuple(reversed(names))


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
