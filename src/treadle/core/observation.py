"""Pausing what observes which Python functions run, while a compiled function is traced.

It is called at calls and returns, and multiplies the time of planning and of compilers, in which
nothing of the user's runs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _State(threading.local):
    """Of a thread: whether it is observed, and by a profiling function that may be taken away
    meanwhile; and whether that is paused."""

    observed = False
    replaceable = False
    paused = False


state = _State()


@contextmanager
def observed(*, replaceable: bool) -> Iterator[None]:
    """A context in which this thread is observed: by its profiling function, if `replaceable`."""
    before = state.observed, state.replaceable
    state.observed, state.replaceable = True, replaceable
    try:
        yield
    finally:
        state.observed, state.replaceable = before


@contextmanager
def unobserved() -> Iterator[None]:
    """A context in which that is paused."""
    if not state.observed or state.paused:
        yield
        return
    function = sys.getprofile() if state.replaceable else None
    if function is not None:
        sys.setprofile(None)
    state.paused = True
    try:
        yield
    finally:
        state.paused = False
        if function is not None:
            sys.setprofile(function)
