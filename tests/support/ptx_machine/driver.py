"""The machine as a device: the drivers' protocol, for tests only.

Everything is done when a call returns. A device says that it is a CUDA device of some "sm_NN", so
that kernels are printed for it as PTX, or as CUDA C++ from which NVIDIA's run-time compiler makes
PTX; its id begins with "ptx".
"""

from __future__ import annotations

import itertools
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np

from tests.support.ptx_machine.memory import GlobalMemory
from tests.support.ptx_machine.run import Kernel, load
from tests.support.ptx_machine.stages import encode
from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, DeviceLost, LaunchError, OutOfMemory
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.drivers.cuda.properties import matrix_products
from treadle.drivers.tensor_maps import map_places, with_maps

MEMORY = 1 << 31  # bytes that the machine allows in all
NAMES = ("sm_90", "sm_70", "nvrtc")  # of the devices, in order
_DIALECTS = {"nvrtc": "sm_90"}
_SHARED_MEMORY = {"sm_70": 96 << 10, "sm_90": 227 << 10}
FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics", "timestamps",
})  # fmt: skip

TRAITS = Traits(
    targets=("ptx", "cuda"),
    software=True,
    double_buffers=True,
    fast_powers=True,
    cuda_memory=True,
    vendor_products=True,
    changes_recordings=True,
)


class Buffer(base.Buffer):
    """A range of the machine's global memory."""

    __slots__ = ("place",)

    def __init__(self, device: Device, size: int, place: int, identity: int) -> None:
        self.device = device
        self.size = size
        self.identity = identity
        self.place: int | None = place

    def address(self) -> int:
        """What kernels see; of no use to anybody else."""
        if self.place is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.place

    def bytes(self, offset: int, size: int) -> np.ndarray[Any, Any]:
        """Some of its bytes."""
        if not 0 <= offset <= offset + size <= self.size:
            raise LaunchError(f"bytes {offset} to {offset + size} are not in the buffer")
        device = self.device
        assert isinstance(device, Device)
        device.check_open()
        return device.memory.slice(self.address() + offset, size)


class CompiledKernel(base.CompiledKernel):
    """A kernel in the machine."""

    __slots__ = ("kernel", "text")

    def __init__(self, device: Device, code: KernelCode) -> None:
        self.device = device
        self.code = code
        if code.target == "cuda":
            from tests.support.ptx_machine.nvrtc import ptx_of  # NVIDIA's compiler is large

            self.text = ptx_of(code)
        else:
            self.text = code.source
        strict = code.target == "ptx"
        self.kernel: Kernel = load(self.text, code.entry, device.memory, strict)


class Event(base.Event):
    """A moment: work is done when it was asked for."""

    def __init__(self) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def seconds(self) -> float:
        return self._time


class Recording(base.Recording):
    """Work as functions to call again, and of launches their buffers."""

    def __init__(
        self, work: list[Callable[[], None]], launched: dict[int, tuple[base.Buffer, ...]]
    ) -> None:
        self._work = work
        self._launched = launched

    def replay(self, stream: base.Stream) -> None:
        stream.device.check_open()  # type: ignore[attr-defined]
        for one in self._work:
            stream._do(one)  # type: ignore[attr-defined]

    def change(
        self, place: int, kernel: base.CompiledKernel, grid: Dim3, parameters: bytes
    ) -> None:
        self._work[place] = _launch(kernel, grid, self._launched[place], parameters)

    def release(self) -> None:
        self._work = []


def _launch(
    kernel: base.CompiledKernel, grid: Dim3, buffers: Sequence[base.Buffer], parameters: bytes
) -> Callable[[], None]:
    assert isinstance(kernel, CompiledKernel)
    addresses = [buffer.address() for buffer in buffers]
    code, kept = kernel.code, tuple(buffers)
    pointers = struct.pack(f"<{len(addresses)}Q", *addresses)
    block = with_maps(code, map_places(code), pointers, parameters, encode)

    def work() -> None:
        assert all(buffer.address() for buffer in kept)
        kernel.kernel.launch(tuple(grid), tuple(code.workgroup), block, code.dynamic_shared)

    return work


class Stream(base.Stream):
    """Work is done at once, or recorded."""

    __slots__ = ("_begun", "_launched", "_owner")

    def __init__(self, device: Device) -> None:
        self.device = device
        self._launched: dict[int, tuple[base.Buffer, ...]] = {}
        self._begun: list[Callable[[], None]] | None = None
        self._owner = 0

    def _do(self, work: Callable[[], None]) -> None:
        self.device.check_open()  # type: ignore[attr-defined]
        if self._captured is not None:
            self._captured.append(work)
        else:
            work()

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        assert isinstance(kernel, CompiledKernel)
        code = kernel.code
        if len(buffers) != len(code.bindings):
            raise LaunchError(
                f"`{code.name}` takes {len(code.bindings)} buffers, not {len(buffers)}"
            )
        most = self.device.info.limits.max_grid
        if any(extent > limit for extent, limit in zip(grid, most, strict=True)):
            raise LaunchError(f"a grid of {tuple(grid)} blocks; the device has {tuple(most)}")
        if grid.count:
            if self._captured is not None:
                self._launched[len(self._captured)] = tuple(buffers)
            self._do(_launch(kernel, grid, buffers, parameters))

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        assert isinstance(buffer, Buffer)
        content = np.frombuffer(bytes(data.cast("B")), np.uint8)
        target = buffer.bytes(offset, len(content))
        self._do(lambda: np.copyto(target, content))

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        assert isinstance(source, Buffer)
        assert isinstance(target, Buffer)
        to, of = target.bytes(target_offset, size), source.bytes(source_offset, size)
        self._do(lambda: np.copyto(to, of))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        assert isinstance(buffer, Buffer)
        target = buffer.bytes(offset, size)
        self._do(lambda: target.fill(0))

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        assert isinstance(buffer, Buffer)
        if self._captured is not None:
            raise LaunchError("a capture cannot read: end it first, replay it, then read")
        target = target.cast("B")
        target[:] = buffer.bytes(offset, len(target)).data

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        self.read(buffer, offset, target)

    def record(self) -> Event:
        return Event()

    def flush(self) -> None:
        pass

    def synchronize(self) -> None:
        self.device.check_open()  # type: ignore[attr-defined]

    async def synchronize_async(self) -> None:
        self.synchronize()

    @property
    def _captured(self) -> list[Callable[[], None]] | None:
        return self._begun if self._owner == get_ident() else None

    def begin_capture(self) -> None:
        if self._begun is not None:
            raise LaunchError("this stream is being captured already")
        self._begun, self._owner = [], get_ident()
        self._launched = {}

    @property
    def recorded(self) -> int:
        assert self._begun is not None
        return len(self._begun)

    def end_capture(self) -> Recording:
        if self._begun is None:
            raise LaunchError("this stream is not being captured: call begin_capture first")
        work, self._begun = self._begun, None
        return Recording(work, self._launched)


class Device(base.Device):
    """A machine with its memory."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.memory = GlobalMemory()
        self.closed = False
        self._identities = itertools.count(1)
        self._lock = threading.Lock()
        self._allocated = self._peak = self._count = 0
        self.default_stream = Stream(self)

    def check_open(self) -> None:
        """DeviceLost if the device was closed."""
        if self.closed:
            raise DeviceLost(f"the device {self.info.id} was closed; open it again to use it")

    def allocate(self, size: int) -> Buffer:
        self.check_open()
        with self._lock:
            if self._allocated + size > MEMORY:
                raise OutOfMemory(
                    f"{self.info.id} cannot allocate {size} bytes: {self._allocated} are in use, "
                    f"{MEMORY - self._allocated} are free"
                )
            self._allocated += size
            self._count += 1
            self._peak = max(self._peak, self._allocated)
            return Buffer(self, size, self.memory.allocate(size), next(self._identities))

    def free(self, buffer: base.Buffer) -> None:
        assert isinstance(buffer, Buffer)
        with self._lock:
            if buffer.place is not None and not self.closed:
                self.memory.free(buffer.place)
                buffer.place = None
                self._allocated -= buffer.size
                self._count -= 1

    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        self.check_open()
        if code.shared_bytes > self.info.limits.max_shared_memory:
            raise CompileError(
                f"`{code.name}` uses {code.shared_bytes} bytes of shared memory, and "
                f"{self.info.id} has {self.info.limits.max_shared_memory} for a block: use less"
            )
        return CompiledKernel(self, code)

    def create_stream(self) -> Stream:
        self.check_open()
        return Stream(self)

    def memory_stats(self) -> dict[str, Any]:
        return {
            "allocated": self._allocated, "peak": self._peak, "buffers": self._count,
            "total": MEMORY, "free": MEMORY - self._allocated,
        }  # fmt: skip

    def close(self) -> None:
        self.closed = True


class Backend(base.Backend):
    """Machines of two generations, the newer first, and one that is told apart for CUDA C++."""

    name = "ptx"

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        return [_info(number, name) for number, name in enumerate(NAMES)]

    def why_none(self) -> str:
        return "it is always there"

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        return Device(info if limits is None else replace(info, limits=limits))


def _info(number: int, name: str) -> DeviceInfo:
    dialect = _DIALECTS.get(name, name)
    return DeviceInfo(
        id=f"ptx:{number}",
        name=f"PTX evaluator, {name}",
        backend="cuda",
        kind="software",
        traits=replace(
            TRAITS,
            matrix_products=matrix_products(int(dialect[3:])),
            later_copies=int(dialect[3:]) >= 80,
            clusters=name == "sm_90",
        ),
        driver="NumPy",
        api="cuda",
        dialect=dialect,
        limits=Limits(
            1024,
            Dim3(1024, 1024, 64),
            Dim3((1 << 31) - 1, 65535, 65535),
            max_shared_memory=_SHARED_MEMORY[dialect],
            max_buffer_size=MEMORY,
            max_binding_size=MEMORY,
            max_buffers_per_kernel=256,
            subgroup_size=32,
            buffer_alignment=256,
        ),
        features=FEATURES,
    )


def backend() -> Backend:
    """The backend of the machine."""
    return Backend()
