"""Timeouts as users give them: seconds, or None to wait for ever."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

_NUMBERS = (int, float, np.integer, np.floating)
_LONGEST = threading.TIMEOUT_MAX / 2  # with the clock's time added it is still one to wait for


def seconds_of(timeout: float | None) -> float | None:
    """The seconds to wait; None, which is for ever, also for infinity and for what is longer than
    threads can wait for. TypeError for what is not a number, ValueError for NaN."""
    if timeout is None:
        return None
    given: Any = timeout
    if isinstance(given, bool) or not isinstance(given, _NUMBERS):
        raise TypeError(
            f"a timeout is a number of seconds, or None to wait for ever, not {given!r}"
        )
    if timeout > _LONGEST:  # first, since an integer may be too large for a float
        return None
    if timeout != timeout:
        raise ValueError("a timeout is a number of seconds, or None to wait for ever, not NaN")
    return float(timeout) if timeout > 0 else 0.0


def deadline_of(timeout: float | None) -> float | None:
    """When a timeout is over."""
    seconds = seconds_of(timeout)
    return None if seconds is None else time.monotonic() + seconds
