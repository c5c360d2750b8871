"""Pausing the profiling function by which a trace learns which functions run.

It is called at each call and return of Python, and doubles the time of planning and of compilers,
in which nothing of the user's runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MARK = "treadle_may_pause"


def may_pause(function: object) -> None:
    """Let `unobserved` pause a profiling function."""
    setattr(function, _MARK, True)


@contextmanager
def unobserved() -> Iterator[None]:
    """A context in which this thread's profiling function is not called, if it may be paused."""
    function = sys.getprofile()
    if function is None or not hasattr(function, _MARK):
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(function)
