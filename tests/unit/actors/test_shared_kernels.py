"""Persistent actors that share a kernel, a block each. On the CPU threads run the blocks, each with
its row of the table, as on a card, where they run at the same time."""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

import treadle as td
from treadle.actors import resident_places, stamp
from treadle.actors.shared_mode import SharedExecutor, SharedKernel
from treadle.core.errors import ActorFailed, TreadleError
from treadle.runtime.devices import Stream

ROOM = 6  # actors of a kernel
_PLACE = ctypes.c_char_p
_ENTRY = ctypes.CFUNCTYPE(None, _PLACE, _PLACE, _PLACE, ctypes.c_int64, ctypes.c_int64)


@td.actor(capacity=16)
def add(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] += message
    return total[0]


@td.actor(capacity=16)
def each(message: td.i32, factor: td.i32) -> td.i32:
    return factor * message


@td.actor(capacity=4, stamps=True)
def stamped(message: td.i32) -> td.i32:
    return message


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "treadle.actors.decorator.modes_of", lambda device: ["persistent", "relaunch"]
    )
    device = type(td.device("cpu").handle)
    monkeypatch.setattr(device, "with_rows", lambda self, kernel: kernel)
    monkeypatch.setattr(device, "blocks_at_once", lambda self, kernel: 4 * ROOM)
    monkeypatch.setattr(resident_places, "LIFE", 3_000_000)
    monkeypatch.setattr(resident_places, "SHORT_LIFE", 300_000)
    monkeypatch.setattr(resident_places, "OWN", 0)
    monkeypatch.setattr(resident_places, "_places", WeakKeyDictionary())

    def launch(self: SharedKernel, stream: Stream, blocks: int) -> None:
        compiled: Any = self._compiled
        split = 8 * len(compiled.code.bindings)
        size = split + compiled.code.layout.size
        entry, grid = _ENTRY(compiled.entry_point()), struct.pack("3I", 1, 1, 1)
        threads = []
        for at in range(blocks):
            row = self._table[at * size : (at + 1) * size].tobytes()
            arguments = row[:split], row[split:], grid, 0, 1
            threads.append(threading.Thread(target=entry, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    monkeypatch.setattr(SharedKernel, "launch", launch)


def kernels_of(refs: list[td.actors.Ref]) -> set[SharedKernel]:
    found = set()
    for ref in refs:
        executor = ref._core.executor
        assert isinstance(executor, SharedExecutor)
        found.add(executor._kernel)
    return found


def adders(count: int) -> list[td.actors.Ref]:
    return [add.spawn(total=np.array([n], np.int32), device="cpu") for n in range(count)]


def end(refs: list[td.actors.Ref]) -> None:
    for ref in refs:
        ref.terminate(timeout=60)
        assert ref.status().state == "terminated"


@pytest.mark.parametrize("places", [4, 0])
def test_each_has_its_own_messages_and_state(monkeypatch: pytest.MonkeyPatch, places: int) -> None:
    monkeypatch.setattr(resident_places, "PLACES", places)
    refs = adders(ROOM + 2)
    assert len(kernels_of(refs)) == 2
    for n, ref in enumerate(refs):
        assert ref.status().mode == "persistent"
        ref.send_many([1] * (n + 1), timeout=60)
    for n, ref in enumerate(refs):
        assert ref.receive_many(n + 1, timeout=60).tolist() == list(range(n + 1, 2 * n + 2))
        assert ref.ask(5, timeout=60) == 2 * n + 6
        assert ref.snapshot(timeout=60)["total"].tolist() == [2 * n + 6]
        assert ref.status().messages_processed == n + 2
    end(refs)


def test_a_busy_one_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """More messages than its rings have places, from two threads, while others come, pause and
    end."""
    refs = [each.spawn(factor=n + 2, device="cpu") for n in range(2)]
    got: list[int] = []
    total = 1500

    def send() -> None:
        refs[0].send_many(np.arange(total, dtype=np.int32), timeout=60)

    def receive() -> None:
        while len(got) < total:
            got.extend(refs[0].receive_many(64, timeout=0.05).tolist())

    threads = [threading.Thread(target=send), threading.Thread(target=receive)]
    for thread in threads:
        thread.start()
    for n in range(4):
        with each.spawn(factor=-1, device="cpu") as other:
            assert len(kernels_of([*refs, other])) == 1
            assert other.ask(n, timeout=60) == -n
            refs[1].pause(timeout=60)
            refs[1].send(n)
            assert other.ask(7, timeout=60) == -7
            assert refs[1].status().output_depth == 0
            refs[1].resume(timeout=60)
            assert refs[1].receive(timeout=60) == 3 * n
    for thread in threads:
        thread.join(60)
    assert got == [2 * n for n in range(total)]
    end(refs)


def test_ends_with_and_without_draining() -> None:
    refs = adders(3)
    for ref in refs:
        ref.pause(timeout=60)
        ref.send_many(range(16), timeout=60)
    refs[0].terminate(timeout=60)
    assert refs[0].status().messages_processed == 16
    assert len(refs[0].receive_many(16, timeout=0)) == 16
    refs[1].terminate(drain=False, timeout=60)
    assert refs[1].status().messages_processed == 0
    assert refs[1].dead_letters() == [("terminated", n) for n in range(16)]
    with pytest.raises(ActorFailed):
        refs[1].ask(1, timeout=60)
    refs[2].resume(timeout=60)
    assert len(refs[2].receive_many(16, timeout=60)) == 16
    # Draining with a full outbox: its replies are kept.
    refs[2].send_many(range(16), timeout=60)
    while refs[2].status().output_depth < 16:
        time.sleep(0.001)
    refs[2].send_many(range(5), timeout=60)
    refs[2].terminate(timeout=60)
    assert len(refs[2].receive_many(21, timeout=0)) == 21


def test_they_sleep_and_are_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_places, "IDLE", 0.001)
    refs = adders(3)
    for n in range(10):
        deadline = time.monotonic() + 60
        while not all(ref._core.is_parked for ref in refs):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(0.003)
        assert refs[n % 3].ask(1, timeout=60) == n // 3 + 1 + n % 3
    end(refs)


def test_pipes_and_stamps() -> None:
    """A thread moves the replies; stamps are in order all along."""
    refs = [stamped.spawn(device="cpu") for _ in range(2)]
    refs[0].pipe(refs[1])
    assert not refs[0]._core.pulled
    times: list[tuple[int, ...]] = []
    for _ in range(3):
        times.append(stamp())
        refs[0].send_many(range(9), timeout=60)
        values, rows = refs[1].receive_many(9, timeout=60, stamps=True)
        assert values.tolist() == list(range(9))
        times += map(tuple, rows.tolist())
    assert times == sorted(set(times))
    end(refs)


def test_the_first_ones_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident_places, "OWN", 2)
    refs = adders(4)
    shares = [isinstance(ref._core.executor, SharedExecutor) for ref in refs]
    assert shares == [False, False, True, True]
    refs[0].terminate(timeout=60)
    deadline = time.monotonic() + 60
    while refs[1]._program.places.is_crowded:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline
        time.sleep(0.001)
    again = adders(1)
    assert not isinstance(again[0]._core.executor, SharedExecutor)
    end([*refs[1:], *again])


def test_a_launch_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    refs = adders(2)

    def refused(*arguments: Any) -> None:
        raise TreadleError("the card is gone")

    monkeypatch.setattr(SharedKernel, "launch", refused)
    for ref in refs:
        with pytest.raises(ActorFailed, match="the card is gone"):
            ref.ask(1, timeout=60)
        assert ref.status().state == "failed"
