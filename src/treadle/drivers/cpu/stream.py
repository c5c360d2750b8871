"""Streams of the CPU: work is done when the call returns."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers import base
from treadle.drivers.cpu import launches, native
from treadle.drivers.cpu.launches import Call, HostCall, check_grid, clock
from treadle.drivers.cpu.recording import Recording


class Event(base.Event):
    """A point in time."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = clock()

    def synchronize(self) -> None:
        """Nothing to wait for: work is done when it was asked for."""

    def query(self) -> bool:
        """Always reached."""
        return True

    def seconds(self) -> float:
        """The point on the host's clock."""
        return self.time


class Stream(base.Stream):
    """Work in order. Different streams may be used by different threads at once."""

    __slots__ = ("_captured",)

    def __init__(self, device: base.Device) -> None:
        self.device = device
        self._captured: list[Call | HostCall] | None = None

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """Run `grid` blocks of a kernel."""
        known = kernel.grids.get(grid)  # type: ignore[attr-defined]
        packed, blocks = known if known is not None else check_grid(kernel, grid)
        try:
            bindings = kernel.pack(*[b.pointer for b in buffers])  # type: ignore[attr-defined]
        except struct.error:
            raise _wrong_buffers(kernel, buffers) from None
        if self._captured is not None or self.device.closed:  # type: ignore[attr-defined]
            self._capture(kernel, bindings, parameters, packed, blocks, tuple(buffers))
        elif blocks:
            launches.run(kernel, bindings, parameters, packed, blocks)  # type: ignore[arg-type]

    def _capture(
        self,
        kernel: base.CompiledKernel,
        bindings: bytes,
        parameters: bytes,
        grid: bytes,
        blocks: int,
        buffers: tuple[base.Buffer, ...],
    ) -> None:
        self.device.check_open()  # type: ignore[attr-defined]
        call = Call(
            kernel.pointer,  # type: ignore[attr-defined]
            bindings,
            bytes(parameters),
            grid,
            blocks,
            kernel,  # type: ignore[arg-type]
            buffers,
        )
        if self._captured is not None and blocks:
            self._captured.append(call)

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Copy from host memory."""
        data = data.cast("B")
        if self._captured is not None:
            kept = ctypes.create_string_buffer(bytes(data), len(data))
            self._capture_copy(
                _memory(buffer)[1] + offset, ctypes.addressof(kept), len(data), (buffer, kept)
            )
            return
        memory, _ = _memory(buffer)
        memory[offset : offset + len(data)] = data

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Copy between buffers."""
        source_memory, source_pointer = _memory(source)
        target_memory, target_pointer = _memory(target)
        if self._captured is not None:
            self._capture_copy(
                target_pointer + target_offset, source_pointer + source_offset, size,
                (source, target),
            )  # fmt: skip
            return
        target_memory[target_offset : target_offset + size] = source_memory[
            source_offset : source_offset + size
        ]

    def _capture_copy(self, target: int, source: int, size: int, keep: tuple[Any, ...]) -> None:
        assert self._captured is not None
        bindings = struct.pack("2Q", target, source)
        self._captured.append(Call(native.address("copy"), bindings, b"", b"", size, None, keep))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero a range."""
        _, pointer = _memory(buffer)
        if self._captured is not None:
            bindings = struct.pack("Q", pointer + offset)
            zero = native.address("zero")
            self._captured.append(Call(zero, bindings, b"", b"", size, None, (buffer,)))
            return
        if not 0 <= offset <= offset + size <= buffer.size:
            raise LaunchError(f"bytes {offset} to {offset + size} are not in the buffer")
        ctypes.memset(pointer + offset, 0, size)

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """Do work of the host's."""
        self.device.check_open()  # type: ignore[attr-defined]
        if self._captured is not None:
            for buffer in buffers:
                _memory(buffer)  # an error here, not at a replay
            self._captured.append(HostCall(work, tuple(buffers)))
        else:
            work()

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Copy into host memory."""
        if self._captured is not None:
            raise LaunchError("a capture cannot read: end it first, replay it, then read")
        target = target.cast("B")
        memory, _ = _memory(buffer)
        target[:] = memory[offset : offset + len(target)]

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """`read`: there is nothing to await."""
        self.read(buffer, offset, target)

    def record(self) -> Event:
        """The present moment."""
        return Event()

    def flush(self) -> None:
        """Nothing waits to be started."""

    def synchronize(self) -> None:
        """Nothing is pending."""
        self.device.check_open()  # type: ignore[attr-defined]

    async def synchronize_async(self) -> None:
        """Nothing is pending."""
        self.synchronize()

    @property
    def recorded(self) -> int:
        """How many calls were recorded."""
        assert self._captured is not None
        return len(self._captured)

    def begin_capture(self) -> None:
        """Record from here on."""
        if self._captured is not None:
            raise LaunchError("this stream is being captured already")
        self._captured = []

    def end_capture(self) -> Recording:
        """What was recorded."""
        if self._captured is None:
            raise LaunchError("this stream is not being captured: call begin_capture first")
        calls, self._captured = self._captured, None
        return Recording(calls)


def _memory(buffer: base.Buffer) -> tuple[memoryview, int]:
    pointer = buffer.pointer  # type: ignore[attr-defined]
    if pointer is None:
        raise DeviceLost("this buffer was freed: its memory is no longer there")
    if buffer.device.closed:  # type: ignore[attr-defined]
        buffer.device.check_open()  # type: ignore[attr-defined]
    return buffer.memory, pointer  # type: ignore[attr-defined]


def _wrong_buffers(kernel: base.CompiledKernel, buffers: Sequence[base.Buffer]) -> Exception:
    if any(buffer.pointer is None for buffer in buffers):  # type: ignore[attr-defined]
        return DeviceLost(f"`{kernel.code.name}` was launched on a buffer that was freed")
    return LaunchError(
        f"`{kernel.code.name}` takes {len(kernel.code.bindings)} buffers, not {len(buffers)}"
    )
