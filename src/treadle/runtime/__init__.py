"""Devices, memory, launches and caches: the layer between kernels and drivers.

`devices` lists and selects devices, `memory` has the memory pools, `arrays` are device memory with
a shape, `launch` is the one path that runs a kernel, `graphs` capture and replay launches,
`disk_cache` keeps compiled code.
"""

from __future__ import annotations

import sys

__all__ = ["sync_available"]


def sync_available() -> bool:
    """Whether calls that block, as `x.numpy()`, work here: everywhere except in a web page without
    stack switching, where only the asynchronous ones (`await x.numpy_async()`) do.

    >>> import treadle as td
    >>> td.runtime.sync_available()
    True
    """
    if str(sys.platform) != "emscripten":  # a string, or type checkers take this for always true
        return True
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())
