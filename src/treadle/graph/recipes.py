"""Plans remembered: what a graph became last time is what an equal graph becomes.

Two graphs are equal if they have the same operations, sources and dtypes, and read arrays that lie
in memory in the same way. Which arrays these are, and the values of Python numbers, may differ. So
a loop plans its first iteration, and the later ones only look. Extents, strides and offsets may
differ, too: the second sizes of a graph are planned as symbols (`plans_of_sizes`), and what that
plan found out about them decides for which others it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import TreadleError
from treadle.core.recent_cache import RecentCache
from treadle.core.size_record import TooManySizes
from treadle.graph.chunks import memory_of
from treadle.graph.composites import number_key
from treadle.graph.fused import Runner, Sized
from treadle.graph.groups import Group
from treadle.graph.node import (
    CALL,
    COMPOSITE,
    CONSTANT,
    FAILED,
    JOIN,
    PLACEHOLDER,
    PRODUCT,
    WRITE,
    Node,
    pending_readers,
    without_history,
)
from treadle.graph.node_sizes import WITH_SIZES, sizes_of
from treadle.graph.numbering import Moving
from treadle.graph.placeholders import values_unknown
from treadle.graph.plan_functions import (
    Executor,
    Inner,
    Numbered,
    PlanFunction,
    Step,
    plan_function,
)
from treadle.graph.plans_of_sizes import InnerNumbers, Launched, PlanOfSizes, inner_of
from treadle.graph.runners import JoinedParts, ProductRunner, runner_for
from treadle.graph.schedule import wanted_later
from treadle.kernels.product import filling
from treadle.runtime import counters
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launch import Repeat

_RECENT_RECIPES = 1024
_RECENT_SIZES = 64  # of equal graphs
PLAIN_RUNS = 2  # of a recipe, before a function is made of it
_MOST_PLANS = 16  # of equal graphs, with other facts about their sizes


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


class _Recipe:
    """The parts of a plan for certain sizes, and what the nodes inside of composite nodes are that
    it computes."""

    __slots__ = ("function", "inner", "parts", "times")

    def __init__(self, parts: list[_Part], inner: list[Inner]) -> None:
        self.parts = parts
        self.inner = inner
        self.times = 0  # that it was looked up
        self.function: PlanFunction | None = None

    def make_function(self, graph: Graph, executor: Executor) -> None:
        """Make the function that runs it, if there is one."""
        steps = [
            Step(
                node, leaves, constants, integers, moving, runner,
                graph.dtype_of(node, self.inner), None if like is None else like.shape, repeats,
            )
            for node, leaves, constants, integers, moving, runner, like, repeats in self.parts
        ]  # fmt: skip
        self.function = plan_function(
            graph.roots[0].device,
            Numbered(graph.order, graph.computed, self.inner),
            steps,
            executor,
        )


class Graph:
    """The pending nodes below some roots, sources first, and the computed ones that they read. What
    still has to read memory that is written is a root, too.

    `key` is equal for graphs that are equal but for their sizes, and `sizes` are these, of the
    nodes of `trail` one after the other. It says which Python numbers are equal, also of those
    inside of composite nodes: equal numbers are one number in a kernel. `later` are the nodes that
    others, outside of the graph, still have to read.
    """

    __slots__ = (
        "computed",
        "is_new",
        "is_wide",
        "key",
        "later",
        "numbers",
        "order",
        "position",
        "recipes",
        "roots",
        "sizes",
        "trail",
        "values",
    )

    def __init__(self, roots: Sequence[Node]) -> None:
        self.order: list[Node] = []
        self.computed: list[Node] = []
        self.position: dict[Node, int] = {}
        self.key: tuple[Any, ...]
        self.sizes: tuple[int, ...]
        self.trail: list[Node] = []
        self.later: set[Node] = set()
        self.numbers: dict[tuple[Any, str], int] = {}  # of Python numbers, by their keys
        self.values: list[Any] = []  # these numbers
        self.roots = list(roots)
        self.recipes: _Recipes | None = None  # of equal graphs, once looked up
        self.is_new = True  # no plan was known for it, so that its kernels may be new, too
        self.is_wide = False  # an array is larger than what the device binds
        self._walk(roots)

    def _walk(self, roots: Sequence[Node]) -> None:
        position, order, computed = self.position, self.order, self.computed
        parts: list[Any] = []
        sizes: list[int] = []
        trail = self.trail
        number_of = self._number_of
        buffers: dict[int, int] = {}  # and arrays may share memory
        begins: dict[tuple[int, int], int] = {}  # and parts may begin at the same element
        limit = roots[0].device.limits.max_binding_size
        stack = list(roots)
        stack.reverse()
        writes: list[Node] = []
        while stack or (stack := self._add_readers(writes)):
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
                        self.is_wide = self.is_wide or wide
                        parts.append((buffer, array.key, wide))
                        sizes += source.shape
                        sizes.append(array.offset)
                        trail.append(source)
                    elif source.op == CONSTANT:
                        number = position[source] = len(order)
                        order.append(source)
                        value = number_of(number_key(source), source.detail)
                        parts.append((value, len(source.shape), source.dtype.short))
                        sizes += source.shape
                        trail.append(source)
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
            trail.append(node)
            op, detail, shape = node.op, node.detail, node.shape
            sizes += shape
            if op == CONSTANT:
                detail = number_of(number_key(node), detail)
            elif op in WITH_SIZES:
                if op == WRITE:
                    writes.append(node)
                detail = sizes_of(node, numbered[0], sizes, begins)
            elif op == COMPOSITE:
                sizes += detail.sizes
                detail = (detail.key, *[number_of(*each) for each in detail.constants])
            elif op == CALL:
                detail = None
            elif op == PLACEHOLDER:
                raise values_unknown()
            elif op == FAILED:
                raise TreadleError(detail)
            saved = node.saved > 0
            parts.append((op, detail, len(shape), node.dtype.short, saved, *numbered))
        ends = [position[root] for root in self.roots]
        self.later = wanted_later(order, position)
        if self.later:
            ends += sorted(~position[node] for node in self.later)
        # A device that is closed and opened again has another stream; launches are bound to it.
        self.key = (roots[0].device.default_stream, tuple(ends), tuple(parts))
        self.sizes = tuple(sizes)

    def _number_of(self, key: tuple[Any, str], value: Any) -> int:
        """The number of a Python number, which is the same for those of one `number_key`."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number

    def _add_readers(self, writes: list[Node]) -> list[Node]:
        """Make roots of what still has to read memory that is written, and was not reached."""
        found: dict[Node, None] = {}
        for write in writes:
            for reader in pending_readers(write.sources[0]):
                if reader not in self.position:
                    found[reader] = None
        writes.clear()
        self.roots += found
        return list(reversed(found))

    def nodes(self, inner: Sequence[Inner] = ()) -> Callable[[int], Node]:
        """The nodes by their numbers, those inside of composite nodes, which are made, behind the
        others: what is computed is numbered from the end, -1, -2, …"""
        device = self.order[0].device
        values = self.values
        made = [
            without_history(
                op, (), shape, dtype, device, values[detail] if op == CONSTANT else detail, 0
            )
            for op, shape, dtype, detail in inner
        ]
        return [*self.order, *made, *reversed(self.computed)].__getitem__

    def tasks(self, recipe: _Recipe) -> list[Task]:
        """A recipe with this graph's nodes, the last task first."""
        get = self.nodes(recipe.inner)
        found: list[Task] = []
        for node, leaves, constants, integers, moving, runner, like, repeats in recipe.parts:
            own = _moved(integers, moving, get) if moving else integers
            nodes = [*map(get, leaves)], [*map(get, constants)]
            found.append((get(node), *nodes, own, (), runner, like, repeats))
        found.reverse()
        return found

    def recipe(self, tasks: Sequence[Task]) -> _Recipe:
        """Tasks with numbers for this graph's nodes."""
        numbers = InnerNumbers(self.position, len(self.order))
        number = numbers.of
        found: list[_Part] = []
        for node, leaves, constants, integers, moving, runner, like, repeats in tasks:
            places = tuple(map(number, leaves)), tuple(map(number, constants))
            own = tuple(
                # Where a part inside of a composite begins is one of its sizes.
                [(at, number(part), rest) for at, part, rest in moving if part in self.position]
            )
            found.append((number(node), *places, integers, own, runner, like, repeats))
        return _Recipe(found, [inner_of(node, self.numbers) for node in numbers.inner])

    def dtype_of(self, number: int, inner: Sequence[Inner]) -> DType:
        """The dtype of a pending node, or of one inside of a composite node."""
        count = len(self.order)
        return self.order[number].dtype if number < count else inner[number - count].dtype

    def taken(self) -> list[Any]:
        """The nodes, for a function that runs a plan, and between them the Python numbers."""
        return [*self.order, self.values, *reversed(self.computed)]


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


class _Recipes:
    """What graphs that are equal but for their sizes became: for sizes that came up lately, and for
    others, which hold the same facts."""

    __slots__ = ("_last", "_plans", "_varying", "known")

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.known: RecentCache[tuple[int, ...], _Recipe] = RecentCache(_RECENT_SIZES)
        self._plans: list[PlanOfSizes] = []
        self._last = sizes  # that were planned last
        self._varying: set[int] = set()  # the positions of sizes that have had several values

    def planned(self, graph: Graph) -> list[Task] | None:
        """The tasks for sizes that are new; None if no plan with symbols is made for them."""
        sizes, last, varying = graph.sizes, self._last, self._varying
        self._last = sizes
        if graph.is_wide:
            return None
        for plan in reversed(self._plans):
            groups = plan.groups(graph)
            if groups is not None:
                graph.is_new = False
                return _tasks_of(plan, groups)
        pairs = zip(sizes, last, strict=True)
        varying.update([at for at, (size, other) in enumerate(pairs) if size != other])
        counters.count_plan()
        try:
            plan = PlanOfSizes(graph, sorted(varying))
        except TooManySizes:
            return None
        if len(self._plans) >= _MOST_PLANS:
            del self._plans[0]
        self._plans.append(plan)
        groups = plan.groups(graph)
        assert groups is not None, "the sizes that were planned hold the facts of the plan"
        return _tasks_of(plan, groups)

    def function(
        self, graph: Graph, executor: Executor
    ) -> tuple[PlanFunction, tuple[int, ...]] | None:
        """A function that runs a graph's plan, and its values; None if tasks are needed."""
        recipe = self.known.get(graph.sizes)
        if recipe is not None and recipe.function is not None:
            return recipe.function, ()
        if not graph.is_wide:
            for plan in reversed(self._plans):
                found = plan.function(graph, executor)
                if found is not None:
                    return found
        if recipe is None:
            return None
        if recipe.times == PLAIN_RUNS:
            recipe.make_function(graph, executor)
        recipe.times += 1
        return None if recipe.function is None else (recipe.function, ())


def _tasks_of(plan: PlanOfSizes, groups: list[Group]) -> list[Task]:
    tasks = [task_of(group) for group in groups]
    plan.launched([Launched(t[0].dtype, t[5], t[6] is None, t[7]) for t in tasks])
    return tasks


_recipes: RecentCache[Any, _Recipes] = RecentCache(_RECENT_RECIPES)


def function_for(graph: Graph, executor: Executor) -> tuple[PlanFunction, tuple[int, ...]] | None:
    """A function that runs a graph's plan, and the values that it takes; None if the plan is not
    known well enough."""
    recipes = graph.recipes = _recipes.get(graph.key)
    return None if recipes is None else recipes.function(graph, executor)


# Operations with sizes in their details, or that look at more than their sources. (The sizes of a
# product are in its key.)
_NEVER_SINGLE = WITH_SIZES - {PRODUCT} | {CALL, CONSTANT, FAILED, PLACEHOLDER}
_singles: RecentCache[Any, tuple[PlanFunction, tuple[int, ...]]] = RecentCache(_RECENT_RECIPES)


class Single:
    """One operation (or composite node) on arrays in memory and numbers, and nothing around it. Its
    function is found by what these are, and no graph is made."""

    __slots__ = ("computed", "constants", "key", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.computed: list[Node] = []
        self.constants: list[Node] = []
        # A device that is closed and opened again has another stream.
        detail = node.detail
        if node.op == COMPOSITE:  # its numbers are parameters
            detail = detail.key, detail.sizes
        key: list[Any] = [node.op, detail, node.dtype.short, node.shape]
        key.append(node.device.default_stream)
        for source in node.sources:
            array = source.array
            if array is not None:
                buffer = array.buffer
                key += array.key, source.shape, array.offset, buffer.size
                for each in self.computed:  # which sources are the same, or their memory
                    known = each.whole_array.buffer
                    key.append("same" if each is source else known is buffer)
                if source not in self.computed:
                    self.computed.append(source)
            else:
                key += source.dtype.short, source.shape
                if self.constants:  # equal numbers are one number in a kernel
                    same = number_key(source)
                    key += [number_key(each) == same for each in self.constants]
                    key.append(source in self.constants)
                if source not in self.constants:
                    self.constants.append(source)
        self.key = tuple(key)

    @classmethod
    def of(cls, node: Node) -> Single | None:
        """A node as one, if it is one."""
        if node.op in _NEVER_SINGLE or not node.sources:
            return None
        for source in node.sources:
            if source.array is None and (source.op != CONSTANT or node.op == COMPOSITE):
                return None
        return cls(node)

    @property
    def count(self) -> int:
        """How many pending nodes it has."""
        return len(self.constants) + 1

    def function(self) -> tuple[PlanFunction, tuple[int, ...]] | None:
        """The function that computes it, if it is known, and the values that it takes."""
        return _singles.get(self.key)

    def remember(self, function: tuple[PlanFunction, tuple[int, ...]]) -> None:
        """Keep the function that computes such an operation."""
        _singles[self.key] = function

    def taken(self) -> list[Any]:
        """The nodes, for that function, and the Python numbers between them."""
        inner = self.node.detail.constants if self.node.op == COMPOSITE else ()
        numbers = [value for _, value in inner]
        return [*self.constants, self.node, numbers, *reversed(self.computed)]


def remembered(graph: Graph) -> list[Task] | None:
    """The tasks for a graph that is equal to an earlier one, the last one first."""
    recipes = graph.recipes or _recipes.get(graph.key)
    if recipes is None:
        return None
    recipe = recipes.known.get(graph.sizes)
    if recipe is not None:
        graph.is_new = False
        return graph.tasks(recipe)
    tasks = recipes.planned(graph)
    if tasks is not None:
        remember(graph, tasks)
        tasks.reverse()
    return tasks


def remember(graph: Graph, tasks: Sequence[Task]) -> None:
    """Remember the tasks of a graph."""
    if any(task[4] and not _takes_integers(task[5]) for task in tasks):
        return  # chunks know where their parts begin
    recipes = _recipes.get(graph.key)
    if recipes is None:
        recipes = _recipes[graph.key] = _Recipes(graph.sizes)
    recipes.known[graph.sizes] = graph.recipe(tasks)


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
