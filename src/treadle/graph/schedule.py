"""Which nodes become one kernel.

A plan is made from the nodes that are wanted (the roots) down to what is computed already. A node
is materialized, that is, computed by a kernel of its own, if it is a root, if it is of a kind that
no kernel can have inside (a sort, a write), or if several kernels would need it and it is expensive
to compute twice. All else is computed inside the kernels of its readers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from treadle.core.sizes import is_size
from treadle.graph.composites import expand
from treadle.graph.joins import MOST_PARTS
from treadle.graph.node import (
    CALL,
    COMPOSITE,
    CONSTANT,
    GATHER,
    INDEX,
    JOIN,
    PRODUCT,
    REDUCE,
    VIEW,
    WRITE,
    Node,
    pending_readers,
)
from treadle.graph.node_sizes import key_of_number
from treadle.graph.operations import cost_of
from treadle.graph.product_groups import why_kept
from treadle.graph.views import is_in_order, is_whole, same_shape
from treadle.kernels.launching import serial_threads

# The operations that may be done again in a second kernel rather than materialized. A GPU does
# some hundred in the time that it takes to write and read a number.
_CHEAP = 4
_CHEAP_ON_GPUS = 40
_FEW_READ = 2  # arrays that may be read again, rather than the one that is made of them
_EXPENSIVE = (REDUCE, PRODUCT)
_EXTREMES = ("max", "min")  # reductions whose result is one of the values
_OPAQUE = (CALL, WRITE, PRODUCT)  # they compute nothing of their sources
_SEEN_IN_ORDER = (CALL, GATHER)  # they take the elements of a source in order, in any shape
_SHARED = -1  # several kernels need it
_LATER = "it is needed later, by a derivative or by what is not computed yet"
_MOST_EXPENSIVE = 1 << 20
_MOST_NESTED = 4  # joined arrays in each other
_BROADCAST = 8  # what is broadcast to so many times its elements is materialized, not its readers
_MOST_IN_LOADS = 40  # operations of an element that a product computes where it loads a factor
_COST_OF_A_BYTE = 8  # operations that take as long on a GPU as a byte from memory
_TILE = 64  # rows or columns of a product, for which a factor is loaded once
_CHEAP_FACTOR = 1  # operations of a factor that each row of a reduction computes again


class Plan:
    """Pending nodes in order (sources first), and which are computed by themselves."""

    def __init__(self, roots: Iterable[Node]) -> None:
        self.roots = list(dict.fromkeys(roots))
        self.materialized: set[Node] = set(self.roots)
        self.order: list[Node] = []
        self.same: dict[Node, Node] = {}  # a node that computes what an earlier one does
        self.reasons: dict[Node, str] = {}  # why a node is materialized, for people
        self.overwritten: set[Node] = set()  # a write is made of them, and changes what they read
        self._sort()
        self._find_repeated()
        self._assign()

    def materialize(self, node: Node, reason: str) -> None:
        """Have a node computed by itself. While groups are built: only a source of theirs, whose
        own group comes later (`groups.groups_of`)."""
        if node not in self.materialized:
            self.materialized.add(node)
            self.reasons[node] = reason

    def original(self, node: Node) -> Node:
        """The node that computes what this one does."""
        return self.same.get(node, node)

    def stored(self, node: Node) -> Node:
        """The node in whose memory the elements of a source lie, in order, for what takes it from
        there: of a reshape its base."""
        node = self.original(node)
        while node.op == VIEW and node.array is None and node not in self.materialized:
            base = self.original(node.sources[0])
            if node.size != base.size or not is_in_order(node.detail):
                break
            node = base
        return node

    # --- order -----------------------------------------------------------------------------------

    def _sort(self) -> None:
        """All pending nodes, sources first. What reads an array comes before what writes it. Else
        they are in the order in which they were made, so that memory is needed as the program says:
        a backward pass lets go of what the forward pass kept step by step."""
        late = False  # whether something that reads was made after what writes
        done: set[Node] = set()
        order = self.order
        stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(self.roots)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
                continue
            if node in done or node.array is not None:
                continue
            done.add(node)
            if node.op == COMPOSITE:
                expand(node)
            stack.append((node, True))
            stack += [(source, False) for source in node.sources if source.array is None]
            if node.op == WRITE:
                for reader in pending_readers(node.sources[0]):
                    if reader is node:
                        continue
                    if self._is_inside(reader, node):
                        self.overwritten.add(reader)
                        continue
                    self.materialized.add(reader)
                    self.reasons[reader] = "its source is written next"
                    stack.append((reader, False))
                    late = late or reader.serial > node.serial
        if not late:
            order.sort(key=lambda node: node.serial)

    @staticmethod
    def _is_inside(reader: Node, write: Node) -> bool:
        """Whether a reader is a part of the values that are written."""
        seen: set[Node] = set()
        todo = [write.sources[1]]
        while todo:
            node = todo.pop()
            if node is reader:
                return True
            if node not in seen and node.array is None:
                seen.add(node)
                todo += node.sources
        return False

    # --- common subexpressions -------------------------------------------------------------------

    def _find_repeated(self) -> None:
        """Nodes that compute the same are computed once."""
        if len(self.order) < 2:
            return
        written = {node.sources[0] for node in self.order if node.op == WRITE}
        first: dict[object, Node] = {}
        same = self.same
        for node in self.order:
            if node in self.materialized or node in written or node.op in (WRITE, CALL):
                continue
            if node.op == VIEW and is_whole(node.detail, node.sources[0].shape):
                same[node] = same.get(node.sources[0], node.sources[0])
                continue
            sources = tuple([id(same.get(source, source)) for source in node.sources])
            detail = key_of_number(node.detail) if node.op == CONSTANT else node.detail
            key = (node.op, sources, detail, node.shape, node.dtype.short)
            found = first.setdefault(key, node)
            if found is not node:
                same[node] = found

    # --- kernels ---------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Materialize what several kernels need, unless it is cheap."""
        group: dict[Node, int] = {}
        reducing: set[int] = set()  # groups with reductions
        self._materialize_kernels_of_their_own()
        self._materialize_compared()
        weight = self._weights(self._repeated())
        self._materialize_rows_of_reductions()
        self._materialize_broadcast_factors(weight)
        later = wanted_later(self.order)
        on_gpu = bool(self.roots) and not serial_threads(self.roots[0].device)
        cheap = _CHEAP_ON_GPUS if on_gpu else _CHEAP
        broad = self._read_by_many() if on_gpu else set()
        for node in reversed(self.order):
            if node in self.same:
                continue
            mine = group.get(node, _SHARED)
            if node.op == PRODUCT and mine in reducing:
                self.materialize(node, "a reduction reads it")
            elif node not in self.materialized and (mine == _SHARED or node.saved or node in later):
                target = self._least_of(node)
                is_expensive = weight[node] > cheap or node in broad
                if is_expensive and (mine == _SHARED or node.saved):
                    self.materialize(
                        target, "several kernels read it" if mine == _SHARED else _LATER
                    )
                elif weight[node] >= _MOST_EXPENSIVE:
                    self.materialize(target, _LATER)
                elif node in self.overwritten:
                    self.materialize(node, "its source is written before it is read again")
            if node in self.materialized:
                mine = id(node)
            if node.op == REDUCE:
                reducing.add(mine)
            in_parts = node.op == JOIN and node in self.materialized and not self._is_of_one(node)
            for source in map(self.original, node.sources):
                if source.array is not None:
                    continue
                if in_parts:  # each part is a kernel of its own
                    mine = id(source)
                known = group.get(source)
                group[source] = mine if known is None or known == mine else _SHARED

    def _least_of(self, node: Node) -> Node:
        """What to keep of a node that is computed once: of a view its base, since a view costs
        nothing, and of a cast to more bytes what is cast."""
        if node.op == VIEW:
            node = self.original(node.sources[0])
        while node.op in (VIEW, "cast"):
            source = self.original(node.sources[0])
            narrower = source.dtype.itemsize <= node.dtype.itemsize and source.dtype.kind == "float"
            if source.array is not None or not narrower or source.size != node.size:
                break
            node = source
        return node

    def _is_of_one(self, join: Node) -> bool:
        """Whether the parts of a joined array are views of one array, as those of a roll are."""
        bases = {
            self.original(part.sources[0]) if part.op == VIEW else part
            for part in map(self.original, join.sources)
        }
        return len(bases) == 1

    def _materialize_kernels_of_their_own(self) -> None:
        """Materialize what is a kernel of its own, whatever reads it, and what such kernels take
        from memory. What follows from it at little cost then is cheap."""
        for node in self.order:
            if node in self.same:
                continue
            for position, source in enumerate(map(self.original, node.sources)):
                if source.array is not None or not must_lie_in_memory(node, position):
                    continue
                if node.op in _SEEN_IN_ORDER:
                    source = self.stored(source)
                    if source.array is not None:
                        continue
                if node.op != PRODUCT or not self._is_computed_in_loads(node, position, source):
                    self.materialize(source, f"{node.op} takes it from memory")
            if node.op == WRITE:
                self.materialize(node, "it writes an array")
            elif node.op == CALL:
                self.materialize(node, "it is a kernel of its own")
            elif node.op == JOIN and len(node.sources) > MOST_PARTS:
                self.materialize(node, f"a kernel chooses from {MOST_PARTS} parts at most")
            elif node.op == PRODUCT and (why := why_kept(node)) is not None:
                self.materialize(node, why)

    def _materialize_compared(self) -> None:
        """Materialize values whose greatest or least is compared with them later, as the gradient
        of a maximum does: another kernel may round them otherwise, a * b + c in one instruction or
        in two, and none would be equal to it."""
        for node in self.order:
            if node in self.same or node.op not in (REDUCE, "equal"):
                continue
            if node.op == REDUCE:
                if node.detail[0] not in _EXTREMES:
                    continue
                source = self.original(node.sources[0])
                inner = self._base(source)
                # The history of an infinite norm is that of the whole, and keeps what abs takes.
                is_kept = node.history is not None and node.history.keeps(source)
                is_kept = is_kept or (source.op == "abs" and inner.saved > 0)
                compared = {inner} if is_kept else set()
            else:
                both = [self._base(one) for one in node.sources]
                extremes = [one for one in both if one.op == REDUCE and one.detail[0] in _EXTREMES]
                wanted = {self._base(one.sources[0]) for one in extremes}
                compared = wanted.intersection(both)
            for one in compared:
                if one.array is None and one.dtype.kind == "float":
                    self.materialize(one, "a maximum is compared with it")

    def _base(self, node: Node) -> Node:
        """What a node is a view, a cast or the magnitude of."""
        node = self.original(node)
        while node.op in (VIEW, "cast", "abs") and node.array is None:
            node = self.original(node.sources[0])
        return node

    def _is_computed_in_loads(self, product: Node, position: int, factor: Node) -> bool:
        """Whether a pending factor of a product is computed where the product loads it: if it is
        elementwise and cheap, and if less memory is moved then, though each tile of the result's
        rows or columns computes it again."""
        if factor in self.materialized or why_kept(product) is not None:
            return False
        if factor.op == VIEW and (product.detail.factors or product.dtype.itemsize == 1):
            return False  # it is turned for the product (`kernels.product.turned_first`)
        if product.sources[0].dtype is not product.sources[1].dtype:
            return False  # kernels compute factors in one dtype
        cost = read = 0
        seen: set[Node] = set()
        todo = [factor]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.array is not None or node in self.materialized:
                if node.size * _BROADCAST > factor.size:
                    read += node.dtype.itemsize
                continue
            if node.op in (REDUCE, JOIN, *_OPAQUE):
                return False
            cost += cost_of(node.op, node.dtype.short, node.detail)
            if cost > _MOST_IN_LOADS:
                return False
            todo += map(self.original, node.sources)
        item, once = factor.dtype.itemsize, read + cost / _COST_OF_A_BYTE
        if once <= item:
            return True
        others = product.detail.columns if position == 0 else product.detail.rows
        # once * times <= once + item * (1 + times), in elements rather than tiles
        return bool(others <= _TILE * (once + item) / (once - item))

    def _repeated(self) -> set[Node]:
        """The nodes that would be computed for several points of one kernel, since a joined array
        is made of them: of a roll beside what is rolled, or of an array that was padded and is seen
        through several views."""
        if not any(node.op == JOIN for node in self.order):
            return set()
        sights: dict[Node, set[Node]] = {}  # a node's views that are read, and joins that have it
        joins: dict[Node, list[Node]] = {}
        for node in self.order:
            if node in self.same or node.op == VIEW:
                continue
            for seen in map(self.original, node.sources):
                source = seen
                while source.op == VIEW and source.array is None:
                    source = self.original(source.sources[0])
                if node.op == JOIN:
                    joins.setdefault(source, []).append(node)
                    seen = node
                sights.setdefault(source, set()).add(seen)
        found: set[Node] = set()
        for node in reversed(self.order):
            if len(sights.get(node, ())) > 1 or any(join in found for join in joins.get(node, ())):
                found.add(node)
        return found.intersection(joins)

    def _materialize_rows_of_reductions(self) -> None:
        """Materialize what a reduction reduces if it is made of other reductions' results, one of
        each, as a mean of losses is. Their rows are not its own, so it can't compute them; a kernel
        of theirs does what is between as well, and reads its rows once for all of them."""
        reached: dict[Node, frozenset[int]] = {}  # sizes of the reductions in a node's expression
        for node in self.order:
            sizes = frozenset[int]()
            if node.op not in _OPAQUE:
                for source in map(self.original, node.sources):
                    sizes |= reached.get(source, frozenset())
            if node.op == REDUCE:
                source = self.original(node.sources[0])
                if node.size < source.size and source.size in sizes and source.array is None:
                    self.materialize(
                        source, "a reduction reads it, and it is made of others' results"
                    )
                    reached[source] = frozenset()
                sizes = frozenset((node.size,))
            reached[node] = sizes if node not in self.materialized else frozenset()

    def _materialize_broadcast_factors(self, weight: dict[Node, int]) -> None:
        """Materialize the vector of a product of a matrix and a vector, and what is like it: an
        expression along the reduced axis that is broadcast to all rows of a reduction. Each row
        would compute it again, and the reductions in it, such as those of a layer norm, would be
        kernels of their own."""
        for reduction in self.order:
            if reduction.op != REDUCE or reduction in self.same:
                continue
            shape = reduction.sources[0].shape
            todo, seen = [self.original(reduction.sources[0])], set[Node]()
            while todo:
                node = todo.pop()
                if node in seen or node.array is not None or node in self.materialized:
                    continue
                seen.add(node)
                if node.op == VIEW:
                    factor = self.original(node.sources[0])
                    if (
                        factor.array is None
                        and weight[factor] > _CHEAP_FACTOR
                        and _is_broadcast(node)
                        and any(node.detail.strides[axis] for axis in reduction.detail[1])
                    ):
                        self.materialize(factor, "each row of a reduction reads it")
                elif same_shape(node.shape, shape) and node.op not in (*_EXPENSIVE, *_OPAQUE):
                    todo += map(self.original, node.sources)

    def _read_by_many(self) -> set[Node]:
        """The nodes that are made of more than a few arrays as large as they are: a sum that grows
        from layer to layer, say. To compute them again is to read all of these."""
        found: set[Node] = set()
        # What is read, with the nodes that read it. Sizes are compared only where there are many,
        # since plans for sizes that change depend on what is said then.
        reads: dict[Node, frozenset[tuple[Node, Node]]] = {}
        for node in self.order:
            mine = frozenset[tuple[Node, Node]]()
            for source in map(self.original, node.sources):
                if source.array is None and source not in self.materialized:
                    mine |= reads.get(source, frozenset())
                else:
                    mine |= {(source, node)}
            if len({source for source, _ in mine}) > _FEW_READ:
                mine = frozenset(
                    {
                        source: (source, reader)
                        for source, reader in mine
                        if not (reader.op == VIEW and _is_broadcast(reader))
                        and source.size * _BROADCAST > reader.size
                    }.values()
                )
                if len(mine) > _FEW_READ:
                    found.add(node)
                    mine = frozenset(list(mine)[: _FEW_READ + 1])
            reads[node] = mine
        return found

    def _weights(self, repeated: set[Node]) -> dict[Node, int]:
        """What it costs to compute a node again, from what is in memory. Of the repeated ones those
        that are expensive are materialized, and joined arrays that are in each other too often: a
        kernel has a branch for each."""
        weight: dict[Node, int] = {}
        nested: dict[Node, int] = {}
        for node in self.order:
            inside = max(
                (nested[s] for s in node.sources if s.array is None and s not in self.materialized),
                default=0,
            )
            nested[node] = inside + (node.op == JOIN)
            if nested[node] > _MOST_NESTED:
                self.materialize(node, f"a kernel nests {_MOST_NESTED} joined arrays at most")
            if node.op in _EXPENSIVE:
                total = _MOST_EXPENSIVE
            else:
                total = cost_of(node.op, node.dtype.short, node.detail)
            sources = [
                weight[source]
                for source in node.sources
                if source.array is None and source not in self.materialized
            ]
            # A plan for sizes that change does not depend on them where there is nothing to save.
            if node.op == VIEW and any(sources) and _is_broadcast(node):
                weight[node] = 0
                continue
            # Of what is joined one part is computed, the one that is there.
            total += max(sources, default=0) if node.op == JOIN else sum(sources)
            weight[node] = min(total, _MOST_EXPENSIVE)
            if node in repeated and weight[node] > _CHEAP:
                self.materialize(node, "several points of a kernel read it, through what is joined")
        return weight


def _is_broadcast(view: Node) -> bool:
    """Whether a view has each element of its source many times. One that is broadcast along an axis
    whose extent changes has, so that plans do not depend on by how much."""
    for extent, stride in zip(view.shape, view.detail.strides, strict=True):
        if is_size(extent) and not is_size(stride) and not stride:
            return True
    return view.size >= _BROADCAST * view.sources[0].size


def must_lie_in_memory(node: Node, position: int) -> bool:
    """Whether a source of a node has to be computed into memory first."""
    if node.op in (CALL, PRODUCT):
        return True
    return node.op in (GATHER, WRITE) and position == 0


def wanted_later(order: Sequence[Node], inside: Container[Node] | None = None) -> set[Node]:
    """The pending nodes of a graph that others, outside of it, still have to read: the gradients of
    a loss that is read before them, say. `inside` has the nodes, if that is at hand."""
    found: set[Node] = set()
    for node in order:
        readers = node.readers
        if readers is None or len(readers) < 2 or node.op in (CONSTANT, INDEX):
            continue
        if inside is None:
            inside = set(order)
        for reference in readers:
            reader = reference()
            if reader is not None and reader.array is None and reader not in inside:
                found.add(node)
                break
    return found
