"""Streams of devices that compute in the process's own memory: work is done when the call returns,
so there is nothing to wait for."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from threading import get_ident
from typing import Generic, TypeVar

from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers import base

Call = TypeVar("Call")

clock = time.perf_counter
_LARGEST_EXTENT = (1 << 31) - 1


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


class HostStream(base.Stream, Generic[Call]):
    """Work in order. Different streams may be used by different threads at once. A driver adds what
    runs, or is appended to `_captured` where that is a list."""

    __slots__ = ("_calls", "_owner")

    def __init__(self, device: base.Device) -> None:
        self.device = device
        self._calls: list[Call] | None = None  # of a capture
        self._owner = 0  # the thread whose work it records

    @property
    def _captured(self) -> list[Call] | None:
        """What this thread's work is appended to, if it captures the stream."""
        return self._calls if self._owner == get_ident() else None

    @abstractmethod
    def _recording(self, calls: list[Call]) -> base.Recording:
        """What replays captured calls."""

    def record_again(self, calls: Sequence[Call]) -> bool:
        """Append the calls of a recording, if this stream is captured."""
        captured = self._captured
        if captured is None:
            return False
        captured += calls
        return True

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Copy into host memory."""
        if self._captured is not None:
            raise LaunchError("a capture cannot read: end it first, replay it, then read")
        target = target.cast("B")
        target[:] = part(buffer, offset, len(target))

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
        assert self._calls is not None
        return len(self._calls)

    def begin_capture(self) -> None:
        """Record what this thread does from here on."""
        if self._calls is not None:
            raise LaunchError("this stream is being captured already")
        self._calls, self._owner = [], get_ident()

    def take_capture(self) -> None:
        """Record what this thread does, instead of the one that began."""
        self._owner = get_ident()

    def end_capture(self) -> base.Recording:
        """What was recorded."""
        if self._calls is None:
            raise LaunchError("this stream is not being captured: call begin_capture first")
        calls, self._calls = self._calls, None
        return self._recording(calls)


def check_usable(buffer: base.Buffer) -> None:
    """DeviceLost for a buffer that was freed, or whose device was closed: it may have been opened
    again since."""
    buffer.address()
    if buffer.device.closed:  # type: ignore[attr-defined]
        buffer.device.check_open()  # type: ignore[attr-defined]


def part(buffer: base.Buffer, offset: int, size: int) -> memoryview:
    """Bytes of a buffer. DeviceLost if it is not usable, LaunchError if they lie outside."""
    check_usable(buffer)
    if not 0 <= offset <= offset + size <= buffer.size:
        raise LaunchError(f"bytes {offset} to {offset + size} are not in the buffer")
    return buffer.host_bytes()[offset : offset + size]


def wrong_buffers(kernel: base.CompiledKernel, buffers: Sequence[base.Buffer]) -> Exception:
    """The error for buffers that a kernel cannot be launched with."""
    if len(buffers) != len(kernel.code.bindings):
        return LaunchError(
            f"`{kernel.code.name}` takes {len(kernel.code.bindings)} buffers, not {len(buffers)}"
        )
    return DeviceLost(f"`{kernel.code.name}` was launched on a buffer that was freed")


def check_extents(kernel: base.CompiledKernel, grid: Dim3) -> None:
    """LaunchError for a grid with more threads along an axis than a kernel can count."""
    for extent, threads in zip(grid, kernel.code.block, strict=True):
        if not 0 <= extent * threads <= _LARGEST_EXTENT:
            raise LaunchError(
                f"a grid of {tuple(grid)} blocks of {tuple(kernel.code.block)} threads has "
                f"{extent * threads} threads along one axis, and {kernel.device.info.id} counts up "
                f"to {_LARGEST_EXTENT}: launch it in parts, or spread it over more axes"
            )
