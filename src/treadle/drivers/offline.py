"""Devices that are not here. Kernels are printed for them as for a real one, and what would be
launched is kept instead: its code, grid, buffers and parameters. Memory has a size and no contents.

So all that treadle computes can be had as text, with its launches, for a card that the machine
lacks (`treadle kernels`). It is computed in a capture, where nothing is tried or read.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.codegen.records import KernelCode, Target
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.core.folding import fit_grid
from treadle.core.limits import CUDA_PARAMETER_BYTES, DeviceInfo, Limits
from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.drivers.cuda.properties import group_products, matrix_products
from treadle.drivers.host_streams import Event, check_extents
from treadle.drivers.tensor_maps import Matrix, matrix_of
from treadle.drivers.webgpu_rules.traits import traits_of

_MEMORY = 1 << 40  # bytes of an array, which takes no memory
_NVIDIA = Traits(
    targets=("ptx", "cuda"), double_buffers=True, fast_powers=True,
)  # fmt: skip
_FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics", "tensor_cores",
})  # fmt: skip
_NEWEST = 1 << 30  # a driver's version
_HOPPER = 90  # the one with instructions of its own that kernels are made of
# Bytes of shared memory that a block may have, by compute capability, from NVIDIA's guide.
SHARED_MEMORY = {
    70: 96 << 10, 75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 87: 163 << 10, 89: 99 << 10,
    90: 227 << 10, 100: 227 << 10, 103: 227 << 10, 110: 227 << 10, 120: 99 << 10, 121: 99 << 10,
}  # fmt: skip


@dataclass(frozen=True)
class Like:
    """What devices are like that take a language."""

    traits: Traits
    limits: Limits
    features: frozenset[str]


# Where it is not what the language's own record says. WebGPU's devices all have the smallest limits
# (the defaults), and their subgroups have 4 to 128 threads, so kernels go without.
_EVERY_DEVICE = {"wgsl": Like(traits_of("discrete"), Limits(), frozenset({"float16"}))}


@dataclass(frozen=True)
class Launch:
    """What would have been launched: the grid as the device takes it, folded if it is too large
    otherwise. The numbers of the parameter block are in the order of the code's layout, the bytes
    of the buffers in that of its bindings, and the matrices that boxes are copied of, whose
    addresses are counted from the beginning of their buffer, in that of its maps.
    """

    code: KernelCode
    grid: Dim3
    buffers: tuple[int, ...]
    numbers: tuple[int | float, ...]
    matrices: tuple[Matrix, ...] = ()


class Buffer(base.Buffer):
    """Memory without contents."""

    __slots__ = ()

    def __init__(self, device: Device, size: int, identity: int) -> None:
        self.device = device
        self.size = size
        self.identity = identity

    def address(self) -> int:
        """There is none."""
        raise TypeError(f"{self.device.info.id} is not here: its memory has no addresses")


class CompiledKernel(base.CompiledKernel):
    """Printed code."""

    __slots__ = ()

    def __init__(self, device: Device, code: KernelCode) -> None:
        self.device = device
        self.code = code


class Stream(base.Stream):
    """What would be done, of which launches are kept."""

    __slots__ = ("launches",)

    def __init__(self, device: Device) -> None:
        self.device = device
        self.launches: list[Launch] = []

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """Keep a launch."""
        self.device.check_open()  # type: ignore[attr-defined]
        check_extents(kernel, grid)
        limits = self.device.info.limits
        fitting = fit_grid(Dim3(*grid), limits.max_grid, kernel.code.folded)
        if fitting is None:
            raise LaunchError(
                f"a grid of {tuple(grid)} blocks is more than {tuple(limits.max_grid)}, and kernel "
                f"{kernel.code.name} cannot be launched folded: ask for smaller sizes"
            )
        numbers = struct.unpack(kernel.code.layout.format, bytes(parameters))
        sizes = tuple(buffer.size for buffer in buffers)
        nowhere = bytes(8 * len(sizes))
        matrices = tuple(matrix_of(each, nowhere, parameters) for each in kernel.code.maps)
        self.launches.append(Launch(kernel.code, fitting, sizes, numbers, matrices))

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Nothing: there are no contents."""

    def copy(
        self, source: base.Buffer, source_offset: int, target: base.Buffer, target_offset: int,
        size: int,
    ) -> None:  # fmt: skip
        """Nothing."""

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Nothing."""

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """LaunchError: nothing was computed."""
        raise LaunchError(
            f"{self.device.info.id} is not here: kernels are printed for it, and nothing is "
            "computed that could be read"
        )

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """LaunchError: nothing was computed."""
        self.read(buffer, offset, target)

    def record(self) -> Event:
        """The present moment."""
        return Event()

    def flush(self) -> None:
        """Nothing waits to be started."""

    def synchronize(self) -> None:
        """Nothing is pending."""

    async def synchronize_async(self) -> None:
        """Nothing is pending."""

    def begin_capture(self) -> None:
        """Nothing changes: launches are kept anyway."""

    def end_capture(self) -> Recording:
        """A recording that cannot be replayed."""
        return Recording()


class Recording(base.Recording):
    """What was captured, of no use here: `Stream.launches` has it."""

    def replay(self, stream: base.Stream) -> None:
        """LaunchError: what is not here runs nothing."""
        raise LaunchError(f"{stream.device.info.id} is not here: nothing can be replayed on it")

    def release(self) -> None:
        """Nothing is held."""


class Device(base.Device):
    """A device that is not here."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.closed = False
        self._identities = itertools.count(1)
        self.default_stream: Stream = Stream(self)

    def check_open(self) -> None:
        """DeviceLost if it was closed."""
        if self.closed:
            raise DeviceLost(f"the device {self.info.id} was closed; open it again to use it")

    def allocate(self, size: int) -> Buffer:
        """A buffer of a size."""
        self.check_open()
        return Buffer(self, size, next(self._identities))

    def free(self, buffer: base.Buffer) -> None:
        """Nothing to give back."""

    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        """The code as it is."""
        self.check_open()
        return CompiledKernel(self, code)

    def create_stream(self) -> Stream:
        """A new stream."""
        self.check_open()
        return Stream(self)

    def memory_stats(self) -> dict[str, Any]:
        """Zeros: it has no memory."""
        return {"allocated": 0, "peak": 0, "buffers": 0}

    def close(self) -> None:
        """Not to be used afterwards."""
        self.closed = True


class Backend(base.Backend):
    """A device that is described rather than found."""

    name = "offline"

    def __init__(self, info: DeviceInfo) -> None:
        self._info = info

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The one that is described."""
        return [self._info]

    def why_none(self) -> str:
        """It is always there."""
        return "it is always there"

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        """Open it."""
        return Device(info if limits is None else replace(info, limits=limits))


def nvidia_card(capability: int, language: str = "ptx", *, own: bool = False) -> DeviceInfo:
    """A card of NVIDIA's of a compute capability, for kernels in PTX or CUDA C++: what its `own`
    instructions can do, too, which newer cards lack (of 9.0, as PTX). KeyError for a capability
    that is not known.

    >>> nvidia_card(90).limits.max_shared_memory
    232448
    """
    shared = SHARED_MEMORY[capability]
    groups = group_products(capability, _NEWEST) if own and language == "ptx" else frozenset()
    return DeviceInfo(
        id=f"offline:sm_{capability}",
        name=f"an NVIDIA card of compute capability {capability / 10}",
        backend="cuda",
        kind="discrete",
        traits=replace(
            _NVIDIA, targets=(language,), matrix_products=matrix_products(capability),
            group_products=groups,
        ),
        vendor="NVIDIA",
        dialect=f"sm_{capability}",
        limits=Limits(
            1024, Dim3(1024, 1024, 64), Dim3((1 << 31) - 1, 65535, 65535), shared, _MEMORY, _MEMORY,
            CUDA_PARAMETER_BYTES // 2 // 8, 32,
        ),
        features=_FEATURES,
    )  # fmt: skip


def find_card(sm: int | str, language: str) -> DeviceInfo:
    """The card that a compute capability names, as 80 or "90a", for kernels in PTX or CUDA C++.
    ValueError for one that is not known, and for another language.

    >>> find_card("sm_90", "cuda").dialect
    'sm_90'
    """
    if language not in _NVIDIA.targets:
        raise ValueError(f"sm is for {' and '.join(_NVIDIA.targets)}, not for {language}")
    found = re.fullmatch(r"(?:sm_)?(\d{2,3})(a?)", str(sm))
    capability = int(found[1]) if found else 0
    known = ", ".join(map(str, SHARED_MEMORY))
    if found is None or capability not in SHARED_MEMORY or (found[2] and capability != _HOPPER):
        raise ValueError(f"sm is one of {known} and {_HOPPER}a, not {sm!r}")
    if found[2] and language != "ptx":
        raise ValueError(
            f"sm {sm} is for ptx, the language that instructions of one architecture alone are "
            f"printed in; for {language} use {_HOPPER}"
        )
    return nvidia_card(capability, language, own=bool(found[2]))


def generic_device(language: str) -> DeviceInfo:
    """What a language is printed for without a device to ask.

    >>> generic_device("msl").id
    'offline:msl'
    """
    generic: Target = find_target(language).generic
    like = _EVERY_DEVICE.get(language, Like(Traits((language,)), generic.limits, generic.features))
    limits = replace(like.limits, max_buffer_size=_MEMORY, max_binding_size=_MEMORY)
    return DeviceInfo(
        id=f"offline:{language}",
        name=f"any device that takes {language}",
        backend=language,
        kind="discrete",
        traits=like.traits,
        dialect=generic.dialect,
        limits=limits,
        features=like.features,
    )
