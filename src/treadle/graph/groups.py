"""From one node of a plan to one kernel: its program, its buffers and its numbers.

A group is built (`building`) by going from the node that is stored to its sources, each seen
through the view that leads to it, until there is something that lies in memory. What can't be done
inside this kernel after all (a view that strides can't express, one reduction too many, too many
buffers) is materialized: computed by a kernel of its own, before.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.errors import LaunchError
from treadle.graph.building import FinerLoops, build, draft_of
from treadle.graph.node import CALL, CONSTANT, INDEX, JOIN, PRODUCT, Node
from treadle.graph.numbering import Moving
from treadle.graph.product_groups import is_of_a_library, why_apart
from treadle.graph.program import Kind, Program
from treadle.graph.reads import TooManyBuffers
from treadle.graph.schedule import Plan


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


def groups_of(plan: Plan) -> list[Group]:
    """The kernels of a plan, in the order in which they run. They are built from the last one back:
    what turns out to be impossible inside a kernel is materialized then, and still gets its own."""
    found: list[Group] = []
    for node in reversed(plan.order):
        if node in plan.materialized and node not in plan.same:
            found.append(_group(plan, node))  # noqa: PERF401  it adds to `materialized`
    found.reverse()
    return found


def _group(plan: Plan, node: Node) -> Group:
    """The kernel that computes a node of a plan. Further nodes of the plan may be materialized."""
    reason = plan.reasons.get(node, "it is asked for")
    if node.op == JOIN:
        parts = [
            _built(plan, node, f"it is part {at} of {len(node.sources)}", at - 1)
            for at, part in enumerate(node.sources, 1)
            if part.size
        ]
        return _of_parts(node, parts, reason)
    if node.op == CALL or is_of_a_library(node):
        seen = plan.stored if node.op == CALL else plan.original
        sources = tuple(seen(source) for source in node.sources)
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
    """The kernel of a node, or of one part of a joined array. Where one turns out to be impossible
    something is materialized, and it is built again without that."""
    rows, split = True, None
    root = node if part is None else plan.original(node.sources[part])
    while True:
        draft = draft_of(plan, node, rows, part, split)
        try:
            built = build(draft)
        except FinerLoops as error:
            split = error.shape
            continue
        except TooManyBuffers:
            most = node.device.limits.max_buffers_per_kernel
            why = f"{node.device.id} binds {most} arrays at most"
            _materialize_some(plan, root, draft.reads.most, why)
            continue
        if built.reads_what_it_writes:
            new = plan.original(node.sources[1])
            plan.materialize(new, "it reads elements that it writes elsewhere")
            continue
        program = built.program
        if program.kind == Kind.PRODUCT and built.is_too_large():
            assert built.product is not None
            apart = built.factors or (() if node.op == PRODUCT else (built.product,))
            for each in apart:
                plan.materialize(each, "a kernel would not see all of its arrays")
            if apart:
                continue
        if built.product is not None and node.op != PRODUCT and not built.factors:
            apart_since = why_apart(built.product, program.steps)
            if apart_since is not None:
                plan.materialize(built.product, apart_since)
                continue
        if built.joined and built.is_too_large():
            for join in built.joined:
                plan.materialize(join, "a kernel would not see all of the arrays that are joined")
            continue
        if program.kind == Kind.ROWS and rows and built.cuts_rows():
            rows = False
            continue
        return Group(
            node, program, built.leaves, built.integers, built.constants, reason, built.moving
        )


def _materialize_some(plan: Plan, root: Node, most: int, why: str) -> None:
    """Materialize parts of an expression, so that no kernel of it reads more than `most` arrays."""
    read: dict[Node, frozenset[Node]] = {}  # what a node's kernel would read for it
    stack = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in read:
            continue
        if node.array is not None or (node is not root and node in plan.materialized):
            read[node] = frozenset((node,))
        elif node.op in _NO_MEMORY:
            read[node] = frozenset()
        elif not ready:
            stack.append((node, True))
            stack += [(plan.original(source), False) for source in node.sources]
        else:
            sources = {plan.original(source) for source in node.sources}
            together = frozenset[Node]().union(*(read[source] for source in sources))
            if len(together) > most and node.op == JOIN and node is not root:
                plan.materialize(node, why)
                together = frozenset((node,))
            while len(together) > most:
                largest = max(sources, key=lambda source: len(read[source]))
                if len(read[largest]) < 2:
                    raise LaunchError(f"one operation ({node.op}) on too many arrays: {why}")
                plan.materialize(largest, why)
                read[largest] = frozenset((largest,))
                together = frozenset[Node]().union(*(read[source] for source in sources))
            read[node] = together


_NO_MEMORY = frozenset({CONSTANT, INDEX})
