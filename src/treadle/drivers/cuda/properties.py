"""What a card is and can do, as its driver reports it; its state, from NVIDIA's management library
(NVML) where that is installed. A value that NVML cannot give is left out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.limits import CUDA_PARAMETER_BYTES, DeviceInfo, Limits
from treadle.core.once import once
from treadle.core.traits import Traits
from treadle.drivers.cuda.library import Library

OLDEST_ARCHITECTURE = 70  # Volta: threads of a warp make progress on their own, tensor cores
_LATER_COPIES = 80  # Ampere
# What cards multiply by `mma`, by the architecture from which on they do.
_MATRIX_PRODUCTS = {75: {"f16", "i8", "u8", "i8u8", "u8i8"}, 80: {"bf16", "tf32"}}
_GROUPS = 90  # Hopper
_SAYS_PARAMETERS = 12040  # CUDA 12.4
# Numbers of CUdevice_attribute.
_MAX_THREADS, _MAX_BLOCK, _MAX_GRID, _WARP_SIZE = 1, (2, 3, 4), (5, 6, 7), 10
_MULTIPROCESSORS = 16
_TIME_LIMIT, _INTEGRATED, _MAJOR, _MINOR, _SHARED_OPT_IN, _POOLS = 17, 18, 75, 76, 97, 115

_FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics", "device_fences",
    "timestamps", "tensor_cores",
})  # fmt: skip
_TRAITS = Traits(
    targets=("ptx", "cuda"),
    rank=0,
    double_buffers=True,
    fast_powers=True,
    cuda_memory=True,
    vendor_products=True,
    starts_at_once=True,
    changes_recordings=True,
)


@dataclass(frozen=True, slots=True)
class Card:
    """A device that the driver shows."""

    ordinal: int
    handle: Any  # a CUdevice
    name: str
    architecture: int  # 90 for compute capability 9.0
    bus: str  # where it is plugged in: "0000:17:00.0"
    pools: bool  # whether memory can be allocated in the order of a stream
    multiprocessors: int = 1

    @property
    def supported(self) -> bool:
        """Whether treadle's code runs on it.

        >>> Card(0, None, "a GTX 1080", 61, "", True).supported
        False
        """
        return self.architecture >= OLDEST_ARCHITECTURE


def matrix_products(architecture: int) -> frozenset[str]:
    """What a card multiplies by `mma`: dtypes, pairs of them, and TF32.

    >>> sorted(matrix_products(90))
    ['bf16', 'f16', 'i8', 'i8u8', 'tf32', 'u8', 'u8i8']
    >>> sorted(matrix_products(75)), matrix_products(70)
    (['f16', 'i8', 'i8u8', 'u8', 'u8i8'], frozenset())
    """
    has = [names for first, names in _MATRIX_PRODUCTS.items() if architecture >= first]
    return frozenset().union(*has)


def group_products(architecture: int, version: int) -> frozenset[str]:
    """What a card multiplies by `wgmma` and copies of boxes, through a driver for a version of CUDA
    (named as above): instructions of one architecture, that newer ones lack. Older drivers do not
    say where a kernel's parameters are.

    >>> group_products(90, 13000) == matrix_products(90)
    True
    >>> group_products(100, 13000), group_products(90, 12020)
    (frozenset(), frozenset())
    """
    has = architecture == _GROUPS and version >= _SAYS_PARAMETERS
    return matrix_products(architecture) if has else frozenset()


def list_cards(library: Library) -> list[Card]:
    """Every card that the driver shows, in its order, which CUDA_VISIBLE_DEVICES chooses."""
    return [_card(library, ordinal) for ordinal in range(library.ask("cuDeviceGetCount"))]


def _card(library: Library, ordinal: int) -> Card:
    handle = library.ask("cuDeviceGet", ordinal)
    major, minor = (_attribute(library, handle, number) for number in (_MAJOR, _MINOR))
    return Card(
        ordinal=ordinal,
        handle=handle,
        name=_text(library.ask("cuDeviceGetName", 256, handle)),
        architecture=10 * major + minor,
        bus=_text(library.ask("cuDeviceGetPCIBusId", 32, handle)),
        pools=bool(_attribute(library, handle, _POOLS)),
        multiprocessors=_attribute(library, handle, _MULTIPROCESSORS),
    )


def describe(library: Library, card: Card) -> DeviceInfo:
    """A card's properties in treadle's own terms."""

    def ask(number: int) -> int:
        return _attribute(library, card.handle, number)

    integrated = bool(ask(_INTEGRATED))
    # Where a card has a display, the driver ends kernels that run for long.
    stays = sys.platform == "linux" and not ask(_TIME_LIMIT)
    memory = int(library.ask("cuDeviceTotalMem", card.handle))
    return DeviceInfo(
        id=f"cuda:{card.ordinal}",
        name=card.name,
        backend="cuda",
        kind="integrated" if integrated else "discrete",
        traits=replace(
            _TRAITS,
            persistent_kernels=stays,
            matrix_products=matrix_products(card.architecture),
            later_copies=card.architecture >= _LATER_COPIES,
            group_products=group_products(card.architecture, library.version),
            clusters=card.architecture >= _GROUPS,
            multiprocessors=card.multiprocessors,
        ),
        vendor="NVIDIA",
        driver=_driver(library),
        api="cuda",
        dialect=f"sm_{card.architecture}",
        limits=Limits(
            max_threads_per_block=ask(_MAX_THREADS),
            max_block=Dim3(*map(ask, _MAX_BLOCK)),
            max_grid=Dim3(*map(ask, _MAX_GRID)),
            max_shared_memory=ask(_SHARED_OPT_IN),
            max_buffer_size=memory,
            max_binding_size=memory,
            # Half of the parameters' space for pointers, half for sizes and scalars.
            max_buffers_per_kernel=CUDA_PARAMETER_BYTES // 2 // 8,
            subgroup_size=ask(_WARP_SIZE),
            buffer_alignment=256,
        ),
        features=_FEATURES | {"unified_memory"} if integrated else _FEATURES,
    )


def _attribute(library: Library, handle: Any, number: int) -> int:
    return int(
        library.ask("cuDeviceGetAttribute", library.bindings.CUdevice_attribute(number), handle)
    )


def _driver(library: Library) -> str:
    """The driver's versions: "CUDA 13.0, driver 580.95.05"."""
    cuda = f"CUDA {library.version_text}"
    version = _kernel_module_version() or _driver_version()
    return f"{cuda}, driver {version}" if version else cuda


def _kernel_module_version() -> str:
    """The version that Linux knows, without loading another library."""
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()
    except OSError:
        return ""


def _text(raw: bytes | str) -> str:
    """A string out of the driver, which fills its place with zeros.

    >>> _text(b"NVIDIA H100" + bytes(5))
    'NVIDIA H100'
    """
    if isinstance(raw, bytes):
        raw = raw.partition(b"\0")[0].decode(errors="replace")
    return raw.strip()


# --- how a card does ------------------------------------------------------------------------------


@once
def _nvml() -> Any:
    """NVIDIA's management library: the `pynvml` module, initialized, or None."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _driver_version() -> str:
    """The driver's version, "580.95.05", or ""."""
    nvml = _nvml()
    if nvml is None:
        return ""
    try:
        return _text(nvml.nvmlSystemGetDriverVersion())
    except nvml.NVMLError:
        return ""


def figures(bus: str) -> dict[str, Any]:
    """What is known now of the card at a place on the bus: `utilization` (of 1), `temperature`
    (°C), `power` (W), `used` (bytes, all processes), `processes` (bytes of each process)."""
    nvml = _nvml()
    if nvml is None:
        return {}
    try:
        card = nvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
    except nvml.NVMLError:
        return {}
    questions: dict[str, Callable[[], Any]] = {
        "utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(card).gpu / 100,
        "temperature": lambda: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU),
        "power": lambda: nvml.nvmlDeviceGetPowerUsage(card) / 1000,
        "used": lambda: nvml.nvmlDeviceGetMemoryInfo(card).used,
        "processes": lambda: {
            process.pid: process.usedGpuMemory
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(card)
        },
    }
    known: dict[str, Any] = {}
    for name, question in questions.items():
        try:
            known[name] = question()
        except nvml.NVMLError:  # a virtual machine or a container may lack it
            continue
    return known
