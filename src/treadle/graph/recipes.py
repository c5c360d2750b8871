"""Plans remembered: what a graph became last time is what an equal graph becomes.

Two graphs are equal if they have the same operations, sources, shapes and dtypes, and read arrays
that lie in memory in the same way. Which arrays these are, and the values of Python numbers, may
differ. So a loop plans its first turn, and the later ones only look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.graph import node as kinds
from treadle.graph.fused import Fused, Sized
from treadle.graph.groups import Group
from treadle.graph.node import Node
from treadle.graph.schedule import pending_readers
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launch import Repeat

_MOST_RECIPES = 4096


class Task(NamedTuple):
    """A kernel to run. `sized` is None for what runs by itself (a sort, say), `target` None for
    what writes into its last leaf; else it is an array like the result."""

    node: Node
    leaves: tuple[Node, ...]
    constants: tuple[Node, ...]
    integers: tuple[int, ...]
    sized: Sized | None
    target: DeviceArray | None
    repeats: list[Repeat]


class _Part(NamedTuple):
    """A task whose nodes are numbers: of pending nodes, and behind them of computed ones."""

    node: int
    leaves: tuple[int, ...]
    constants: tuple[int, ...]
    integers: tuple[int, ...]
    sized: Sized | None
    target: DeviceArray | None
    repeats: list[Repeat]  # the launches, once they were made: then only their arguments change


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
        stack = list(roots)
        stack.reverse()
        cacheable = True
        while stack:
            node = stack[-1]
            if node in position:
                stack.pop()
                continue
            array = node.array
            if array is not None:
                stack.pop()
                position[node] = ~len(computed)
                computed.append(node)
                buffer = buffers.setdefault(id(array.buffer), len(buffers))
                parts.append((buffer, array.key, node.shape, array.offset))
                continue
            sources = node.sources
            missing = False
            for source in sources:
                if source not in position:
                    stack.append(source)
                    missing = True
            if missing:
                continue
            stack.pop()
            position[node] = len(order)
            order.append(node)
            op, detail = node.op, node.detail
            if op == kinds.CONSTANT:
                detail = numbers.setdefault(repr(detail), len(numbers))
            elif op == kinds.CALL:
                detail = None
            elif op == kinds.WRITE and cacheable:
                readers = pending_readers(sources[0])
                cacheable = len(readers) < 2
            parts.append(
                (op, detail, node.shape, node.dtype.short, *[position[s] for s in sources])
            )
        if cacheable:
            ends = [position[root] for root in roots]
            # A device that is closed and opened again has another stream; launches are bound to it.
            self.key = (roots[0].device.default_stream, tuple(ends), tuple(parts))

    def _node(self, position: int) -> Node:
        return self.order[position] if position >= 0 else self.computed[~position]

    def tasks(self, recipe: Sequence[_Part]) -> list[Task]:
        """A recipe with this graph's nodes, the last task first."""
        get = self._node
        return [
            Task(
                self.order[part.node],
                tuple([get(number) for number in part.leaves]),
                tuple([get(number) for number in part.constants]),
                part.integers,
                part.sized,
                part.target,
                part.repeats,
            )
            for part in reversed(recipe)
        ]

    def recipe(self, tasks: Sequence[Task]) -> list[_Part]:
        """Tasks with numbers for this graph's nodes."""
        position = self.position
        return [
            _Part(
                position[task.node],
                tuple([position[leaf] for leaf in task.leaves]),
                tuple([position[each] for each in task.constants]),
                task.integers,
                task.sized,
                task.target,
                task.repeats,
            )
            for task in tasks
        ]


_recipes: dict[Any, list[_Part]] = {}


def remembered(graph: Graph) -> list[Task] | None:
    """The tasks for a graph that is equal to an earlier one, the last one first."""
    if graph.key is None:
        return None
    recipe = _recipes.get(graph.key)
    return None if recipe is None else graph.tasks(recipe)


def remember(graph: Graph, tasks: Sequence[Task]) -> None:
    """Remember the tasks of a graph."""
    if graph.key is None or any(task.node not in graph.position for task in tasks):
        return
    if len(_recipes) >= _MOST_RECIPES:
        _recipes.clear()
    _recipes[graph.key] = graph.recipe(tasks)


def task_of(group: Group, fused: Fused | None) -> Task:
    """What runs a group."""
    target = None
    sized = None
    if fused is not None and group.program is not None:
        node = group.node
        if node.size * node.dtype.itemsize > node.device.limits.max_buffer_size:
            DeviceArray.allocate(node.device, node.dtype, node.shape)  # OutOfMemory, in words
        if node.op != kinds.WRITE:
            target = DeviceArray.described(node.device, node.dtype, node.shape)
        if 0 not in group.integers[: group.program.kept]:
            sized = fused.sized(group.integers)
    return Task(group.node, group.leaves, group.constants, group.integers, sized, target, [])
