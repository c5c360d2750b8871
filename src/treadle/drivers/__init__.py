"""Drivers: one package (or file) each, one protocol (`base`). A new driver is a line here."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """Where a backend is found: the module that has it, and what makes it there."""

    module: str
    maker: str
    by_name_only: bool = False
    """Never chosen unasked: it reaches devices that another backend reaches as well, and loading
    its library takes time and memory."""
    is_listed: bool = True
    """Whether `td.devices` has its devices: not those that are another one's in every use but a
    test, and slower."""
    chooses_api: bool = False
    """Whether it reaches several graphics APIs, among which `td.device` can choose."""


NATIVE = {
    "cuda": BackendEntry("treadle.drivers.cuda", "CudaBackend"),
    "webgpu": BackendEntry("treadle.drivers.webgpu_native", "WebgpuBackend", chooses_api=True),
    "dawn": BackendEntry(
        "treadle.drivers.webgpu_native", "dawn_backend", by_name_only=True, chooses_api=True
    ),
    "cpu": BackendEntry("treadle.drivers.cpu", "backend"),
    "numpy": BackendEntry(
        "treadle.drivers.cpu_numpy", "numpy_backend", by_name_only=True, is_listed=False
    ),
}
IN_A_BROWSER = {
    "webgpu": BackendEntry("treadle.drivers.webgpu_browser", "BrowserBackend", chooses_api=True),
    "cpu": BackendEntry("treadle.drivers.cpu_numpy", "cpu_backend"),  # LLVM does not run there
}

BACKENDS: dict[str, BackendEntry] = IN_A_BROWSER if sys.platform == "emscripten" else NATIVE
"""By the name that ids of devices begin with."""
