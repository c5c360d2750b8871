"""Arrays without values: what a function is traced on that is to run for many examples at once.

Within `td.vmap` a function sees nodes PLACEHOLDER, with the shape of one example. What it makes of
them is a graph as any other, which cannot be computed; it is then made anew with an axis for the
examples. A `Traced` notes what the nodes alone do not tell for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import ValuesUnknown
from treadle.graph.history import (
    Derivative,
    History,
    Leaf,
    is_differentiable,
    make_part,
    recording,
)
from treadle.graph.node import PLACEHOLDER, Node


@dataclass(eq=False, slots=True)
class Composite:
    """Nodes that are the results of one operation for derivatives (`record_composite`)."""

    history: History
    derivative: Derivative
    nodes: Sequence[Node]
    sources: Sequence[Node]
    options: Any
    extra: Sequence[Node]


class Traced:
    """What is known of a function that runs on placeholders of one of so many examples."""

    def __init__(self, count: int, randomness: str) -> None:
        self.count = count
        self.randomness = randomness
        self.outer: Traced | None = within.get()
        self.depth: int = 0 if self.outer is None else self.outer.depth + 1
        # The arrays that placeholders stand for, with the examples' axis in front.
        self.bound: dict[Node, Node] = {}
        self.composites: dict[Node, Composite] = {}
        self.by_history: dict[History, Composite] = {}
        # Products of arrays whose axes have names: both factors with their names, those kept.
        self.contractions: dict[Node, tuple[Any, Any, Any]] = {}
        # Nodes that have another's history: what was written without recording.
        self.followed: dict[Node, Node] = {}

    def note(self, group: Composite) -> None:
        """Several nodes are one operation."""
        self.by_history[group.history] = group
        for node in group.nodes:
            self.composites[node] = group

    def leads_out(self, node: Node) -> bool:
        """Whether gradients of a node flow to an array that a placeholder stands for."""
        ends = {each.history for each in self.bound if each.history is not None}
        todo = [node.history] if node.history is not None and ends else []
        seen = set(todo)
        while todo:
            made = todo.pop()
            if made in ends:
                return True
            for edge in made.edges:
                if edge is not None and edge not in seen:
                    seen.add(edge)
                    todo.append(edge)
        return False

    def placeholder(self, stack: Node) -> Node:
        """What stands for one example of an array whose first axis they lie along."""
        made = Node(PLACEHOLDER, (), stack.shape[1:], stack.dtype, stack.device)
        if stack.history is not None and recording.get():
            made.history = Leaf(made)
        self.bound[made] = stack
        return made


# The innermost function that is traced now.
within: ContextVar[Traced | None] = ContextVar("within", default=None)


def record_composite(
    derivative: Derivative,
    nodes: Sequence[Node],
    sources: Sequence[Node],
    options: Any = None,
    extra: Sequence[Node] = (),
) -> None:
    """Give nodes, which were computed from the sources without recording, a history as the results
    of one operation. `extra` are further values that its derivative needs."""
    nodes_with = [node for node in nodes if is_differentiable(node)]
    if not nodes_with:
        return
    made = History(derivative, nodes[0], sources, options, extra, parts=len(nodes))
    if len(nodes) == 1:
        nodes[0].history = made
    else:
        for number, node in enumerate(nodes):
            if is_differentiable(node):
                make_part(made, node, number)
    if (traced := within.get()) is not None:
        traced.note(Composite(made, derivative, nodes, sources, options, extra))


def without_values(nodes: Sequence[Node]) -> set[Node]:
    """Those of some nodes that are made of placeholders, and so are never computed."""
    known: dict[Node, bool] = {}
    todo = list(nodes)
    while todo:
        node = todo[-1]
        sources = () if node.array is not None else node.sources
        waiting = [each for each in sources if each not in known]
        if waiting:
            todo += waiting
            continue
        known[todo.pop()] = node.op == PLACEHOLDER or any(known[each] for each in sources)
    return {node for node in nodes if known[node]}


def values_unknown() -> ValuesUnknown:
    """What is wrong with asking for a placeholder's values."""
    return ValuesUnknown(
        "within td.vmap the values of arrays are not known, only their shapes: a function that is "
        "mapped cannot read them (item, numpy, if x > 0, a mask as an index) or pass them to a "
        "kernel. Use td.where for decisions, or call the function for one example after another"
    )
