"""The hybrid logical clock of stamps, beside a system's clock that goes wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from treadle.actors import Stamp, merge_stamp, stamp
from treadle.actors.mailbox import aligned
from treadle.actors.ring_code import COUNTER_BITS, ring_code
from treadle.actors.stamps import stamp_of, stamp_rows


def test_a_clock_that_is_ahead_of_the_system() -> None:
    """It counts on, also over the end of the counter."""
    memory = aligned(8).view(np.int64)
    address, code = memory.ctypes.data, ring_code()
    start = stamp_of(code.stamp(address, 1))
    ahead = start.microseconds + 10**9
    code.merge(address, (ahead << COUNTER_BITS) + (1 << COUNTER_BITS) - 2)
    code.merge(address, 5)  # earlier: nothing changes
    last = (1 << COUNTER_BITS) - 1
    assert stamp_of(code.stamp(address, 1)) == Stamp(ahead, last)
    assert stamp_of(code.stamp(address, 3)) == Stamp(ahead + 1, 0)
    assert stamp_of(code.stamp(address, 1)) == Stamp(ahead + 1, 3)


def test_stamps_of_several_threads_differ() -> None:
    found: list[list[Stamp]] = [[] for _ in range(4)]

    def take(into: list[Stamp]) -> None:
        into.extend(stamp() for _ in range(500))

    threads = [threading.Thread(target=take, args=(each,)) for each in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each == sorted(each) for each in found)
    assert len({one for each in found for one in each}) == 2000


def test_what_is_merged() -> None:
    now = stamp()
    assert merge_stamp(Stamp(now.microseconds - 10**6, 0)) > now
    with pytest.raises(ValueError, match="ahead of this system's clock"):
        merge_stamp(Stamp(now.microseconds + 3600 * 10**6, 0))
    for wrong in (Stamp(-1, 0), Stamp(0, 1 << COUNTER_BITS), Stamp(0, -1)):
        with pytest.raises(ValueError, match="is not a stamp"):
            merge_stamp(wrong)
    assert stamp() < Stamp(now.microseconds + 3600 * 10**6, 0)
    words = np.array([5 << COUNTER_BITS | 3, 7 << COUNTER_BITS])
    assert stamp_rows(words).tolist() == [[5, 3], [7, 0]]
