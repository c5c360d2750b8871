"""Points in a stream, with the card's own time of them.

The driver tells the time between two events as a float32 in milliseconds, which is good to a
ten-millionth of it: fine between events that are near each other, useless for two small times
after an hour. So each event has an anchor, an event of its stream at most a second older, and its
time is the anchor's plus what lies between.
"""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING

from treadle.drivers.base import Event

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice
    from treadle.drivers.cuda.stream import CudaStream

_ANCHOR_AGE = 1.0  # seconds of the host's clock


class CudaEvent(Event):
    """A point in a stream of a card."""

    __slots__ = ("_anchor", "_device", "_seconds", "handle", "recorded_at")

    def __init__(self, device: CudaDevice, anchor: CudaEvent | None) -> None:
        self._device = device
        self._anchor = anchor
        self._seconds: float | None = None if anchor is not None else 0.0
        self.handle = device.take_timing_event()
        self.recorded_at = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until the point is reached."""
        self._device.do("cuEventSynchronize", self.handle)

    def query(self) -> bool:
        """Whether the point is reached."""
        return self._device.is_reached(self.handle)

    def seconds(self) -> float:
        """The card's time of the point in seconds; only differences mean something. Waits."""
        unknown: list[CudaEvent] = []
        at: CudaEvent = self
        while at._seconds is None:
            unknown.append(at)
            assert at._anchor is not None
            at = at._anchor
        if unknown:
            self.synchronize()
        known, start = at._seconds, at
        for event in reversed(unknown):
            known += _elapsed(self._device, start, event)
            event._seconds = known
            event._anchor = None
            start = event
        return known

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._device.give_timing_event(self.handle)


def _elapsed(device: CudaDevice, start: CudaEvent, end: CudaEvent) -> float:
    milliseconds = ctypes.c_float()
    device.do("cuEventElapsedTime", ctypes.addressof(milliseconds), start.handle, end.handle)
    return milliseconds.value * 1e-3


def new_anchor(stream: CudaStream) -> CudaEvent:
    """The event that those recorded on a stream now are measured from."""
    anchor = stream.anchor
    if time.perf_counter() - anchor.recorded_at > _ANCHOR_AGE:
        if anchor.query():
            anchor.seconds()  # so that no chain of them grows
        fresh = CudaEvent(stream.device, anchor)
        stream.device.do("cuEventRecord", fresh.handle, stream.handle)
        stream.anchor = anchor = fresh
    return anchor


def reference(device: CudaDevice, stream: int) -> CudaEvent:
    """The event that a device's clock starts at: reached when this returns."""
    event = CudaEvent(device, None)
    device.do("cuEventRecord", event.handle, stream)
    device.do("cuEventSynchronize", event.handle)
    return event
