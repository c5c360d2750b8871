"""What becomes one kernel: from the node that is stored back to what lies in memory.

Each source is seen through the view that leads to it. What can't be done inside this kernel after
all is materialized: computed by a kernel of its own, before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from treadle.graph.chunks import cuts_rows, memory_of
from treadle.graph.draft import Draft, Gather
from treadle.graph.joins import Bound, sights
from treadle.graph.loops import Loops, reduced_view
from treadle.graph.node import (
    CALL,
    CONSTANT,
    COPY,
    GATHER,
    INDEX,
    JOIN,
    PRODUCT,
    REDUCE,
    VIEW,
    WRITE,
    Node,
)
from treadle.graph.numbering import Moving, program_of
from treadle.graph.operations import cost_of
from treadle.graph.parts import is_part
from treadle.graph.product_groups import axes_of, factor_axes
from treadle.graph.program import Kind, Program, Reduce, Space, Step
from treadle.graph.reads import Place, Reads, Seen, identity_of
from treadle.graph.schedule import Plan
from treadle.graph.views import View, compose, finer, is_in_order, reshape, whole
from treadle.kernels.machine import machine_of
from treadle.runtime.arrays import packed_strides

MOST_STEPS = 200  # in a kernel: compile time grows
# What they may cost: a sine is much more code than an addition. Software drivers of GPUs take
# more than linear time for it.
_MOST_COST, _MOST_COST_IN_SOFTWARE = 2000, 200
_SCRATCH_BUFFERS = 2  # of reductions in parts
_WHOLE = "its result is needed as a whole, or in other axes"  # why a node is materialized
_IN_A_BOX = "a part of what is joined takes it from memory"
_FACTORS = (Space.FIRST, Space.SECOND)
_FREE = frozenset({CONSTANT, INDEX, VIEW})  # they cost a kernel nothing
_MOST_AXES = 12  # of a kernel whose loops were split
# What needs the axes of loops as they are.
_WHOLE_AXES = frozenset({CALL, JOIN, PRODUCT, REDUCE, WRITE})


class FinerLoops(Exception):
    """The kernel can follow a reshape if its loops are split: `shape` are their axes then."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.shape = shape


class Built(NamedTuple):
    """A kernel that was built: its program and what a launch needs; what of it the builder of
    groups may still want otherwise."""

    node: Node
    program: Program
    leaves: tuple[Node, ...]
    integers: tuple[int, ...]
    constants: tuple[Node, ...]
    moving: tuple[Moving, ...]
    product: Node | None
    factors: tuple[Node, ...]  # those of the product that its loads compute
    joined: tuple[Node, ...]
    reads_what_it_writes: bool  # a write: whether at other elements than it writes

    def is_too_large(self) -> bool:
        """Whether an array of it is larger than what the device binds."""
        most = self.node.device.limits.max_binding_size
        return any(bytes > most for bytes in memory_of(self.node, self.leaves))

    def cuts_rows(self) -> bool:
        """Whether an array is so large that a kernel would see rows of it in parts."""
        memory = memory_of(self.node, self.leaves)
        return cuts_rows(self.node.device, self.program, self.integers, memory)


def draft_of(
    plan: Plan,
    node: Node,
    rows: bool,
    part: int | None = None,
    split: tuple[int, ...] | None = None,
) -> Draft:
    """An empty kernel for a node, or for one of the parts of a joined array. `rows`: whether it may
    be one by rows (see `Loops`). `split` are the axes of its loops if they are not the node's."""
    device = node.device
    if split is not None:
        outer = split
    elif part is not None:
        outer = node.sources[part].shape
    else:
        outer = node.detail.shape if node.op == WRITE else node.shape
    reads = Reads(device.limits.max_buffers_per_kernel - 1)  # beside the output
    slow = machine_of(device).slow_to_compile
    return Draft(plan, node, part, Loops(device, outer, rows), reads, slow)


def build(draft: Draft) -> Built:
    """The kernel. Further nodes of the plan may be materialized then. TooManyBuffers if it has more
    than `draft.reads.most`, FinerLoops if it should have other loops."""
    plan, node = draft.plan, draft.node
    if node.op == WRITE:
        old, new = node.sources
        draft.result = _value(draft, _as_loops(draft, plan.original(new)))
        view = reshape(node.detail, draft.loops.outer)
        assert view is not None
        offset = view.offset + (old.array.offset if old.array is not None else 0)
        part = node if is_part(node) else None
        draft.reads.leaves.append(old)
        target = Place(len(draft.reads.types), view.strides, offset, part=part)
    elif draft.part is not None:
        source = plan.original(node.sources[draft.part])
        draft.result = _value(draft, _as_loops(draft, source))
        strides = packed_strides(node.shape)
        offset = sum(map(operator.mul, node.detail[draft.part], strides))
        view = reshape(View(source.shape, strides, offset), draft.loops.outer)
        assert view is not None
        target = Place(len(draft.reads.types), view.strides, offset)
    else:
        draft.result = _value(draft, _as_loops(draft, node))
        target = Place(len(draft.reads.types), packed_strides(draft.loops.outer), 0)
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
        tuple(_computed_factors(draft)),
        tuple(draft.joined),
        node.op == WRITE and _reads_what_it_writes(draft, target),
    )


def _as_loops(draft: Draft, node: Node) -> Seen:
    """A node of as many elements as the loops have, seen in their axes."""
    outer = draft.loops.outer
    return Seen(node, None if outer == node.shape else whole(outer))


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
    )  # those of a factor are in another space than the target


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

    needs: dict[Seen, Sequence[Seen]] = field(default_factory=dict)
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


def _needs(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """The sources whose elements a node's element is made of, as the kernel sees them."""
    node, view, space, part, first = seen
    if _is_leaf(draft, search, node):
        return ()
    other = _NEEDS.get(node.op)
    if other is not None:
        return other(draft, search, seen)
    draft.cost += cost_of(node.op, node.dtype.short, node.detail)
    original = draft.plan.original
    return [Seen(original(source), view, space, part, first) for source in node.sources]


def _needs_nothing(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    return ()


def _needs_of_view(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """What a view is of, seen through both that view and the one it is seen through."""
    node, view, space, part, first = seen
    own: View = node.detail
    composed = own if view is None else compose(view, own)
    if composed is None:
        assert view is not None
        _split_loops(draft, seen, view)
        draft.plan.materialize(node, "its axes can't be followed through this view")
        return ()
    base = draft.plan.original(node.sources[0])
    if is_part(node):
        return (Seen(base, composed, space, node, first),)
    return (Seen(base, _unless_whole(composed, base), space, part, first),)


def _split_loops(draft: Draft, seen: Seen, view: View) -> None:
    """FinerLoops if loops with more axes can follow a view, such as a reshape that merges the axes
    of a broadcast. Only maps have other axes than their result."""
    if seen.space != Space.OUTER or seen.first is not None or draft.loops.kind != Kind.MAP:
        return
    if view.shape != draft.loops.outer or not _is_of_maps(draft):
        return
    shape = finer(view, seen.node.detail)
    if shape is not None and len(shape) <= _MOST_AXES:
        raise FinerLoops(shape)


def _is_of_maps(draft: Draft) -> bool:
    """Whether all that a kernel computes could be seen in any axes of its loops."""
    plan, root = draft.plan, draft.node
    todo = [root] if root.op not in (WRITE, JOIN) else [plan.original(s) for s in root.sources]
    known = set(todo)
    while todo:
        node = todo.pop()
        if node.array is not None or (node is not root and node in plan.materialized):
            continue
        if node.op in _WHOLE_AXES:
            return False
        for source in node.sources:
            original = plan.original(source)
            if original not in known:
                known.add(original)
                todo.append(original)
    return True


def _needs_of_gather(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """The indices: the other source lies in memory."""
    return (seen._replace(node=draft.plan.original(seen.node.sources[1])),)


def _step(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    """The step that a node's element is, made of the steps of what it needs."""
    node = seen.node
    short = node.dtype.short
    if node.array is not None or (node is not draft.node and node in draft.plan.materialized):
        if node.op == CONSTANT:  # its number is known, though it lies in memory
            return _constant(draft, search, seen, sources)
        return draft.add(Step("load", (), short, draft.reads.access(seen)))
    other = _STEPS.get(node.op)
    if other is not None:
        return other(draft, search, seen, sources)
    return draft.add(Step(node.op, tuple(sources), short, node.detail))


def _constant(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    """A number that is a parameter: programs with other numbers are equal."""
    short = seen.node.dtype.short
    draft.constants.append(seen.node)
    draft.scalar_types.append(short)
    return draft.add(Step("scalar", (), short, len(draft.constants) - 1))


def _source(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    """Views and copies cost nothing."""
    return sources[0]


def _index(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    return draft.add(Step("index", (), seen.node.dtype.short, draft.reads.index(seen)))


def _reduce(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    kind = Reduce(seen.node.detail[0])
    step = Step("reduce", tuple(sources), seen.node.dtype.short, kind)
    known = search.reductions.get(step)
    if known is None:
        known = search.reductions[step] = draft.add(step)
    return known


def _gather(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    source = draft.plan.stored(seen.node.sources[0])
    offset = source.array.offset if source.array is not None else 0
    axes = len(draft.loops.axes_of(seen.space))
    buffer = draft.reads.buffer_of(source)
    access = draft.reads.add(Place(buffer, (0,) * axes, offset, seen.space))
    step = draft.add(Step("gather", tuple(sources), seen.node.dtype.short, None))
    draft.gathers.append(Gather(step, access, source.size))
    return step


def _unless_whole(view: View, base: Node) -> View | None:
    """A view, or None if it is its base: what is seen in two ways that are one is computed once."""
    own = whole(base.shape)
    if len(view.shape) != len(own.shape) or view.strides != own.strides:  # extents are asked last
        return view
    return None if view == own else view


# --- joined arrays --------------------------------------------------------------------------------


def _needs_of_join(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """The parts of a joined array that are seen, each in its box of the loops."""
    node, view, space, _, first = seen
    parts = sights(node, view, first)
    if not parts:
        draft.plan.materialize(node, "its parts are in no boxes of this kernel's loops")
        return ()
    draft.joined.append(node)
    search.bounds[seen] = [each.bounds for each in parts]
    several_boxes = any(search.bounds[seen])
    found: list[Seen] = []
    for each in parts:
        part = draft.plan.original(each.part)
        where = each.first if several_boxes else first
        found.append(Seen(part, _unless_whole(each.view, part), space, None, where))
    return found


def _join(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    if len(sources) == 1:
        return sources[0]
    axes = len(draft.loops.axes_of(seen.space))
    parts = [
        (source, tuple([(draft.reads.index_along(b.axis, axes, seen.space), *b[1:]) for b in own]))
        for source, own in zip(sources, search.bounds[seen], strict=True)
    ]
    number = draft.add(Step("join", (), seen.node.dtype.short, tuple(parts)))
    draft.joins.append(number)
    return number


# --- products -------------------------------------------------------------------------------------


def _needs_of_product(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """The factors that are computed where the product loads them. The library's kernel reads those
    that lie in memory."""
    node, plan = seen.node, draft.plan
    if seen.first is not None:
        plan.materialize(node, _IN_A_BOX)
        return ()
    if not _becomes_product(draft, seen):
        several = draft.product is not None
        plan.materialize(node, "a kernel multiplies matrices once" if several else _WHOLE)
        return ()
    found: list[Seen] = []
    for position, space in enumerate(_FACTORS):
        factor = plan.original(node.sources[position])
        if factor.array is None and factor not in plan.materialized:
            axes = factor_axes(factor.shape, node.detail, position)
            draft.loops.factors[space] = axes.view.shape
            draft.factors[space] = axes
            found.append(Seen(factor, _unless_whole(axes.view, factor), space))
    return found


def _computed_factors(draft: Draft) -> list[Node]:
    if draft.product is None:
        return []
    factors = map(draft.plan.original, draft.product.sources)
    return [f for f, s in zip(factors, _FACTORS, strict=True) if s in draft.factors]


def _becomes_product(draft: Draft, seen: Seen) -> bool:
    """Whether this kernel may be a product and its epilogue."""
    node, view, space, *_ = seen
    in_order = view is None or is_in_order(view)
    if draft.product is not None or draft.loops.kind != Kind.MAP or space != Space.OUTER:
        return draft.product is node and in_order and space == Space.OUTER
    if not in_order or axes_of(draft.loops.outer, node.detail) is None:
        return False
    draft.product, draft.loops.kind = node, Kind.PRODUCT
    return True


def _product(draft: Draft, search: _Search, seen: Seen, sources: Sequence[int]) -> int:
    if draft.product_step < 0:
        reads = draft.reads
        reads.limit(reads.most - 1)  # one more for sums of parts of the inner axis
        draft.prologues = dict(zip(draft.factors, sources, strict=True))
        buffers = [
            None if space in draft.factors else reads.buffer_of(draft.plan.original(factor))
            for space, factor in zip(_FACTORS, seen.node.sources, strict=True)
        ]
        step = Step("product", tuple(sources), seen.node.dtype.short, tuple(buffers))
        draft.product_step = draft.add(step)
    return draft.product_step


# --- reductions -----------------------------------------------------------------------------------


def _needs_of_reduction(draft: Draft, search: _Search, seen: Seen) -> Sequence[Seen]:
    """What a reduction reduces, if this kernel can do it."""
    node, loops = seen.node, draft.loops
    if seen.first is not None:
        draft.plan.materialize(node, _IN_A_BOX)
        return ()
    view = reduced_view(loops, node, seen.view, seen.space)
    if view is None:
        draft.plan.materialize(node, _WHOLE)
        return ()
    draft.reads.limit(node.device.limits.max_buffers_per_kernel - 1 - _SCRATCH_BUFFERS)
    source = draft.plan.original(node.sources[0])
    space = Space.INNER if loops.kind == Kind.REDUCE else Space.OUTER
    return (Seen(source, _unless_whole(view, source), space),)


# --- nodes that are not elementwise ---------------------------------------------------------------

_NEEDS: dict[str, Callable[[Draft, _Search, Seen], Sequence[Seen]]] = {
    CONSTANT: _needs_nothing,
    INDEX: _needs_nothing,
    VIEW: _needs_of_view,
    GATHER: _needs_of_gather,
    JOIN: _needs_of_join,
    REDUCE: _needs_of_reduction,
    PRODUCT: _needs_of_product,
}
_STEPS: dict[str, Callable[[Draft, _Search, Seen, Sequence[int]], int]] = {
    CONSTANT: _constant,
    VIEW: _source,
    COPY: _source,
    INDEX: _index,
    GATHER: _gather,
    JOIN: _join,
    PRODUCT: _product,
    REDUCE: _reduce,
}
