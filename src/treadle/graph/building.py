"""What becomes one kernel: from the node that is stored back to what lies in memory.

Each source is seen through the view that leads to it. What can't be done inside this kernel after
all is kept: computed by a kernel of its own, before.
"""

from __future__ import annotations

import math
import operator

from treadle.graph import kinds
from treadle.graph.chunks import cuts_rows, memory_of
from treadle.graph.draft import Draft, Place, TooMuch, identity_of
from treadle.graph.joins import Bound, sights
from treadle.graph.node import Node
from treadle.graph.operations import cost_of
from treadle.graph.parts import is_part
from treadle.graph.product_groups import axes_of
from treadle.graph.program import IN_PARTS, Kind, Program, Reduce, Step
from treadle.graph.reduced_views import source_view
from treadle.graph.schedule import Plan
from treadle.graph.views import View, compose, is_in_order, whole
from treadle.runtime.arrays import packed_strides

MOST_STEPS = 200  # in a kernel: compile time grows
# What they may cost: a sine is much more code than an addition. Software drivers of GPUs take
# more than linear time for it.
_MOST_COST, _MOST_COST_IN_SOFTWARE = 2000, 200
_LONG_ROW, _FEW_ROWS = 1 << 13, 64  # rows this long are only one kernel's if there are so many
_SCRATCH_BUFFERS = 2
_WHOLE = "its result is needed as a whole, or in other axes"  # why a node is kept
_MOST_REDUCTIONS = 8  # in a kernel
_FREE = frozenset({kinds.CONSTANT, kinds.INDEX, kinds.VIEW})  # they cost a kernel nothing

# A node, the view it is seen through, whether in inner space; the view of a part that is the last
# one of those that it is seen through; and where the box of the loops begins that it is seen in,
# if that is not all of them.
Key = tuple[Node, View | None, bool, Node | None, tuple[int, ...] | None]


class Building(Draft):
    """One group while it is built."""

    def __init__(self, plan: Plan, node: Node, rows: bool, part: int | None = None) -> None:
        super().__init__(plan, node, part)
        self.rows = rows  # whether several reductions of a row may be done, or what follows one
        self.reductions = 0
        self.joined: list[Node] = []  # arrays whose parts are distinguished
        self._most_cost = _MOST_COST_IN_SOFTWARE if self.slow_to_compile else _MOST_COST
        self._memo: dict[Key, int] = {}
        self._sources: dict[Key, list[Key]] = {}
        self._reductions: dict[Step, int] = {}
        self._bounds: dict[Key, list[tuple[Bound, ...]]] = {}

    def build(self) -> Program:
        """The program. Further nodes of the plan may be kept then."""
        node = self.node
        if node.op == kinds.WRITE:
            old, new = node.sources
            step = self._value((self.plan.original(new), None, False, None, None))
            view = node.detail
            assert isinstance(view, View)
            offset = view.offset + (old.array.offset if old.array is not None else 0)
            self.leaves.append(old)
            part = node if is_part(node) else None
            target = Place(len(self.types), view.strides, offset, False, part)
        elif self.part is not None:
            step = self._value(
                (self.plan.original(node.sources[self.part]), None, False, None, None)
            )
            strides = packed_strides(node.shape)
            offset = sum(map(operator.mul, node.detail[self.part], strides))
            target = Place(len(self.types), strides, offset, False)
        else:
            step = self._value((node, None, False, None, None))
            target = Place(len(self.types), packed_strides(self.outer), 0, False)
        self.types.append(node.dtype.short)
        self.places.append(target)
        return self._program(step)

    def reads_what_it_writes(self) -> bool:
        """Whether a write reads the array it writes to, at other elements than it writes."""
        target = self.places[-1]
        storage = identity_of(self.node.sources[0])
        if self._product is not None:
            factors = map(self.plan.original, self._product.sources)
            if any(identity_of(factor) == storage for factor in factors):
                return True
        return any(
            place.buffer >= 0
            and place is not target
            and identity_of(self.leaves[place.buffer]) == storage
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
        """Whether an array is so large that a kernel would have to see its rows in parts."""
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
            why = f"a kernel has about {MOST_STEPS} operations at most, fewer if they are expensive"
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
            return self._reduce(
                Step("reduce", tuple(sources), node.dtype.short, Reduce(node.detail[0]))
            )
        return self._add(Step(node.op, tuple(sources), node.dtype.short, node.detail))

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
        self.places.append(Place(self._buffer(whole), (0,) * axes, offset, inner))
        step = self._add(Step("gather", tuple(sources), node.dtype.short, None))
        self._gathers.append((step, number, whole.size))
        return step

    # --- products --------------------------------------------------------------------------------

    def _multiplies(self, node: Node, view: View | None, inner: bool) -> bool:
        """Whether this kernel may be a product and what follows it."""
        if self._product is not None or self.mode != Kind.MAP or inner:
            return self._product is node and (view is None or is_in_order(view))
        if view is not None and not is_in_order(view):
            return False
        if axes_of(self.outer, node.detail) is None:
            return False
        self._product, self.mode = node, Kind.PRODUCT
        return True

    def _multiplied(self, node: Node) -> int:
        if self._product_step < 0:
            self.most -= 1  # for what parts of it give
            if len(self.leaves) > self.most:
                raise TooMuch
            sources = map(self.plan.original, node.sources)
            buffers = tuple([self._buffer(source) for source in sources])
            self._product_step = self._add(Step("product", (), node.dtype.short, buffers))
        return self._product_step

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
        if self.mode == Kind.PRODUCT:
            return None
        if view is None:
            view = View(node.shape, packed_strides(node.shape), 0)
        if self.mode == Kind.MAP and not inner:
            if is_in_order(view):
                tail = tuple(source.shape[a] for a in axes)
                space = (*self.outer, *tail)
                reduced = tuple(range(len(self.outer), len(space)))
                seen = View(space, view.strides + (0,) * len(tail), 0)
                if source_view(space, reduced, node, seen) is None:  # its axes were split
                    return None
                self.mode, self.inner, self.reduced = Kind.REDUCE, space, reduced
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
                self.mode, self.reduced = Kind.ROWS, spread
        if self.mode == Kind.REDUCE and not inner:
            if not is_in_order(view):
                return None
            behind = (0,) * (len(self.inner) - len(self.outer))
            view = View(self.inner, view.strides + behind, 0)
        elif self.mode == Kind.REDUCE and not self._may_be_rows(self.reduced):
            return None
        space = self.inner if self.mode == Kind.REDUCE else self.outer
        where = source_view(space, self.reduced, node, view)
        if where is None or self.reductions >= _MOST_REDUCTIONS:
            return None
        self.reductions += 1
        self._make_room()
        self.nested = self.nested or inner
        return source, where, self.mode == Kind.REDUCE

    def _make_room(self) -> None:
        """A reduction may need buffers for what its parts give."""
        self.most = self.device.limits.max_buffers_per_kernel - 1 - _SCRATCH_BUFFERS
        if len(self.leaves) > self.most:
            raise TooMuch

    def _may_be_rows(self, reduced: tuple[int, ...]) -> bool:
        """Whether it pays to have a whole row done by one block."""
        space = self.inner if self.mode == Kind.REDUCE else self.outer
        if not self.rows:
            return False
        length = math.prod(space[a] for a in reduced)
        rows = math.prod(space) // max(length, 1)
        in_parts = not self.device.traits.serial_threads or length >= IN_PARTS
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
