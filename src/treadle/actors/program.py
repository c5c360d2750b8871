"""A handler that is compiled for a device, with its state and the memory of its batches."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from treadle.actors.handler import (
    Handler,
    HandlerKernel,
    InTurnKernel,
    ParallelKernel,
    lost_assignment,
    reply_of,
)
from treadle.actors.mailbox import Bytes
from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import int32, uint32
from treadle.core.errors import CompileError, LaunchError
from treadle.drivers import base
from treadle.ir import types as t
from treadle.lang.source import source_of
from treadle.lang.types import ArrayType, VectorType, annotation_of, numpy_dtype
from treadle.runtime import reports
from treadle.runtime.arrays import DeviceArray, array_dtype, as_array, is_array_type
from treadle.runtime.convert import Packed, describe
from treadle.runtime.devices import Device, Stream
from treadle.runtime.launch import Prepared
from treadle.runtime.memory import Storage
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor

REPORT_WORDS = 1 << 12
_PARALLEL_BLOCK = 64  # threads, each with a message of its own
# Threads that copy for the one that handles messages, and the memory that they share.
_MOST_IN_TURN, _FEWEST_IN_TURN, _SHARED_BYTES = 64, 8, 8192
_UINT32 = np.dtype(np.uint32)


class Program:
    """What runs the handler on batches of up to `count` messages."""

    owns_all = False  # whether arrays that are only read are copied, too

    def __init__(
        self,
        handler: Handler,
        kernels: dict[Any, HandlerKernel],
        blocks: int | float,
        device: Device,
        state: Mapping[str, Any],
        count: int,
    ) -> None:
        """Compile it. `kernels` has those that the handler has become already, by their replies. A
        fraction as `blocks` is one of those that run at once."""
        self.handler = handler
        self.device = device
        self.stream = stream_of(device)
        self.grid = Dim3(1 if isinstance(blocks, float) else blocks, 1, 1)
        self.count = count
        states = [taken_state(handler, name, state[name], device) for name in handler.states]
        self.reply = reply_of(handler, states)
        self.parallel = False  # whether each message has a thread of its own
        self.lanes = 0  # threads that copy messages for the one that handles them
        self._kernels = kernels
        self.kernel = self._kernel()
        self._allocate()
        self._first_state = len(self._front(0, 0))
        self.states: list[Any] = states
        self.prepared = self._prepared()
        if isinstance(blocks, float):
            most = device.handle.blocks_at_once(self.prepared.compiled)
            self.grid = Dim3(max(int(blocks * most), 1), 1, 1)
        written = {at - self._first_state for at in self.prepared.built.written}
        self.written = tuple(at for at in range(len(states)) if at in written)
        copied = [
            at for at, state in enumerate(states)
            if at in self.written or (self.owns_all and isinstance(state, DeviceArray))
        ]  # fmt: skip
        if copied:
            for at in copied:
                self.states[at] = states[at].copy_to(device)
            self.prepared = self._prepared()
        self._specialize()
        self.report: DeviceArray | None = None
        self._bind()

    def _bind(self) -> None:
        """Set the arguments of launches to those that it was compiled for."""
        self._values = [_raw(each) for each in (*self._front(0, 0), *self.states)]
        buffers = [each.buffer for each in self._values if isinstance(each, DeviceArray)]
        self.buffers: list[base.Buffer] = list(dict.fromkeys(buffers))
        self.sites = self.prepared.built.sites
        if self.sites:
            if self.report is None:
                self.report = DeviceArray.allocate(self.device, uint32, (REPORT_WORDS,))
                self.clear_report()
            self.buffers.append(self.report.buffer)

    def _kernel(self) -> HandlerKernel:
        """The kernel, which actors of one handler have in common."""
        key = self._key()
        if key not in self._kernels:
            self._kernels[key] = self._make_kernel()
        return self._kernels[key]

    def _key(self) -> tuple[object, ...]:
        """What kernels of one handler differ in."""
        return type(self), self.reply, self.parallel, self.lanes

    def _make_kernel(self) -> HandlerKernel:
        if self.lanes:
            return InTurnKernel(self.handler, self.reply, self.lanes)
        kind = ParallelKernel if self.parallel else HandlerKernel
        return kind(self.handler, self.reply)

    def _specialize(self) -> None:
        """A thread for each message where no message makes a difference to another one; elsewhere
        threads that copy, where they gain something."""
        if self.count == 1 or self.handler.together or self.prepared.built.sites:
            return
        self.parallel = not self.written and bool(self.reply) and self.kernel.is_independent
        if not self.parallel and self.kernel.is_for_any_thread and copies_help(self.device):
            size = t.size_of(self.handler.message) + (t.size_of(self.reply) if self.reply else 0)
            lanes = min(_MOST_IN_TURN, self.device.info.limits.max_threads_per_block)
            while lanes > 1 and lanes * size > _SHARED_BYTES:
                lanes //= 2
            self.lanes = lanes if lanes >= _FEWEST_IN_TURN else 0
        if self.parallel or self.lanes:
            self.kernel = self._kernel()
            self.prepared = self._prepared()

    def _allocate(self) -> None:
        """The memory of batches."""
        self.messages = allocate(self.device, self.handler.message, self.count)
        self.replies = None
        if self.reply is not None:
            self.replies = allocate(self.device, self.reply, self.count)
        self.done = DeviceArray.allocate(self.device, int32, (1,))

    def _front(self, first: int, last: int) -> list[Any]:
        """The kernel's arguments before the state; the two numbers come last."""
        replies = [] if self.replies is None else [self.replies]
        return [self.messages, *replies, self.done, first, last]

    def _prepared(self) -> Prepared:
        """The kernel compiled for these arguments, by a launch for no message."""
        block = self._block()
        launch = self.kernel._launcher.bound(self.grid, block, 0, self.stream)
        arguments = (*self._front(0, 0), *self.states)
        repeat = launch(arguments)
        if repeat is None:  # its kernel was still being compiled
            self.stream.synchronize()
            repeat = launch(arguments)
        assert repeat is not None
        return repeat.prepared

    @property
    def one_by_one(self) -> bool:
        """Whether each message is a launch of its own: several blocks work on it, or a report would
        not say which message it is about."""
        if self.parallel:
            return False
        if self.grid.count > 1:
            return True
        if self.device.traits.software and self.kernel.has_loops:
            return True  # llvmpipe ends the loops of a thread after so many iterations in all
        if not self.sites:
            return False
        return self.handler.together or any(site.kind == "check" for site in self.sites)

    def parameters(self, first: int, last: int) -> bytes:
        """The parameter block of a launch for some messages of the batch."""
        at = self._first_state - 2
        self._values[at : at + 2] = first, last
        return self.prepared.pack(self._values, self.grid, ())

    def launch(self, first: int, last: int) -> None:
        """Append a launch for some messages of the batch."""
        parameters = self.parameters(first, last)
        grid = self._grid(first, last)
        self.stream.handle.launch(self.prepared.compiled, grid, self.buffers, parameters)

    def exchange(self, counts: Sequence[int], *, near: bool) -> base.Exchange | None:
        """A short way for so many messages, each a launch by its place among the counts. None where
        there is none, and for handlers whose report is read."""
        message, reply = self.handler.message, self.reply
        if self.report is not None or not (
            of_words(message) and (reply is None or of_words(reply))
        ):
            return None
        most = max(counts)
        result = self.done if self.replies is None else self.replies
        reply_bytes = 4 if reply is None else most * t.size_of(reply)
        return self.stream.handle.exchange(
            self.prepared.compiled,
            self.buffers,
            (self.buffers.index(self.messages.buffer), most * t.size_of(message)),
            (self.buffers.index(result.buffer), reply_bytes),
            [(self._grid(0, last), self.parameters(0, last)) for last in counts],
            near,
        )

    def _grid(self, first: int, last: int) -> Dim3:
        """The blocks of a launch."""
        if self.parallel:
            return Dim3(-(-(last - first) // self._block().x), 1, 1)
        return self.grid

    def _block(self) -> Dim3:
        """The threads of a block."""
        if self.parallel:
            return Dim3(_PARALLEL_BLOCK, 1, 1)
        if self.lanes:
            return Dim3(self.lanes, 1, 1)
        return self.handler.options.block or Dim3(1)

    # --- reports ---

    def clear_report(self) -> None:
        """Empty the report, for the next launch."""
        assert self.report is not None
        words = np.zeros(REPORT_WORDS, _UINT32)
        words[1] = REPORT_WORDS
        self.stream.handle.write(self.report.buffer, 0, words.view(np.uint8).data)

    def read_report(self) -> str | None:
        """Show what the handler printed; why it failed, if it did. The report is then empty."""
        assert self.report is not None
        words = np.empty(REPORT_WORDS, _UINT32)
        self.stream.handle.read(self.report.buffer, 0, words.view(np.uint8).data)
        if not words[0]:
            return None
        self.clear_report()
        try:
            reports.show(words, self.prepared.built, self.grid)
        except LaunchError as error:
            return str(error)
        return None

    def failed_at(self) -> int:
        """The message at which a batch ended, if it is not launched one by one."""
        data = bytearray(4)
        self.stream.handle.read(self.done.buffer, 0, memoryview(data))
        return int(struct.unpack("<i", data)[0])

    def begin_count(self, first: int) -> None:
        """Set the number of messages that are done."""
        self.stream.handle.write(self.done.buffer, 0, memoryview(struct.pack("<i", first)))

    # --- state ---

    def snapshot(self) -> dict[str, Any]:
        """Copies of the state."""
        names = self.handler.states
        return {
            name: Tensor(each.copy_to(self.device))
            if isinstance(each, DeviceArray)
            else _value(each)
            for name, each in zip(names, self.states, strict=True)
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the elements of arrays that the handler writes. TypeError for other names,
        LaunchError for another shape or dtype, or other values of what it only reads."""
        replaced = []
        for name, value in state.items():
            at = self.handler.states.index(name) if name in self.handler.states else -1
            if at < 0:
                raise TypeError(_unknown(self.handler, name))
            mine = self.states[at]
            given = taken_state(self.handler, name, value, self.device)
            if at in self.written:
                kind = (given.dtype, given.shape) if isinstance(given, DeviceArray) else None
                if kind != (mine.dtype, mine.shape):
                    raise LaunchError(
                        f"state {name} of {self.handler.name} has shape {mine.shape} and dtype "
                        f"{mine.dtype}: restore takes an array of the same"
                    )
                replaced.append((given, mine))
            elif _bytes_of(given) != _bytes_of(mine):
                raise LaunchError(
                    f"{self.handler.name} only reads its state {name}, and has it as it was given "
                    "to spawn: spawn another actor for other values"
                )
        for given, mine in replaced:  # all or none
            if given.contiguous:
                given.copy_elements_to(mine)
            else:
                mine.upload(given.to_host())


def stream_of(device: Device) -> Stream:
    """The stream of a device's actors: what is captured on others meanwhile is not theirs."""
    with _lock:
        found = _streams.get(device)
        if found is None or found.handle.device is not device.handle:
            found = _streams[device] = device.stream()
        return found


_streams: WeakKeyDictionary[Device, Stream] = WeakKeyDictionary()
_lock = forks.lock()


def taken_state(handler: Handler, name: str, value: Any, device: Device) -> Any:
    """A value of spawn's as an argument of launches: an array on the device, a number, a packed
    struct or vector."""
    kind = handler.annotations.get(name)
    if isinstance(kind, VectorType) and isinstance(value, np.ndarray) and value.ndim == 1:
        value = kind(*value)
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]  # a number or a struct, as np.load gives those of a snapshot
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        array = DeviceArray.allocate(device, array_dtype(value.dtype), value.shape)
        array.upload(value)
        return array
    if isinstance(value, np.ndarray) or (
        not is_array_type(type(value)) and hasattr(value, "__dlpack__")
    ):
        value = asarray(value, device=device)
    found = as_array(value)
    if found is None:
        if name in handler.assigned and not isinstance(kind, ArrayType):
            source = source_of(handler.function)
            raise CompileError(lost_assignment(name), handler.assigned[name], source.text)
        key, data = describe(value)
        return value if isinstance(key, type) else Packed(key, data)
    if found.device is not device or found.key.read_only:
        found = found.copy_to(device)
    return found


def _bytes_of(state: Any) -> bytes:
    """A state's value, to be compared."""
    value = state.to_host() if isinstance(state, DeviceArray) else np.asarray(_raw(state))
    if value.dtype.names is not None:  # fields, not what pads them
        return repr((value.dtype.descr, value.shape, value.tolist())).encode()
    return repr((value.dtype, value.shape)).encode() + value.tobytes()


def _raw(value: Any) -> Any:
    """What a packer takes for an argument."""
    return value.data if isinstance(value, Packed) else value


def _value(state: Any) -> Any:
    """What is not an array as spawn takes it."""
    if isinstance(state, Packed) and isinstance(state.key, t.Vector):
        return annotation_of(state.key)(*np.asarray(state.data))
    return _raw(state)


def check_names(handler: Handler, state: Mapping[str, Any]) -> None:
    """TypeError unless each state has a value, and each value is a state's."""
    for name in state:
        if name not in handler.states:
            raise TypeError(_unknown(handler, name))
    missing = [name for name in handler.states if name not in state]
    if missing:
        raise TypeError(
            f"{handler.name}.spawn needs its state: {', '.join(f'{name}=…' for name in missing)}"
        )


def _unknown(handler: Handler, name: str) -> str:
    states = ", ".join(handler.states) or "none"
    return f"{handler.name} has no state {name!r}; its state: {states}"


def copies_help(device: Device) -> bool:
    """Whether a device's threads are many, and its memory far from each of them."""
    return not (device.traits.software or device.traits.on_host)


def of_words(type: t.Type) -> bool:
    """Whether values are made of whole words of 32 bits, so that storing one changes nothing
    beside it."""
    if isinstance(type, t.Struct):
        return all(of_words(field.type) for field in type.fields)
    if isinstance(type, (t.Vector, t.Array)):
        return of_words(type.element)
    return isinstance(type, t.Scalar) and t.size_of(type) % 4 == 0


def allocate(device: Device, type: t.Scalar | t.Vector | t.Struct, count: int) -> DeviceArray:
    """Memory for so many values. One of vectors is an array of their components."""
    if isinstance(type, t.Vector):
        return DeviceArray.allocate(device, annotation_of(type.element), (count, type.count))
    if isinstance(type, t.Scalar):
        return DeviceArray.allocate(device, annotation_of(type), (count,))
    return DeviceArray.allocate(device, numpy_dtype(type), (count,))


def array_of(
    device: Device, buffer: base.Buffer, memory: Bytes, type: t.Scalar | t.Vector | t.Struct
) -> DeviceArray:
    """Mapped memory as an array of such values."""
    storage = Storage.borrowed(buffer, memory.nbytes, memory)
    count = memory.nbytes // t.size_of(type)
    if isinstance(type, t.Vector):
        return DeviceArray(device, storage, annotation_of(type.element), (count, type.count))
    dtype = annotation_of(type) if isinstance(type, t.Scalar) else numpy_dtype(type)
    return DeviceArray(device, storage, dtype, (count,))


def host_bytes(array: DeviceArray) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The memory of an array on a device whose memory is the host's."""
    size = array.size * array.dtype.itemsize
    return np.frombuffer(array.buffer.host_bytes(), np.uint8)[:size]
