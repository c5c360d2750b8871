"""Pinned host memory, which a card reads and writes by itself while the host goes on.

Small writes go through a ring that each stream has: their bytes are copied there, and the caller
may go on at once. Large copies go in parts through chunks that all streams share, so that the
host copies one part while the card copies another. Small reads land in slots.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.core import forks
from treadle.drivers.cuda.memory import CudaBuffer
from treadle.drivers.transfers import copy_bytes

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice
    from treadle.drivers.cuda.stream import CudaStream

RING_SEGMENTS, SEGMENT = 4, 1 << 19  # of a stream's ring: how many, and the bytes of each
SMALL_WRITE = SEGMENT // 2  # larger ones go through chunks
CHUNK = 16 << 20
KEPT_CHUNKS = 4
SLOT = 1 << 16  # bytes of a slot: larger reads go through chunks
_ALIGNMENT = 16
_READS_AHEAD = 3  # parts of a download that are under way at once
_PORTABLE = 1  # pinned for all cards, not only the one that is current


class Pinned:
    """A chunk of pinned memory, with an event for the card's last use of it."""

    __slots__ = ("_device", "address", "event", "pending", "size", "view")

    def __init__(self, device: CudaDevice, size: int) -> None:
        self._device = device
        self.size = size
        place = ctypes.c_uint64()
        device.do("cuMemHostAlloc", ctypes.addressof(place), size, _PORTABLE)
        self.address = place.value
        self.view = memoryview((ctypes.c_uint8 * size).from_address(self.address)).cast("B")
        self.event = 0
        self.pending = False  # whether the event was recorded and not waited for since

    def mark(self, stream: int) -> None:
        """The card uses this until it has done what is on the stream so far."""
        if not self.event:
            self.event = self._device.make_event()
        self._device.do("cuEventRecord", self.event, stream)
        self.pending = True

    @property
    def is_free(self) -> bool:
        """Whether the card is done with it."""
        if self.pending and self._device.is_reached(self.event):
            self.pending = False
        return not self.pending

    def wait(self) -> None:
        """Wait until the card is done with it."""
        if self.pending:
            self._device.do("cuEventSynchronize", self.event)
            self.pending = False

    def release(self) -> None:
        """Give it back to the driver."""
        self._device.quietly("cuMemFreeHost", self.address)
        if self.event:
            self._device.quietly("cuEventDestroy", self.event)
            self.event = 0


class PinnedPool:
    """Chunks of one size, shared by a device's streams; up to `keep` of them stay."""

    def __init__(self, device: CudaDevice, size: int, keep: int) -> None:
        self._device = device
        self._keep = keep
        self._idle: deque[Pinned] = deque()
        self._count = 0
        self._lock = forks.lock()
        self.size = size

    def take(self) -> Pinned:
        """A chunk that the card is done with."""
        with self._lock:
            enough = self._count >= self._keep
            # Pinning memory takes the driver longer than copying as much.
            if self._idle and (enough or self._idle[0].is_free):
                chunk = self._idle.popleft()
            else:
                chunk = None
                self._count += 1
        if chunk is None:
            try:
                return Pinned(self._device, self.size)
            except BaseException:
                with self._lock:
                    self._count -= 1
                raise
        chunk.wait()
        return chunk

    def give(self, chunk: Pinned) -> None:
        """Return one; it may have been marked for work that still runs."""
        with self._lock:
            if self._count <= self._keep:
                self._idle.append(chunk)
                return
            self._count -= 1
        chunk.wait()
        chunk.release()

    def release(self) -> None:
        """Give all idle ones back to the driver."""
        while self._idle:
            self._idle.popleft().release()
        self._count = 0


class Ring:
    """Places in a row of segments, one after the other, round and round.

    >>> ring = Ring(2, 64)
    >>> ring.reserve(40), ring.reserve(24), ring.reserve(10)
    ((0, False), (64, True), (96, False))
    """

    def __init__(self, segments: int, size: int) -> None:
        self._segments = segments
        self._size = size
        self._used = 0
        self.segment = 0  # that places are in now

    def reserve(self, size: int) -> tuple[int, bool]:
        """Where `size` bytes have their place, and whether that is in a new segment: the one
        before is full then, and what was in the new one is overwritten."""
        turned = self._used + size > self._size
        if turned:
            self.segment = (self.segment + 1) % self._segments
            self._used = 0
        place = self.segment * self._size + self._used
        self._used += -(-size // _ALIGNMENT) * _ALIGNMENT
        return place, turned


class UploadRing:
    """The ring of one stream, for small writes."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._ring = Ring(RING_SEGMENTS, SEGMENT)
        self._memory = Pinned(device, RING_SEGMENTS * SEGMENT)
        self._events = [0] * RING_SEGMENTS  # after the last use of each segment

    def put(self, data: memoryview, stream: int) -> int:
        """Copy bytes into the ring; their address, for a copy that the stream is given next."""
        before = self._ring.segment
        place, turned = self._ring.reserve(len(data))
        if turned:
            if not self._events[before]:
                self._events[before] = self._device.make_event()
            self._device.do("cuEventRecord", self._events[before], stream)
            waiting = self._events[self._ring.segment]
            if waiting:
                self._device.do("cuEventSynchronize", waiting)
        self._memory.view[place : place + len(data)] = data
        return self._memory.address + place

    def retire(self, stream: int) -> None:
        """Its stream ends: another one may have it when what is on the stream is done."""
        for segment in range(RING_SEGMENTS):
            if not self._events[segment]:
                self._events[segment] = self._device.make_event()
            self._device.do("cuEventRecord", self._events[segment], stream)

    def adopt(self) -> None:
        """Wait until the last stream that had it is done."""
        for event in self._events:
            self._device.do("cuEventSynchronize", event)

    def release(self) -> None:
        """Give it back to the driver."""
        self._memory.release()
        for event in self._events:
            if event:
                self._device.quietly("cuEventDestroy", event)


# --- large copies ---------------------------------------------------------------------------------


def write_large(stream: CudaStream, target: CudaBuffer, offset: int, raw: memoryview) -> None:
    """Append a copy from host memory, which may be reused as soon as this returns. While the card
    copies one part, the host copies the next."""
    pool = stream.device.chunks
    for start in range(0, len(raw), pool.size):
        part = raw[start : start + pool.size]
        chunk = pool.take()
        try:
            copy_bytes(chunk.view, part)
            place = target.place + offset + start
            stream.append((), (target,), "cuMemcpyHtoDAsync", place, chunk.address, len(part))
            chunk.mark(stream.handle)
        finally:
            pool.give(chunk)


def read_large(
    stream: CudaStream, source: CudaBuffer, offset: int, raw: memoryview
) -> Iterator[int]:
    """The steps of a copy into host memory; each yield is an event to wait for."""
    pool = stream.device.chunks
    under_way: deque[tuple[Pinned, memoryview]] = deque()
    try:
        for start in range(0, len(raw), pool.size):
            if len(under_way) == _READS_AHEAD:
                yield under_way[0][0].event
                pool.give(_land(under_way))
            part = raw[start : start + pool.size]
            chunk = pool.take()
            under_way.append((chunk, part))
            place = source.place + offset + start
            stream.append((source,), (), "cuMemcpyDtoHAsync", chunk.address, place, len(part))
            chunk.mark(stream.handle)
        while under_way:
            yield under_way[0][0].event
            pool.give(_land(under_way))
    finally:
        for chunk, _ in under_way:
            pool.give(chunk)


def _land(under_way: deque[tuple[Pinned, memoryview]]) -> Pinned:
    """Copy the first part under way, which has arrived, into host memory; its chunk."""
    chunk, part = under_way.popleft()
    chunk.pending = False
    copy_bytes(part, chunk.view[: len(part)])
    return chunk
