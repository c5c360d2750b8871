"""The threads that run the actors of the CPU: each has one while it has messages, so that a few are
enough for many.

Where more actors have messages than there may be threads, they take turns: the one that has run for
longest is asked to return after the message at hand, and goes to the end of the queue.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator

from treadle.core import forks
from treadle.core.errors import TreadleError

MOST_THREADS = max(16, 2 * (os.cpu_count() or 1))
_IDLE_SECONDS = 1.0  # after which a thread ends that has nothing to run


class Member:
    """An actor among those that share the threads."""

    def __init__(self) -> None:
        self._steps: Iterator[float | None] = self.steps()
        self.queued = self.running = self.woken = self.asked = self.lost = False
        self._left = threading.Event()

    def steps(self) -> Iterator[float | None]:
        """Its work. Yields None to sleep until it is woken, or seconds after which it goes on."""
        raise NotImplementedError

    def ask_for_turn(self) -> None:
        """Have it yield after the message at hand, as another one waits for a thread. Those that
        begin while the pool is crowded already are not asked."""
        raise NotImplementedError

    def leave(self) -> None:
        """No thread runs it any more."""
        self._steps = iter(())  # it refers to this object
        self._left.set()

    def wait_for_end(self, timeout: float | None) -> None:
        """Wait until no thread runs it any more."""
        self._left.wait(timeout)


class ThreadPool:
    """Threads, up to `most`, that are started as they are needed."""

    def __init__(self, most: int) -> None:
        self._lock = forks.lock()
        self._most = most
        self._count = 0
        self._ready: deque[Member] = deque()
        self._running: dict[Member, None] = {}  # the one that has run for longest is first
        self._idle: list[threading.Event] = []

    @property
    def crowded(self) -> bool:
        """Whether an actor with messages waits for a thread."""
        return bool(self._ready) and not self._idle

    def wake(self, member: Member) -> None:
        """Run an actor, as soon as there is a thread. TreadleError where the system allows none."""
        if member.queued or (member.running and member.woken):
            return  # it has not looked at its messages yet
        with self._lock:
            if member.running:
                member.woken = True
                return
            if not member.queued:
                self._queue(member)

    def lose(self, member: Member) -> None:
        """An actor's handler is taken for one that never returns: another thread may take the place
        of the one that runs it."""
        with self._lock:
            if member.running and not member.lost:
                member.lost = True
                self._most += 1
                if self._ready:
                    self._find_thread()

    def _queue(self, member: Member) -> None:
        member.queued = True
        self._ready.append(member)
        self._find_thread()

    def _find_thread(self) -> None:
        """Have a thread look at the queue."""
        if self._idle:
            self._idle.pop().set()
        elif self._count < self._most:
            self._start()
        else:
            running = next((each for each in self._running if not each.asked), None)
            if running is not None:
                running.asked = True
                running.ask_for_turn()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="treadle actors", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._count:
                self._ready.pop().queued = False
                raise TreadleError(
                    f"the system allows no thread for actors: {error}. End other threads, or raise "
                    "its limit"
                ) from None
            self._most = self._count
        else:
            self._count += 1

    def _run(self) -> None:
        """What a thread does."""
        bell = threading.Event()
        while True:
            with self._lock:
                member = self._next()
                if member is None:
                    self._idle.append(bell)
            if member is None:
                if bell.wait(_IDLE_SECONDS):
                    bell.clear()
                    continue
                with self._lock:
                    if bell not in self._idle:  # it has just been woken
                        bell.clear()
                        continue
                    self._idle.remove(bell)
                    self._count -= 1
                    return
            try:
                pause = next(member._steps)
            except StopIteration:
                member.leave()
                with self._lock:
                    del self._running[member]
                    self._found_again(member)
                member = None
                continue
            if pause:
                time.sleep(pause)
            with self._lock:
                del self._running[member]
                member.running = False
                self._found_again(member)
                if member.woken or pause is not None:
                    member.queued = True
                    self._ready.append(member)
            member = None  # an actor that nothing else refers to ends

    def _next(self) -> Member | None:
        if not self._ready:
            return None
        member = self._ready.popleft()
        member.queued, member.running, member.woken, member.asked = False, True, False, False
        self._running[member] = None
        return member

    def _found_again(self, member: Member) -> None:
        """A handler that was taken for lost has returned."""
        if member.lost:
            member.lost = False
            self._most -= 1


_pools: list[ThreadPool] = []
_lock = forks.lock()


def thread_pool() -> ThreadPool:
    """The threads of this process."""
    with _lock:
        if not _pools:
            _pools.append(ThreadPool(MOST_THREADS))
        return _pools[0]


def forget_pool() -> None:
    """In a forked child: the threads are the parent's."""
    _pools.clear()
