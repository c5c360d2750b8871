"""Traversal of syntax trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import Token


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The attributes of a class of nodes that may hold nodes."""
    return tuple(field.name for field in fields(kind) if field.name not in ("span", "tokens"))


def walk_tree(node: Any) -> Iterator[Any]:
    """A node and its descendants in preorder, without recursion."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, tuple) and not isinstance(one, Token):
            pending.extend(reversed(one))
        elif is_dataclass(one) and not isinstance(one, Span):
            yield one
            pending.extend(getattr(one, name) for name in reversed(_parts(one.__class__)))
