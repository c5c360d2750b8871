"""Replies of one actor as messages of another."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import treadle as td


@td.actor(capacity=8)
def double(message: td.i32) -> td.i32:
    return 2 * message


@td.actor(capacity=4)
def add_up(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


@td.actor(capacity=4)
def store(message: td.i32, last: td.Array[td.i32]):
    last[0] = message
    last[1] = last[1] + 1


@pytest.fixture
def zeros(device: td.Device) -> td.Tensor:
    return td.zeros(2, dtype=td.int32)


def test_a_pipeline(device: td.Device, mode: str | None, zeros: td.Tensor) -> None:
    """More messages than all rings have places; nothing is lost at the end either."""
    with (
        store.spawn(last=zeros, mode=mode) as last,
        add_up.spawn(total=zeros, mode=mode) as middle,
        double.spawn(mode=mode) as first,
    ):
        assert first.pipe(middle).pipe(last) is last
        first.send_many(np.arange(200, dtype=np.int32), timeout=60)
        assert first.ask(21, timeout=60) == 42  # to the asker alone
        first.terminate(timeout=60)
        middle.terminate(timeout=60)
        last.terminate(timeout=60)
        assert last.status().messages_processed == 200
        assert last._program.snapshot()["last"].tolist() == [200 * 199, 200]
        with pytest.raises(td.errors.TreadleError, match="are sent to add_up"):
            first.receive(timeout=0)


def test_a_full_end_stalls_the_beginning(device: td.Device, mode: str | None) -> None:
    with (
        add_up.spawn(total=np.zeros(1, np.int32), mode=mode) as last,
        double.spawn(mode=mode) as first,
    ):
        first.pipe(last)
        sender = threading.Thread(
            target=lambda: first.send_many(np.ones(100, np.int32), timeout=60)
        )
        sender.start()
        while last.status().output_depth < 4 or last.status().input_depth < 4:
            time.sleep(0.001)
        time.sleep(0.02)
        assert last.status().messages_processed == 4
        got = last.receive_many(100, timeout=60)
        sender.join()
        assert got.tolist() == list(range(2, 202, 2))


def test_two_into_one(device: td.Device, mode: str | None, zeros: td.Tensor) -> None:
    with store.spawn(last=zeros, mode=mode) as last:
        feeders = [double.spawn(mode=mode) for _ in range(2)]
        for each in feeders:
            each.pipe(last)
        for each in feeders:
            each.send_many(np.ones(50, np.int32), timeout=60)
        last.ask(0, timeout=60)  # others may send, too
        for each in feeders:
            each.terminate(timeout=60)
        last.ask(0, timeout=60)
        assert last.snapshot(timeout=60)["last"].tolist()[1] == 102


def test_what_cannot_be_piped(device: td.Device, zeros: td.Tensor) -> None:
    @td.actor
    def other(message: td.f32) -> td.f32:
        return message

    with double.spawn() as a, double.spawn() as b, other.spawn() as c, store.spawn(last=zeros) as d:
        with pytest.raises(td.errors.DtypeError, match=r"replies with td.i32.*is td.f32"):
            a.pipe(c)
        with pytest.raises(td.errors.TreadleError, match="has no replies"):
            d.pipe(a)
        with pytest.raises(ValueError, match="in a circle"):
            a.pipe(a)
        a.pipe(b)
        with pytest.raises(ValueError, match="from double to double would go in a circle"):
            b.pipe(a)
        with pytest.raises(td.errors.TreadleError, match="already"):
            a.pipe(b)
        with double.spawn() as last:
            b.pipe(last)
            with pytest.raises(ValueError, match="in a circle"):
                last.pipe(a)


def test_the_end_of_the_other_one(device: td.Device, mode: str | None) -> None:
    with double.spawn(mode=mode) as last, double.spawn(mode=mode) as first:
        first.pipe(last)
        last.terminate(timeout=60)
        first.send(1)
        while not first.status().has_terminated:
            time.sleep(0.001)
        with pytest.raises(td.errors.ActorFailed, match="sends its replies to double, which was"):
            first.ask(1, timeout=60)
