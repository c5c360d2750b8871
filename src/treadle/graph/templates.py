"""Templates: what a function made of some nodes, to be made of others like them.

A function of tensors that is called again and again with arrays of the same shapes makes the same
nodes each time. A template makes them without the function, and few of them: operations between
which nothing need be in memory are one composite node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from treadle.core.dtypes import DType
from treadle.graph.calls import CallOfSeveral
from treadle.graph.composites import composite_of
from treadle.graph.node import (
    CALL,
    COMPOSITE,
    COMPUTED,
    CONSTANT,
    JOIN,
    PLACEHOLDER,
    PRODUCT,
    WRITE,
    Node,
    base_of,
)
from treadle.graph.schedule import must_lie_in_memory

# Operations that write, are there already, or stand for what is not known.
_UNKNOWN = frozenset({COMPOSITE, COMPUTED, PLACEHOLDER, WRITE})
# Operations that are planned by what is around them, or are kernels of their own.
_SINGLE = frozenset({CALL, JOIN})


class _Step(NamedTuple):
    """A node to be made. Its sources are numbers: those of the template come first."""

    op: str
    sources: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: DType
    detail: Any
    deeper: int  # than one operation


class _OneOfSeveral(NamedTuple):
    """The detail of a call's result, of which there are several."""

    call: CallOfSeveral
    place: int


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """Nodes to be made of others, and which of all of them are the results; None for no result."""

    steps: tuple[_Step, ...]
    results: tuple[int | None, ...]

    def nodes(self, sources: Sequence[Node]) -> list[Node | None]:
        """The results for these sources."""
        made = list(sources)
        device = made[0].device
        calls: dict[int, CallOfSeveral] = {}
        for op, own, shape, dtype, detail, deeper in self.steps:
            several = None
            if type(detail) is _OneOfSeveral:
                several, known = detail, detail.call
                detail = calls.get(id(known))
                if detail is None:
                    detail = calls[id(known)] = CallOfSeveral(known.function, known.options)
                    detail.nodes.extend(known.nodes)
            node = Node(op, tuple([made[at] for at in own]), shape, dtype, device, detail)
            if deeper:
                node.depth += deeper
            if several is not None:
                detail.nodes[several.place] = ref(node)
            made.append(node)
        return [None if at is None else made[at] for at in self.results]


def template_of(results: Sequence[Node | None], sources: Sequence[Node]) -> Template | None:
    """What makes nodes of others. None if they are made of anything else."""
    order = _between(results, sources)
    if order is None:
        return None
    ends = _ends(order, results, sources)
    number = {source: at for at, source in enumerate(sources)}
    steps: list[_Step] = []
    for node in order:
        if node not in ends:
            continue
        detail, own, deeper, op = node.detail, list(node.sources), 0, node.op
        if isinstance(detail, CallOfSeveral):
            place = next(at for at, each in enumerate(detail.nodes) if each() is node)
            detail = _OneOfSeveral(detail, place)
        elif any(each not in ends or each.op == CONSTANT for each in own) and op not in _SINGLE:
            detail, own = composite_of(node, ends)
            op, deeper = COMPOSITE, detail.depth - 1
        numbers = tuple([number[each] for each in own])
        number[node] = len(number)
        steps.append(_Step(op, numbers, node.shape, node.dtype, detail, deeper))
    return Template(
        tuple(steps), tuple([None if each is None else number[each] for each in results])
    )


def read_from_memory(results: Sequence[Node | None], sources: Sequence[Node]) -> tuple[int, ...]:
    """The positions of the sources that must lie in memory for the results."""
    number = {source: at for at, source in enumerate(sources)}
    found: set[int] = set()
    for node in _between(results, sources) or ():
        for position, source in enumerate(node.sources):
            if must_lie_in_memory(node, position):
                at = number.get(base_of(source)[0])
                if at is not None:
                    found.add(at)
    return tuple(sorted(found))


def _between(results: Sequence[Node | None], sources: Sequence[Node]) -> list[Node] | None:
    """The nodes between sources and results, in the order in which they were made; None if they
    are made of others, too."""
    seen = set(sources)
    found: list[Node] = []
    todo = [each for each in results if each is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        if node.array is not None or node.op in _UNKNOWN or node.device is not sources[0].device:
            return None
        seen.add(node)
        found.append(node)
        todo += node.sources
    found.sort(key=lambda node: node.serial)
    return found


def _ends(
    order: Sequence[Node], results: Sequence[Node | None], sources: Sequence[Node]
) -> set[Node]:
    """The nodes that are made one by one: what lies between them is inside of composite nodes."""
    ends = {*sources, *[each for each in results if each is not None]}
    for node in order:
        if node.op in _SINGLE:
            ends.update((node, *node.sources))
    reader: dict[Node, Node | None] = {}  # the end that a node is inside of; None for several
    for node in reversed(order):
        if node.op == PRODUCT and reader.get(node, node) is None:
            ends.add(node)
        mine = node if node in ends else reader[node]
        for source in node.sources:
            reader[source] = mine if reader.get(source, mine) is mine else None
    return ends
