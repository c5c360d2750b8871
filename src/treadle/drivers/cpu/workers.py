"""Threads that share the blocks of a large launch.

The caller works too, and does not wait for a helper that has not started: blocks are claimed
through an atomic counter, and a late helper finds none left. So a launch costs its caller two queue
entries. Small launches are not shared at all.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from typing import TypeAlias

from treadle.core import forks
from treadle.drivers.cpu import native

# The call, what it points to, the counters, blocks a chunk, blocks in all.
Task: TypeAlias = tuple[bytes, tuple[bytes, ...], "ctypes.Array[ctypes.c_int64]", int, int]

# A frame may take some MiB of stack; threads of Python have 8 MiB on most systems, and less on
# some. Only what is touched takes memory.
_STACK_BYTES = 16 << 20
_SPINS = 20_000  # loads of a counter: some ten microseconds
_lock = forks.lock()
_tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
_started = 0


@forks.in_child
def _begin_anew(half_changed: bool) -> None:
    """Threads do not come along with a fork."""
    global _started, _tasks
    _started, _tasks = 0, queue.SimpleQueue()


def run(
    call: bytes, keep: tuple[bytes, ...], first: int, total: int, chunk: int, helpers: int
) -> None:
    """Run the blocks from `first` up to `total` of a call (see `native`) on the caller's thread
    and on helpers. `keep` is what the call points to.

    An interrupt (Ctrl-C) waits for the blocks that run, drops the others, and is raised.
    """
    _start(helpers)
    shared = (ctypes.c_int64 * 16)()
    shared[0] = shared[8] = first
    task = (call, keep, shared, chunk, total)
    for _ in range(helpers):
        _tasks.put(task)
    share = native.share()
    try:
        share(call, shared, chunk, total, _SPINS)
        while shared[8] < total:
            time.sleep(20e-6)
    except BaseException:
        _abandon(shared, total)
        raise


def _abandon(shared: ctypes.Array[ctypes.c_int64], total: int) -> None:
    """Hand out no more blocks, and wait until those that were handed out are done."""
    handed_out = min(shared[0], total)
    shared[0] = total
    deadline = time.monotonic() + 60.0
    while shared[8] < handed_out and time.monotonic() < deadline:
        time.sleep(1e-3)


def _start(count: int) -> None:
    """See to it that there are that many helpers."""
    global _started
    if _started >= count:
        return
    with _lock:
        size = threading.stack_size(_STACK_BYTES)
        try:
            while _started < count:
                name = f"treadle-cpu-{_started}"
                threading.Thread(target=_work, args=(_tasks,), name=name, daemon=True).start()
                _started += 1
        finally:
            threading.stack_size(size)


def _work(tasks: queue.SimpleQueue[Task]) -> None:
    share = native.share()
    while True:
        call, keep, shared, chunk, total = tasks.get()
        share(call, shared, chunk, total, 0)
        del call, keep, shared  # or they would live until the next task
