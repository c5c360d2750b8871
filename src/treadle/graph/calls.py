"""Kernels of their own as nodes: what no fused kernel can have inside, a sort or a convolution.

The kernel library works on arrays that lie in memory. A `Call` is one of its functions with its
options: the detail of a CALL node until its sources are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

from treadle.core.dtypes import DType
from treadle.core.sizes import fixed, has_sizes
from treadle.graph.node import CALL, Node
from treadle.graph.views import same_shape
from treadle.runtime import recorded_calls
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device
from treadle.runtime.varying import varying

# From the sources' arrays, then the options, to an array of the node's shape and dtype.
Function = Callable[..., DeviceArray]
# The same, to several arrays.
Several = Callable[..., Sequence[DeviceArray]]
# Runs the calls of a thread in their place, to record them.
observer: ContextVar[Callable[[Node, Sequence[DeviceArray]], None] | None] = ContextVar(
    "observer", default=None
)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the kernel library and what it takes after its arrays."""

    function: Function
    options: tuple[Any, ...]

    @property
    def name(self) -> str:
        """What people read in an explanation."""
        return self.function.__name__

    def run(self, node: Node, arrays: Sequence[DeviceArray]) -> None:
        """Compute the node."""
        arrays = _as_seen(node, arrays)
        arrays, options = _for_trace(self.function, arrays, self.options)
        found = recorded_calls.call(self.function, arrays, options)
        assert isinstance(found, DeviceArray)
        node.become(found)

    def imagine(
        self, node: Node, arrays: Sequence[DeviceArray], known: dict[Node, DeviceArray]
    ) -> None:
        """Go through the function with imagined arrays, so that its kernels are compiled."""
        known[node] = self.function(*_as_seen(node, arrays), *self.options)


@dataclass(frozen=True, slots=True)
class CallOfSeveral:
    """A function with several results, each of which is a node. The first one that is read
    computes all those that are still in use; `nodes` knows them without keeping them alive."""

    function: Several
    options: tuple[Any, ...]
    nodes: list[ref[Node]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What people read in an explanation."""
        return self.function.__name__

    def run(self, node: Node, arrays: Sequence[DeviceArray]) -> None:
        """Compute the node and the others."""
        arrays = _as_seen(node, arrays)
        arrays, options = _for_trace(self.function, arrays, self.options)
        found: Any = recorded_calls.call(self.function, arrays, options)
        for reference, array in zip(self.nodes, found, strict=True):
            other = reference()
            if other is not None and other.array is None:
                other.become(array)

    def imagine(
        self, node: Node, arrays: Sequence[DeviceArray], known: dict[Node, DeviceArray]
    ) -> None:
        """Go through the function with imagined arrays, so that its kernels are compiled."""
        found = self.function(*_as_seen(node, arrays), *self.options)
        for reference, array in zip(self.nodes, found, strict=True):
            other = reference()
            if other is not None:
                known[other] = array


def _as_seen(node: Node, arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
    """The arrays of a call's sources in their shapes: of a reshape the call gets the base."""
    return [
        array
        if len(array.shape) == len(source.shape) and same_shape(array.shape, source.shape)
        else array.view(source.shape, packed_strides(source.shape), array.offset)
        for array, source in zip(arrays, node.sources, strict=True)
    ]


def _for_trace(
    function: Callable[..., Any], arrays: Sequence[DeviceArray], options: tuple[Any, ...]
) -> tuple[Sequence[DeviceArray], tuple[Any, ...]]:
    """What a function is given. In a trace with symbols, a function that is not known to work with
    any sizes gets the present ones, which so become facts of the trace."""
    if varying.get() is None or getattr(function, "any_sizes", False):
        return arrays, options
    return [_fixed_array(array) for array in arrays], fixed(options)


def _fixed_array(array: DeviceArray) -> DeviceArray:
    sizes = array.shape, array.strides, array.offset
    if not has_sizes(sizes):
        return array
    return array.view(*fixed(sizes))


def call(
    function: Function,
    sources: Sequence[Node],
    shape: tuple[int, ...],
    dtype: DType,
    options: tuple[Any, ...] = (),
    device: Device | None = None,
) -> Node:
    """A node that is computed by a function of the kernel library. `device` is only needed without
    sources."""
    where = device or sources[0].device
    return Node(CALL, tuple(sources), shape, dtype, where, Call(function, options))


def call_of_several(
    function: Several,
    sources: Sequence[Node],
    results: Sequence[tuple[tuple[int, ...], DType]],
    options: tuple[Any, ...] = (),
) -> tuple[Node, ...]:
    """Nodes for the results of a function, whose shapes and dtypes are given."""
    shared = CallOfSeveral(function, options)
    device = sources[0].device
    nodes = tuple(
        [Node(CALL, tuple(sources), shape, dtype, device, shared) for shape, dtype in results]
    )
    shared.nodes.extend(map(ref, nodes))
    return nodes
