"""Order between streams that use the same memory.

CUDA runs streams concurrently. Memory passes between them (a pool hands out what another stream's
launch still uses). So each operation first waits for the operations on other streams that it must
follow: the last one that wrote a buffer which it uses, and those that have since read a buffer
which it writes. A device with one stream does none of this. It begins when a second stream is made,
which first waits for everything before.

A stream's operations are numbered; after each an event is recorded, from a ring of them. To
wait for an event that has left the ring, a stream waits for the oldest one still in it. That one is
later, so it is correct, and it is rare.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

RING = 64  # events of a stream
_MANY_READERS = 8  # from so many on, those that are done are forgotten


class Timeline:
    """The numbered work of one stream."""

    __slots__ = ("__weakref__", "_events", "_make", "_release", "reached", "seen", "serial")

    def __init__(
        self,
        make: Callable[[], int],
        release: Callable[[int], None],
        reached: Callable[[int], bool],
    ) -> None:
        self._make = make
        self._release = release
        self.reached = reached  # whether an event's work is done
        self._events: list[int] = []
        self.serial = 0  # of the last operation
        # How much of other timelines this one is known to come after.
        self.seen: weakref.WeakKeyDictionary[Timeline, int] = weakref.WeakKeyDictionary()

    def next_event(self) -> int:
        """The event to record after the next operation."""
        place = self.serial % RING
        if place == len(self._events):
            self._events.append(self._make())
        return self._events[place]

    def after(self, serial: int) -> tuple[int, int]:
        """The earliest event at or after an operation, and the number of its own operation."""
        kept = max(serial, self.serial - RING + 1)
        return self._events[(kept - 1) % RING], kept

    def __del__(self) -> None:
        for event in getattr(self, "_events", ()):
            self._release(event)


class Used(Protocol):
    """What is remembered of a buffer."""

    writer: tuple[Timeline, int] | None
    readers: dict[Timeline, int]


def waits(timeline: Timeline, reads: Iterable[Used], writes: Iterable[Used]) -> Iterator[int]:
    """The events that a stream must wait for before it runs an operation."""
    needed: dict[Timeline, int] = {}
    for buffer in reads:
        if buffer.writer is not None:
            _need(needed, *buffer.writer)
    for buffer in writes:
        if buffer.writer is not None:
            _need(needed, *buffer.writer)
        for other, serial in buffer.readers.items():
            _need(needed, other, serial)
    for other, serial in needed.items():
        if other is not timeline and timeline.seen.get(other, 0) < serial:
            event, covered = other.after(serial)
            timeline.seen[other] = covered
            yield event


def _need(needed: dict[Timeline, int], timeline: Timeline, serial: int) -> None:
    needed[timeline] = max(needed.get(timeline, 0), serial)


def note(timeline: Timeline, reads: Iterable[Used], writes: Iterable[Used]) -> None:
    """An operation was appended to a stream, and the timeline's next event recorded."""
    timeline.serial += 1
    for buffer in reads:
        buffer.readers[timeline] = timeline.serial
        if len(buffer.readers) > _MANY_READERS:
            _forget_done(buffer)
    for buffer in writes:
        buffer.writer = (timeline, timeline.serial)
        buffer.readers = {}


def _forget_done(buffer: Used) -> None:
    buffer.readers = {
        timeline: serial
        for timeline, serial in buffer.readers.items()
        if not timeline.reached(timeline.after(serial)[0])
    }
