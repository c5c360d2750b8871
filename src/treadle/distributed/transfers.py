"""Tensors through collectives: nodes that start operations, and nodes that wait for them.

A collective is started where it is called. Its input is computed, the operation begins, and what
the call returns is a node that is computed when a value is read: only that waits. In a trace of
`td.compile` both become work of the host's in the recording, in the order of the program, so a
replay starts and awaits its operations anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle.core.errors import DistributedError
from treadle.distributed.lines import users_line
from treadle.distributed.members import Group
from treadle.distributed.operation import HostMemory, Operation
from treadle.distributed.request import Request
from treadle.drivers.base import Buffer
from treadle.graph.calls import call
from treadle.graph.node import COPY, VIEW, Node, computed
from treadle.graph.realize import realize
from treadle.kernels.launching import new
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

# The operations whose result is where their input was.
IN_PLACE = ("all_reduce", "reduce", "broadcast")


class Transfer:
    """One collective of the program: in a compiled function it has an operation at each replay."""

    __hash__ = None  # type: ignore[assignment]  # the calls of a node that has it are not recorded

    def __init__(self, group: Group, request: Request, shape: tuple[int, ...]) -> None:
        self.group = group
        self.request = request
        self.shape = shape  # of the result
        self.name = request.kind
        self.line = users_line()  # which has called it: what reads its value may be far from there
        self.operation: Operation | None = None
        self.memory: Any = None  # of the host, where the operation is staged
        self.arrays: Any = None  # whose memory is not to be reused before the end

    def begin(self, given: Any, result: Any) -> None:
        """Start an operation; one that has not been waited for ends first."""
        if self.operation is not None:
            self.end()
        self.operation = self.group.start(self.request, given, result)

    def end(self) -> None:
        """Wait for the operation."""
        if self.operation is not None:
            try:
                self.group.wait(self.operation)
            except DistributedError as error:
                note = f"{self.request.kind} was called at {self.line}"
                # What reads the value again gets the same error.
                if self.line and note not in getattr(error, "__notes__", ()):
                    error.add_note(note)
                raise
            self.operation = None


def transferred(
    group: Group, request: Request, x: Node | None, shape: tuple[int, ...], device: Device
) -> Node:
    """The node of a collective's result, which is under way."""
    transfer = Transfer(group, request, shape)
    assert group.engine is not None
    refusal = group.engine.refusal(request)
    if refusal:
        raise DistributedError(refusal)
    used = group.engine.device
    if used is not None and device.id != used.id:
        raise DistributedError(
            f"{request} is on {device.id}, and {group.engine.name} moves data of this rank's "
            f'device, {used.id}: x.to("{used.id}"), or init(backend="mpi")'
        )
    array = None if x is None else _in_memory(x)
    if not group.engine.on_host:
        return computed(_start(array, transfer, device))
    if device.traits.host_memory:
        begun = computed(_begin(array, transfer, device))
        return call(_end, (begun,), shape, request.dtype, (transfer,))
    _begin_staged(transfer, None if array is None else _read(array))
    return call(_end_staged, (), shape, request.dtype, (transfer, device), device)


def _in_memory(x: Node) -> DeviceArray:
    """A node's elements, computed and in order."""
    if x.op == VIEW:
        x = Node(COPY, (x,), x.shape, x.dtype, x.device)
    if x.array is None:
        realize([x])
    return x.whole_array


# --- devices whose memory is the host's ----------------------------------------------------------


def _begin(x: DeviceArray | None, transfer: Transfer, device: Device) -> DeviceArray:
    """The result's memory, once the operation on it has been given to the stream."""
    request = transfer.request
    result = DeviceArray.allocate(device, request.dtype, transfer.shape)
    stream = device.default_stream.handle
    given = None
    if x is not None:
        # The input may be overwritten before the operation has ended.
        given = result if request.kind in IN_PLACE else new(x, request.dtype, *x.shape)
        _copy(stream, x, given)
    buffers = [array.buffer for array in (given, result) if array is not None and array.size]
    transfer.arrays = given, result
    places = None if given is None or given is result else _place(given), _place(result)
    stream.call_host(_Work(transfer, transfer.begin, places), buffers)
    return result


def _end(result: DeviceArray, transfer: Transfer) -> DeviceArray:
    """The result, once the operation has ended."""
    if result.key.imagined:
        return result
    stream = result.device.default_stream.handle
    buffers = [result.buffer] if result.size else []
    stream.call_host(_Work(transfer, transfer.end, None), buffers)
    # What reuses the memory of the input comes after that, in a recording, too.
    transfer.arrays = None
    return result


class _Work:
    """The host's part of an operation on a stream."""

    def __init__(self, transfer: Transfer, work: Callable[..., None], places: Any) -> None:
        self.name = transfer.name
        self._transfer = transfer
        self._work = work
        self._places = places

    def __call__(self) -> None:
        """Start, or wait."""
        if self._places is None:
            self._work()
        else:
            self._work(*[each and _memory(each, self._transfer) for each in self._places])


class _Place(NamedTuple):
    """Where an array's bytes are."""

    buffer: Buffer
    first: int
    size: int


def _place(array: DeviceArray) -> _Place:
    item = array.dtype.itemsize
    return _Place(array.buffer, array.offset * item, array.size * item)


def _memory(place: _Place, owner: Any) -> HostMemory:
    """Bytes, and what is kept alive with them."""
    if not place.size:
        return HostMemory(np.empty(0, np.uint8), owner)
    memory = place.buffer.host_bytes()
    return HostMemory(np.frombuffer(memory, np.uint8, place.size, place.first), owner)


def _copy(stream: Any, source: DeviceArray, target: DeviceArray) -> None:
    if source.size:
        item = source.dtype.itemsize
        buffers: tuple[Buffer, int, Buffer, int] = (
            source.buffer, source.offset * item, target.buffer, target.offset * item,
        )  # fmt: skip
        stream.copy(*buffers, source.size * item)


# --- devices that the backend reaches ------------------------------------------------------------


def _start(x: DeviceArray | None, transfer: Transfer, device: Device) -> DeviceArray:
    """The result, which the device's streams have in order."""
    result = DeviceArray.allocate(device, transfer.request.dtype, transfer.shape)
    transfer.group.start(transfer.request, x, result)
    return result


# --- other devices: through the host -------------------------------------------------------------


def _read(x: DeviceArray) -> np.ndarray[Any, Any]:
    """The bytes of an array."""
    host = np.empty(x.size * x.dtype.itemsize, np.uint8)
    if x.size:
        stream = x.device.default_stream.handle
        stream.read(x.buffer, x.offset * x.dtype.itemsize, host.data)
    return host


def _begin_staged(transfer: Transfer, host: np.ndarray[Any, Any] | None) -> None:
    request = transfer.request
    if request.kind in IN_PLACE:
        given, result = None, host
    else:
        count = int(np.prod(transfer.shape, dtype=np.int64))
        given, result = host, np.empty(count * request.dtype.itemsize, np.uint8)
    transfer.memory = result
    transfer.begin(None if given is None else HostMemory(given, None), HostMemory(result, None))


def _end_staged(transfer: Transfer, device: Device) -> DeviceArray:
    """The result on the device, once the operation has ended."""
    transfer.end()
    result = DeviceArray.allocate(device, transfer.request.dtype, transfer.shape)
    host, transfer.memory = transfer.memory, None
    if result.size:
        stream = device.default_stream.handle
        stream.write(result.buffer, result.offset * result.dtype.itemsize, host.data)
    return result
