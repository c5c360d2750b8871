"""Tensors assembled of parts: the implementation of `concat`, `stack` and similar functions.

A joined array is not made: the kernel that uses it reads the parts in place. Where the array has to
be in memory, each part is computed directly into its place, fused with its producer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import history as histories
from treadle.graph import views
from treadle.graph.calls import call
from treadle.graph.node import JOIN, Node
from treadle.graph.placeholders import record_composite
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tensor.conversions import cast, device_of
from treadle.tensor.dtypes import promote
from treadle.tensor.tensor import Tensor, from_node

Part = tuple[View, Node]  # a view of the whole, and its elements


def assembled(
    shape: tuple[int, ...], dtype: DType, device: Device, parts: Iterable[Part]
) -> Tensor:
    """A tensor whose elements are these parts, boxes along its axes that cover it."""
    placed = [(view, cast(value, dtype)) for view, value in parts]
    there = [(view, value) for view, value in placed if value.size]
    with histories.recorded(False):  # as one operation, below
        if there:
            begins = tuple([views.begin_of(view, shape) for view, _ in there])
            values = tuple([value for _, value in there])
            node = Node(JOIN, values, shape, dtype, device, begins)
        else:
            node = uninitialized(shape, dtype, device)
    if histories.recording.get() and any(value.history is not None for _, value in placed):
        where, sources = [view for view, _ in placed], [value for _, value in placed]
        record_composite(histories.derivatives["assembled"], [node], sources, where)
    return from_node(node)


def uninitialized(shape: tuple[int, ...], dtype: DType, device: Device) -> Node:
    """An array to write parts of, allocated when the first is computed."""
    return call(DeviceArray.allocate, (), shape, dtype, (device, dtype, shape), device)


def common(name: str, tensors: Sequence[Tensor]) -> tuple[DType, Device]:
    """The common dtype of tensors to join, and their device."""
    device = device_of(name, tensors)
    dtype = tensors[0].dtype
    for tensor in tensors:
        if not isinstance(tensor.dtype, DType):
            raise DtypeError(f"{name}: arrays of structs cannot be joined ({tensor.dtype})")
        dtype = promote(dtype, tensor.dtype)
    return dtype, device


def stacked(tensors: Sequence[Tensor], at: int) -> Tensor:
    """Tensors of one shape along a new axis, which is the `at`-th of the result."""
    dtype, device = common("stack", tensors)
    first = tensors[0].shape
    for tensor in tensors:
        if tensor.shape != first:
            raise ShapeError(
                f"stack: all shapes must be equal, but there are {first} and {tensor.shape}"
            )
    total = (*first[:at], len(tensors), *first[at:])
    unsqueezed = [x._seen_through(views.unsqueeze(x._where, at)) for x in tensors]
    return joined_along(total, at, dtype, device, unsqueezed)


def joined_along(
    total: tuple[int, ...], axis: int, dtype: DType, device: Device, tensors: Iterable[Tensor]
) -> Tensor:
    """Tensors as consecutive parts along an axis of the whole."""
    nodes = [cast(tensor._node, dtype) for tensor in tensors]
    if histories.recording.get() and any(node.history is not None for node in nodes):
        return assembled(total, dtype, device, _consecutive(total, axis, nodes))
    before, after = (0,) * axis, (0,) * (len(total) - axis - 1)
    values: list[Node] = []
    begins = []
    start = 0
    for node in nodes:
        if node.size:
            values.append(node)
            begins.append((*before, start, *after))
        start += node.shape[axis]
    if not values:
        return from_node(uninitialized(total, dtype, device))
    return from_node(Node(JOIN, tuple(values), total, dtype, device, tuple(begins)))


def _consecutive(total: tuple[int, ...], axis: int, nodes: Iterable[Node]) -> Iterable[Part]:
    start = 0
    for node in nodes:
        extent = node.shape[axis]
        yield views.slice_axis(views.whole(total), axis, start, 1, extent), node
        start += extent
