"""Locks that are safe where the process forks.

A forked child has one thread. A lock that another thread of the parent held stays locked in it for
ever, and what that thread was about to change stays half changed. So every lock that outlives a
call is made here, and a fork takes all of them first: the other threads are then between two steps,
and the child gets a state that is whole, and its locks free.

A thread that holds a lock for longer than `PATIENCE` does not keep the process from forking. Then
the child's locks are renewed, and the functions given to `in_child` hear that the state may be half
changed: devices refuse to work in that child, in words.
"""

from __future__ import annotations

# They have locks of their own taken before a fork, by functions that run in the reverse order of
# import: after ours, if they are imported first. A thread that we wait for may need those locks.
import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0  # seconds

_locks: set[weakref.ref[Any]] = set()
_hooks: list[Callable[[bool], None]] = []
_around: list[tuple[Callable[[], None], Callable[[], None]]] = []
# By the thread that forks: the locks that it took, and whether that was all of them.
_taken: dict[int, tuple[list[Any], bool]] = {}


def lock() -> threading.RLock:
    """A new reentrant lock."""
    made = threading.RLock()
    adopt(made)
    return made


def adopt(found: Any) -> None:
    """Treat a lock that was made elsewhere, by another library, like those made here."""
    _locks.add(weakref.ref(found, _locks.discard))


def _living() -> list[Any]:
    # The set is copied at once: other threads may add to it.
    return [found for each in _locks.copy() if (found := each()) is not None]


def in_child(hook: Callable[[bool], None]) -> Callable[[bool], None]:
    """Call a function in every forked child, when all locks are free. Its argument
    says whether the state may be half changed."""
    _hooks.append(hook)
    return hook


def around(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call functions before each fork, when no lock is taken yet, and after it in the parent."""
    _around.append((before, after))


def _before() -> None:
    """Take all locks, in no order: where one has to be waited for, the others are let go of, so
    that its holder does not wait for us."""
    for before, _ in _around:
        before()
    limit = time.monotonic() + PATIENCE
    awaited: Any = None
    while True:
        taken = [] if awaited is None else [awaited]
        missing = None
        for each in _living():
            if each is awaited:
                continue
            if each.acquire(blocking=False):
                taken.append(each)
            elif missing is None:
                missing = each
        late = time.monotonic() >= limit
        if missing is None or late:
            _taken[threading.get_ident()] = taken, missing is None
            return
        for each in reversed(taken):
            each.release()
        awaited = missing if missing.acquire(timeout=max(limit - time.monotonic(), 0.0)) else None


def _after_in_parent() -> None:
    taken, _ = _taken.pop(threading.get_ident())
    for each in reversed(taken):
        each.release()
    for _, after in _around:
        after()


def _after_in_child() -> None:
    taken, whole = _taken.pop(threading.get_ident())
    _taken.clear()
    ours = {id(each) for each in taken}
    for each in reversed(taken):
        each.release()
    for each in _living():
        if id(each) not in ours:
            each._at_fork_reinit()  # as the standard library renews its own
    for hook in _hooks:
        hook(not whole)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
