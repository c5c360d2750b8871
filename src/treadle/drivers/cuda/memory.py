"""Buffers on a card, and where their memory comes from.

Memory is allocated and freed in the order of the device's default stream, from a pool of the
driver's that belongs to this device only: freeing does not wait for work that still runs.
"""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING

from treadle.core.errors import DeviceLost
from treadle.drivers.base import Buffer
from treadle.drivers.cuda import errors
from treadle.drivers.cuda.library import address_of
from treadle.drivers.cuda.order import Timeline

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_KEPT_FRACTION = 32  # of the card's memory that the driver's pool keeps for us when we free it
# CUmemPoolProps: pinned memory, no handle for others, location (device, ordinal); then zeros.
_pack_properties = struct.Struct("<4i72x").pack
# CUmemAccessDesc: location (device, ordinal), access for reading and writing.
_pack_access = struct.Struct("<3i").pack


class CudaBuffer(Buffer):
    """Memory on a card."""

    __slots__ = ("freed", "holds", "owner", "place", "pointer", "readers", "writer")
    device: CudaDevice

    def __init__(
        self, device: CudaDevice, identity: int, size: int, place: int, owner: object = None
    ) -> None:
        self.device = device
        self.identity = identity
        self.size = size
        self.place = place  # where it lies
        self.pointer: int | None = place  # the same, until the buffer is freed
        self.owner = owner  # of borrowed memory: kept alive
        self.freed = False
        self.holds = 0  # recordings that use it
        self.writer: tuple[Timeline, int] | None = None
        self.readers: dict[Timeline, int] = {}

    def address(self) -> int:
        """The device pointer to its first byte."""
        if self.pointer is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.pointer


class MemorySource:
    """Memory from the driver: a pool, or plain allocations where the card has no pools."""

    def __init__(self, device: CudaDevice, stream: int, *, pools: bool, total: int) -> None:
        self._device = device
        self._stream = stream
        self._pool = 0
        if not pools:
            return
        made = ctypes.c_uint64()
        properties = _pack_properties(1, 0, 1, device.ordinal)
        device.do("cuMemPoolCreate", ctypes.addressof(made), address_of(properties))
        self._pool = made.value
        kept = ctypes.c_uint64(total // _KEPT_FRACTION)
        device.do("cuMemPoolSetAttribute", self._pool, _RELEASE_THRESHOLD, ctypes.addressof(kept))

    def allocate(self, size: int) -> tuple[int, int]:
        """The driver's code, and an address if that is 0."""
        code, place = self._try(size)
        if code == errors.OUT_OF_MEMORY:
            # What was freed comes back when the stream gets there, and to the card when asked for.
            self._device.do("cuStreamSynchronize", self._stream)
            if self._pool:
                self._device.do("cuMemPoolTrimTo", self._pool, 0)
            code, place = self._try(size)
        return code, place

    def _try(self, size: int) -> tuple[int, int]:
        place = ctypes.c_uint64()
        out = ctypes.addressof(place)
        call = self._device.call
        if self._pool:
            code = call("cuMemAllocFromPoolAsync", out, size, self._pool, self._stream)
        else:
            code = call("cuMemAlloc", out, size)
        return code, place.value

    def free(self, place: int) -> None:
        """Give memory back after all work so far on the default stream."""
        if self._pool:
            self._device.quietly("cuMemFreeAsync", place, self._stream)
        else:
            self._device.quietly("cuStreamSynchronize", self._stream)
            self._device.quietly("cuMemFree", place)

    def allow(self, ordinal: int) -> None:
        """Let another card reach this memory directly."""
        if self._pool:
            access = _pack_access(1, ordinal, 3)
            self._device.quietly("cuMemPoolSetAccess", self._pool, address_of(access), 1)

    def release(self) -> None:
        """Give the pool back, with what is left in it."""
        if self._pool:
            self._device.quietly("cuMemPoolDestroy", self._pool)
