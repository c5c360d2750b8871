"""Streams: work is done when the call returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.drivers import base
from treadle.drivers.cpu_numpy.chunks import Array
from treadle.drivers.cpu_numpy.kernels import CompiledKernel
from treadle.drivers.host_streams import (
    HostStream,
    check_extents,
    check_usable,
    part,
    wrong_buffers,
)


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


class Stream(HostStream[Callable[[], object]]):
    """Work in order."""

    __slots__ = ()

    def _recording(self, calls: list[Callable[[], object]]) -> Recording:
        return Recording(calls)

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
        check_extents(kernel, grid)
        arrays = _bindings(kernel, buffers)
        if self._captured is None or grid.count:
            self._do(Launch(kernel, grid, arrays, bytes(parameters), tuple(buffers)))

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Copy from host memory."""
        target = _array(buffer, offset, data.nbytes)
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
        to, of = _array(target, target_offset, size), _array(source, source_offset, size)
        self._do(lambda: np.copyto(to, of))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero a range."""
        target = _array(buffer, offset, size)
        self._do(lambda: target.fill(0))

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """Do work of the host's."""
        for buffer in buffers:
            check_usable(buffer)  # an error here, not at a replay
        self._do(work)


class Recording(base.Recording):
    """Captured work."""

    def __init__(self, calls: list[Callable[[], object]]) -> None:
        self._calls = calls

    def replay(self, stream: base.Stream) -> None:
        """Run everything again, in order."""
        stream.device.check_open()  # type: ignore[attr-defined]
        if stream.record_again(self._calls):  # type: ignore[attr-defined]
            return
        for call in self._calls:
            call()

    def change(
        self, place: int, kernel: base.CompiledKernel, grid: Dim3, parameters: bytes
    ) -> None:
        """Give a launch another grid and other parameters."""
        assert isinstance(kernel, CompiledKernel)
        check_extents(kernel, grid)
        old = self._calls[place]
        assert isinstance(old, Launch)
        self._calls[place] = Launch(old.kernel, grid, old.arrays, bytes(parameters), old.keep)

    def release(self) -> None:
        """Let go of buffers and kernels."""
        self._calls = []


def _bindings(kernel: CompiledKernel, buffers: Sequence[base.Buffer]) -> tuple[Array, ...]:
    freed = any(buffer.pointer is None for buffer in buffers)  # type: ignore[attr-defined]
    if freed or len(buffers) != len(kernel.code.bindings):
        raise wrong_buffers(kernel, buffers)
    return tuple(_array(buffer, 0, buffer.size) for buffer in buffers)


def _array(buffer: base.Buffer, offset: int, size: int) -> Array:
    return np.frombuffer(part(buffer, offset, size), np.uint8)
