"""Stamps of a hybrid logical clock on replies."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

import treadle as td
from treadle.actors import Stamp, merge_stamp, stamp


@td.actor(capacity=8, stamps=True)
def double(message: td.i32) -> td.i32:
    return 2 * message


@td.actor(capacity=8, stamps=True)
def store(message: td.i32, total: td.Array[td.i32]):
    total[0] = total[0] + message


def test_replies_have_later_stamps(device: td.Device, mode: str | None) -> None:
    """Later than what was before the message, in the order of replies, near the system's time."""
    with double.spawn(mode=mode) as ref, store.spawn(total=np.zeros(1, np.int32), mode=mode) as end:
        before = stamp()
        reply, first = ref.ask(3, timeout=60, stamp=True)
        assert (reply, type(first)) == (6, Stamp)
        ref.send_many(np.arange(20, dtype=np.int32)[:8], timeout=60)
        one, second = ref.receive(timeout=60, stamp=True)
        values, rows = ref.receive_many(7, timeout=60, stamps=True)
        nothing, last = end.ask(1, timeout=60, stamp=True)
        after = stamp()
        assert (one, values.tolist(), nothing) == (0, [2, 4, 6, 8, 10, 12, 14], None)
        all_stamps = [before, first, second, *(Stamp(*row) for row in rows.tolist()), last, after]
        assert all_stamps == sorted(set(all_stamps))
        assert abs(after.microseconds / 1e6 - time.time()) < 3600
        again = asyncio.run(ref.ask_async(4, timeout=60, stamp=True))
        assert again[0] == 8
        assert again[1] > after
        assert ref.ask(5, timeout=60) == 10  # without


def test_stamps_along_pipes_and_topics(device: td.Device, mode: str | None) -> None:
    """A reply at the end of a pipeline is later than what was published at its beginning; a stamp
    of a process whose clock is ahead moves all that follows."""
    topics = td.actors.Topics()
    with double.spawn(mode=mode) as first, double.spawn(mode=mode) as second:
        first.pipe(second)
        topics.subscribe("a/+", first)
        ahead = Stamp(stamp().microseconds + 5_000_000, 7)
        assert merge_stamp(ahead) > ahead
        topics.publish("a/b", 3)
        value, found = second.receive(timeout=60, stamp=True)
        assert value == 12
        assert ahead < found < stamp()
        assert found.microseconds <= ahead.microseconds + 1_000_000  # it goes on from there


def test_stamps_of_what_was_moved_out_of_the_outbox(device: td.Device, mode: str | None) -> None:
    ref = double.spawn(mode=mode)
    ref.pause(timeout=60)
    ref.send_many(np.arange(8, dtype=np.int32))
    ref.resume(timeout=60)
    ref.send_many(np.arange(8, 16, dtype=np.int32), timeout=60)
    ref.terminate(timeout=60)
    one, first = ref.receive(timeout=0, stamp=True)
    values, rows = ref.receive_many(99, timeout=0, stamps=True)
    assert [one, *values.tolist()] == [2 * n for n in range(16)]
    found = [first, *(Stamp(*row) for row in rows.tolist())]
    assert found == sorted(set(found))
    assert ref.receive_many(1, timeout=0, stamps=True)[1].shape == (0, 2)


def test_what_has_no_stamps(device: td.Device) -> None:
    @td.actor
    def plain(message: td.i32) -> td.i32:
        return message

    with plain.spawn() as ref:
        for use in (
            lambda: ref.ask(1, stamp=True),
            lambda: ref.receive(stamp=True),
            lambda: ref.receive_many(1, stamps=True),
            lambda: asyncio.run(ref.ask_async(1, stamp=True)),
        ):
            with pytest.raises(td.errors.TreadleError, match=r"@td.actor\(stamps=True\)"):
                use()
        assert ref.status().input_depth == 0


def test_merging_what_another_process_sent(device: td.Device) -> None:
    """A stamp as such, as a pair, as a row of an array; what is none is refused."""
    with double.spawn() as ref:
        ref.send_many([1, 2])
        _, rows = ref.receive_many(2, timeout=60, stamps=True)
    for given in (Stamp(*rows[1].tolist()), tuple(rows[1].tolist()), rows[1], rows[1].tolist()):
        assert merge_stamp(given) > tuple(rows[1])
    for wrong in (3, "ab", (1.5, 0), (1, 2, 3), None, rows):
        with pytest.raises(TypeError, match=r"a stamp is a td\.actors\.Stamp, or two integers"):
            merge_stamp(wrong)
    with pytest.raises(ValueError, match="not a stamp"):
        merge_stamp((-1, 0))
