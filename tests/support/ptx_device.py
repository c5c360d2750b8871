"""The PTX machine among treadle's devices, while a test wants it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import treadle as td
from tests.support.ptx_machine.driver import NAMES
from treadle.runtime import devices, settings


@contextlib.contextmanager
def ptx_device(name: str = "sm_90") -> Iterator[td.Device]:
    """The machine as "sm_90" or "sm_70", or as "nvrtc": kernels are printed as CUDA C++ for it, and
    NVIDIA's compiler makes PTX of them. `td.device` finds it by its id while the block lasts."""
    before = devices._BACKENDS, devices._BY_NAME_ONLY, settings.cuda_language
    devices._BACKENDS = {**before[0], "ptx": ("tests.support.ptx_machine.driver", "backend")}
    devices._BY_NAME_ONLY = before[1] | {"ptx"}
    settings.cuda_language = "cuda" if name == "nvrtc" else "ptx"
    try:
        yield td.device(f"ptx:{NAMES.index(name)}")
    finally:
        devices._BACKENDS, devices._BY_NAME_ONLY, settings.cuda_language = before
