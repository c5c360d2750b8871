"""Composite nodes: several operations that are one node until they are planned.

A `layer_norm` is a dozen operations. To make a dozen nodes at each call, and to look for all of
them in a recipe, takes longer than its kernel. So what such a function makes of arrays of known
shapes is remembered as a `Composite`, and a call makes one node of it. When a plan is made, and
only then, the node is expanded: it becomes the last of the operations, and the others its sources.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.recent_cache import RecentCache
from treadle.graph.node import (
    CONSTANT,
    Node,
    enter_reader,
    without_history,
)
from treadle.graph.node_sizes import detail_with_sizes, key_of_number, sizes_of_detail

_RECENT_KEYS = 4096


class Operation(NamedTuple):
    """One of the operations, with numbers for its sources: those of the composite come first."""

    op: str
    sources: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType
    detail: Any


@dataclass(frozen=True, slots=True, eq=False)
class Composite:
    """Operations that make one array of others, the last of which is the result. `key` is equal for
    those that are equal but for their sizes and the numbers in them: `sizes` are these, and
    `constants` the numbers, each once, with what tells them apart (`number_key`). `depth` is the
    length of the longest chain of operations."""

    operations: tuple[Operation, ...]
    key: int
    sizes: tuple[int, ...]
    constants: tuple[tuple[tuple[Any, str], Any], ...]
    depth: int

    @property
    def name(self) -> str:
        """What people read of it."""
        return self.operations[-1].op

    def with_sizes(self, numbers: Iterator[Any]) -> Composite:
        """The same operations with other sizes."""
        found = []
        for each in self.operations:
            shape = tuple([next(numbers) for _ in each.shape])
            detail = detail_with_sizes(each.op, each.detail, shape, False, numbers)
            found.append(each._replace(shape=shape, detail=detail))
        return replace(self, operations=tuple(found))


# Numbers of structures; one that comes up again after it was dropped gets another.
_keys: RecentCache[Any, int] = RecentCache(_RECENT_KEYS)
_next_key = itertools.count()


def number_key(node: Node) -> tuple[Any, str]:
    """Equal for constants that a plan may take for one: of equal numbers (-0.0 and 0.0 are not)
    and dtypes."""
    return key_of_number(node.detail), node.dtype.short


def composite_of(result: Node, ends: Container[Node]) -> tuple[Composite, list[Node]]:
    """What makes a node of others, which are among `ends`, and these others."""
    inner: list[Node] = []
    sources: dict[Node, int] = {}
    seen: set[Node] = set()
    stack = [result]
    while stack:
        node = stack[-1]
        if node in seen:
            stack.pop()
            continue
        # A number is within each composite that reads it.
        if node in ends and node is not result and node.op != CONSTANT:
            stack.pop()
            sources.setdefault(node, len(sources))
            seen.add(node)
            continue
        missing = [source for source in node.sources if source not in seen]
        if missing:
            stack += missing
            continue
        stack.pop()
        seen.add(node)
        inner.append(node)
    number = dict(sources)
    depth = dict.fromkeys(sources, 0)
    operations: list[Operation] = []
    parts: list[Any] = []
    sizes: list[int] = []
    constants: dict[tuple[Any, str], Any] = {}
    places: dict[tuple[Any, str], int] = {}
    for node in inner:
        own = tuple([number[source] for source in node.sources])
        number[node] = len(number)
        depth[node] = 1 + max([depth[source] for source in node.sources], default=-1)
        operations.append(Operation(node.op, own, node.shape, node.dtype, node.detail))
        sizes += node.shape
        if node.op == CONSTANT:
            same = number_key(node)
            constants.setdefault(same, node.detail)
            rest: Any = places.setdefault(same, len(places))
        else:
            rest = sizes_of_detail(node.op, node.detail, False, sizes)
        parts.append((node.op, own, len(node.shape), node.dtype.short, rest))
    structure = (len(sources), *parts)
    key = _keys.get(structure)
    if key is None:
        key = _keys[structure] = next(_next_key)
    made = Composite(tuple(operations), key, tuple(sizes), tuple(constants.items()), depth[result])
    return made, list(sources)


def expand(node: Node) -> None:
    """Let a composite node be the last of its operations. It stays the node that tensors hold."""
    composite: Composite = node.detail
    nodes = list(node.sources)
    *inner, last = composite.operations
    for op, sources, shape, dtype, detail in inner:
        own = tuple([nodes[each] for each in sources])
        nodes.append(without_history(op, own, shape, dtype, node.device, detail, node.serial))
    node.op, node.detail = last.op, last.detail
    node.sources = tuple([nodes[each] for each in last.sources])
    enter_reader(node)
