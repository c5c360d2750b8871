"""Many actors at once, and that busy ones leave others their share."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import treadle as td
from treadle.actors.thread_pool import MOST_THREADS, ThreadPool


@td.actor(capacity=8)
def counter(message: td.i32, total: td.Array[td.i32]) -> td.i32:
    total[0] = total[0] + message
    return total[0]


@td.actor(capacity=64)
def busy(message: td.i32, state: td.Array[td.i32]) -> td.i32:
    x = state[0]
    for k in range(300):
        x = x * 1664525 + 1013904223 + k
    state[0] = x
    return x


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool for these tests, of two threads."""
    monkeypatch.setattr("treadle.actors.thread_pool._pools", [ThreadPool(2)])


def test_more_actors_than_threads(device: td.Device, two_threads: None) -> None:
    refs = [counter.spawn(total=np.zeros(1, np.int32)) for _ in range(30)]
    for round in (1, 2):
        for n, ref in enumerate(refs):
            ref.send(n)
        for n, ref in enumerate(refs):
            assert ref.receive(timeout=60) == round * n
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("treadle actors") <= MOST_THREADS + 2
    for ref in refs:
        ref.terminate(timeout=60)


def test_busy_ones_leave_others_their_share(
    device: td.Device, mode: str | None, two_threads: None
) -> None:
    """Three that always have messages, and one that is asked now and then."""
    done = threading.Event()
    messages = np.ones(64, np.int32)

    def feed(ref: td.actors.Ref) -> None:
        while not done.is_set():
            ref.send_many(messages, reply=False, timeout=60)

    refs = [busy.spawn(state=np.zeros(1, np.int32), mode=mode) for _ in range(3)]
    feeders = [threading.Thread(target=feed, args=(ref,)) for ref in refs]
    with counter.spawn(total=np.zeros(1, np.int32), mode=mode) as other:
        for feeder in feeders:
            feeder.start()
        try:
            for n in range(1, 6):
                assert other.ask(1, timeout=60) == n
            while not all(ref.status().messages_processed for ref in refs):
                assert other.ask(0, timeout=60) == 5
        finally:
            done.set()
            for feeder in feeders:
                feeder.join()
    for ref in refs:
        ref.terminate(drain=False, timeout=60)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hundreds_of_actors(count: int) -> None:
    """On the CPU, in both modes: no thread for each."""
    before = threading.active_count()
    state = td.zeros(1, dtype=td.int32, device="cpu")
    refs = [
        counter.spawn(total=state, device="cpu", mode=("thread", "relaunch")[n % 2])
        for n in range(count)
    ]
    for n, ref in enumerate(refs):
        ref.send(n)
    assert [ref.receive(timeout=60) for ref in refs] == list(range(count))
    assert threading.active_count() <= before + MOST_THREADS + 2
    for ref in refs:
        ref.terminate(timeout=60)
