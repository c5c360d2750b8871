"""`Node`: an array that may not be computed yet.

A node says what it is (an operation and its sources) until it is computed, and from then on where
it lies. Nodes are never changed otherwise: what writes an array makes a new node.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import ref

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.graph import history
from treadle.graph.history import History, is_differentiable, recording
from treadle.graph.origins import Origin, note_origin
from treadle.graph.views import View, compose, whole
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

# The operations that are not elementwise; all others are names in `operations`.
CONSTANT = "constant"  # detail: a Python number; every element is it
INDEX = "index"  # element i is i, in row-major order
VIEW = "view"  # of its source; detail: a View
COPY = "copy"  # of its source, in memory of its own
GATHER = "gather"  # sources: a whole array and flat indices into it; indices outside give 0
REDUCE = "reduce"  # detail: (kind, axes); the shape lacks these
WRITE = "write"  # sources: an array and values; detail: the View of the array that they replace
JOIN = "join"  # of parts that cover it; detail: where each begins, as indices along the axes
PRODUCT = "product"  # of matrices, read in place in its sources; detail: a kernels.factors.Product
COMPOSITE = "composite"  # of several operations until it is planned; detail: see `composites.py`
CALL = "call"  # what is not a fused kernel; detail: see `calls.py`
PLACEHOLDER = "placeholder"  # of an example, within td.vmap; see `placeholders.py`
COMPUTED = "computed"
FAILED = "failed"  # a write that could not be done; detail: why

# Steps that may be pending one upon another: what is longer is computed on the way, and so always
# after as many steps of a loop. (Kernels that are cut where they are full would be different in
# every iteration.)
_MOST_PENDING = 96
# Numbers of readers at which those that are gone are forgotten: an array that is never computed, as
# a constant that every kernel has in itself, may get one with each step of a program.
_PRUNED_AT = frozenset(1 << power for power in range(6, 64))
_INDEX_BITS = 59  # of the number of elements: bytes are counted in 63
_serial = itertools.count()


class Node:
    """A lazy array. `sources` are what it is made of while `array` is None.

    `readers` are the nodes that need it and are not computed yet, as far as they live. A computed
    node's readers are its storage's, since all that shares memory is written together. `eager` says
    that a source's memory is shared with another library, which may write it at any time.
    `history` says how to differentiate it, for those that are differentiated; `saved` how many
    derivatives need its value and `overwritten` whether a tensor has another one since.
    """

    __slots__ = (
        "__weakref__", "array", "depth", "detail", "device", "dtype", "eager", "history", "op",
        "origin", "overwritten", "readers", "saved", "serial", "shape", "size", "sources",
    )  # fmt: skip

    array: DeviceArray | None
    origin: Origin  # of a computed integer without axes that has one; else it is not set

    def __init__(
        self,
        op: str,
        sources: tuple[Node, ...],
        shape: tuple[int, ...],
        dtype: DType,
        device: Device,
        detail: Any = None,
    ) -> None:
        self.op = op
        self.sources = sources
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.detail = detail
        self.size = math.prod(shape)
        if self.size >= 1 << _INDEX_BITS:
            raise ShapeError(f"an array of shape {shape} has more elements than memory can have")
        self.array = None
        self.readers: list[ref[Node]] | None = None
        self.eager = False
        self.serial = next(_serial)
        self.depth = 0
        self.history: History | None = None
        self.saved = 0
        self.overwritten = False
        if sources:
            me = ref(self)
            tracked = False
            for source in sources:
                if source.history is not None:
                    tracked = True
                array = source.array
                if array is None:
                    if source.depth >= self.depth:
                        self.depth = source.depth + 1
                    if source.eager:
                        self.eager = True
                    readers = source.readers
                    if readers is None:
                        source.readers = [me]
                    else:
                        readers.append(me)
                        if len(readers) in _PRUNED_AT:
                            _prune(readers)
                else:
                    storage = array.storage
                    storage.add_reader(me)  # first: what shares it now either sees me, or is seen
                    if storage.shared and storage.is_shared:
                        self.eager = True
            if tracked:
                _record(self)

    @property
    def whole_array(self) -> DeviceArray:
        """The array of a computed node."""
        assert self.array is not None
        return self.array

    def become(self, array: DeviceArray) -> None:
        """The node is computed."""
        if not self.shape:
            note_origin(self)
        readers, self.readers = self.readers, None
        self.array = array
        if self.history is not None:
            self.history.computed(self)
        if self.op != CONSTANT:  # its number is wanted still, by kernels that have it as a number
            self.detail = None
        self.op = COMPUTED
        self.sources = ()
        self.depth = 0
        if readers:
            for reader in readers:
                array.storage.add_reader(reader)

    def chain(self) -> Iterator[Node]:
        """The node, what it is a view of, and so on down to the base."""
        node = self
        yield node
        while node.op == VIEW:
            node = node.sources[0]
            yield node

    def alias(self) -> Node:
        """Another node that sees the same elements."""
        return view_of(self, whole(self.shape))

    def recipe(self) -> Callable[[], Node]:
        """Makes an equal node, without holding this one."""
        if self.array is not None:
            return partial(computed, self.array)
        return partial(
            Node, self.op, self.sources, self.shape, self.dtype, self.device, self.detail
        )

    def fail(self, error: BaseException) -> None:
        """What was to write the node's memory has failed, and is in no state to be tried again."""
        reason = str(error) or type(error).__name__
        self.detail = f"what was written in place here could not be computed: {reason}"
        self.op = FAILED
        self.sources = ()

    def __repr__(self) -> str:
        return f"<{self.op} {self.dtype}{list(self.shape)} on {self.device.id}>"


def next_serial() -> int:
    """A number that is greater than those of all nodes until now."""
    return next(_serial)


def _record(node: Node) -> None:
    """Give a node that was just made of nodes with histories its own. Views have one in any case:
    they are how a tensor is looked at."""
    if (recording.get() or node.op == VIEW) and is_differentiable(node):
        name = node.op
        if name == REDUCE:
            name = f"{name} {node.detail[0]}"
        unknown = getattr(node.detail, "name", name)
        derivative = history.derivatives.get(name) or history.Unknown(unknown)
        node.history = History(derivative, node, node.sources, node.detail)


def _prune(readers: list[ref[Node]]) -> None:
    """Forget the readers that are computed or gone."""
    readers[:] = [one for one in readers if (node := one()) is not None and node.array is None]


def without_history(
    op: str,
    sources: tuple[Node, ...],
    shape: tuple[int, ...],
    dtype: DType,
    device: Device,
    detail: Any,
    serial: int,
) -> Node:
    """A node within a plan: it has no history, and its place in the order of nodes is given."""
    node = Node.__new__(Node)
    node.op, node.sources, node.shape = op, sources, shape
    node.dtype, node.device, node.detail = dtype, device, detail
    node.size = math.prod(shape)
    node.array = node.readers = node.history = None
    node.eager = node.overwritten = False
    node.serial, node.depth, node.saved = serial, 0, 0
    enter_reader(node)
    return node


def enter_reader(node: Node) -> None:
    """Let the sources of a node know that it reads them."""
    me = ref(node)
    for source in node.sources:
        if source.array is not None:
            source.array.storage.add_reader(me)
        elif source.readers is None:
            source.readers = [me]
        else:
            source.readers.append(me)


def computed(array: DeviceArray) -> Node:
    """A node for an array that is there. The array is contiguous."""
    node = Node(COMPUTED, (), array.shape, array.dtype, array.device)  # type: ignore[arg-type]
    node.array = array
    return node


def constant(value: Any, shape: tuple[int, ...], dtype: DType, device: Device) -> Node:
    """An array of one value, which takes no memory until it is read as an array."""
    return Node(CONSTANT, (), shape, dtype, device, value)


def view_of(node: Node, view: View) -> Node:
    """Other axes over a node's elements."""
    return Node(VIEW, (node,), view.shape, node.dtype, node.device, view)


def is_deep(node: Node) -> bool:
    """Whether so much is pending below this node that it should be computed now."""
    return node.depth > _MOST_PENDING and _depth_now(node) > _MOST_PENDING


def _depth_now(node: Node) -> int:
    """How deep a node is, without what was computed since its sources were made."""
    todo, done = [node], set[Node]()
    while todo:
        one = todo[-1]
        pending = [source for source in one.sources if source.array is None]
        missing = [source for source in pending if source not in done]
        todo += missing
        if not missing:
            one.depth = max([source.depth + 1 for source in pending], default=0)
            done.add(todo.pop())
    return node.depth


def base_of(node: Node) -> tuple[Node, View]:
    """What a node is a view of, and how it is seen."""
    view = whole(node.shape)
    while node.op == VIEW:
        composed = compose(view, node.detail)
        if composed is None:
            break
        node, view = node.sources[0], composed
    return node, view


def pending_readers(node: Node) -> list[Node]:
    """The nodes that still have to read an array, through views of it or directly."""
    found: list[Node] = []
    todo = [node]
    while todo:
        one = todo.pop()
        readers = one.array.storage.readers if one.array is not None else one.readers
        for reference in readers or ():
            reader = reference()
            if reader is None or reader.array is not None:
                continue
            if reader.op == VIEW:
                todo.append(reader)
            else:
                found.append(reader)
    return found
