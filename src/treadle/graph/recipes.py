"""Plans remembered: what a graph became last time is what an equal graph becomes.

Two graphs are equal if they have the same operations, sources, shapes and dtypes, and read arrays
that lie in memory in the same way. Which arrays these are, and the values of Python numbers, may
differ. So a loop plans its first iteration, and the later ones only look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.errors import TreadleError
from treadle.core.recent_cache import RecentCache
from treadle.graph.chunks import memory_of
from treadle.graph.fused import Runner, Sized
from treadle.graph.groups import Group
from treadle.graph.node import (
    CALL,
    CONSTANT,
    FAILED,
    JOIN,
    PLACEHOLDER,
    PRODUCT,
    VIEW,
    WRITE,
    Node,
    pending_readers,
)
from treadle.graph.numbering import Moving
from treadle.graph.parts import key_of
from treadle.graph.placeholders import values_unknown
from treadle.graph.runners import JoinedParts, ProductRunner, runner_for
from treadle.graph.schedule import wanted_later
from treadle.kernels.product import filling
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launch import Repeat

_RECENT_RECIPES = 1024


# A kernel to run (a plain tuple, since each small operation makes one): the node, its leaves, the
# constants that are numbers of the kernel, its integers, of which some are where parts begin; how
# it runs, None for what runs by itself (a sort, say); an array like the result, None for what
# writes into its last leaf; the launches, once they were made, when only their arguments change.
Task = tuple[
    Node, Sequence[Node], Sequence[Node], tuple[int, ...], tuple[Moving, ...],
    Runner | None, DeviceArray | None, list[Repeat],
]  # fmt: skip
# The same with numbers for nodes: of pending ones from 0 on, of computed ones from -1 down.
_Part = tuple[
    int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[tuple[int, int, int], ...],
    Runner | None, DeviceArray | None, list[Repeat],
]  # fmt: skip


class Graph:
    """The pending nodes below some roots, sources first, and the computed ones that they read.

    `key` is equal for equal graphs; None if what else is pending matters, too.
    """

    __slots__ = ("computed", "key", "order", "position")

    def __init__(self, roots: Sequence[Node]) -> None:
        self.order: list[Node] = []
        self.computed: list[Node] = []
        self.position: dict[Node, int] = {}
        self.key: tuple[Any, ...] | None = None
        self._walk(roots)

    def _walk(self, roots: Sequence[Node]) -> None:
        position, order, computed = self.position, self.order, self.computed
        parts: list[Any] = []
        numbers: dict[str, int] = {}  # equal numbers are one number in a kernel
        buffers: dict[int, int] = {}  # and arrays may share memory
        begins: dict[tuple[int, int], int] = {}  # and parts may begin at the same element
        limit = roots[0].device.limits.max_binding_size
        stack = list(roots)
        stack.reverse()
        writes: list[Node] = []
        while stack:
            node = stack[-1]
            if node in position:
                stack.pop()
                continue
            missing = False
            numbered: list[int] = []
            for source in node.sources:
                number = position.get(source)
                if number is None:
                    array = source.array
                    if array is not None:
                        number = position[source] = ~len(computed)
                        computed.append(source)
                        buffer = buffers.setdefault(id(array.buffer), len(buffers))
                        wide = array.buffer.size > limit
                        parts.append((buffer, array.key, source.shape, array.offset, wide))
                    elif source.op == CONSTANT:
                        number = position[source] = len(order)
                        order.append(source)
                        value = numbers.setdefault(repr(source.detail), len(numbers))
                        parts.append((value, source.shape, source.dtype.short))
                    else:
                        stack.append(source)
                        missing = True
                        continue
                numbered.append(number)
            if missing:
                continue
            stack.pop()
            position[node] = len(order)
            order.append(node)
            op, detail = node.op, node.detail
            if op == CONSTANT:
                detail = numbers.setdefault(repr(detail), len(numbers))
            elif op == VIEW:
                detail = key_of(node, numbered[0], begins)
            elif op == CALL:
                detail = None
            elif op == PLACEHOLDER:
                raise values_unknown()
            elif op == FAILED:
                raise TreadleError(detail)
            elif op == WRITE:
                detail = key_of(node, numbered[0], begins)
                writes.append(node)
            saved = node.saved > 0
            parts.append((op, detail, node.shape, node.dtype.short, saved, *numbered))
        if not any(
            reader not in position
            for write in writes
            for reader in pending_readers(write.sources[0])
        ):
            ends = [position[root] for root in roots]
            later = wanted_later(order)
            if later:
                ends += sorted(~position[node] for node in later)
            # A device that is closed and opened again has another stream; launches are bound to it.
            self.key = (roots[0].device.default_stream, tuple(ends), tuple(parts))

    def tasks(self, recipe: Sequence[_Part]) -> list[Task]:
        """A recipe with this graph's nodes, the last task first."""
        # What is computed is numbered from the end: -1, -2, …
        get = [*self.order, *reversed(self.computed)].__getitem__
        return [
            (
                get(node),
                [*map(get, leaves)],
                [*map(get, constants)],
                _moved(integers, moving, get) if moving else integers,
                (),
                runner,
                like,
                repeats,
            )
            for node, leaves, constants, integers, moving, runner, like, repeats in reversed(recipe)
        ]

    def recipe(self, tasks: Sequence[Task]) -> list[_Part]:
        """Tasks with numbers for this graph's nodes."""
        number = self.position.__getitem__
        found: list[_Part] = []
        for node, leaves, constants, integers, moving, runner, like, repeats in tasks:
            places = tuple(map(number, leaves)), tuple(map(number, constants))
            own = tuple([(at, number(part), rest) for at, part, rest in moving])
            found.append((number(node), *places, integers, own, runner, like, repeats))
        return found


def _moved(
    integers: tuple[int, ...],
    moving: tuple[tuple[int, int, int], ...],
    get: Callable[[int], Node],
) -> tuple[int, ...]:
    """A program's integers for the parts of another graph."""
    numbers = list(integers)
    for at, node, rest in moving:
        numbers[at] = get(node).detail.offset + rest
    return tuple(numbers)


def _takes_integers(runner: Runner | None) -> bool:
    """Whether what runs a program takes its integers as they are."""
    return (
        runner is None or type(runner) is Sized or (type(runner) is JoinedParts and runner.is_sized)
    )


_recipes: RecentCache[Any, list[_Part]] = RecentCache(_RECENT_RECIPES)


def remembered(graph: Graph) -> list[Task] | None:
    """The tasks for a graph that is equal to an earlier one, the last one first."""
    if graph.key is None:
        return None
    recipe = _recipes.get(graph.key)
    return None if recipe is None else graph.tasks(recipe)


def remember(graph: Graph, tasks: Sequence[Task]) -> None:
    """Remember the tasks of a graph."""
    if graph.key is None or any(task[0] not in graph.position for task in tasks):
        return
    if any(task[4] and not _takes_integers(task[5]) for task in tasks):
        return  # chunks know where their parts begin
    _recipes[graph.key] = graph.recipe(tasks)


def task_of(group: Group) -> Task:
    """What runs a group."""
    node, program, integers = group.node, group.program, group.integers
    target = None
    runner: Runner | None = None
    if node.op == PRODUCT and program is None:
        target = DeviceArray.described(node.device, node.dtype, node.shape)
        runner = ProductRunner(filling(node.device, node.dtype, node.detail))
    elif group.parts or program is not None or node.op == JOIN:
        if node.size * node.dtype.itemsize > node.device.limits.max_buffer_size:
            DeviceArray.allocate(node.device, node.dtype, node.shape)  # OutOfMemory, in words
        if node.op != WRITE:
            target = DeviceArray.described(node.device, node.dtype, node.shape)
        if program is None:
            runner = JoinedParts(group)
        elif 0 not in integers[: program.kept]:
            memory = memory_of(node, group.leaves)
            runner = runner_for(node.device, program, integers, memory)
    return node, group.leaves, group.constants, integers, group.moving, runner, target, []
