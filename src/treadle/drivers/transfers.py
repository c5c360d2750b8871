"""Copying between host memory and staging memory that a device can reach."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from treadle.core import forks

# Below this a memcpy is over before a thread has woken up.
_SHARE = 2 << 20
_THREADS = min(8, max((os.cpu_count() or 1) // 2, 1))


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS - 1, thread_name_prefix="treadle-copy")


@forks.in_child
def _begin_anew(half_changed: bool) -> None:
    """Threads do not come along with a fork."""
    _pool.cache_clear()


def copy_bytes(target: memoryview, source: memoryview) -> None:
    """Copy all of `source` to the front of `target`; large copies use several threads.

    One core does not saturate the memory of a machine with many.
    """
    size = len(source)
    if size < _SHARE or _THREADS == 1:
        if size < 1 << 16:
            target[:size] = source
        else:  # NumPy lets other threads run meanwhile
            np.copyto(np.frombuffer(target, np.uint8, size), np.frombuffer(source, np.uint8))
        return
    into, data = np.frombuffer(target, np.uint8, size), np.frombuffer(source, np.uint8)
    step = -(-size // _THREADS)
    parts = [slice(start, start + step) for start in range(0, size, step)]
    waiting = [_pool().submit(np.copyto, into[part], data[part]) for part in parts[1:]]
    np.copyto(into[parts[0]], data[parts[0]])
    for part in waiting:
        part.result()
