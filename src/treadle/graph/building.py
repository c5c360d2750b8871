"""What becomes one kernel: from the node that is stored back to what lies in memory.

Each source is seen through the view that leads to it. What can't be done inside this kernel after
all is materialized: computed by a kernel of its own, before.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

from treadle.graph import kinds
from treadle.graph.chunks import cuts_rows, memory_of
from treadle.graph.draft import Draft, Gather
from treadle.graph.joins import Bound, sights
from treadle.graph.loops import Loops, reduced_view
from treadle.graph.node import Node
from treadle.graph.numbering import Moving, program_of
from treadle.graph.operations import cost_of
from treadle.graph.parts import is_part
from treadle.graph.product_groups import axes_of
from treadle.graph.program import Kind, Program, Reduce, Step
from treadle.graph.reads import Place, Reads, Seen, identity_of
from treadle.graph.schedule import Plan
from treadle.graph.views import View, compose, is_in_order, whole
from treadle.kernels.machine import machine_of
from treadle.runtime.arrays import packed_strides

MOST_STEPS = 200  # in a kernel: compile time grows
# What they may cost: a sine is much more code than an addition. Software drivers of GPUs take
# more than linear time for it.
_MOST_COST, _MOST_COST_IN_SOFTWARE = 2000, 200
_SCRATCH_BUFFERS = 2  # of reductions in parts
_WHOLE = "its result is needed as a whole, or in other axes"  # why a node is materialized
_FREE = frozenset({kinds.CONSTANT, kinds.INDEX, kinds.VIEW})  # they cost a kernel nothing


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel that was built: its program and what a launch needs; what of it the builder of
    groups may still want otherwise."""

    node: Node
    program: Program
    leaves: tuple[Node, ...]
    integers: tuple[int, ...]
    constants: tuple[Node, ...]
    moving: tuple[Moving, ...]
    product: Node | None
    joined: tuple[Node, ...]
    reads_what_it_writes: bool  # a write: whether at other elements than it writes

    def is_too_large(self) -> bool:
        """Whether an array of it is larger than what the device binds."""
        most = self.node.device.limits.max_binding_size
        return max(memory_of(self.node, self.leaves)) > most

    def cuts_rows(self) -> bool:
        """Whether an array is so large that a kernel would see rows of it in parts."""
        memory = memory_of(self.node, self.leaves)
        return cuts_rows(self.node.device, self.program, self.integers, memory)


def draft_of(plan: Plan, node: Node, rows: bool, part: int | None = None) -> Draft:
    """An empty kernel for a node, or for one of the parts of a joined array. `rows`: whether it may
    be one by rows (see `Loops`)."""
    device = node.device
    if part is not None:
        outer = node.sources[part].shape
    else:
        outer = node.detail.shape if node.op == kinds.WRITE else node.shape
    reads = Reads(device.limits.max_buffers_per_kernel - 1)  # beside the output
    slow = machine_of(device).slow_to_compile
    return Draft(plan, node, part, Loops(device, outer, rows), reads, slow)


def build(draft: Draft) -> Built:
    """The kernel. Further nodes of the plan may be materialized then. TooManyBuffers if it has more
    than `draft.reads.most`."""
    plan, node = draft.plan, draft.node
    if node.op == kinds.WRITE:
        old, new = node.sources
        draft.result = _value(draft, Seen(plan.original(new)))
        view = node.detail
        assert isinstance(view, View)
        offset = view.offset + (old.array.offset if old.array is not None else 0)
        part = node if is_part(node) else None
        draft.reads.leaves.append(old)
        target = Place(len(draft.reads.types), view.strides, offset, False, part)
    elif draft.part is not None:
        draft.result = _value(draft, Seen(plan.original(node.sources[draft.part])))
        strides = packed_strides(node.shape)
        offset = sum(map(operator.mul, node.detail[draft.part], strides))
        target = Place(len(draft.reads.types), strides, offset, False)
    else:
        draft.result = _value(draft, Seen(node))
        target = Place(len(draft.reads.types), packed_strides(draft.loops.outer), 0, False)
    draft.target = target
    program, numbers = program_of(draft)
    return Built(
        node,
        program,
        tuple(draft.reads.leaves),
        tuple(numbers.integers),
        tuple(draft.constants),
        tuple(numbers.moving),
        draft.product,
        tuple(draft.joined),
        node.op == kinds.WRITE and _reads_what_it_writes(draft, target),
    )


def _reads_what_it_writes(draft: Draft, target: Place) -> bool:
    storage, leaves = identity_of(draft.node.sources[0]), draft.reads.leaves
    if draft.product is not None:
        factors = map(draft.plan.original, draft.product.sources)
        if any(identity_of(factor) == storage for factor in factors):
            return True
    return any(
        place.buffer >= 0
        and identity_of(leaves[place.buffer]) == storage
        and (place[1:4] != target[1:4] or not _is_same_part(place.part, target.part))
        for place in draft.reads.places
    )


def _is_same_part(one: Node | None, other: Node | None) -> bool:
    """Whether two parts are one wherever it begins: all plans that are remembered together agree
    about it."""
    if one is None or other is None:
        return one is other
    same = one.sources[0] is other.sources[0]
    return same and bool(one.detail.offset == other.detail.offset)


# --- what it computes -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Search:
    """What is known of the nodes on the way: the sources of each (`needs`), its step, and for a
    joined array the boxes of its parts. A reduction is done once (`reductions`), though rows and
    what follows from them see it in different axes."""

    needs: dict[Seen, list[Seen]] = field(default_factory=dict)
    steps: dict[Seen, int] = field(default_factory=dict)
    bounds: dict[Seen, list[tuple[Bound, ...]]] = field(default_factory=dict)
    reductions: dict[Step, int] = field(default_factory=dict)


def _value(draft: Draft, wanted: Seen) -> int:
    """The step that computes a node's element, as the kernel sees it. Depth first, without
    recursion: chains of thousands are normal."""
    search = _Search()
    steps, needs = search.steps, search.needs
    todo = [wanted]
    while todo:
        seen = todo[-1]
        if seen in steps:
            todo.pop()
            continue
        needed = needs.get(seen)
        if needed is None:
            needed = needs[seen] = _needs(draft, search, seen)
            missing = [each for each in needed if each not in steps]
            if missing:
                missing.reverse()
                todo += missing
                continue
        steps[seen] = _step(draft, search, seen, [steps[each] for each in needed])
        todo.pop()
    return steps[wanted]


def _is_leaf(draft: Draft, search: _Search, node: Node) -> bool:
    """Whether a node's elements are read from memory."""
    if node.array is not None:
        return True
    if node is draft.node:
        return False
    plan = draft.plan
    most = _MOST_COST_IN_SOFTWARE if draft.slow_to_compile else _MOST_COST
    is_full = len(draft.steps) + len(search.needs) > 2 * MOST_STEPS or draft.cost > most
    if is_full and node not in plan.materialized and node.op not in _FREE:
        why = f"a kernel has about {MOST_STEPS} operations at most, fewer if they are expensive"
        plan.materialize(node, why)
    return node in plan.materialized


def _needs(draft: Draft, search: _Search, seen: Seen) -> list[Seen]:
    """The sources whose elements a node's element is made of, as the kernel sees them."""
    node, view, inner, part, first = seen
    plan = draft.plan
    if _is_leaf(draft, search, node) or node.op in (kinds.CONSTANT, kinds.INDEX):
        return []
    if node.op == kinds.VIEW:
        own = node.detail
        assert isinstance(own, View)
        composed = own if view is None else compose(view, own)
        if composed is None:
            plan.materialize(node, "its axes can't be followed through this view")
            return []
        base = plan.original(node.sources[0])
        if is_part(node):
            return [Seen(base, composed, inner, node, first)]
        return [Seen(base, _unless_whole(composed, base), inner, part, first)]
    if node.op == kinds.GATHER:
        return [Seen(plan.original(node.sources[1]), view, inner, part, first)]
    if node.op == kinds.JOIN:
        return _needs_of_join(draft, search, seen)
    if node.op in (kinds.REDUCE, kinds.PRODUCT) and first is not None:
        plan.materialize(node, "a part of what is joined takes it from memory")
        return []
    if node.op == kinds.REDUCE:
        return _needs_of_reduction(draft, seen)
    if node.op == kinds.PRODUCT:
        if not _becomes_product(draft, seen):
            several = draft.product is not None
            plan.materialize(node, "a kernel multiplies matrices once" if several else _WHOLE)
        return []
    draft.cost += cost_of(node.op, node.dtype.short, node.detail)
    return [Seen(plan.original(source), view, inner, part, first) for source in node.sources]


def _step(draft: Draft, search: _Search, seen: Seen, sources: list[int]) -> int:
    """The step that a node's element is, made of the steps of what it needs."""
    node = seen.node
    short = node.dtype.short
    if node.op == kinds.CONSTANT:
        draft.constants.append(node)
        draft.scalar_types.append(short)
        return draft.add(Step("scalar", (), short, len(draft.constants) - 1))
    if node.array is not None or (node is not draft.node and node in draft.plan.materialized):
        return draft.add(Step("load", (), short, draft.reads.access(seen)))
    if node.op in (kinds.VIEW, kinds.COPY):
        return sources[0]
    if node.op == kinds.INDEX:
        return draft.add(Step("index", (), short, draft.reads.index(seen)))
    if node.op == kinds.GATHER:
        return _gather(draft, seen, sources)
    if node.op == kinds.JOIN:
        return _join(draft, seen, sources, search.bounds[seen])
    if node.op == kinds.PRODUCT:
        return _product(draft, node)
    if node.op == kinds.REDUCE:
        step = Step("reduce", tuple(sources), short, Reduce(node.detail[0]))
        known = search.reductions.get(step)
        if known is None:
            known = search.reductions[step] = draft.add(step)
        return known
    return draft.add(Step(node.op, tuple(sources), short, node.detail))


def _gather(draft: Draft, seen: Seen, sources: list[int]) -> int:
    source = draft.plan.original(seen.node.sources[0])
    offset = source.array.offset if source.array is not None else 0
    axes = len(draft.loops.inner if seen.inner else draft.loops.outer)
    buffer = draft.reads.buffer_of(source)
    access = draft.reads.add(Place(buffer, (0,) * axes, offset, seen.inner))
    step = draft.add(Step("gather", tuple(sources), seen.node.dtype.short, None))
    draft.gathers.append(Gather(step, access, source.size))
    return step


def _unless_whole(view: View, base: Node) -> View | None:
    """A view, or None if it is its base: what is seen in two ways that are one is computed once."""
    return None if view == whole(base.shape) else view


# --- joined arrays --------------------------------------------------------------------------------


def _needs_of_join(draft: Draft, search: _Search, seen: Seen) -> list[Seen]:
    """The parts of a joined array that are seen, each in its box of the loops."""
    node, view, inner, _, first = seen
    parts = sights(node, view, first)
    if not parts:
        draft.plan.materialize(node, "its parts are in no boxes of this kernel's loops")
        return []
    draft.joined.append(node)
    search.bounds[seen] = [each.bounds for each in parts]
    several_boxes = any(search.bounds[seen])
    found: list[Seen] = []
    for each in parts:
        part = draft.plan.original(each.part)
        where = each.first if several_boxes else first
        found.append(Seen(part, _unless_whole(each.view, part), inner, None, where))
    return found


def _join(draft: Draft, seen: Seen, sources: list[int], bounds: list[tuple[Bound, ...]]) -> int:
    if len(sources) == 1:
        return sources[0]
    inner, loops = seen.inner, draft.loops
    axes = len(loops.inner if inner else loops.outer)
    parts = [
        (source, tuple([(draft.reads.index_along(b.axis, axes, inner), *b[1:]) for b in own]))
        for source, own in zip(sources, bounds, strict=True)
    ]
    number = draft.add(Step("join", (), seen.node.dtype.short, tuple(parts)))
    draft.joins.append(number)
    return number


# --- products -------------------------------------------------------------------------------------


def _becomes_product(draft: Draft, seen: Seen) -> bool:
    """Whether this kernel may be a product and its epilogue."""
    node, view, inner, *_ = seen
    in_order = view is None or is_in_order(view)
    if draft.product is not None or draft.loops.kind != Kind.MAP or inner:
        return draft.product is node and in_order
    if not in_order or axes_of(draft.loops.outer, node.detail) is None:
        return False
    draft.product, draft.loops.kind = node, Kind.PRODUCT
    return True


def _product(draft: Draft, node: Node) -> int:
    if draft.product_step < 0:
        reads = draft.reads
        reads.limit(reads.most - 1)  # one more for sums of parts of the inner axis
        buffers = tuple([reads.buffer_of(draft.plan.original(each)) for each in node.sources])
        draft.product_step = draft.add(Step("product", (), node.dtype.short, buffers))
    return draft.product_step


# --- reductions -----------------------------------------------------------------------------------


def _needs_of_reduction(draft: Draft, seen: Seen) -> list[Seen]:
    """What a reduction reduces, if this kernel can do it."""
    node, loops = seen.node, draft.loops
    view = reduced_view(loops, node, seen.view, seen.inner)
    if view is None:
        draft.plan.materialize(node, _WHOLE)
        return []
    draft.reads.limit(node.device.limits.max_buffers_per_kernel - 1 - _SCRATCH_BUFFERS)
    source = draft.plan.original(node.sources[0])
    return [Seen(source, _unless_whole(view, source), loops.kind == Kind.REDUCE)]
