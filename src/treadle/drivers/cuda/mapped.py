"""Memory that kernels and the host use at the same time, in pieces of a few large allocations.

It is the process's own memory, registered with the card: so the host may go on using it after the
device was lost or closed, or after another library has ended the context. To pin and unpin memory
the driver may wait for all that runs on the card, and kernels that stay there would have to leave
each time; so what is pinned stays so until the context ends.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import deque
from typing import TYPE_CHECKING

from treadle.core import forks

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_SLAB = 8 << 20
_ALIGNMENT = 256
_PORTABLE, _MAPPED = 1, 2  # flags of pinned memory: of all cards, at an address for kernels


class FreeList:
    """The free ranges of some memory, by their offsets.

    >>> free = FreeList(1024)
    >>> free.take(256), free.take(1024), free.take(768)
    (0, None, 256)
    >>> free.add(256, 768)
    >>> free.add(0, 256)
    >>> free.take(1024)
    0
    """

    def __init__(self, size: int) -> None:
        self._ranges = [(0, size)]  # each its start and its size, sorted

    def take(self, size: int) -> int | None:
        """Where so many bytes are free, which they are no more; None if nowhere."""
        for at, (start, free) in enumerate(self._ranges):
            if free >= size:
                self._ranges[at : at + 1] = [(start + size, free - size)] if free > size else []
                return start
        return None

    def add(self, start: int, size: int) -> None:
        """A range is free, and one with those that it touches."""
        joined: list[tuple[int, int]] = []
        for one in sorted([*self._ranges, (start, size)]):
            if joined and sum(joined[-1]) == one[0]:
                joined[-1] = joined[-1][0], joined[-1][1] + one[1]
            else:
                joined.append(one)
        self._ranges = joined


class _Slab:
    """Pages of the process, pinned."""

    def __init__(self, device: CudaDevice, size: int) -> None:
        self.pages = mmap.mmap(-1, size)
        self.free = FreeList(size)
        self.returned: deque[tuple[int, int]] = deque()  # by the collector, which takes no lock
        whole = (ctypes.c_uint8 * size).from_buffer(self.pages)
        host, place = ctypes.addressof(whole), ctypes.c_uint64()
        device.do("cuMemHostRegister", host, size, _PORTABLE | _MAPPED)
        device.do("cuMemHostGetDevicePointer", ctypes.addressof(place), host, 0)
        self.place = place.value  # for the card; the same as the host's on most machines

    def take(self, size: int) -> int | None:
        """The offset of so many bytes."""
        while self.returned:
            self.free.add(*self.returned.popleft())
        return self.free.take(size)


class MappedMemory:
    """The pinned memory of a device that its kernels reach, too."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._lock = forks.lock()
        self._slabs: list[_Slab] = []

    def take(self, size: int) -> tuple[ctypes.Array[ctypes.c_uint8], int]:
        """Zeroed bytes, which are free again when nothing refers to them, and their address for
        the card."""
        rounded = -(-size // _ALIGNMENT) * _ALIGNMENT
        with self._lock:
            slab, offset = self._find(rounded)
        memory = (ctypes.c_uint8 * size).from_buffer(slab.pages, offset)
        ctypes.memset(memory, 0, size)
        weakref.finalize(memory, slab.returned.append, (offset, rounded)).atexit = False
        return memory, slab.place + offset

    def _find(self, size: int) -> tuple[_Slab, int]:
        for slab in self._slabs:
            offset = slab.take(size)
            if offset is not None:
                return slab, offset
        page = mmap.PAGESIZE
        slab = _Slab(self._device, max(-(-size // page) * page, _SLAB))
        self._slabs.append(slab)
        offset = slab.take(size)
        assert offset is not None
        return slab, offset
