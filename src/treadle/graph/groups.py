"""From one node of a plan to one kernel: its program, its buffers and its numbers.

A group is built by going from the node that is stored to its sources, each seen through the view
that leads to it, until there is something that lies in memory. What can't be done inside this
kernel after all (a view that strides can't express, one reduction too many, too many buffers) is
kept: computed by a kernel of its own, before.

Loops run over the axes of the stored node (the outer space). A reduction whose result has these
axes opens an inner space, with its source's other axes behind them; one whose result is spread over
some of the axes makes these the reduced ones ("rows", as in a softmax).
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, NamedTuple

from treadle.core.errors import LaunchError
from treadle.graph import kinds
from treadle.graph.joins import Bound, sights
from treadle.graph.node import Node
from treadle.graph.operations import cost_of
from treadle.graph.parts import is_part
from treadle.graph.pieces import cuts_rows, memory_of
from treadle.graph.product_groups import axes_of, is_of_a_library, merged_apart, placed
from treadle.graph.program import FIXED, NEXT, Access, Kind, Multiplied, Output, Program, Step
from treadle.graph.reduced_views import source_view
from treadle.graph.strategy import IN_PARTS
from treadle.graph.views import View, compose, is_in_order, merge_axes, whole
from treadle.kernels.device_code.multiplying import Form
from treadle.kernels.factors import Product
from treadle.kernels.machine import machine_of
from treadle.kernels.product import integers_of, loadings_of
from treadle.runtime.arrays import packed_strides

if TYPE_CHECKING:
    from treadle.graph.schedule import Plan

MOST_STEPS = 200  # in a kernel: compile time grows
# What they may cost: a sine is much more code than an addition. Software drivers of GPUs take
# more than linear time for it.
_MOST_COST, _MOST_COST_IN_SOFTWARE = 2000, 200
_VECTOR_COST, _VECTOR_COST_IN_SOFTWARE = 400, 50  # of what is done for neighbours at once
_MOST_INDEX = 1 << 31
_RAGGED = 1 << 16  # a map of so many points has a launch of its own for the last ones
_LONG_ROW, _FEW_ROWS = 1 << 13, 64  # rows this long are only one kernel's if there are so many


_SCRATCH_BUFFERS = 2
_WHOLE = "its result is needed as a whole, or in other axes"  # why a node is kept
_MOST_REDUCTIONS = 8  # in a kernel
_FREE = frozenset({kinds.CONSTANT, kinds.INDEX, kinds.VIEW})  # they cost a kernel nothing


class Moving(NamedTuple):
    """One of a program's integers: it is where a part begins (`node` is the view or the write of
    it, see `parts.is_part`) plus so much. Other parts have the same kernel."""

    integer: int
    node: Node
    rest: int


class Group(NamedTuple):
    """A kernel to run: `leaves` are the nodes of its buffers but the output's."""

    node: Node
    program: Program | None  # None for what runs by itself (CALL)
    leaves: tuple[Node, ...]
    integers: tuple[int, ...]
    constants: tuple[Node, ...]
    reason: str
    moving: tuple[Moving, ...] = ()
    parts: tuple[Group, ...] = ()  # of a joined array, each with its own kernel


class _Place(NamedTuple):
    """An access before axes are merged: strides for the outer or the inner axes."""

    buffer: int
    strides: tuple[int, ...]
    offset: int
    inner: bool
    part: Node | None = None  # the view or the write of a part, where the offset is one's


# A node, the view it is seen through, whether in inner space; the view of a part that is the last
# one of those that it is seen through; and where the box of the loops begins that it is seen in,
# if that is not all of them.
Key = tuple[Node, View | None, bool, Node | None, tuple[int, ...] | None]


class _TooMuch(Exception):
    """The kernel would have too many buffers."""


def build_group(plan: Plan, node: Node) -> Group:
    """The kernel that computes a node of a plan. It may keep further nodes of the plan."""
    reason = plan.reasons.get(node, "it is asked for")
    if node.op == kinds.JOIN:
        parts = [
            _built(plan, node, f"it is part {at} of {len(node.sources)}", at - 1)
            for at, part in enumerate(node.sources, 1)
            if part.size
        ]
        return _of_parts(node, parts, reason)
    if node.op == kinds.CALL or is_of_a_library(node):
        sources = tuple(plan.original(source) for source in node.sources)
        return Group(node, None, sources, (), (), reason)
    return _built(plan, node, reason)


def _of_parts(node: Node, parts: list[Group], reason: str) -> Group:
    """A joined array, whose parts are computed into their places one after the other."""
    leaves: list[Node] = []
    integers: list[int] = []
    constants: list[Node] = []
    moving: list[Moving] = []
    for part in parts:
        moving += [each._replace(integer=len(integers) + each.integer) for each in part.moving]
        leaves += part.leaves
        integers += part.integers
        constants += part.constants
    return Group(
        node, None, tuple(leaves), tuple(integers), tuple(constants), reason, tuple(moving),
        tuple(parts),
    )  # fmt: skip


def _built(plan: Plan, node: Node, reason: str, part: int | None = None) -> Group:
    """The kernel of a node, or of one part of a joined array."""
    rows = True
    root = node if part is None else plan.original(node.sources[part])
    while True:
        building = _Building(plan, node, rows, part)
        try:
            program = building.build()
        except _TooMuch:
            most = node.device.limits.max_buffers_per_kernel
            _keep_some(plan, root, building.most, f"{node.device.id} binds {most} arrays at most")
            continue
        if node.op == kinds.WRITE and building.reads_what_it_writes():
            plan.keep(plan.original(node.sources[1]), "it reads elements that it writes elsewhere")
            continue
        if program.kind == "product" and node.op != kinds.PRODUCT and building.is_too_large():
            plan.keep(building.product, "a kernel would not see all of its arrays")
            continue
        if building.joined and building.is_too_large():
            for join in building.joined:
                plan.keep(join, "a kernel would not see all of the arrays that are joined")
            continue
        if program.kind == "rows" and rows and building.cuts_rows(program):
            rows = False
            continue
        return Group(
            node, program, tuple(building.leaves), tuple(building.integers),
            tuple(building.constants), reason, tuple(building.moving),
        )  # fmt: skip


def _keep_some(plan: Plan, root: Node, most: int, why: str) -> None:
    """Keep parts of an expression, so that no kernel of it reads more than `most` arrays."""
    read: dict[Node, frozenset[Node]] = {}  # what a node's kernel would read for it
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in read:
            continue
        if node.array is not None or (node is not root and node in plan.kept):
            read[node] = frozenset((node,))
        elif node.op in _NO_MEMORY:
            read[node] = frozenset()
        elif not ready:
            stack.append((node, True))
            stack += [(plan.original(source), False) for source in node.sources]
        else:
            sources = {plan.original(source) for source in node.sources}
            together = frozenset[Node]().union(*(read[source] for source in sources))
            if len(together) > most and node.op == kinds.JOIN and node is not root:
                plan.keep(node, why)
                together = frozenset((node,))
            while len(together) > most:
                largest = max(sources, key=lambda source: len(read[source]))
                if len(read[largest]) < 2:
                    raise LaunchError(f"one operation ({node.op}) on too many arrays: {why}")
                plan.keep(largest, why)
                read[largest] = frozenset((largest,))
                together = frozenset[Node]().union(*(read[source] for source in sources))
            read[node] = together


_NO_MEMORY = frozenset({kinds.CONSTANT, kinds.INDEX})


class _Building:
    """One group while it is built."""

    def __init__(self, plan: Plan, node: Node, rows: bool, part: int | None = None) -> None:
        self.plan = plan
        self.part = part  # of a joined array, which this kernel computes
        self.node = node
        self.rows = rows  # whether several reductions of a row may be done, or what follows one
        self.device = node.device
        self.outer = node.detail.shape if node.op == kinds.WRITE else node.shape
        if part is not None:
            self.outer = node.sources[part].shape
        self.mode: Kind = "map"
        self.reduced: tuple[int, ...] = ()  # of the space that is reduced
        self.inner: tuple[int, ...] = ()
        self.reductions = 0
        self.nested = False  # a reduction needs another one's result
        self.steps: list[Step] = []
        self.places: list[_Place] = []
        self.leaves: list[Node] = []
        self.types: list[str] = []
        self.constants: list[Node] = []
        self.scalar_types: list[str] = []
        self.integers: list[int] = []
        self.moving: list[Moving] = []
        self._buffers: dict[int, int] = {}
        self.cost = 0
        self._slow_to_compile = machine_of(node.device).slow_to_compile
        self._most_cost = _MOST_COST_IN_SOFTWARE if self._slow_to_compile else _MOST_COST
        self._memo: dict[Key, int] = {}
        self._sources: dict[Key, list[Key]] = {}
        self.most = node.device.limits.max_buffers_per_kernel - 1  # beside the output
        self._reductions: dict[Step, int] = {}
        self.joined: list[Node] = []  # arrays whose parts are told apart
        self._bounds: dict[Key, list[tuple[Bound, ...]]] = {}
        self._joins: list[int] = []  # steps
        self._axis_places: dict[tuple[int, bool], int] = {}
        self._gathers: list[tuple[int, int, int]] = []  # step, place, elements
        self._product: Node | None = None
        self._product_step = -1

    # --- the whole -------------------------------------------------------------------------------

    def build(self) -> Program:
        node = self.node
        if node.op == kinds.WRITE:
            old, new = node.sources
            step = self._value((self.plan.original(new), None, False, None, None))
            view = node.detail
            assert isinstance(view, View)
            offset = view.offset + (old.array.offset if old.array is not None else 0)
            self.leaves.append(old)
            part = node if is_part(node) else None
            target = _Place(len(self.types), view.strides, offset, False, part)
        elif self.part is not None:
            step = self._value(
                (self.plan.original(node.sources[self.part]), None, False, None, None)
            )
            strides = packed_strides(node.shape)
            offset = sum(map(operator.mul, node.detail[self.part], strides))
            target = _Place(len(self.types), strides, offset, False)
        else:
            step = self._value((node, None, False, None, None))
            target = _Place(len(self.types), packed_strides(self.outer), 0, False)
        self.types.append(node.dtype.short)
        self.places.append(target)
        return self._program(step)

    def _program(self, step: int) -> Program:
        """The axes merged, and the numbers put in order."""
        if self.mode == "product":
            return self._product_program(step)
        kept_axes, reduced_axes = self._axes()
        space = self.inner if self.mode == "reduce" else self.outer
        reduced_extents: tuple[int, ...] = ()
        full = [p for p in self.places if p.inner or self.mode != "reduce"]
        kept_extents, kept_strides = merge_axes(
            tuple(self.outer[a] for a in kept_axes),
            [tuple([p.strides[a] for a in kept_axes]) for p in self.places],
        )
        if reduced_axes:
            reduced_extents, reduced_strides = merge_axes(
                tuple(space[a] for a in reduced_axes),
                [tuple([p.strides[a] for a in reduced_axes]) for p in full],
            )
            behind = iter(reduced_strides)
        integers = self.integers
        integers += kept_extents
        integers += reduced_extents
        accesses: list[Access] = []
        for place, strides in zip(self.places, kept_strides, strict=True):
            if reduced_axes and (place.inner or self.mode != "reduce"):
                strides += next(behind)
            accesses.append(self._as_access(place, strides))
        self._number_gathers()
        style = "loops" if self.device.backend == "cpu" else "threads"
        kind: Kind = "rows" if self.mode == "reduce" and self.nested else self.mode
        big = self._is_big(math.prod(space))
        return Program(
            kind,
            style,  # type: ignore[arg-type]
            len(kept_extents),
            len(reduced_extents),
            tuple(self.steps),
            tuple(accesses),
            (Output(step, len(accesses) - 1),),
            tuple(self.types),
            tuple(self.scalar_types),
            len(integers),
            big,
            self._lanes(accesses, len(kept_extents + reduced_extents)) if style == "threads" else 1,
        )

    def _product_program(self, step: int) -> Program:
        """As `_program`, for a product and what follows it: the axes of the stack, of rows and of
        columns are merged apart, and the inner axis is a reduced one."""
        node = self._product
        assert node is not None
        product: Product = node.detail
        extents, counts, strides = merged_apart(
            self.outer, product, [place.strides for place in self.places]
        )
        integers = self.integers
        integers += [*extents, product.inner]
        accesses = [
            self._as_access(place, moves) for place, moves in zip(self.places, strides, strict=True)
        ]
        self._number_gathers()
        product = placed(product, [self.plan.original(source) for source in node.sources])
        loadings = loadings_of(product)
        first = len(integers)
        integers += [product.rows, product.columns, product.inner]
        integers += integers_of(product, loadings)
        big = self._is_big(math.prod(self.outer))
        lanes = self._lanes(accesses, len(extents))
        form = Form(node.dtype, len(product.batch), *loadings, lanes, False, big)
        number = self._product_step
        buffers: tuple[int, int] = self.steps[number].detail
        detail = Multiplied(buffers, counts, form, first)
        self.steps[number] = self.steps[number]._replace(detail=detail)
        return Program(
            "product",
            "threads",
            len(extents),
            1,
            tuple(self.steps),
            tuple(accesses),
            (Output(step, len(accesses) - 1),),
            tuple(self.types),
            tuple(self.scalar_types),
            len(integers),
            big,
            lanes,
        )

    def _as_access(self, place: _Place, strides: tuple[int, ...]) -> Access:
        """Where a place is, with numbers for its strides and its offset."""
        integers = self.integers
        axes = []
        for stride in strides:
            if stride == 0:
                axes.append(FIXED)
            elif stride == 1:
                axes.append(NEXT)
            else:
                axes.append(len(integers))
                integers.append(stride)
        offset = FIXED
        if place.part is not None:  # wherever it begins, at 0 too
            self.moving.append(
                Moving(len(integers), place.part, place.offset - place.part.detail.offset)
            )
        if place.offset or place.part is not None:
            offset = len(integers)
            integers.append(place.offset)
        return Access(place.buffer, tuple(axes), offset)

    def _number_gathers(self) -> None:
        for number, place_number, elements in self._gathers:
            numbers = (place_number, len(self.integers))
            self.steps[number] = self.steps[number]._replace(detail=numbers)
            self.integers.append(elements)
        for number in self._joins:
            step = self.steps[number]
            parts = tuple(
                [(source, tuple(map(self._numbered, bounds))) for source, bounds in step.detail]
            )
            self.steps[number] = step._replace(detail=parts)

    def _numbered(self, bound: tuple[int, int | None, int | None]) -> tuple[int, int, int]:
        """A range of a loop axis: the access that is its index, and the integers of its bounds."""
        place, *bounds = bound
        numbers = []
        for each in bounds:
            numbers.append(FIXED if each is None else len(self.integers))
            if each is not None:
                self.integers.append(each)
        return place, numbers[0], numbers[1]

    def _is_big(self, points: int) -> bool:
        """Whether indices need 64 bits."""
        integers = self.integers
        return (
            max(integers, default=0) >= _MOST_INDEX
            or min(integers, default=0) <= -_MOST_INDEX
            or any(leaf.size >= _MOST_INDEX for leaf in (self.node, *self.leaves))
            or points >= _MOST_INDEX
        )

    def _axes(self) -> tuple[list[int], list[int]]:
        """The positions of kept and reduced axes: in the outer space, and in the reduced one."""
        if self.mode == "map":
            return list(range(len(self.outer))), []
        if self.mode == "reduce":
            return list(range(len(self.outer))), list(self.reduced)
        return [a for a in range(len(self.outer)) if a not in self.reduced], list(self.reduced)

    def _lanes(self, accesses: list[Access], axes: int) -> int:
        """4 where every access along the last axis is of four neighbours that lie as a vector, of
        at most 16 bytes."""
        if self._joins:
            return 1  # their parts are read one by one
        last = self.integers[axes - 1]
        dear = _VECTOR_COST_IN_SOFTWARE if self._slow_to_compile else _VECTOR_COST
        if self.mode == "map" and self.cost > dear:  # what comes from memory is not what counts
            return 1
        if last % 4 and (self.mode != "map" or axes > 1 or not _RAGGED <= last < _MOST_INDEX):
            return 1
        for access in accesses:
            if access.buffer < 0 or len(access.axes) < axes:
                continue
            if access.axes[-1] == FIXED:
                continue
            if access.axes[-1] != NEXT or self._item_size(access.buffer) > 4:
                return 1
            moves = [self.integers[m] for m in access.axes[:-1] if m >= 0]
            if access.offset != FIXED:
                moves.append(self.integers[access.offset])
            if NEXT in access.axes[:-1] or any(move % 4 for move in moves):
                return 1
        return 4

    def _item_size(self, buffer: int) -> int:
        node = self.leaves[buffer] if buffer < len(self.leaves) else self.node
        return node.dtype.itemsize

    def reads_what_it_writes(self) -> bool:
        """Whether a write reads the array it writes to, at other elements than it writes."""
        target = self.places[-1]
        storage = _identity(self.node.sources[0])
        if self._product is not None:
            factors = map(self.plan.original, self._product.sources)
            if any(_identity(factor) == storage for factor in factors):
                return True
        return any(
            place.buffer >= 0
            and place is not target
            and _identity(self.leaves[place.buffer]) == storage
            and (place[1:4] != target[1:4] or not _is_same_part(place.part, target.part))
            for place in self.places
        )

    @property
    def product(self) -> Node:
        """The product of a kernel of that kind."""
        assert self._product is not None
        return self._product

    def is_too_large(self) -> bool:
        """Whether a kernel can't see all of its arrays at once."""
        most = self.device.limits.max_binding_size
        return max(memory_of(self.node, self.leaves)) > most

    def cuts_rows(self, program: Program) -> bool:
        """Whether an array is so large that a kernel would have to see its rows in pieces."""
        memory = memory_of(self.node, self.leaves)
        return cuts_rows(self.device, program, self.integers, memory)

    # --- values ----------------------------------------------------------------------------------

    def _value(self, wanted: Key) -> int:
        """The step that computes a node's element, as seen through a view."""
        memo, sources = self._memo, self._sources
        todo = [wanted]
        while todo:
            key = todo[-1]
            if key in memo:
                todo.pop()
                continue
            needed = sources.get(key)
            if needed is None:
                needed = sources[key] = self._needs(key)
                missing = [each for each in needed if each not in memo]
                if missing:
                    missing.reverse()
                    todo += missing
                    continue
            memo[key] = self._step(key, [memo[each] for each in needed])
            todo.pop()
        return memo[wanted]

    def _is_leaf(self, node: Node) -> bool:
        if node.array is not None:
            return True
        if node is self.node:
            return False
        full = len(self.steps) + len(self._sources) > 2 * MOST_STEPS or self.cost > self._most_cost
        if full and node not in self.plan.kept and node.op not in _FREE:
            why = f"a kernel has about {MOST_STEPS} operations at most, fewer if they are dear"
            self.plan.keep(node, why)
        return node in self.plan.kept

    def _needs(self, key: Key) -> list[Key]:
        """The sources whose elements a node's element is made of, and where they are seen from."""
        node, view, inner, part, first = key
        original = self.plan.original
        if self._is_leaf(node) or node.op in (kinds.CONSTANT, kinds.INDEX):
            return []
        if node.op == kinds.VIEW:
            seen = node.detail
            assert isinstance(seen, View)
            together = seen if view is None else compose(view, seen)
            if together is None:
                self.plan.keep(node, "its axes can't be followed through this view")
                return []
            base = original(node.sources[0])
            if is_part(node):
                return [(base, together, inner, node, first)]
            return [(base, _unless_whole(together, base), inner, part, first)]
        if node.op == kinds.GATHER:
            return [(original(node.sources[1]), view, inner, part, first)]
        if node.op == kinds.JOIN:
            return self._parts(key)
        if node.op in (kinds.REDUCE, kinds.PRODUCT) and first is not None:
            self.plan.keep(node, "a part of what is joined takes it from memory")
            return []
        if node.op == kinds.REDUCE:
            return self._reduction(node, view, inner)
        if node.op == kinds.PRODUCT:
            if not self._multiplies(node, view, inner):
                several = self._product is not None
                why = "a kernel multiplies matrices once" if several else _WHOLE
                self.plan.keep(node, why)
            return []
        self.cost += cost_of(node.op, node.dtype.short, node.detail)
        return [(original(source), view, inner, part, first) for source in node.sources]

    def _parts(self, key: Key) -> list[Key]:
        """The parts of a joined array that are seen, each in its box of the loops."""
        node, view, inner, _, first = key
        seen = sights(node, view, first)
        if not seen:
            self.plan.keep(node, "its parts are in no boxes of this kernel's loops")
            return []
        self.joined.append(node)
        self._bounds[key] = [each.bounds for each in seen]
        found: list[Key] = []
        for each in seen:
            part = self.plan.original(each.part)
            where = each.first if any(bounds for bounds in self._bounds[key]) else first
            found.append((part, _unless_whole(each.view, part), inner, None, where))
        return found

    def _step(self, key: Key, sources: list[int]) -> int:
        node, view, inner, part, first = key
        if node.op == kinds.CONSTANT:
            self.constants.append(node)
            self.scalar_types.append(node.dtype.short)
            return self._add(Step("scalar", (), node.dtype.short, len(self.constants) - 1))
        if node.array is not None or (node is not self.node and node in self.plan.kept):
            access = self._access(node, view, inner, part, first)
            return self._add(Step("load", (), node.dtype.short, access))
        if node.op in (kinds.VIEW, kinds.COPY):
            return sources[0]
        if node.op == kinds.INDEX:
            place = self._place_of(-1, view, node.shape, 0, inner, None, first)
            return self._add(Step("index", (), node.dtype.short, place))
        if node.op == kinds.GATHER:
            return self._gather(node, sources, inner)
        if node.op == kinds.JOIN:
            return self._join(node, sources, self._bounds[key], inner)
        if node.op == kinds.PRODUCT:
            return self._multiplied(node)
        if node.op == kinds.REDUCE:
            return self._reduce(Step("reduce", tuple(sources), node.dtype.short, node.detail[0]))
        return self._add(Step(node.op, tuple(sources), node.dtype.short, node.detail))

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _join(
        self, node: Node, sources: list[int], bounds: list[tuple[Bound, ...]], inner: bool
    ) -> int:
        if len(sources) == 1:
            return sources[0]
        parts = [
            (source, tuple([(self._axis_place(each.axis, inner), *each[1:]) for each in own]))
            for source, own in zip(sources, bounds, strict=True)
        ]
        number = self._add(Step("join", (), node.dtype.short, tuple(parts)))
        self._joins.append(number)
        return number

    def _axis_place(self, axis: int, inner: bool) -> int:
        """An index along one axis of the loops, as an access without memory."""
        known = self._axis_places.get((axis, inner))
        if known is None:
            known = self._axis_places[axis, inner] = len(self.places)
            axes = range(len(self.inner if inner else self.outer))
            strides = tuple([int(each == axis) for each in axes])
            self.places.append(_Place(-1, strides, 0, inner))
        return known

    def _reduce(self, step: Step) -> int:
        """A reduction is done once, though rows and what follows them see it in different axes."""
        known = self._reductions.get(step)
        if known is None:
            known = self._reductions[step] = self._add(step)
        return known

    def _gather(self, node: Node, sources: list[int], inner: bool) -> int:
        whole = self.plan.original(node.sources[0])
        offset = whole.array.offset if whole.array is not None else 0
        axes = len(self.inner if inner else self.outer)
        number = len(self.places)
        self.places.append(_Place(self._buffer(whole), (0,) * axes, offset, inner))
        step = self._add(Step("gather", tuple(sources), node.dtype.short, None))
        self._gathers.append((step, number, whole.size))
        return step

    # --- products --------------------------------------------------------------------------------

    def _multiplies(self, node: Node, view: View | None, inner: bool) -> bool:
        """Whether this kernel may be a product and what follows it."""
        if self._product is not None or self.mode != "map" or inner:
            return self._product is node and (view is None or is_in_order(view))
        if view is not None and not is_in_order(view):
            return False
        if axes_of(self.outer, node.detail) is None:
            return False
        self._product, self.mode = node, "product"
        return True

    def _multiplied(self, node: Node) -> int:
        if self._product_step < 0:
            self.most -= 1  # for what parts of it give
            if len(self.leaves) > self.most:
                raise _TooMuch
            sources = map(self.plan.original, node.sources)
            buffers = tuple([self._buffer(source) for source in sources])
            self._product_step = self._add(Step("product", (), node.dtype.short, buffers))
        return self._product_step

    # --- memory ----------------------------------------------------------------------------------

    def _access(
        self,
        node: Node,
        view: View | None,
        inner: bool,
        part: Node | None,
        first: tuple[int, ...] | None,
    ) -> int:
        offset = node.array.offset if node.array is not None else 0
        return self._place_of(self._buffer(node), view, node.shape, offset, inner, part, first)

    def _place_of(
        self,
        buffer: int,
        view: View | None,
        shape: tuple[int, ...],
        offset: int,
        inner: bool,
        part: Node | None = None,
        first: tuple[int, ...] | None = None,
    ) -> int:
        if view is None:
            place = _Place(buffer, packed_strides(shape), offset, inner)
        else:
            place = _Place(buffer, view.strides, offset + view.offset, inner, part)
        if first is not None:  # indices count from the beginning of the loops, not of the box
            back = sum(map(operator.mul, first, place.strides))
            place = place._replace(offset=place.offset - back)
        self.places.append(place)
        return len(self.places) - 1

    def _buffer(self, node: Node) -> int:
        identity = _identity(node)
        known = self._buffers.get(identity)
        if known is None:
            if len(self.leaves) >= self.most:
                raise _TooMuch
            known = self._buffers[identity] = len(self.leaves)
            self.leaves.append(node)
            self.types.append(node.dtype.short)
        return known

    # --- reductions ------------------------------------------------------------------------------

    def _reduction(self, node: Node, view: View | None, inner: bool) -> list[Key]:
        """Where the values are that a reduction gathers, if this kernel can do it."""
        found = self._reduced_here(node, view, inner)
        if found is None:
            self.plan.keep(node, _WHOLE)
            return []
        source, where, within = found
        source = self.plan.original(source)
        return [(source, _unless_whole(where, source), within, None, None)]

    def _reduced_here(
        self, node: Node, view: View | None, inner: bool
    ) -> tuple[Node, View, bool] | None:
        source = node.sources[0]
        _, axes, *_ = node.detail
        if self.mode == "product":
            return None
        if view is None:
            view = View(node.shape, packed_strides(node.shape), 0)
        if self.mode == "map" and not inner:
            if is_in_order(view):
                tail = tuple(source.shape[a] for a in axes)
                space = (*self.outer, *tail)
                reduced = tuple(range(len(self.outer), len(space)))
                seen = View(space, view.strides + (0,) * len(tail), 0)
                if source_view(space, reduced, node, seen) is None:  # its axes were split
                    return None
                self.mode, self.inner, self.reduced = "reduce", space, reduced
            else:
                spread = tuple(
                    a
                    for a, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True))
                    if stride == 0 and extent != 1
                )
                if not spread or not self._may_be_rows(spread):
                    return None
                if source_view(self.outer, spread, node, view) is None:
                    return None
                self.mode, self.reduced = "rows", spread
        if self.mode == "reduce" and not inner:
            if not is_in_order(view):
                return None
            behind = (0,) * (len(self.inner) - len(self.outer))
            view = View(self.inner, view.strides + behind, 0)
        elif self.mode == "reduce" and not self._may_be_rows(self.reduced):
            return None
        space = self.inner if self.mode == "reduce" else self.outer
        where = source_view(space, self.reduced, node, view)
        if where is None or self.reductions >= _MOST_REDUCTIONS:
            return None
        self.reductions += 1
        self._make_room()
        self.nested = self.nested or inner
        return source, where, self.mode == "reduce"

    def _make_room(self) -> None:
        """A reduction may need buffers for what its parts give."""
        self.most = self.device.limits.max_buffers_per_kernel - 1 - _SCRATCH_BUFFERS
        if len(self.leaves) > self.most:
            raise _TooMuch

    def _may_be_rows(self, reduced: tuple[int, ...]) -> bool:
        """Whether it pays to have a whole row done by one block."""
        space = self.inner if self.mode == "reduce" else self.outer
        if not self.rows:
            return False
        length = math.prod(space[a] for a in reduced)
        rows = math.prod(space) // max(length, 1)
        in_parts = self.device.backend != "cpu" or length >= IN_PARTS
        return in_parts or length <= _LONG_ROW or rows >= _FEW_ROWS


def _is_same_part(one: Node | None, other: Node | None) -> bool:
    """Whether two parts are one wherever it begins: all plans that are remembered together agree
    about it."""
    if one is None or other is None:
        return one is other
    same = one.sources[0] is other.sources[0]
    return same and bool(one.detail.offset == other.detail.offset)


def _unless_whole(view: View, base: Node) -> View | None:
    """A view, or None if it is its base: what is seen in two ways that are one is computed once."""
    return None if view == whole(base.shape) else view


def _identity(node: Node) -> int:
    """What tells memory apart: the buffer, or the node that will get one."""
    return id(node.array.buffer) if node.array is not None else id(node)
