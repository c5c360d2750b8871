"""A traced function's graph rebuilt for all examples, with their axis in front of each node that
depends on a placeholder.

Elementwise operations broadcast, views get one more stride, reductions have their axes shifted,
products of arrays with named axes one more name. Kernels that are not fused ones have rules in
`batched_calls.py`. What is one operation for derivatives stays one: its derivative is traced for
one example, and made anew in the same way (`Stacked`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

from treadle.autograd.batched_calls import call_for_all, offset_places
from treadle.autograd.engine import fitted
from treadle.autograd.partial_gradients import Gradients, Placed
from treadle.graph import history as histories
from treadle.graph import views
from treadle.graph.calls import Call
from treadle.graph.history import (
    PART,
    RESULT,
    Derivative,
    History,
    Leaf,
    make_part,
    recorded,
    recording,
)
from treadle.graph.node import (
    CALL,
    CONSTANT,
    COPY,
    GATHER,
    JOIN,
    REDUCE,
    VIEW,
    WRITE,
    Node,
    view_of,
)
from treadle.graph.placeholders import Composite, Traced, record_composite, within
from treadle.graph.views import View, is_whole
from treadle.tensor.contraction import contracted
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node


def stacked(node: Node, count: int) -> Node:
    """A node that is the same for all examples, broadcast along their axis."""
    view = views.whole(node.shape)
    return view_of(node, View((count, *node.shape), (0, *view.strides), 0))


class Batched:
    """The nodes of a trace for all examples."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._count = traced.count
        self._made: dict[Node, Node] = dict(traced.bound)
        self._all: set[Node] = set(traced.bound)  # those that have the examples' axis
        self._groups: dict[Composite, History | None] = {}
        self._calls: dict[int, Sequence[Node]] = {}

    def has_axis(self, node: Node) -> bool:
        """Whether a node, once it is made, differs from example to example."""
        return node in self._all

    def make(self, roots: Iterable[Node]) -> None:
        """Make nodes, and what they are made of."""
        todo: list[Node | Composite] = list(roots)
        while todo:
            item = todo[-1]
            if item in self._groups or item in self._made:
                todo.pop()
                continue
            missing = [
                each
                for each in self._needed(item)
                if each not in self._groups and each not in self._made
            ]
            if missing:
                todo += missing
                continue
            todo.pop()
            if isinstance(item, Composite):
                self._make_group(item)
            else:
                self._make(item)

    def __getitem__(self, node: Node) -> Node:
        return self._made[node]

    def _needed(self, item: Node | Composite) -> list[Node | Composite]:
        if isinstance(item, Composite):
            return self._below(item)  # type: ignore[return-value]
        traced = self._traced
        if (group := self._group_of(item)) is not None:
            return [group]
        found: list[Node | Composite] = [*self._sources(item)]
        if item in traced.followed:
            found.append(traced.followed[item])
        group = self._of_part(item)
        if group is not None:
            found.append(group)
        return found

    def _sources(self, node: Node) -> Sequence[Node]:
        """The sources of a node; of a product the factors, not their bases."""
        contraction = self._traced.contractions.get(node)
        return node.sources if contraction is None else [each for each, _ in contraction[:2]]

    def _below(self, group: Composite) -> list[Node]:
        found = [*group.sources, *group.extra]
        for node in group.nodes:
            found += self._sources(node)
        return found

    def _group_of(self, node: Node) -> Composite | None:
        """The operation of which a node is a result, but for products, which stay such."""
        group = self._traced.composites.get(node)
        is_product = group is not None and group.derivative is histories.derivatives["contracted"]
        return None if is_product else group

    def _of_part(self, node: Node) -> Composite | None:
        """The operation of which a node is a result, seen once more."""
        made = node.history
        if made is None or made.derivative is not PART or node in self._traced.followed:
            return None
        whole = made.edges[0]
        return None if whole is None else self._traced.by_history.get(whole)

    # --- nodes -----------------------------------------------------------------------------------

    def _make(self, node: Node) -> None:
        traced = self._traced
        if not any(self.has_axis(source) for source in self._sources(node)):
            self._made[node] = node
            return
        with recorded(recording.get() and node.history is not None):
            made = self._operation(node)
        if node in traced.followed:
            made.history = self._made[traced.followed[node]].history
        elif node.history is None or isinstance(node.history, Leaf):
            made.history = None
        elif (group := self._of_part(node)) is not None:
            whole = self._groups[group]
            made.history = None
            if whole is not None:
                make_part(whole, made, node.history.options)
        self._made[node] = made
        self._all.add(node)

    def _contract(self, node: Node) -> Node:
        (left, left_names), (right, right_names), kept = self._traced.contractions[node]
        name = f"example {self._traced.depth}"
        first, second = (
            (self._made[each], (name, *names) if self.has_axis(each) else tuple(names))
            for each, names in ((left, left_names), (right, right_names))
        )
        return contracted(first, second, (name, *kept))._node

    def _with_axis(self, node: Node) -> Node:
        made = self._made[node]
        return made if self.has_axis(node) else stacked(made, self._count)

    def _operation(self, node: Node) -> Node:
        """A node's operation for all examples."""
        if node in self._traced.contractions:
            return self._contract(node)
        op, sources = node.op, node.sources
        shape = (self._count, *node.shape)
        if op == VIEW:
            view: View = node.detail
            size = sources[0].size
            return view_of(self._made[sources[0]], View(shape, (size, *view.strides), view.offset))
        if op == REDUCE:
            kind, axes, *rest = node.detail
            detail = (kind, tuple([axis + 1 for axis in axes]), *rest)
            return Node(op, (self._made[sources[0]],), shape, node.dtype, node.device, detail)
        if op == GATHER:
            return self._gather(node)
        if op == JOIN:
            begins = tuple([(0, *begin) for begin in node.detail])
            parts = tuple([self._with_axis(source) for source in sources])
            return Node(op, parts, shape, node.dtype, node.device, begins)
        if op == WRITE:
            view = node.detail
            target = self._with_axis(sources[0])
            if target.array is not None or target.op in (VIEW, CONSTANT):
                # Not the memory of an argument, nor what all examples share.
                target = Node(COPY, (target,), target.shape, target.dtype, target.device)
            seen = View((self._count, *view.shape), (sources[0].size, *view.strides), view.offset)
            pair = (target, self._with_axis(sources[1]))
            return Node(op, pair, shape, node.dtype, node.device, seen)
        if op == CALL:
            return self._call(node)
        given = tuple([self._with_axis(source) for source in sources])
        return Node(op, given, shape, node.dtype, node.device, node.detail)

    def _gather(self, node: Node) -> Node:
        array, index = node.sources
        shape = (self._count, *node.shape)
        if not self.has_axis(array):
            pair = (self._made[array], self._with_axis(index))
            return Node(GATHER, pair, shape, node.dtype, node.device)
        whole = self._made[array]
        if whole.op == VIEW and not is_whole(whole.detail, whole.sources[0].shape):
            whole = Node(COPY, (whole,), whole.shape, whole.dtype, whole.device)
        places = offset_places(self._with_axis(index), array.size, whole.size)
        return Node(GATHER, (whole, places), shape, node.dtype, node.device)

    def _call(self, node: Node) -> Node:
        is_one = isinstance(node.detail, Call)
        key = id(node) if is_one else id(node.detail)
        made = self._calls.get(key)
        siblings = [node] if is_one else [each() for each in node.detail.nodes]
        if made is None:
            sources = [(self._made[each], self.has_axis(each)) for each in node.sources]
            made = call_for_all(node, siblings, sources, self._count)
            self._calls[key] = made
        return made[siblings.index(node)]

    # --- operations of several nodes -------------------------------------------------------------

    def _make_group(self, group: Composite) -> None:
        """Make the results of what is one operation, and give them their history."""
        if not any(self.has_axis(each) for each in self._below(group)):
            for node in group.nodes:
                self._made[node] = node
            self._groups[group] = None
            return
        nodes = []
        for node in group.nodes:
            with recorded(False):
                if any(self.has_axis(source) for source in self._sources(node)):
                    made = self._operation(node)
                else:
                    made = stacked(self._made_without_group(node), self._count)
            made.history = None
            self._made[node] = made
            self._all.add(node)
            nodes.append(made)
        sources = [self._made[each] for each in group.sources]
        self._groups[group] = None
        if recording.get() and any(each.history is not None for each in sources):
            flags = [self.has_axis(each) for each in (*group.sources, *group.extra)]
            derivative = Stacked(group, flags, self._count)
            extra = [self._made[each] for each in group.extra]
            record_composite(derivative, nodes, sources, None, extra)
            first = next(each.history for each in nodes if each.history is not None)
            assert first is not None
            self._groups[group] = first if len(nodes) == 1 else first.edges[0]

    def _made_without_group(self, node: Node) -> Node:
        """A result that does not depend on the examples, unchanged."""
        return Node(node.op, node.sources, node.shape, node.dtype, node.device, node.detail)


# --- derivatives ---------------------------------------------------------------------------------


class _Edge:
    """What stands for the history of a source while a derivative is traced."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device


class _Made:
    """What stands for a history of one example: its values are placeholders."""

    def __init__(self, made: History) -> None:
        self.derivative, self.options, self.parts = made.derivative, made.options, made.parts
        self.shape, self.dtype, self.device = made.shape, made.dtype, made.device
        self.edges: Sequence[_Edge | None] = ()
        self.values: dict[int, Node] = {}

    def value(self, position: int) -> Node:
        return self.values[position]

    def part(self, number: int, position: int) -> Node:
        return self.values[position]


class Stacked:
    """The derivative of an operation that was made for all examples: that of one, traced and made
    for all as well."""

    def __init__(self, group: Composite, flags: Sequence[bool], count: int) -> None:
        self.name = group.derivative.name
        self._derivative: Derivative = group.derivative
        self._like = _Made(group.history)
        self._flags = flags
        self._count = count
        self._needs = tuple(group.history.needs)
        self._shapes = [each.shape for each in group.sources]
        self._extra = range(len(group.sources), len(group.sources) + len(group.extra))
        self._results = [(each.shape, each.dtype, each.device) for each in group.nodes]

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """What the derivative of one example needs."""
        return self._needs

    def backward(
        self, made: History, gradients: Sequence[Tensor | None]
    ) -> Iterable[tuple[History | None, Any]]:
        """The gradients of the sources; of what all examples share, the sum."""
        traced = Traced(self._count, "error")
        edges = [
            None if edge is None else _Edge(shape, edge.dtype, edge.device)
            for edge, shape in zip(made.edges, self._shapes, strict=True)
        ]
        values: dict[int, Node] = {}
        for position in (*self._needs, *self._extra):
            value = made.value(position)
            is_stack = position == RESULT or self._flags[position]
            values[position] = traced.placeholder(value) if is_stack else value
        given = [
            None if each is None else from_node(traced.placeholder(each._node))
            for each in gradients
        ]
        token = within.set(traced)
        try:
            stand_in: Any = copy(self._like)
            stand_in.edges, stand_in.values = tuple(edges), values
            found: dict[int, Gradients] = {}
            backward = self._derivative.backward  # type: ignore[attr-defined]
            for edge, gradient in backward(stand_in, given):
                if edge is not None and gradient is not None:
                    position = edges.index(edge)
                    found.setdefault(position, Gradients()).add(_fitted(gradient, edge))
            totals = {}
            for position, each in found.items():
                edge = edges[position]
                assert edge is not None
                total = each.total(edge.shape, edge.dtype, edge.device)
                assert total is not None
                totals[position] = total._node
        finally:
            within.reset(token)
        batched = Batched(traced)
        batched.make(totals.values())
        for position, node in totals.items():
            gradient = from_node(batched[node])
            if not batched.has_axis(node):
                gradient = from_node(stacked(batched[node], self._count))
            yield made.edges[position], _summed(gradient, self._flags[position])


def _fitted(gradient: Any, edge: Any) -> Any:
    return gradient if isinstance(gradient, Placed) else fitted(gradient, edge)


def _summed(gradient: Tensor, has_axis: bool) -> Tensor:
    return gradient if has_axis else total(gradient, axis=0)
