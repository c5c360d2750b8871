"""Going through syntax trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import Token


@cache
def _parts(kind: type) -> tuple[str, ...]:
    """The attributes of a kind of node that may hold nodes."""
    return tuple(field.name for field in fields(kind) if field.name not in ("span", "tokens"))


def walk_tree(node: Any) -> Iterator[Any]:
    """A node and all nodes in it, each before those in it, without recursion."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple) and not isinstance(one, Token):
            waiting.extend(reversed(one))
        elif is_dataclass(one) and not isinstance(one, Span):
            yield one
            waiting.extend(getattr(one, name) for name in reversed(_parts(one.__class__)))
