"""The CPU's backend, device, buffers and compiled kernels."""

from __future__ import annotations

import ctypes
from dataclasses import replace

from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base, machine
from treadle.drivers.cpu import native
from treadle.drivers.cpu.compiler import compiler
from treadle.drivers.cpu.kernels import CompiledKernel
from treadle.drivers.cpu.stream import Stream
from treadle.drivers.host_memory import Buffer, HostDevice

__all__ = ["Buffer", "Device", "backend"]

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
    calls_kernels=True,
    host_memory=True,
    changes_recordings=True,
)
FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "timestamps", "float_atomics", "int64_atomics",
    "device_fences", "unified_memory",
})  # fmt: skip


class Device(HostDevice):
    """The machine's processors and memory."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.threads = machine.thread_count()
        self.default_stream = Stream(self)

    def vector_bytes(self) -> int:
        """The width of the processor's vectors."""
        return compiler().vector_bytes

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

    def mapped_memory(self, size: int) -> tuple[memoryview, base.Buffer]:
        """Memory of the process: all of it is the host's."""
        memory = (ctypes.c_uint8 * size)()
        address = ctypes.addressof(memory)
        return memoryview(memory).cast("B"), self.borrow_address(address, size, memory)

    def create_stream(self) -> Stream:
        """A new stream. Each launch is done when it returns, so streams need no ordering."""
        self.check_open()
        return Stream(self)

    def cache_key(self) -> str:
        """Machine code is good for one processor, its features and one LLVM."""
        return "/".join(("cpu", *compiler().identity()))


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
                traits=replace(TRAITS, streamed_bytes=machine.cache_bytes()),
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
        native.store[0] = self.code_store
        return Device(info if limits is None else replace(info, limits=limits))


def backend() -> Backend:
    """The backend of this driver."""
    return Backend()


def _llvmlite_version() -> str | None:
    """The version that is installed; the package alone does not load the library."""
    try:
        import llvmlite
    except ImportError:
        return None
    return str(llvmlite.__version__)
