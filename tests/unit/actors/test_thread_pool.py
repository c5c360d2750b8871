"""The threads that actors share, with actors that are Python's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

import treadle as td
from treadle.actors.thread_pool import Member, ThreadPool


class Scripted(Member):
    """Yields what a function does."""

    def __init__(self, work: Callable[[], Iterator[float | None]]) -> None:
        self.work = work
        self.asked_for_turns = threading.Event()
        super().__init__()

    def steps(self) -> Iterator[float | None]:
        return self.work()

    def ask_for_turn(self) -> None:
        self.asked_for_turns.set()


def test_turns() -> None:
    """One that runs is asked for its turn when another waits, and goes on after it."""
    pool, started = ThreadPool(1), threading.Event()
    seen = []

    def first() -> Iterator[float | None]:
        started.set()
        assert one.asked_for_turns.wait(30)
        assert pool.crowded
        seen.append("first")
        yield 0.0
        seen.append("first again")

    def second() -> Iterator[float | None]:
        seen.append("second")
        yield None
        seen.append("second was woken")

    one, other = Scripted(first), Scripted(second)
    pool.wake(one)
    assert started.wait(30)
    pool.wake(other)
    one.wait_for_end(30)
    pool.wake(other)
    other.wait_for_end(30)
    assert seen == ["first", "second", "first again", "second was woken"]


def test_one_that_is_woken_as_it_runs_runs_again() -> None:
    pool = ThreadPool(1)

    def work() -> Iterator[float | None]:
        pool.wake(member)
        pool.wake(member)
        yield None
        pool.wake(member)
        yield None

    member = Scripted(work)
    pool.wake(member)
    member.wait_for_end(30)
    assert member._left.is_set()


def test_one_that_is_woken_as_its_thread_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has waited in vain when it is woken. What woke it must not do so twice, so that
    the pool counts on a thread that has ended."""
    rings: list[Callable[[], None]] = []

    class Late(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            heard = super().wait(timeout)
            if not heard and rings and threading.current_thread().name == "treadle actors":
                rings.pop()()
            return heard

    monkeypatch.setattr("treadle.actors.thread_pool.threading.Event", Late)
    monkeypatch.setattr("treadle.actors.thread_pool._IDLE_SECONDS", 0.02)
    pool, steps, ran = ThreadPool(1), iter(range(3)), threading.Semaphore(0)

    def work() -> Iterator[float | None]:
        for _ in steps:
            ran.release()
            yield None

    member = Scripted(work)
    rings.append(lambda: pool.wake(member))
    pool.wake(member)
    assert ran.acquire(timeout=30)
    assert ran.acquire(timeout=30)  # as its thread was about to end
    while pool._count:
        time.sleep(0.001)
    assert not pool._idle
    pool.wake(member)
    assert ran.acquire(timeout=30)


def test_a_lost_one_gives_its_place_away() -> None:
    pool, started, released = ThreadPool(1), threading.Event(), threading.Event()

    def stuck() -> Iterator[float | None]:
        started.set()
        released.wait(30)
        yield from ()

    def quick() -> Iterator[float | None]:
        yield from ()

    lost, others = Scripted(stuck), [Scripted(quick) for _ in range(3)]
    pool.wake(lost)
    assert started.wait(30)
    pool.wake(others[0])
    pool.lose(lost)
    others[0].wait_for_end(30)
    assert others[0]._left.is_set()
    pool.wake(others[1])
    others[1].wait_for_end(30)
    released.set()
    lost.wait_for_end(30)
    pool.wake(others[2])
    others[2].wait_for_end(30)
    assert others[2]._left.is_set()
    assert pool._most == 1


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def work() -> Iterator[float | None]:
        yield from ()

    pool, members = ThreadPool(2), [Scripted(work) for _ in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(td.errors.TreadleError, match="allows no thread for actors"):
            pool.wake(members[0])
    pool.wake(members[1])
    members[1].wait_for_end(30)
    assert members[1]._left.is_set()
