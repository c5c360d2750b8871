"""The driver's library: found, loaded, asked for its functions; or the reason why not.

Everything after opening a device goes straight to the driver's functions (see `calls`), each in the
version that CUDA 12.0 had, so that its arguments are known for any driver. `cuda.bindings`
gives their addresses, lists the devices, and knows the names of errors.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from treadle.core.once import once

OLDEST = 12000  # CUDA 12.0: graphs, pools and link-time calls as we use them
_OLDEST_DRIVER = "525"
_NO_DEVICE = 100
_INSTALL_HINT = 'pip install "treadle[cuda]"'
_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"

_FUNCTIONS = (
    "cuCtxGetCurrent", "cuCtxSetCurrent",
    "cuStreamBeginCapture", "cuStreamEndCapture", "cuThreadExchangeStreamCaptureMode",
    "cuStreamCreate", "cuStreamDestroy", "cuStreamSynchronize", "cuStreamWaitEvent",
    "cuEventCreate", "cuEventDestroy", "cuEventRecord", "cuEventQuery", "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemPoolCreate", "cuMemPoolDestroy", "cuMemPoolSetAttribute", "cuMemPoolTrimTo",
    "cuMemPoolSetAccess", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemAlloc", "cuMemFree",
    "cuMemGetInfo", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister",
    "cuMemHostGetDevicePointer",
    "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemcpyPeerAsync",
    "cuMemsetD8Async", "cuMemsetD32Async", "cuPointerGetAttribute", "cuDeviceCanAccessPeer",
    "cuLinkCreate", "cuLinkAddData", "cuLinkComplete", "cuLinkDestroy",
    "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleUnload", "cuModuleGetFunction",
    "cuFuncGetAttribute", "cuFuncSetAttribute", "cuLaunchKernel",
    "cuTensorMapEncodeTiled",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuGraphCreate", "cuGraphDestroy", "cuGraphAddKernelNode", "cuGraphAddMemcpyNode",
    "cuGraphAddMemsetNode", "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags",
    "cuGraphUpload", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphExecKernelNodeSetParams",
)  # fmt: skip
# Younger than CUDA 12.0, with the version that has them: used where they are there.
_YOUNGER = {
    "cuFuncLoad": 12040, "cuFuncGetParamInfo": 12040, "cuGraphAddNode": 12020,
    "cuGraphConditionalHandleCreate": 12030,
}  # fmt: skip


def address_of(data: bytes) -> int:
    """Where the bytes of an object lie; the caller keeps it alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


class Unavailable(Exception):
    """Why there are no CUDA devices, and what would make some appear."""


class Library:
    """The driver, initialized."""

    def __init__(self, bindings: Any, version: int) -> None:
        self.bindings = bindings
        self.version = version  # of CUDA that the driver is for: 13000 is 13.0
        self.faults: dict[int, str] = {}  # what ended the use of a card in this process
        self._addresses: dict[str, int] = {}

    @property
    def version_text(self) -> str:
        """The version for people.

        >>> Library(None, 12080).version_text
        '12.8'
        """
        return _readable_version(self.version)

    def address(self, name: str) -> int:
        """Where a function of the driver starts; 0 for a younger one that this driver lacks."""
        known = self._addresses.get(name)
        if known is None:
            known = self._addresses[name] = self._find(name)
        return known

    def _find(self, name: str) -> int:
        wanted = _YOUNGER.get(name, OLDEST)
        if wanted > self.version:
            return 0
        code, address, *_ = self.bindings.cuGetProcAddress(name.encode(), wanted, 0)
        if int(code) or not address:
            if name in _YOUNGER:
                return 0
            raise Unavailable(f"the NVIDIA driver has no function {name}: install it anew")
        return int(address)

    def addresses(self) -> Iterator[tuple[str, int]]:
        """Every function that the driver of devices uses, by name."""
        for name in (*_FUNCTIONS, *_YOUNGER):
            yield name, self.address(name)

    def ask(self, name: str, *arguments: Any) -> Any:
        """What a function of `cuda.bindings` gives; Unavailable if it fails."""
        try:
            code, *results = getattr(self.bindings, name)(*arguments)
        except Exception as error:  # noqa: BLE001  # whatever the package raises for what is missing
            raise Unavailable(f"the NVIDIA driver's {name} failed: {error}") from None
        if int(code):
            raise Unavailable(f"the NVIDIA driver's {name} failed: {self.describe(int(code))}")
        return results[0] if results else None

    def describe(self, code: int) -> str:
        """An error's name, number and the driver's sentence about it."""
        number = code
        try:
            code = self.bindings.CUresult(number)
            names = [
                getattr(self.bindings, f)(code) for f in ("cuGetErrorName", "cuGetErrorString")
            ]
            name, words = (text.decode() for _, text in names)
        except (ValueError, AttributeError, TypeError):
            return f"error {number}"
        return f"{name} ({number}): {words}"


@once
def load() -> Library | str:
    """The driver, or why there is none: one sentence with what to do."""
    try:
        return _loaded()
    except Unavailable as reason:
        return str(reason)


def _loaded() -> Library:
    if not driver_installed():
        raise Unavailable(
            f"no NVIDIA driver is installed ({_LIBRARY} was not found): install the driver for "
            "your card from NVIDIA or your system's packages; the CUDA toolkit is not needed"
        )
    bindings = _import_bindings()
    if bindings is None:
        raise Unavailable(
            f"the packages for CUDA are not installed, but an NVIDIA driver is: {_INSTALL_HINT}"
        )
    try:
        code = int(bindings.cuInit(0)[0])
        version = int(bindings.cuDriverGetVersion()[1] or 0)
    except Exception as error:  # noqa: BLE001  # whatever the package raises where it cannot load
        raise Unavailable(f"the NVIDIA driver could not be loaded: {error}") from None
    library = Library(bindings, version)
    if code == _NO_DEVICE:
        raise Unavailable(no_device_reason())
    if 0 < version < OLDEST:
        raise Unavailable(
            f"the NVIDIA driver is too old: it is for CUDA {library.version_text}, and treadle "
            f"needs one for CUDA {_readable_version(OLDEST)} or newer (driver {_OLDEST_DRIVER} or "
            "newer): update the driver"
        )
    if code:
        raise Unavailable(f"the NVIDIA driver could not start: {library.describe(code)}")
    return library


def no_device_reason() -> str:
    """What to say where the driver runs and shows no card."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return (
            f"the NVIDIA driver shows no device; CUDA_VISIBLE_DEVICES is {visible!r}, which hides "
            "those it does not name: unset it, or name a card"
        )
    return "the NVIDIA driver is installed, but shows no device: is a card plugged in and allowed?"


def missing_package_hint() -> str | None:
    """One line if an NVIDIA card can be seen but the packages for it are not installed."""
    import importlib.util

    if not _card_visible() or not driver_installed():
        return None
    try:
        there = importlib.util.find_spec("cuda.bindings") is not None
    except (ImportError, ValueError):
        there = False
    return None if there else f"An NVIDIA card is here; to use it through CUDA: {_INSTALL_HINT}"


def _card_visible() -> bool:
    if sys.platform == "win32":
        return driver_installed()  # it comes with the card
    return Path("/dev/nvidia0").exists() or any(Path("/proc/driver/nvidia/gpus").glob("*"))


@once
def driver_installed() -> bool:
    """Whether the driver's library can be loaded: cheap to ask, and `cuda.bindings` is not."""
    if sys.platform == "darwin" or sys.platform == "emscripten":
        return False
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _import_bindings() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError:
        return None
    return driver


def _readable_version(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}"
