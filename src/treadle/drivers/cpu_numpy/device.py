"""The backend and its device."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base, machine
from treadle.drivers.cpu_numpy.kernels import CompiledKernel
from treadle.drivers.cpu_numpy.stream import Stream
from treadle.drivers.host_memory import HostDevice

_LARGEST = (1 << 31) - 1
_log = logging.getLogger("treadle")

LIMITS = Limits(
    max_threads_per_block=1024,
    max_block=Dim3(1024, 1024, 1024),
    max_grid=Dim3(_LARGEST, _LARGEST, _LARGEST),
    max_shared_memory=64 << 10,
    max_buffer_size=min(1 << 46, int(np.iinfo(np.intp).max)),
    max_binding_size=min(1 << 46, int(np.iinfo(np.intp).max)),
    max_buffers_per_kernel=1024,
    subgroup_size=32,
    buffer_alignment=4,
)
TRAITS = Traits(
    targets=("numpy",),
    rank=8,  # slower than a GPU whose driver computes on the CPU
    usual_block=256,
    vector_loads=False,
    on_host=True,
    host_memory=True,
    changes_recordings=True,
)
FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "timestamps", "float_atomics", "int64_atomics",
    "device_fences", "unified_memory",
})  # fmt: skip


class Device(HostDevice):
    """The process's memory, and NumPy."""

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.default_stream = Stream(self)

    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        """The functions of printed Python."""
        del binary
        self.check_open()
        if code.shared_bytes > self.info.limits.max_shared_memory:
            raise CompileError(
                f"`{code.name}` uses {code.shared_bytes} bytes of shared memory, and "
                f"{self.info.id} has {self.info.limits.max_shared_memory} for a block: use less"
            )
        return CompiledKernel(self, code)

    def create_stream(self) -> Stream:
        """A new stream. Each launch is done when it returns, so streams need no ordering."""
        self.check_open()
        return Stream(self)


class Backend(base.Backend):
    """NumPy, which is always there. `name` is what the device is called: "numpy", or "cpu" where
    it stands in for the driver that needs LLVM."""

    def __init__(self, name: str) -> None:
        self.name = name

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The CPU."""
        return [
            DeviceInfo(
                id=self.name,
                name=f"NumPy on {machine.processor_name()}",
                backend=self.name,
                kind="cpu",
                traits=TRAITS,
                driver=f"NumPy {np.__version__}",
                limits=LIMITS,
                features=FEATURES,
            )
        ]

    def why_none(self) -> str:
        """It is always there."""
        return "NumPy is always there"

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        """The device; with `limits` it says that it has those."""
        if info.id != "numpy":
            _log.warning(
                "the device %s runs kernels through NumPy here, which is much slower than LLVM or "
                "a GPU", info.id,
            )  # fmt: skip
        return Device(info if limits is None else replace(info, limits=limits))


def numpy_backend() -> Backend:
    """The backend beside the one that has LLVM."""
    return Backend("numpy")


def cpu_backend() -> Backend:
    """The backend in place of the one that has LLVM, which browsers do not run."""
    return Backend("cpu")
