"""Streams: work is done when the call returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers import base
from treadle.drivers.cpu_numpy.chunks import Array
from treadle.drivers.cpu_numpy.kernels import CompiledKernel

_LARGEST_EXTENT = (1 << 31) - 1


class Event(base.Event):
    """A point in time."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing to wait for: work is done when it was asked for."""

    def query(self) -> bool:
        """Always reached."""
        return True

    def seconds(self) -> float:
        """The point on the host's clock."""
        return self.time


@dataclass(frozen=True, slots=True)
class Launch:
    """A recorded launch."""

    kernel: CompiledKernel
    grid: Dim3
    arrays: tuple[Array, ...]
    parameters: bytes
    keep: tuple[base.Buffer, ...]

    def __call__(self) -> None:
        if self.grid.count:
            self.kernel.launch(self.grid, self.arrays, self.parameters)


class Stream(base.Stream):
    """Work in order. Different streams may be used by different threads at once."""

    __slots__ = ("_captured",)

    def __init__(self, device: base.Device) -> None:
        self.device = device
        self._captured: list[Callable[[], object]] | None = None

    def _do(self, work: Callable[[], object]) -> None:
        self.device.check_open()  # type: ignore[attr-defined]
        if self._captured is None:
            work()
        else:
            self._captured.append(work)

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """Run `grid` blocks of a kernel."""
        assert isinstance(kernel, CompiledKernel)
        _check_grid(kernel, grid)
        arrays = _bindings(kernel, buffers)
        if self._captured is None or grid.count:
            self._do(Launch(kernel, grid, arrays, bytes(parameters), tuple(buffers)))

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Copy from host memory."""
        target = _part(buffer, offset, data.nbytes)
        content = np.frombuffer(data.cast("B"), np.uint8)
        if self._captured is not None:
            content = content.copy()
        self._do(lambda: np.copyto(target, content))

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Copy between buffers."""
        to, of = _part(target, target_offset, size), _part(source, source_offset, size)
        self._do(lambda: np.copyto(to, of))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero a range."""
        target = _part(buffer, offset, size)
        self._do(lambda: target.fill(0))

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """Do work of the host's."""
        for buffer in buffers:
            _bytes(buffer)  # an error here, not at a replay
        self._do(work)

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Copy into host memory."""
        if self._captured is not None:
            raise LaunchError("a capture cannot read: end it first, replay it, then read")
        target = target.cast("B")
        target[:] = _part(buffer, offset, len(target)).data

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


class Recording(base.Recording):
    """Captured work."""

    def __init__(self, calls: list[Callable[[], object]]) -> None:
        self._calls = calls

    def replay(self, stream: base.Stream) -> None:
        """Run everything again, in order."""
        stream.device.check_open()  # type: ignore[attr-defined]
        for call in self._calls:
            call()

    def change(
        self, place: int, kernel: base.CompiledKernel, grid: Dim3, parameters: bytes
    ) -> None:
        """Give a launch another grid and other parameters."""
        assert isinstance(kernel, CompiledKernel)
        _check_grid(kernel, grid)
        old = self._calls[place]
        assert isinstance(old, Launch)
        self._calls[place] = Launch(old.kernel, grid, old.arrays, bytes(parameters), old.keep)

    def release(self) -> None:
        """Let go of buffers and kernels."""
        self._calls = []


def _bytes(buffer: base.Buffer) -> Array:
    """A buffer's memory. It may belong to a device that was closed and opened again."""
    buffer.device.check_open()  # type: ignore[attr-defined]
    return np.frombuffer(buffer.host_bytes(), np.uint8)


def _bindings(kernel: CompiledKernel, buffers: Sequence[base.Buffer]) -> tuple[Array, ...]:
    if len(buffers) != len(kernel.code.bindings):
        raise LaunchError(
            f"`{kernel.code.name}` takes {len(kernel.code.bindings)} buffers, not {len(buffers)}"
        )
    if any(buffer.pointer is None for buffer in buffers):  # type: ignore[attr-defined]
        raise DeviceLost(f"`{kernel.code.name}` was launched on a buffer that was freed")
    return tuple(_bytes(buffer) for buffer in buffers)


def _part(buffer: base.Buffer, offset: int, size: int) -> Array:
    if not 0 <= offset <= offset + size <= buffer.size:
        raise LaunchError(f"bytes {offset} to {offset + size} are not in the buffer")
    return _bytes(buffer)[offset : offset + size]


def _check_grid(kernel: CompiledKernel, grid: Dim3) -> None:
    for extent, threads in zip(grid, kernel.code.block, strict=True):
        if not 0 <= extent * threads <= _LARGEST_EXTENT:
            raise LaunchError(
                f"a grid of {tuple(grid)} blocks of {tuple(kernel.code.block)} threads has "
                f"{extent * threads} threads along one axis, and the cpu counts up to "
                f"{_LARGEST_EXTENT}: launch it in parts, or spread it over more axes"
            )
