"""Threads that share the blocks of a large launch, or those of many launches that are replayed.

The caller works too, and does not wait for a helper that has not started: blocks are claimed
through an atomic counter, and a late helper finds none left. So a launch costs its caller two queue
entries. Small launches are not shared at all, unless they are replayed together (`lead`).
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from treadle.core import forks
from treadle.drivers.cpu import native

# What a helper does, and what that points to.
Task: TypeAlias = tuple[Callable[[], Any], Any]

# A frame may take some MiB of stack; threads of Python have 8 MiB on most systems, and less on
# some. Only what is touched takes memory.
_STACK_BYTES = 16 << 20
_SPINS = 20_000  # loads of a counter: some ten microseconds
_SPINS_OF_LEADERS = 1_000  # with a pause after each
_SPINS_OF_HELPERS = 30_000  # half a millisecond at least
_SLEEP = 20e-6  # between looks at what helpers do
_PATIENCE = 60.0  # seconds for blocks that run while Python is interrupted
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
    share = native.share()
    task = partial(share, call, shared, chunk, total, 0), keep
    for _ in range(helpers):
        _tasks.put(task)
    try:
        share(call, shared, chunk, total, _SPINS)
        while shared[8] < total:
            time.sleep(_SLEEP)
    except BaseException:
        _abandon(shared, total)
        raise


def lead(
    calls: int, count: int, team: ctypes.Array[ctypes.c_int64], helpers: int, keep: object
) -> int:
    """Replay so many calls (see `native`) on the caller's thread, with helpers. `keep` is what the
    calls point to. Returns how often short ones were waited for long, since the processor had other
    work than a helper.

    An interrupt (Ctrl-C) waits for the blocks that run, and is raised.
    """
    _start(helpers)
    run, at, stalls = native.lead(), 0, 0
    task = partial(native.help(), team, _SPINS_OF_HELPERS), keep
    try:
        team[native.OPEN] = 1
        for _ in range(helpers):
            _tasks.put(task)
        while (at := run(calls, at, count, team, _SPINS_OF_LEADERS)) < count:
            stalls += team[native.WEIGHT] == native.SHORT
            time.sleep(_SLEEP)
    finally:
        team[native.OPEN] = 0
        deadline = time.monotonic() + _PATIENCE
        while team[native.WAITS] and team[native.FINISHED] < team[native.LAST]:
            time.sleep(_SLEEP)
            if time.monotonic() > deadline:
                break
        team[native.WAITS] = 0
    return stalls


def _abandon(shared: ctypes.Array[ctypes.c_int64], total: int) -> None:
    """Hand out no more blocks, and wait until those that were handed out are done."""
    handed_out = min(shared[0], total)
    shared[0] = total
    deadline = time.monotonic() + _PATIENCE
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
    while True:
        work, keep = tasks.get()
        work()
        del work, keep  # or they would live until the next task
