"""Devices, memory, launches and caches: what stands between kernels and drivers.

`devices` lists and chooses, `memory` pools, `arrays` are device memory with a shape, `launch` is
the one way to run a kernel, `graphs` capture and replay, `disk_cache` keeps compiled code.
"""

from __future__ import annotations

import sys

__all__ = ["sync_available"]


def sync_available() -> bool:
    """Whether `x.numpy()` and whatever else waits can wait here: everywhere but in a web page
    without stack switching, where only the awaiting twins (`await x.numpy_async()`) work.

    >>> import treadle as td
    >>> td.runtime.sync_available()
    True
    """
    if str(sys.platform) != "emscripten":  # as a string: checkers know this platform only
        return True
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())
