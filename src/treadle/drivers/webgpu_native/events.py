"""Points in a stream, with the device's time of them where it has timestamps.

Without the feature "timestamps" a point is marked by waiting for the work before it and looking at
the host's clock: right to some tens of microseconds, and the price is the wait.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from treadle.core import forks
from treadle.core.errors import LaunchError
from treadle.drivers.base import Event
from treadle.drivers.webgpu_native.native import COPY_SRC, QUERY_RESOLVE, Handle

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice
    from treadle.drivers.webgpu_native.stream import WebgpuStream

_SLOTS = 256  # timestamps in a query set
RESOLVE_ALIGNMENT = 256  # bytes: of the places that timestamps are resolved to
_RESOLVED = _SLOTS // 2 * RESOLVE_ALIGNMENT  # bytes: every second timestamp, at a place of its own


class TimestampPool:
    """Places for timestamps, handed to events and taken back from them."""

    def __init__(self, device: WebgpuDevice) -> None:
        self._device = device
        self._lock = forks.lock()
        self._free: list[tuple[int, int]] = []
        self._sets: list[Handle] = []
        self.resolved = device.allocate_internal(_RESOLVED, QUERY_RESOLVE | COPY_SRC)

    def take(self) -> tuple[int, int]:
        """A query set and an index in it."""
        with self._lock:
            if not self._free:
                queries = self._device.native.create_timestamps(self._device.handle, _SLOTS)
                self._device.raise_errors("a set of timestamps")
                self._sets.append(queries)
                number = self._device.native.address(queries)
                self._free.extend((number, index) for index in range(_SLOTS))
            return self._free.pop()

    def give(self, slot: tuple[int, int]) -> None:
        """Take a place back."""
        self._free.append(slot)

    def release(self) -> None:
        """Give the query sets back to the library."""
        for queries in self._sets:
            self._device.native.release_timestamps(queries)
        self._sets.clear()
        self._device.free(self.resolved)


class WebgpuEvent(Event):
    """A point in a stream of a WebGPU device."""

    def __init__(
        self,
        stream: WebgpuStream,
        slot: tuple[int, int] | None = None,
        pool: TimestampPool | None = None,
    ) -> None:
        self._stream = stream
        self._device = stream.device
        self._pool = pool
        self._slot = slot
        self._serial: int | None = None  # of the submission that reaches the point
        self._seconds = 0.0 if slot else time.perf_counter()
        self._known = slot is None

    def submitted(self, serial: int) -> None:
        """The stream says which submission the point is in."""
        self._serial = serial

    def synchronize(self) -> None:
        """Wait until the point is reached."""
        if self._known:
            return
        self._device.wait_for(self._submission())

    def query(self) -> bool:
        """Whether the point is reached."""
        return self._known or self._device.is_done(self._submission())

    def seconds(self) -> float:
        """The time of the point in seconds; only differences mean something. Waits for it."""
        if not self._known:
            read_times([self])
        return self._seconds

    def _reached_at(self, ticks: int) -> None:
        self._seconds = ticks * self._device.timestamp_period * 1e-9
        self._known = True

    def _submission(self) -> int:
        if self._serial is None:
            self._stream.flush()
        if self._serial is None:
            self._device.check()
            raise LaunchError("the work before this event was refused, so it is never reached")
        return self._serial

    def __del__(self) -> None:
        pool: TimestampPool | None = getattr(self, "_pool", None)
        if pool is not None:
            # Pending work may still write the old point: the place goes back with its batch.
            self._device.release_later(pool.give, self._slot)


def read_times(events: Sequence[WebgpuEvent]) -> None:
    """Let events know their times: one read for all of a query set. Waits for them."""
    sets: dict[int, dict[int, WebgpuEvent]] = {}
    for event in events:
        if not event._known:
            event.synchronize()
            assert event._slot is not None
            queries, index = event._slot
            sets.setdefault(queries, {})[index] = event
    for queries, known in sets.items():
        indices = sorted(known)
        stream = known[indices[0]]._stream
        times = stream.read_timestamps(queries, list(_runs(indices)))
        for index, raw in zip(indices, times, strict=True):
            known[index]._reached_at(struct.unpack("<Q", raw)[0])


def _runs(indices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending indices as runs of neighbours: the first and how many.

    >>> list(_runs([3, 4, 5, 9]))
    [(3, 3), (9, 1)]
    """
    first = 0
    for i in range(1, len(indices) + 1):
        if i == len(indices) or indices[i] != indices[i - 1] + 1:
            yield indices[first], i - first
            first = i
