"""Stamps of persistent actors, whose kernels have a clock of their own, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import treadle as td
from treadle.actors import Stamp, resident_places, stamp
from treadle.actors import ring_code as code
from treadle.actors.ring_code import COUNTER_BITS


@td.actor(capacity=8, stamps=True)
def alone(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    assert message >= 0
    total[0] += message
    return message


@td.actor(capacity=8, stamps=True)
def in_turn(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] += message
    return message


@td.actor(capacity=8, stamps=True)
def each(message: td.i32) -> td.i32:
    return message


@td.actor(capacity=8, stamps=True, block=32)
def together(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[td.thread_idx.x] += message
    return message


@td.actor(capacity=8, stamps=True)
def wide(message: td.i64) -> td.i64:
    return message


ZEROS = np.zeros(32, np.int32)
SPAWNED: dict[str, Callable[..., td.actors.Ref]] = {
    "single": lambda: alone.spawn(total=ZEROS, device="cpu", mode="persistent"),
    "in turn": lambda: in_turn.spawn(total=ZEROS, device="cpu", mode="persistent"),
    "each": lambda: each.spawn(device="cpu", mode="persistent"),
    "together": lambda: together.spawn(total=ZEROS, device="cpu", mode="persistent"),
    "not in the cell": lambda: wide.spawn(device="cpu", mode="persistent"),
}


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["persistent", "relaunch"]
    monkeypatch.setattr("treadle.actors.decorator.modes_of", lambda device: modes)
    monkeypatch.setattr(resident_places, "LIFE", 300_000)
    monkeypatch.setattr(resident_places, "_places", WeakKeyDictionary())


@pytest.mark.parametrize("form", SPAWNED)
def test_what_follows_is_later(form: str) -> None:
    """Along asking, sending, handling and receiving, over several lives of the kernel."""
    with SPAWNED[form]() as ref:
        assert form in (ref._program.form.value, "not in the cell")  # type: ignore[attr-defined]
        times: list[tuple[int, ...]] = [stamp()]
        for n in range(20):
            times.append(ref.ask(n, timeout=60, stamp=True)[1])
            times.append(stamp())
            ref.send_many([n] * (n % 8), timeout=60)
            rows = ref.receive_many(n % 8, timeout=60, stamps=True)[1]
            times += map(tuple, rows.tolist())
            times.append(stamp())
        assert times == sorted(set(times))
        assert len(times) > 100


@pytest.mark.parametrize("form", SPAWNED)
def test_a_kernel_whose_clock_is_ahead(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on from there, and so does the process, once it has received a reply."""
    monkeypatch.setattr(resident_places, "LIFE", 75_000_000)  # it ends for a snapshot
    for way in ("receive", "ask", "snapshot"):
        with SPAWNED[form]() as ref:
            ref.pause(timeout=60)
            ahead = Stamp(stamp().microseconds + 2_000_000, 7)
            words = ref._mailbox.words
            words[code.LAST_STAMP] = ahead.microseconds << COUNTER_BITS | ahead.counter
            ref.resume(timeout=60)
            if way == "ask":
                ref.ask(1, timeout=60)
            else:
                ref.send(1)
            if way == "receive":
                ref.receive(timeout=60)
            if way == "snapshot":
                while not ref.status().messages_processed:
                    time.sleep(0.0005)
                ref.snapshot(timeout=60)
            now = stamp()
            assert now > ahead
            assert now.microseconds < ahead.microseconds + 1_000_000


def test_a_kernel_whose_clock_is_behind() -> None:
    """A message brings it forward, and time does, too."""
    with SPAWNED["in turn"]() as ref:
        first = ref.ask(1, timeout=60, stamp=True)[1]
        ref.pause(timeout=60)
        ref._mailbox.words[code.LAST_STAMP] = 5
        ref.resume(timeout=60)
        assert ref.ask(1, timeout=60, stamp=True)[1] > first


def test_a_message_that_fails() -> None:
    """What is handled after it has later stamps, also in the kernel's next life."""

    @td.actor(stamps=True, on_error="skip")
    def picky(message: td.i32) -> td.i32:
        assert message != 3
        return message

    with picky.spawn(device="cpu", mode="persistent") as ref:
        ref.send_many([1, 3, 2, 3, 5], timeout=60)
        values, rows = ref.receive_many(3, timeout=60, stamps=True)
        assert values.tolist() == [1, 2, 5]
        found = [tuple(row) for row in rows.tolist()]
        assert found == sorted(set(found))
