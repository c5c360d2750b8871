"""The PTX machine among treadle's devices, while a test wants it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import treadle as td
from tests.support.ptx_machine.driver import DIALECTS
from treadle.runtime import devices


@contextlib.contextmanager
def ptx_device(dialect: str = "sm_90") -> Iterator[td.Device]:
    """The machine as "sm_90" or "sm_70": `td.device("ptx:0")` and "ptx:1"."""
    known, by_name = devices._BACKENDS, devices._BY_NAME_ONLY
    devices._BACKENDS = {**known, "ptx": ("tests.support.ptx_machine.driver", "backend")}
    devices._BY_NAME_ONLY = by_name | {"ptx"}
    try:
        yield td.device(f"ptx:{DIALECTS.index(dialect)}")
    finally:
        devices._BACKENDS, devices._BY_NAME_ONLY = known, by_name
