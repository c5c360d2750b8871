"""The toy's driver: everything is done when a call returns."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.ir_evaluator import run
from tests.support.toy.target import FEATURES, LIMITS
from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import int32
from treadle.core.errors import LaunchError
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.ir.parser import from_text

INFO = DeviceInfo(
    id="toy",
    name="IR evaluator",
    backend="toy",
    kind="software",
    traits=Traits(
        targets=("toy",),
        usual_block=8,
        usual_row=4,
        default_integer=int32,
        on_host=True,
    ),
    limits=LIMITS,
    features=FEATURES,
)
_identities = itertools.count(1)


class Buffer(base.Buffer):
    """Bytes of its own."""

    __slots__ = ("bytes",)

    def __init__(self, device: base.Device, size: int) -> None:
        self.device, self.size, self.identity = device, size, next(_identities)
        self.bytes = np.empty(size, np.uint8)

    def address(self) -> int:
        raise TypeError("the toy's memory has no addresses")


class CompiledKernel(base.CompiledKernel):
    """A kernel, read from its text."""

    __slots__ = ("kernel",)

    def __init__(self, device: base.Device, code: KernelCode) -> None:
        self.device, self.code, self.kernel = device, code, from_text(code.source)


class Event(base.Event):
    """A moment."""

    def __init__(self) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """It is past."""

    def query(self) -> bool:
        return True

    def seconds(self) -> float:
        return self._time


class Recording(base.Recording):
    """Work to do again."""

    def __init__(self, work: list[Callable[[], None]]) -> None:
        self._work = work

    def replay(self, stream: base.Stream) -> None:
        for one in self._work:
            one()

    def release(self) -> None:
        self._work = []


class Stream(base.Stream):
    """Work is done at once, or recorded."""

    __slots__ = ("_captured",)

    def __init__(self, device: base.Device) -> None:
        self.device = device
        self._captured: list[Callable[[], None]] | None = None

    def _do(self, work: Callable[[], None]) -> None:
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
        assert isinstance(kernel, CompiledKernel)
        code, most = kernel.code, self.device.info.limits.max_grid
        if any(extent > limit for extent, limit in zip(grid, most, strict=True)):
            raise LaunchError(f"a grid of {tuple(grid)} blocks; the device has {tuple(most)}")
        arrays = {
            name: buffer.bytes  # type: ignore[attr-defined]
            for binding, buffer in zip(code.bindings, buffers, strict=True)
            for name in binding.buffers
        }
        numbers = struct.unpack(code.layout.format, parameters[: code.layout.size])
        values = {
            slot.parameter.name: x for slot, x in zip(code.layout.slots, numbers, strict=True)
        }
        if grid.count:
            self._do(lambda: _run(kernel.kernel, grid, arrays, values, code.workgroup))

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        content = np.frombuffer(bytes(data.cast("B")), np.uint8)
        self._do(lambda: np.copyto(_part(buffer, offset, len(content)), content))

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        to, of = _part(target, target_offset, size), _part(source, source_offset, size)
        self._do(lambda: np.copyto(to, of))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        self._do(lambda: _part(buffer, offset, size).fill(0))

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        target = target.cast("B")
        target[:] = _part(buffer, offset, len(target)).data

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        self.read(buffer, offset, target)

    def record(self) -> Event:
        return Event()

    def flush(self) -> None:
        """Nothing waits."""

    def synchronize(self) -> None:
        """Nothing is pending."""

    async def synchronize_async(self) -> None:
        """Nothing is pending."""

    def begin_capture(self) -> None:
        self._captured = []

    def end_capture(self) -> Recording:
        work, self._captured = self._captured or [], None
        return Recording(work)


class Device(base.Device):
    """The evaluator and its memory."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.default_stream = Stream(self)

    def allocate(self, size: int) -> Buffer:
        return Buffer(self, size)

    def free(self, buffer: base.Buffer) -> None:
        """Python frees it."""

    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        return CompiledKernel(self, code)

    def create_stream(self) -> Stream:
        return Stream(self)

    def memory_stats(self) -> dict[str, Any]:
        return {"allocated": 0, "peak": 0, "buffers": 0}

    def close(self) -> None:
        """Nothing to release."""


class Backend(base.Backend):
    """The one toy."""

    name = "toy"

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        return [INFO]

    def why_none(self) -> str:
        return "it is always there"

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        return Device(info)


def _part(buffer: base.Buffer, offset: int, size: int) -> np.ndarray[Any, Any]:
    assert isinstance(buffer, Buffer)
    return buffer.bytes[offset : offset + size]


def _run(
    kernel: Any,
    grid: Dim3,
    arrays: dict[str, np.ndarray[Any, Any]],
    values: dict[str, Any],
    threads: Dim3,
) -> None:
    run(kernel, grid, arrays, values, invocations=threads)
