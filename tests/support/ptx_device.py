"""The PTX machine among treadle's devices, while a test wants it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import treadle as td
from tests.support.ptx_machine.driver import NAMES
from treadle.drivers import BACKENDS, BackendEntry
from treadle.runtime import settings


@contextlib.contextmanager
def ptx_device(name: str = "sm_90") -> Iterator[td.Device]:
    """The machine as "sm_90" or "sm_70", or as "nvrtc": kernels are printed as CUDA C++ for it, and
    NVIDIA's compiler makes PTX of them. `td.device` finds it by its id while the block lasts."""
    before = settings.cuda_language
    machine = BackendEntry("tests.support.ptx_machine.driver", "backend", by_name_only=True)
    BACKENDS["ptx"] = machine
    settings.cuda_language = "cuda" if name == "nvrtc" else "ptx"
    try:
        yield td.device(f"ptx:{NAMES.index(name)}")
    finally:
        del BACKENDS["ptx"]
        settings.cuda_language = before
