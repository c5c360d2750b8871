"""Replies of one actor as messages of another."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

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
        while first.status().input_depth < 8:
            time.sleep(0.001)
        sent, error = 100, ""
        while not error and sent < 120:  # the actor may still take some before it stalls
            try:
                first.send(1, timeout=0.02)
                sent += 1
            except td.errors.QueueFull as caught:
                error = str(caught)
        assert "add_up, which its replies are sent to, has" in error
        got = last.receive_many(sent, timeout=60)
        sender.join()
        assert got.tolist() == list(range(2, 2 * sent + 2, 2))


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
        for wrong in (None, double):
            with pytest.raises(TypeError, match="another actor's Ref, which spawn gives, not"):
                a.pipe(wrong)  # type: ignore[arg-type]
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
        assert "sends its replies to double" in str(first.status().last_error)


def test_who_waits_for_replies_that_are_piped(device: td.Device, mode: str | None) -> None:
    """Its call ends with an error, and takes none of them; one for many gives what has come."""
    with double.spawn(mode=mode) as first, double.spawn(mode=mode) as last:
        with ThreadPoolExecutor(2) as pool:
            first.send(1)
            several = pool.submit(first.receive_many, 9, timeout=60)
            while first.status().output_depth or not first.status().messages_processed:
                time.sleep(0.001)
            one = pool.submit(first.receive, timeout=60)
            time.sleep(0.05)
            first.pipe(last)
            with pytest.raises(td.errors.TreadleError, match="are sent to double"):
                one.result(60)
            assert several.result(60).tolist() == [2]
        first.send(5)
        assert last.receive(timeout=60) == 20


@td.actor(capacity=4)
def twice(message: td.i32) -> td.i32:
    return 2 * message


@td.actor(capacity=8)
def ten_times(message: td.i32) -> td.i32:
    assert message != 3
    return 10 * message


def test_pipes_keep_what_follows(device: td.Device, mode: str | None) -> None:
    """The actors between both ends, and the last one, until the first one ends."""

    def build() -> tuple[td.actors.Ref, td.actors.Ref, weakref.ref[td.actors.Ref]]:
        first, middle, last = (twice.spawn(device=device, mode=mode) for _ in range(3))
        first.pipe(middle).pipe(last)
        return first, last, weakref.ref(middle)

    first, last, middle = build()
    gc.collect()
    assert first.send_many([1, 2, 3], timeout=60) == 3
    assert last.receive_many(3, timeout=60).tolist() == [8, 16, 24]
    first.terminate(timeout=60)
    deadline = time.monotonic() + 60
    while middle() is not None:
        assert time.monotonic() < deadline
        gc.collect()
        time.sleep(0.001)
    last.terminate(timeout=60)


def test_replies_before_a_failure_go_through_a_pipe(device: td.Device, mode: str | None) -> None:
    """Also those that the next actor has no room for when the first one fails."""
    with twice.spawn(device=device, mode=mode) as last:
        first = ten_times.spawn(device=device, mode=mode)
        first.pipe(last)
        first.send_many([1, 2, 3, 4, 5], timeout=60)
        assert last.receive_many(2, timeout=60).tolist() == [20, 40]
        with pytest.raises(td.errors.ActorFailed, match="message 3"):
            first.ask(1, timeout=60)
        second = ten_times.spawn(device=device, mode=mode)
        second.pipe(last)
        last.pause(timeout=60)
        second.send_many([1, 1, 2, 2, 4, 4, 3], timeout=60)
        while not second.status().has_terminated:
            time.sleep(0.001)
        last.resume(timeout=60)
        assert last.receive_many(6, timeout=60).tolist() == [20, 20, 40, 40, 80, 80]


def test_replies_to_an_actor_that_has_ended(device: td.Device, mode: str | None) -> None:
    """They are its dead letters."""
    first, last = (twice.spawn(device=device, mode=mode) for _ in range(2))
    first.pipe(last)
    last.terminate(timeout=60)
    first.send(3)
    while not first.status().has_terminated:
        time.sleep(0.001)
    assert first.status().state == "failed"
    assert last.dead_letters() == [("terminated", 6)]


def test_ending_an_actor_that_its_pipe_stalls(device: td.Device, mode: str | None) -> None:
    first, last = (twice.spawn(device=device, mode=mode) for _ in range(2))
    first.pipe(last)
    last.pause(timeout=60)
    first.send_many(range(4), timeout=60)
    while last.status().input_depth < 4:
        time.sleep(0.001)
    first.send_many([4, 5], timeout=60)
    while not first._core.is_stalled:
        time.sleep(0.001)
    with pytest.raises(TimeoutError, match="the inbox of twice, which its replies are sent to, is"):
        first.terminate(timeout=0.05)
    last.resume(timeout=60)
    assert last.receive_many(6, timeout=60).tolist() == [4 * n for n in range(6)]
    first.terminate(timeout=60)
    assert first.status().state == "terminated"
    last.terminate(timeout=60)


@td.actor(capacity=1)
def pass_on(message: td.i32) -> td.i32:
    return message


def test_the_last_ones_go_on_when_the_other_one_does(
    device: td.Device, mode: str | None, zeros: td.Tensor
) -> None:
    """What waits before a full outbox is handled once there is room, without another message."""
    with store.spawn(last=zeros, mode=mode) as last, pass_on.spawn(mode=mode) as first:
        first.pipe(last)
        last.pause(timeout=60)
        with pytest.raises(td.errors.QueueFull) as found:
            first.send_many(range(99), timeout=0.2)
        sent = found.value.accepted  # type: ignore[attr-defined]
        last.resume(timeout=60)
        while last.status().messages_processed < sent:
            time.sleep(0.001)
        assert last.snapshot(timeout=60)["last"].tolist() == [sent - 1, sent]
