"""`PlanOfSizes`: the kernels of a graph whose sizes are symbols.

The pending nodes of a graph are copied, with symbols (`sizes.Size`) for the sizes that have had
several values, and these copies are planned as other nodes are. What the plan found out about the
symbols decides for which sizes it holds; its integers are computed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Protocol
from weakref import ref

from treadle.core.dtypes import DType
from treadle.core.size_record import Record, symbols_of
from treadle.core.sizes import sizes_in
from treadle.graph.composites import expand, number_key
from treadle.graph.fused import Runner
from treadle.graph.groups import Group, groups_of
from treadle.graph.node import COMPOSITE, CONSTANT, PRODUCT, VIEW, WRITE, Node, without_history
from treadle.graph.node_sizes import WITH_SIZES, detail_with_sizes, filled, sizes_of_detail
from treadle.graph.numbering import Moving
from treadle.graph.parts import is_part
from treadle.graph.plan_functions import (
    Executor,
    Inner,
    Numbered,
    PlanFunction,
    Step,
    plan_function,
)
from treadle.graph.program import Program
from treadle.graph.schedule import Plan
from treadle.runtime.launch import Repeat


class Pending(Protocol):
    """A graph of pending nodes: see `recipes.Graph`."""

    roots: list[Node]
    trail: list[Node]
    position: dict[Node, int]
    later: set[Node]
    sizes: tuple[int, ...]
    order: list[Node]
    computed: list[Node]
    numbers: dict[tuple[str, str], int]

    def nodes(self, inner: Sequence[Inner] = ()) -> Callable[[int], Node]:
        """The nodes by their numbers."""


class PlanOfSizes:
    """The kernels for all sizes for which the same facts hold.

    `dynamic` are the positions of the sizes that may be others."""

    def __init__(self, graph: Pending, dynamic: Sequence[int]) -> None:
        record = Record()
        numbers = symbols_of(record, graph.sizes, dynamic)
        copies = _Copies(graph, numbers)
        groups = groups_of(Plan([copies.of[root] for root in graph.roots]))
        numbers_of = InnerNumbers(copies.numbers, len(graph.order))
        self._groups = [_numbered(group, numbers_of) for group in groups]
        self._inner = [inner_of(node, graph.numbers) for node in numbers_of.inner]
        self._record = record
        self._results = tuple(map(_integers, groups, self._groups))
        self._shapes = [group.node.shape for group in groups]
        inner = tuple([_sizes(each) for each in self._inner])
        self._integers = record.function((self._results, inner))
        self._used = 0
        self._launched: list[Launched] = []  # of the first run
        self._values: Callable[..., Any] | None = None
        self._run: PlanFunction | None = None
        varying = frozenset(dynamic)
        static = [at for at in range(len(graph.sizes)) if at not in varying]
        first: dict[int, int] = {}  # a position of each symbol
        for at in dynamic:
            first.setdefault(graph.sizes[at], at)
        repeated = [at for at in dynamic if first[graph.sizes[at]] != at]
        self._static = _getter(static)
        self._static_sizes = self._static(graph.sizes)
        self._repeated = _getter(repeated)
        self._firsts = _getter([first[graph.sizes[at]] for at in repeated])
        self._symbols = _getter(list(first.values()))

    def groups(self, graph: Pending) -> list[Group] | None:
        """The kernels for a graph; None if it has sizes for which the plan does not hold."""
        found = self._holds(graph.sizes) and self._integers(*self._symbols(graph.sizes))
        if not found:
            return None
        results, sizes = found
        inner = [_with_sizes(*each) for each in zip(self._inner, sizes, strict=True)]
        nodes = graph.nodes(inner)
        return [
            group.of(integers, nodes) for group, integers in zip(self._groups, results, strict=True)
        ]

    def _holds(self, sizes: tuple[int, ...]) -> bool:
        """Whether sizes are those of the plan, but for the symbols."""
        return self._static(sizes) == self._static_sizes and (
            self._repeated(sizes) == self._firsts(sizes)
        )

    def launched(self, launched: list[Launched]) -> None:
        """Keep what ran the kernels, once, for `function`."""
        if not self._used:
            self._launched = launched
        self._used += 1

    def function(
        self, graph: Pending, executor: Executor
    ) -> tuple[PlanFunction, tuple[int, ...]] | None:
        """A function that runs the plan, with its values for a graph; None if the plan does not
        hold for it, or was not run before, or needs tasks."""
        sizes = graph.sizes
        if not self._used or not self._holds(sizes):
            return None
        if self._values is None:
            if not self._launched or self._integers(*self._symbols(sizes)) is None:
                return None
            self._make(graph, executor)
        if self._run is None:
            return None
        assert self._values is not None
        values = self._values(*self._symbols(sizes))
        return None if values is None else (self._run, values)

    def _make(self, graph: Pending, executor: Executor) -> None:
        steps = [
            _step(group, integers, shape, launched)
            for group, integers, shape, launched in zip(
                self._groups, self._results, self._shapes, self._launched, strict=True
            )
        ]
        sizes = dict.fromkeys(sizes_in((self._results, tuple(self._shapes), *self._inner)))
        self._values = self._record.function(tuple(sizes))
        self._run = plan_function(
            graph.roots[0].device,
            Numbered(graph.order, graph.computed, self._inner),
            steps,
            executor,
            {size: f"v{number}" for number, size in enumerate(sizes)},
        )
        self._launched = []


class Launched(NamedTuple):
    """What ran a kernel of a plan."""

    dtype: DType
    runner: Runner | None
    writes: bool
    repeats: list[Repeat]


def _step(numbered: _Numbered, found: Any, shape: tuple[Any, ...], launched: Launched) -> Step:
    integers, rests, _ = found
    programs = [each.program for each in (numbered, *numbered.parts) if each.program is not None]
    moving = zip(numbered.moving, rests, strict=True)
    return Step(
        numbered.node, numbered.leaves, numbered.constants, integers,
        tuple([(at, node, rest) for (at, node), rest in moving]), launched.runner,
        launched.dtype, None if launched.writes else shape, launched.repeats, tuple(programs),
    )  # fmt: skip


def inner_of(node: Node, numbers: Mapping[tuple[str, str], int]) -> Inner:
    """What a node inside of a composite one is. `numbers` are those of Python numbers."""
    detail = numbers[number_key(node)] if node.op == CONSTANT else node.detail
    return Inner(node.op, node.shape, node.dtype, detail)


def _sizes(inner: Inner) -> tuple[Any, ...]:
    """The sizes of such a node: its shape, and those of a product, by which it is computed."""
    op, shape, _, detail = inner
    sizes = list(shape)
    if op == PRODUCT:
        sizes_of_detail(op, detail, False, sizes)
    return tuple(sizes)


def _with_sizes(inner: Inner, sizes: tuple[int, ...]) -> Inner:
    op, shape, dtype, detail = inner
    numbers = iter(sizes)
    shape = tuple([next(numbers) for _ in shape])
    return Inner(op, shape, dtype, filled(detail, numbers) if op == PRODUCT else detail)


class InnerNumbers:
    """The numbers of a graph's nodes, and further ones for the nodes inside of composite ones."""

    __slots__ = ("_first", "_known", "_made", "inner")

    def __init__(self, known: Mapping[Node, int], first: int) -> None:
        self._known = known
        self._first = first
        self._made: dict[Node, int] = {}
        self.inner: list[Node] = []

    def of(self, node: Node) -> int:
        """The number of a node."""
        number = self._known.get(node)
        if number is not None:
            return number
        if node not in self._made:
            self._made[node] = self._first + len(self.inner)
            self.inner.append(node)
        return self._made[node]

    def is_inner(self, node: Node) -> bool:
        """Whether a node is inside of a composite one."""
        return node not in self._known


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A group with numbers for its nodes: it holds no node, and so no memory. Its integers are
    computed; `moving` says for some of them which node's offset they are, and `rests` what is added
    to it."""

    program: Program | None
    reason: str
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
        node = nodes(self.node)
        if node.op == COMPOSITE and self.program is None:
            expand(node)  # it is computed by what its last operation is
        return Group(
            node,
            self.program,
            tuple(map(nodes, self.leaves)),
            integers,
            tuple(map(nodes, self.constants)),
            self.reason,
            moving,
            tuple([part.of(own, nodes) for part, own in parts]),
        )


def _numbered(group: Group, numbers: InnerNumbers) -> _Numbered:
    number = numbers.of
    # Where a part inside of a composite begins is one of its sizes.
    moving = [each for each in group.moving if not numbers.is_inner(each.node)]
    return _Numbered(
        group.program,
        group.reason,
        number(group.node),
        tuple(map(number, group.leaves)),
        tuple(map(number, group.constants)),
        tuple([(each.integer, number(each.node)) for each in moving]),
        tuple([each.rest for each in moving]),
        tuple([_numbered(part, numbers) for part in group.parts]),
    )


def _integers(group: Group, numbered: _Numbered) -> tuple[Any, ...]:
    """What is computed for a group: its integers, and those of its parts."""
    parts = tuple(map(_integers, group.parts, numbered.parts))
    return group.integers, numbered.rests, parts


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

    def add_reader(self, reader: ref[Node]) -> None:
        """Add a copy that reads this memory."""
        self.readers.append(reader)


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
        shape = tuple([next(numbers) for _ in node.shape])
        op, detail = node.op, node.detail
        array: Any = None
        sources: tuple[Node, ...] = ()
        if node.array is not None:
            storage = self._storages.setdefault(id(node.array.buffer), _Storage())
            array = _Array(node.array, next(numbers), storage)
        else:
            if op == COMPOSITE:
                detail = detail.with_sizes(numbers)
            elif op in WITH_SIZES:
                is_of_part = op in (VIEW, WRITE) and is_part(node)
                detail = detail_with_sizes(op, detail, shape, is_of_part, numbers)
            sources = tuple([self.of[source] for source in node.sources])
        copy = without_history(op, sources, shape, node.dtype, node.device, detail, node.serial)
        copy.array, copy.saved = array, node.saved
        return copy
