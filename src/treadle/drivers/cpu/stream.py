"""Streams of the CPU: work is done when the call returns."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.drivers import base
from treadle.drivers.cpu import launches, native
from treadle.drivers.cpu.launches import Call, HostCall, check_grid
from treadle.drivers.cpu.recording import Recording
from treadle.drivers.host_streams import HostStream, check_usable, part, wrong_buffers


class Stream(HostStream[Call | HostCall]):
    """Work in order."""

    __slots__ = ()

    def _recording(self, calls: list[Call | HostCall]) -> Recording:
        return Recording(calls)

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
            raise wrong_buffers(kernel, buffers) from None
        if self._calls is not None or self.device.closed:  # type: ignore[attr-defined]
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
        captured = self._captured
        if captured is None:  # another thread captures
            if blocks:
                launches.run(kernel, bindings, parameters, grid, blocks)  # type: ignore[arg-type]
            return
        call = Call(
            kernel.pointer,  # type: ignore[attr-defined]
            bindings,
            bytes(parameters),
            grid,
            blocks,
            kernel,  # type: ignore[arg-type]
            buffers,
        )
        if blocks:
            captured.append(call)

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Copy from host memory."""
        data = data.cast("B")
        if self._captured is not None:
            kept = ctypes.create_string_buffer(bytes(data), len(data))
            self._capture_copy(
                _address(buffer, offset, len(data)), ctypes.addressof(kept), len(data),
                (buffer, kept),
            )  # fmt: skip
            return
        part(buffer, offset, len(data))[:] = data

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Copy between buffers."""
        if self._captured is not None:
            self._capture_copy(
                _address(target, target_offset, size), _address(source, source_offset, size), size,
                (source, target),
            )  # fmt: skip
            return
        part(target, target_offset, size)[:] = part(source, source_offset, size)

    def _capture_copy(self, target: int, source: int, size: int, keep: tuple[Any, ...]) -> None:
        assert self._captured is not None
        bindings = struct.pack("2Q", target, source)
        self._captured.append(Call(native.address("copy"), bindings, b"", b"", size, None, keep))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero a range."""
        start = _address(buffer, offset, size)
        if self._captured is not None:
            bindings = struct.pack("Q", start)
            zero = native.address("zero")
            self._captured.append(Call(zero, bindings, b"", b"", size, None, (buffer,)))
            return
        ctypes.memset(start, 0, size)

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """Do work of the host's."""
        self.device.check_open()  # type: ignore[attr-defined]
        if self._captured is not None:
            for buffer in buffers:
                check_usable(buffer)  # an error here, not at a replay
            self._captured.append(HostCall(work, tuple(buffers)))
        else:
            work()


def _address(buffer: base.Buffer, offset: int, size: int) -> int:
    """Where bytes of a buffer begin."""
    part(buffer, offset, size)
    return buffer.address() + offset
