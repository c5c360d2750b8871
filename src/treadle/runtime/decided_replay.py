"""Replays of work with loops and branches, whose conditions the host reads.

A read takes as long as many short iterations. So iterations of a loop are submitted in batches that
can be undone: the memory that they carry is saved, each iteration copies the condition into a log,
and the log is read once. If the condition turned false before the end of the batch, the memory is
restored, and the iterations that count are run again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from treadle.core import forks
from treadle.core.errors import LaunchError, TreadleError
from treadle.drivers import base
from treadle.drivers.program import Branch, Condition, Item, Loop, Work, recordings_of
from treadle.runtime.devices import Device, Stream
from treadle.runtime.pace import MOST_ITERATIONS, Pace

_MOST_SAVED = 256 << 20  # bytes; a loop that carries more is run one iteration at a time
_SLOT = 32  # bytes of the log for an iteration: an element of 16 bytes, aligned to 4


class Read(NamedTuple):
    """A read to be done: what it waits for is before it on the stream."""

    buffer: base.Buffer
    offset: int
    target: memoryview


Waits = Generator[Read, None, None]
"""What runs in between reads. Each yield is one to do before it goes on."""


class DecidedReplay:
    """The replays of one program. `replay` runs a leaf of it on a stream."""

    def __init__(
        self, device: Device, items: Sequence[Item], replay: Callable[[Work, Stream], None]
    ) -> None:
        self._device = device
        self._items = items
        self._replay = replay
        self._lock = forks.lock()  # the log and what is saved are one replay's at a time
        self._is_running = False
        self._paces: dict[int, Pace] = {}  # by the identities of loops
        self._taken: dict[int, base.Buffer] = {}  # by the identities of what it is for

    def run(self, stream: Stream) -> None:
        """Run the program. Waits where a condition is read."""
        with (
            self._lock,
            self._exclusively(),
            contextlib.closing(self._run(self._items, stream)) as steps,
        ):
            for read in steps:
                stream.handle.read(*read)

    async def run_async(self, stream: Stream) -> None:
        """`run`, awaiting instead of blocking."""
        with self._exclusively(), contextlib.closing(self._run(self._items, stream)) as steps:
            for read in steps:
                await stream.handle.read_async(*read)

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """LaunchError where the thread runs it already, in another task."""
        if self._is_running:
            raise LaunchError("this graph is being replayed already: await that replay first")
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    def release(self) -> None:
        """Release the recordings, and the memory for logs and for what is saved."""
        for recording in recordings_of(self._items):
            recording.release()
        self._items = ()
        taken, self._taken = self._taken, {}
        for buffer in taken.values():
            self._device.pool.give(buffer)

    # ------------------------------------------------------------------ running

    def _run(self, items: Sequence[Item], stream: Stream) -> Waits:
        for item in items:
            match item:
                case Work():
                    self._replay(item, stream)
                case Branch():
                    if (yield from self._holds(item.condition, stream)):
                        yield from self._run(item.body, stream)
                case Loop():
                    yield from self._loop(item, stream)

    def _holds(self, condition: Condition, stream: Stream) -> Generator[Read, None, bool]:
        element = bytearray(condition.dtype.itemsize)
        yield Read(condition.buffer, condition.offset, memoryview(element))
        return condition.holds(element)

    def _loop(self, loop: Loop, stream: Stream) -> Waits:
        pace = self._paces.get(id(loop))
        if pace is None:
            pace = self._paces[id(loop)] = Pace(MOST_ITERATIONS if self._batches(loop) else 1)
        most = float("inf") if loop.limit is None else loop.limit
        done = 0
        again = most > 0 and (yield from self._holds(loop.condition, stream))
        while again and done < most:
            count = int(min(pace.next(done), most - done))
            began = time.perf_counter()
            if count == 1:
                yield from self._run(loop.body, stream)
                again = yield from self._holds(loop.condition, stream)
                pace.note(1, time.perf_counter() - began)
            else:
                found, again = yield from self._batch(loop, count, stream)
                if found == count:
                    pace.note(count, time.perf_counter() - began)
                count = found
            done += count
        pace.end(done)

    def _batches(self, loop: Loop) -> bool:
        """Whether several iterations may be submitted at once."""
        return (
            not self._device.traits.host_memory  # reading it costs nothing
            and all(isinstance(item, Work) for item in loop.body)
            and sum(buffer.size for buffer in loop.carried) <= _MOST_SAVED
        )

    def _batch(
        self, loop: Loop, count: int, stream: Stream
    ) -> Generator[Read, None, tuple[int, bool]]:
        """Run at most `count` iterations. How many of them count, and whether there are more."""
        carried = [(buffer, self._memory(buffer, buffer.size)) for buffer in loop.carried]
        for buffer, saved in carried:
            stream.handle.copy(buffer, 0, saved, 0, buffer.size)
        log = self._memory(loop, MOST_ITERATIONS * _SLOT)
        try:
            while True:
                end = yield from self._logged(loop, log, count, stream)
                if end is None or end == count:
                    return count, end is None
                self._restore(carried, stream)
                count = end
        except BaseException:
            # What is interrupted here may have gone too far.
            with contextlib.suppress(TreadleError):
                self._restore(carried, stream)
            raise

    def _logged(
        self, loop: Loop, log: base.Buffer, count: int, stream: Stream
    ) -> Generator[Read, None, int | None]:
        """Run iterations: after which of them, counted from 1, the condition is false first."""
        condition, handle = loop.condition, stream.handle
        size = condition.dtype.itemsize
        start = condition.offset & -4  # of whole words, which each device copies by itself
        place = condition.offset - start
        words = min((place + size + 3) & -4, condition.buffer.size - start)
        for at in range(count):
            for item in loop.body:
                assert isinstance(item, Work)
                self._replay(item, stream)
            handle.copy(condition.buffer, start, log, at * _SLOT, words)
        read = bytearray(count * _SLOT)
        yield Read(log, 0, memoryview(read))
        for at in range(count):
            begin = at * _SLOT + place
            if not condition.holds(read[begin : begin + size]):
                return at + 1
        return None

    def _restore(self, carried: Sequence[tuple[base.Buffer, base.Buffer]], stream: Stream) -> None:
        for buffer, saved in carried:
            stream.handle.copy(saved, 0, buffer, 0, buffer.size)

    def _memory(self, owner: object, size: int) -> base.Buffer:
        """Memory that stays until the graph is released: a loop's log, a buffer's copy."""
        key = id(owner)
        found = self._taken.get(key)
        if found is None:
            found = self._taken[key] = self._device.pool.take(size)
        return found
