"""Points in a stream: the device's time of them where it has timestamps, else the time at which the
page heard that they are reached.

Browsers round timestamps, usually to a tenth of a millisecond.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treadle.drivers.base import Event
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_browser.waiting import check_can_wait, wait

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice

_SLOTS = 256  # timestamps in a set
_INSTEAD = "`await event.synchronize_async()` first"


class TimestampPool:
    """Places for timestamps, handed to events and taken back from them."""

    def __init__(self, device: BrowserDevice) -> None:
        self._device = device
        self._free: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int]:
        """A set of timestamps and an index in it."""
        if not self._free:
            queries = self._device.next_number()
            self._device.helper.makeQueries(queries, _SLOTS)
            self._free.extend((queries, index) for index in range(_SLOTS))
        return self._free.pop()

    def give(self, slot: tuple[int, int]) -> None:
        """Take a place back."""
        self._free.append(slot)


class BrowserEvent(Event):
    """A point in the work of a browser's device."""

    def __init__(self, device: BrowserDevice) -> None:
        self._device = device
        self._seconds: float | None = None
        self._asked: asyncio.Future[None] | None = None
        self._pool: TimestampPool | None = None
        self._slot = (0, 0)
        self._mark: Any = None
        if "timestamps" in device.info.features:
            self._pool = device.timestamps
            self._slot = self._pool.take()
            device.batch.words += (commands.TIMESTAMP, *self._slot)
        else:
            device.flush()
            self._mark = device.helper.mark()  # a promise for the seconds at which it is reached

    def synchronize(self) -> None:
        """Wait until the point is reached."""
        if self._seconds is None:
            check_can_wait("waiting for an event", "`await event.synchronize_async()`")
            read_times([self])

    def query(self) -> bool:
        """Whether the point is reached, as far as the page has heard: it hears while Python gives
        way to the event loop."""
        if self._seconds is None and self._asked is None:
            self._asked = asyncio.ensure_future(self._know())
        return self._seconds is not None

    async def _know(self) -> None:
        if self._mark is not None:
            self._seconds = await self._mark
            return
        device = self._device
        device.flush()
        self._take(await device.helper.times(self._slot[0], _SLOTS))

    def seconds(self) -> float:
        """The time of the point in seconds; only differences mean something. Waits for it."""
        if self._seconds is None:
            check_can_wait("the time of an event", _INSTEAD)
            read_times([self])
        assert self._seconds is not None
        return self._seconds

    def _take(self, times: Any) -> None:
        """Its own of the times of its set."""
        self._device.raise_heard()
        data = times.to_bytes()
        (nanoseconds,) = struct.unpack_from("<Q", data, 8 * self._slot[1])
        self._seconds = nanoseconds * 1e-9

    def __del__(self) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None:
            # A later use of the place comes after this one in the queue.
            pool.give(self._slot)


def read_times(events: Sequence[BrowserEvent]) -> None:
    """Let events know their times: one read for all of a set. Waits for them."""
    unknown = [event for event in events if event._seconds is None]
    if not unknown:
        return
    check_can_wait("the time of an event", _INSTEAD)
    device = unknown[0]._device
    device.flush()
    known: dict[int, Any] = {}
    for event in unknown:
        if event._mark is not None:
            event._seconds = wait(event._mark)
            continue
        queries = event._slot[0]
        if queries not in known:
            known[queries] = wait(device.helper.times(queries, _SLOTS))
        event._take(known[queries])
    device.raise_heard()
