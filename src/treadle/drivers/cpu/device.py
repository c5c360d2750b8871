"""The CPU's backend, device, buffers and compiled kernels."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from treadle.codegen.records import KernelCode
from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, DeviceLost, OutOfMemory
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.drivers.cpu import machine
from treadle.drivers.cpu.compiler import compiler
from treadle.drivers.cpu.kernels import CompiledKernel
from treadle.drivers.cpu.stream import Stream

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_CAREFUL_BYTES = 1 << 26  # allocations from here on are checked against the machine's free memory
_LARGEST = (1 << 31) - 1

LIMITS = Limits(
    max_threads_per_block=1024,
    max_block=Dim3(1024, 1024, 1024),
    max_grid=Dim3(_LARGEST, _LARGEST, _LARGEST),
    max_shared_memory=64 << 10,
    max_buffer_size=1 << 46,
    max_binding_size=1 << 46,
    max_buffers_per_kernel=1024,
    subgroup_size=32,
    buffer_alignment=4,
)
TRAITS = Traits(
    targets=("llvm",),
    rank=3,
    serial_threads=True,
    usual_block=1024,  # one loop, which likes to be long
    usual_row=1024,
    on_host=True,
    host_memory=True,
    changes_recordings=True,
)
FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "timestamps", "float_atomics", "int64_atomics",
    "unified_memory",
})  # fmt: skip


_opened: weakref.WeakSet[Device] = weakref.WeakSet()


@forks.in_child
def _abandon_all(half_changed: bool) -> None:
    """The child has the memory too, and goes on with it if it is whole."""
    if half_changed:
        for device in list(_opened):
            device.abandon_after_fork()


class Buffer(base.Buffer):
    """Host memory, aligned to 64 bytes."""

    __slots__ = ("memory", "pointer")

    def __init__(self, device: Device, memory: np.ndarray[Any, Any], identity: int) -> None:
        self.device = device
        self.size = memory.size
        self.identity = identity
        # Bytes as a memoryview: slices copy at once, and it keeps the array alive.
        self.memory = memoryview(memory)  # type: ignore[arg-type]
        self.pointer: int | None = memory.ctypes.data  # None once the buffer is freed

    def address(self) -> int:
        """The host address of the first byte."""
        if self.pointer is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.pointer

    def host_bytes(self) -> memoryview:
        """Its bytes."""
        if self.pointer is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.memory


class Device(base.Device):
    """The machine's processors and memory."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.threads = machine.thread_count()
        self.closed = False
        self._why = "was closed; open it again to use it"
        self._identities = itertools.count(1)
        self._lock = forks.lock()
        self._allocated = 0
        self._peak = 0
        self._count = 0
        self.default_stream = Stream(self)
        _opened.add(self)

    def vector_bytes(self) -> int:
        """The width of the processor's vectors."""
        return compiler().vector_bytes

    def check_open(self) -> None:
        """DeviceLost if the device was closed."""
        if self.closed:
            raise DeviceLost(f"the device {self.info.id} {self._why}")

    def allocate(self, size: int) -> Buffer:
        """New memory. OutOfMemory if the machine has not that much left."""
        self.check_open()
        if size > _CAREFUL_BYTES and size > machine.free_memory() > 0:
            raise self._out_of_memory(size)
        try:
            whole = np.empty(size + ALIGNMENT, np.uint8)
            start = -whole.ctypes.data % ALIGNMENT
            buffer = Buffer(self, whole[start : start + size], next(self._identities))
        except (MemoryError, ValueError, OverflowError):
            raise self._out_of_memory(size) from None
        with self._lock:
            self._allocated += size
            self._count += 1
            self._peak = max(self._peak, self._allocated)
        return buffer

    def borrow_address(self, address: int, size: int, owner: object) -> Buffer:
        """Another library's memory as a buffer, not copied. It keeps `owner` alive and does not
        count as this device's memory."""
        self.check_open()
        return Buffer(self, _bytes_at(address, size, owner), next(self._identities))

    def _out_of_memory(self, size: int) -> OutOfMemory:
        free = machine.free_memory()
        return OutOfMemory(
            f"{self.info.id} cannot allocate {size} bytes: {self._allocated} bytes are in use by "
            f"{self._count} buffers and {free} bytes of the machine's memory are free; free some "
            "arrays, or work in smaller pieces"
        )

    def free(self, buffer: base.Buffer) -> None:
        """Give memory back. All work is done when it returns, so nothing can be pending."""
        assert isinstance(buffer, Buffer)
        with self._lock:
            if buffer.pointer is None:
                return
            buffer.pointer = None
            self._allocated -= buffer.size
            self._count -= 1
        buffer.memory = memoryview(b"")

    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        """Machine code of printed LLVM assembly, or of an object file from `binary` before."""
        self.check_open()
        if code.shared_bytes > self.info.limits.max_shared_memory:
            raise CompileError(
                f"`{code.name}` uses {code.shared_bytes} bytes of shared memory, and "
                f"{self.info.id} has {self.info.limits.max_shared_memory} for a block: use less"
            )
        image = binary if binary is not None else self.compile_object(code)
        return self.load_object(code, image)

    def compile_object(self, code: KernelCode) -> bytes:
        """The object file of a kernel, to be loaded now or by another process like this one."""
        return compiler().compile_object(code.source, code.name)

    def load_object(self, code: KernelCode, image: bytes) -> CompiledKernel:
        """A kernel from its object file."""
        return CompiledKernel(self, code, image)

    def binary(self, kernel: base.CompiledKernel) -> bytes | None:
        """The object file of a kernel."""
        assert isinstance(kernel, CompiledKernel)
        return kernel.image

    def create_stream(self) -> Stream:
        """A new stream. Each launch is done when it returns, so streams need no ordering."""
        self.check_open()
        return Stream(self)

    def memory_stats(self) -> dict[str, Any]:
        """Bytes allocated now and at most, the number of buffers, and the machine's memory."""
        with self._lock:
            return {
                "allocated": self._allocated,
                "peak": self._peak,
                "buffers": self._count,
                "total": machine.total_memory(),
                "free": machine.free_memory(),
            }

    def close(self) -> None:
        """Refuse further work; buffers are freed when their last reference goes."""
        self.closed = True

    def abandon_after_fork(self) -> None:
        """Called in a forked child whose parent was forked within an operation."""
        self.closed = True
        self._why = f"is lost: {base.FORKED_AMIDST}"

    def cache_key(self) -> str:
        """Machine code is good for one processor, its features and one LLVM."""
        host = compiler()
        return f"cpu/{host.triple}/{host.processor}/{host.features}/{host.version}"


class Backend(base.Backend):
    """The one CPU that is always there (given llvmlite)."""

    name = "cpu"

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The CPU, or nothing where llvmlite is not installed (a browser)."""
        version = _llvmlite_version()
        if version is None:
            return []
        return [
            DeviceInfo(
                id="cpu",
                name=machine.processor_name(),
                backend="cpu",
                kind="cpu",
                traits=TRAITS,
                driver=f"llvmlite {version}",
                limits=LIMITS,
                features=FEATURES,
            )
        ]

    def why_none(self) -> str:
        """What is missing."""
        return "the cpu device needs llvmlite, which is not installed: pip install llvmlite"

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        """The device; with `limits` it says that it has those."""
        return Device(info if limits is None else replace(info, limits=limits))


def backend() -> Backend:
    """The backend of this driver."""
    return Backend()


def _bytes_at(address: int, size: int, owner: object) -> np.ndarray[Any, Any]:
    """The memory at an address, keeping its owner alive."""
    memory = (ctypes.c_uint8 * size).from_address(address)
    memory.owner = owner  # type: ignore[attr-defined]  # ctypes arrays take attributes
    return np.ctypeslib.as_array(memory)


def _llvmlite_version() -> str | None:
    """The version that is installed; the package alone does not load the library."""
    try:
        import llvmlite
    except ImportError:
        return None
    return str(llvmlite.__version__)
