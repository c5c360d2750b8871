"""Pipes between persistent actors, on the CPU: the kernel of the second one takes the replies of
the first one, and no thread moves them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import treadle as td
from treadle.actors import resident_places, stamp
from treadle.actors.core import Core
from treadle.core.errors import ActorFailed


@td.actor(capacity=16)
def first(message: td.i32, count: td.Array[td.i32]) -> td.i32:
    count[0] += 1
    return message + 1


@td.actor(capacity=8)
def in_turn(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] += message
    return 2 * message


@td.actor(capacity=8, on_error="skip")
def single(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    assert message % 10 != 7, "it ends in 7"
    total[0] += message
    return 2 * message


@td.actor(capacity=8)
def each(message: td.i32) -> td.i32:
    return 2 * message


@td.actor(capacity=8, block=32)
def together(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    if td.thread_idx.x == 31:
        total[0] += message
    return 2 * message


@td.actor(capacity=8)
def sink(message: td.i32, total: td.Array[td.i32]):
    total[0] += message


ZERO = np.zeros(1, np.int32)
SECOND: dict[str, Callable[[], td.actors.Ref]] = {
    "in turn": lambda: in_turn.spawn(total=ZERO, device="cpu"),
    "single": lambda: single.spawn(total=ZERO, device="cpu"),
    "each": lambda: each.spawn(device="cpu"),
    "together": lambda: together.spawn(total=ZERO, device="cpu"),
}


@pytest.fixture(autouse=True)
def resident(monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors are persistent, and no host thread may move a reply."""
    modes = ["persistent", "relaunch"]
    monkeypatch.setattr("treadle.actors.decorator.modes_of", lambda device: modes)

    def refused(*arguments: Any) -> Any:
        raise AssertionError("a thread of the host moves replies")

    monkeypatch.setattr(Core, "_pass_on", refused)


def with_lives(monkeypatch: pytest.MonkeyPatch, life: int, places: int) -> None:
    monkeypatch.setattr(resident_places, "LIFE", life)
    monkeypatch.setattr(resident_places, "SHORT_LIFE", life)
    monkeypatch.setattr(resident_places, "IDLE", 0.001)
    monkeypatch.setattr(resident_places, "PLACES", places)
    monkeypatch.setattr(resident_places, "_places", WeakKeyDictionary())


def eventually(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.mark.parametrize(
    ("form", "life", "places"),
    [
        *((form, 30_000, 4) for form in SECOND), ("in turn", 6_000, 4), ("single", 300_000, 4),
        ("in turn", 30_000, 1), ("single", 30_000, 0),
    ],
)  # fmt: skip
def test_messages_across_lives(
    monkeypatch: pytest.MonkeyPatch, form: str, life: int, places: int
) -> None:
    """Through a pipe, beside those that ask both and that others send to the second one."""
    with_lives(monkeypatch, life, places)
    total, own = 400, 50
    with first.spawn(count=ZERO, device="cpu") as one, SECOND[form]() as two:
        one.pipe(two)
        got: list[int] = []
        asked: list[list[int]] = [[], []]
        wanted = [2 * n for n in range(1, total + 1) if form != "single" or n % 10 != 7]

        def receive() -> None:
            while len(got) < len(wanted) + own:
                got.extend(two.receive_many(64, timeout=0.02).tolist())

        def ask(ref: td.actors.Ref, into: list[int]) -> None:
            into.extend(ref.ask(10 * n, timeout=60) for n in range(own))

        def send() -> None:
            for n in range(own):
                two.send(-10 * n - 10, timeout=60)

        threads = [threading.Thread(target=receive), threading.Thread(target=send)]
        threads += [
            threading.Thread(target=ask, args=pair) for pair in zip((one, two), asked, strict=True)
        ]
        for thread in threads:
            thread.start()
        for start in range(0, total, 50):
            one.send_many(np.arange(start, start + 50, dtype=np.int32), timeout=60)
            time.sleep(0.001)
        for thread in threads:
            thread.join(60)
        assert [n for n in got if n > 0] == wanted
        assert [n for n in got if n < 0] == [-20 * n - 20 for n in range(own)]
        assert asked == [[10 * n + 1 for n in range(own)], [20 * n for n in range(own)]]
        failed = total - len(wanted)
        eventually(lambda: two.status().messages_processed == len(wanted) + 2 * own)
        assert two.status().errors_encountered == failed
        assert two.telemetry().accepted == total + 2 * own
        assert one.telemetry().received == total
        if form == "single":
            assert two.dead_letters()[:2] == [("failed", 7), ("failed", 17)]
            assert two.snapshot(timeout=60)["total"].tolist() == [
                sum(wanted) // 2 + sum(10 * n - 10 * n - 10 for n in range(own))
            ]
        one.terminate(timeout=60)
        assert one.status().messages_processed == total + own


def test_both_sleep_and_are_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    with_lives(monkeypatch, 30_000, 4)
    with first.spawn(count=ZERO, device="cpu") as one, SECOND["in turn"]() as two:
        one.pipe(two)
        # Streams wait for each other's launches where these use one buffer.
        assert not set(one._program.buffers) & set(two._program.buffers)
        for n in range(20):
            eventually(lambda: one._core.is_parked and two._core.is_parked)
            one.send(n)
            assert two.receive(timeout=60) == 2 * (n + 1)


def test_a_second_one_that_is_paused_or_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one stalls, and both park; nothing is lost."""
    with_lives(monkeypatch, 30_000, 4)
    with first.spawn(count=ZERO, device="cpu") as one, SECOND["in turn"]() as two:
        one.pipe(two)
        for way in ("paused", "full"):
            if way == "paused":
                two.pause(timeout=60)
            sent = 16 + 16 + (0 if way == "paused" else 8)
            one.send_many(np.arange(sent, dtype=np.int32), timeout=60)
            eventually(lambda: one._core.is_stalled)
            eventually(lambda: one._core.is_parked and two._core.is_parked)
            assert one.status().input_depth == 16
            assert two.status().input_depth == 16
            if way == "paused":
                two.resume(timeout=60)
            assert two.receive_many(sent, timeout=60).tolist() == [2 * n + 2 for n in range(sent)]
        assert one.ask(5, timeout=60) == 6
        one.pause(timeout=60)
        one.send(3)
        assert two.ask(4, timeout=60) == 8
        one.resume(timeout=60)
        assert two.receive(timeout=60) == 8


@pytest.mark.parametrize("drain", [True, False])
def test_the_end_of_the_second_one(drain: bool) -> None:
    """It handles what waits for it, or that becomes its dead letters; the first one fails."""
    one, two = first.spawn(count=ZERO, device="cpu"), sink.spawn(total=ZERO, device="cpu")
    one.pipe(two)
    two.pause(timeout=60)
    one.send_many(range(10), timeout=60)
    eventually(lambda: two.status().input_depth == 10)
    two.terminate(drain=drain, timeout=60)
    if drain:
        assert two.status().messages_processed == 10
        assert two._program.snapshot()["total"].tolist() == [55]
        one.send(20)
    eventually(lambda: one.status().has_terminated)
    with pytest.raises(ActorFailed, match="sends its replies to sink, which was terminated"):
        one.ask(1, timeout=60)
    letters = [21] if drain else list(range(1, 11))
    assert two.dead_letters() == [("terminated", n) for n in letters]
    assert two.status().dropped == len(letters)


def test_the_end_of_the_first_one() -> None:
    """What it has replied is handled, and another one may be piped then."""
    with sink.spawn(total=ZERO, device="cpu") as two:
        for n in range(3):
            one = first.spawn(count=ZERO, device="cpu")
            one.pipe(two)
            two.pause(timeout=60)
            one.send_many(range(10), timeout=60)
            eventually(lambda: two.status().input_depth == 10)
            if n:
                one.terminate(drain=False, timeout=60)
            two.resume(timeout=60)
            if not n:
                one.terminate(timeout=60)
            eventually(lambda n=n: two.status().messages_processed == 10 * (n + 1))
            eventually(lambda: two._core.feed is None)
            assert two._core.feeders == []
            assert one._core.kept is None
        assert two.snapshot(timeout=60)["total"].tolist() == [165]


def test_a_restart_by_a_piped_message() -> None:
    @td.actor(restarts=1)
    def picky(message: td.i32, total: td.Array[td.i32]) -> td.i32:
        assert message != 3
        total[0] += message
        return total[0]

    with first.spawn(count=ZERO, device="cpu") as one, picky.spawn(total=ZERO, device="cpu") as two:
        one.pipe(two)
        one.send_many([0, 1, 2, 3, 4], timeout=60)
        assert two.receive_many(4, timeout=60).tolist() == [1, 3, 4, 9]
        one.send(2)
        eventually(lambda: two.status().has_terminated)
        assert "picky failed on message 3" in str(two.status().last_error)


def test_who_receives_while_it_is_piped() -> None:
    """A thread that waits for a reply takes none from then on."""
    with first.spawn(count=ZERO, device="cpu") as one, sink.spawn(total=ZERO, device="cpu") as two:
        found: list[str] = []

        def receive() -> None:
            try:
                one.receive(timeout=60)
            except td.errors.TreadleError as error:
                found.append(str(error))

        thread = threading.Thread(target=receive)
        thread.start()
        time.sleep(0.02)
        one.pipe(two)
        thread.join(60)
        assert found == ["the replies of first are sent to sink"]


def test_stamps_along_a_pipe_of_kernels() -> None:
    @td.actor(capacity=8, stamps=True)
    def stamped(message: td.i32) -> td.i32:
        return message

    refs = [stamped.spawn(device="cpu") for _ in range(3)]
    refs[0].pipe(refs[1]).pipe(refs[2])
    times: list[tuple[int, ...]] = []
    for n in range(10):
        times.append(stamp())
        refs[0].send_many(range(n % 8 + 1), timeout=60)
        values, rows = refs[2].receive_many(n % 8 + 1, timeout=60, stamps=True)
        assert values.tolist() == list(range(n % 8 + 1))
        times += map(tuple, rows.tolist())
    assert times == sorted(set(times))
    for ref in refs:
        ref.terminate(timeout=60)
