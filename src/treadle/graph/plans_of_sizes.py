"""`PlanOfSizes`: the kernels of a graph whose sizes are symbols.

The pending nodes of a graph are copied, with symbols (`sizes.Size`) for the sizes that have had
several values, and these copies are planned as other nodes are. What the plan found out about the
symbols decides for which sizes it holds; its integers are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol
from weakref import ref

from treadle.graph.groups import Group, groups_of
from treadle.graph.node import VIEW, Node
from treadle.graph.node_sizes import with_sizes
from treadle.graph.numbering import Moving
from treadle.graph.schedule import Plan
from treadle.graph.sizes import Record, symbols_of


class Pending(Protocol):
    """A graph of pending nodes: see `recipes.Graph`."""

    roots: list[Node]
    trail: list[Node]
    position: dict[Node, int]
    later: set[Node]
    sizes: tuple[int, ...]


class PlanOfSizes:
    """The kernels for all sizes for which the same facts hold.

    `dynamic` are the positions of the sizes that may be others."""

    def __init__(self, graph: Pending, dynamic: Sequence[int]) -> None:
        record = Record()
        numbers = symbols_of(record, graph.sizes, dynamic)
        copies = _Copies(graph, numbers)
        groups = groups_of(Plan([copies.of[root] for root in graph.roots]))
        self._groups = [_numbered(group, copies.numbers) for group in groups]
        self._function = record.function(tuple([_integers(group) for group in self._groups]))
        self.facts = record.facts
        self.dynamic = frozenset(dynamic)
        static = [at for at in range(len(graph.sizes)) if at not in self.dynamic]
        first: dict[int, int] = {}  # a position of each symbol
        for at in dynamic:
            first.setdefault(graph.sizes[at], at)
        repeated = [at for at in dynamic if first[graph.sizes[at]] != at]
        self._static = _getter(static)
        self._static_sizes = self._static(graph.sizes)
        self._repeated = _getter(repeated)
        self._firsts = _getter([first[graph.sizes[at]] for at in repeated])
        self._symbols = _getter(list(first.values()))

    def groups(self, graph: Pending, nodes: Callable[[int], Node]) -> list[Group] | None:
        """The kernels for a graph; None if it has sizes for which the plan does not hold. `nodes`
        has the graph's nodes by their numbers."""
        sizes = graph.sizes
        if self._static(sizes) != self._static_sizes or self._repeated(sizes) != self._firsts(
            sizes
        ):
            return None
        found = self._function(*self._symbols(sizes))
        if found is None:
            return None
        return [
            group.of(integers, nodes) for group, integers in zip(self._groups, found, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A group with numbers for its nodes. Its integers are computed; `moving` says for some of them
    which node's offset they are, and `rests` what is added to it."""

    group: Group
    node: int
    leaves: tuple[int, ...]
    constants: tuple[int, ...]
    moving: tuple[tuple[int, int], ...]
    rests: tuple[int, ...]
    parts: tuple[_Numbered, ...]

    def of(self, computed: Any, nodes: Callable[[int], Node]) -> Group:
        """The group for these integers, with those of its parts, and nodes."""
        integers, rests, of_parts = computed
        moving = tuple(
            [
                Moving(at, nodes(node), rest)
                for (at, node), rest in zip(self.moving, rests, strict=True)
            ]
        )
        if moving:
            own = list(integers)
            for at, node, rest in moving:
                own[at] = node.detail.offset + rest
            integers = tuple(own)
        parts = zip(self.parts, of_parts, strict=True)
        return Group(
            nodes(self.node),
            self.group.program,
            tuple(map(nodes, self.leaves)),
            integers,
            tuple(map(nodes, self.constants)),
            self.group.reason,
            moving,
            tuple([part.of(own, nodes) for part, own in parts]),
        )


def _numbered(group: Group, numbers: Mapping[Node, int]) -> _Numbered:
    number = numbers.__getitem__
    return _Numbered(
        group,
        number(group.node),
        tuple(map(number, group.leaves)),
        tuple(map(number, group.constants)),
        tuple([(each.integer, number(each.node)) for each in group.moving]),
        tuple([each.rest for each in group.moving]),
        tuple([_numbered(part, numbers) for part in group.parts]),
    )


def _integers(group: _Numbered) -> tuple[Any, ...]:
    """What is computed for a group: its integers, and those of its parts."""
    return group.group.integers, group.rests, tuple([_integers(part) for part in group.parts])


def _getter(positions: Sequence[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Takes the elements at some positions out of a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    if positions:
        position = positions[0]
        return lambda sizes: (sizes[position],)
    return lambda sizes: ()


class _Array:
    """What a plan sees of an array in memory."""

    __slots__ = ("buffer", "key", "offset", "storage")

    def __init__(self, array: Any, offset: Any, storage: _Storage) -> None:
        self.buffer = array.buffer
        self.key = array.key
        self.offset = offset
        self.storage = storage


class _Storage:
    """Memory, for the copies that read it."""

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers: list[ref[Node]] = []


class _Copies:
    """Copies of a graph's nodes with other numbers for their sizes."""

    def __init__(self, graph: Pending, numbers: Sequence[Any]) -> None:
        self.of: dict[Node, Node] = {}
        self.numbers: dict[Node, int] = {}
        self._storages: dict[int, _Storage] = {}
        # What reads a copy from outside of the graph. A view, since what still has to read memory
        # that the graph writes is never outside (`Graph`).
        root = graph.roots[0]
        self._outside = Node(VIEW, (), (), root.dtype, root.device)
        following = iter(numbers)
        for node in graph.trail:
            copy = self._copy(node, following)
            self.of[node] = copy
            self.numbers[copy] = graph.position[node]
            if node in graph.later:
                copy.readers = [*(copy.readers or ()), ref(self._outside), ref(self._outside)]

    def _copy(self, node: Node, numbers: Iterator[Any]) -> Node:
        copy = Node.__new__(Node)
        copy.op, copy.dtype, copy.device = node.op, node.dtype, node.device
        copy.readers = None
        copy.eager, copy.overwritten = node.eager, node.overwritten
        copy.serial, copy.depth, copy.saved = node.serial, node.depth, node.saved
        copy.history = None
        copy.array, copy.detail, copy.sources = None, node.detail, ()
        if node.array is not None:
            copy.shape = tuple([next(numbers) for _ in node.shape])
            storage = self._storages.setdefault(id(node.array.buffer), _Storage())
            copy.array = _Array(node.array, next(numbers), storage)  # type: ignore[assignment]
        else:
            copy.shape, copy.detail = with_sizes(node, numbers)
            copy.sources = tuple([self.of[source] for source in node.sources])
        copy.size = math.prod(copy.shape)
        me = ref(copy)
        for source in copy.sources:
            if source.array is not None:
                source.array.storage.readers.append(me)  # type: ignore[union-attr]
            elif source.readers is None:
                source.readers = [me]
            else:
                source.readers.append(me)
        return copy
