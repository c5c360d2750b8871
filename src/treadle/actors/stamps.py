"""Stamps: the times of a hybrid logical clock, which order what happens in actors.

A process has one clock. A stamp is the physical time, or one more than the last stamp where that
is not later: so what follows from something else has a later stamp, also where the system's clock
stands still or is set back. Stamps of other processes are merged into the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from treadle.actors.mailbox import aligned
from treadle.actors.ring_code import COUNTER_BITS, ring_code

_memory = aligned(8)
clock_address: int = _memory.ctypes.data  # of a word: the last stamp


class Stamp(NamedTuple):
    """A time of a hybrid logical clock; stamps compare as tuples.

    The counter orders stamps of the same microsecond.
    """

    microseconds: int
    """Since 1970, as `time.time` counts."""
    counter: int


def stamp() -> Stamp:
    """The next stamp of this process's clock: later than all that it has given, and than those that
    were merged."""
    return stamp_of(ring_code().stamp(clock_address, 1))


def merge_stamp(given: Stamp | Sequence[int], *, most_ahead: float = 60.0) -> Stamp:
    """Merge a stamp that came from another process, so that what follows here has later stamps;
    the next stamp. It may also be a pair of microseconds and counter, or a row of those that
    `receive_many` gives. ValueError if it is more than `most_ahead` seconds ahead of this system's
    clock, which would never come back to the physical time."""
    found = _stamp_from(given)
    ahead = found.microseconds / 1e6 - time.time()
    if ahead > most_ahead:
        raise ValueError(
            f"{found} is {ahead:.0f} s ahead of this system's clock: set one of the clocks, or "
            f"allow more than most_ahead={most_ahead:g} s"
        )
    if found.microseconds < 0 or not 0 <= found.counter < 1 << COUNTER_BITS:
        raise ValueError(f"{found} is not a stamp of such a clock")
    code = ring_code()
    code.merge(clock_address, found.microseconds << COUNTER_BITS | found.counter)
    return stamp_of(code.stamp(clock_address, 1))


def _stamp_from(given: Any) -> Stamp:
    """A stamp, a pair or a row as a stamp. TypeError."""
    try:
        microseconds, counter = map(index, given)
    except (TypeError, ValueError):
        raise TypeError(
            "a stamp is a td.actors.Stamp, or two integers, its microseconds and its counter, not "
            f"{given!r}"
        ) from None
    return Stamp(microseconds, counter)


def stamp_of(word: int) -> Stamp:
    """The stamp that a word holds."""
    return Stamp(word >> COUNTER_BITS, word & ((1 << COUNTER_BITS) - 1))


def stamp_rows(words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Stamps as rows of an array: microseconds, counter."""
    return np.stack([words >> COUNTER_BITS, words & ((1 << COUNTER_BITS) - 1)], axis=-1)
