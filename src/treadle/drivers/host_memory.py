"""Devices whose memory is the process's own: their buffers, and what they count of them."""

from __future__ import annotations

import ctypes
import itertools
import weakref
from typing import Any

import numpy as np

from treadle.core import forks
from treadle.core.errors import DeviceLost, OutOfMemory
from treadle.core.limits import DeviceInfo
from treadle.drivers import base, machine
from treadle.drivers.library_threads import limit_library_threads

ALIGNMENT = 64  # bytes: a cache line, and the widest vector
_CAREFUL_BYTES = 1 << 26  # allocations from here on are checked against the machine's free memory

_opened: weakref.WeakSet[HostDevice] = weakref.WeakSet()


@forks.in_child
def _abandon_all(half_changed: bool) -> None:
    """The child has the memory too, and goes on with it if it is whole."""
    if half_changed:
        for device in list(_opened):
            device.abandon_after_fork()


class Buffer(base.Buffer):
    """Host memory, aligned to 64 bytes."""

    __slots__ = ("memory", "pointer")

    def __init__(self, device: HostDevice, memory: np.ndarray[Any, Any], identity: int) -> None:
        self.device = device
        self.size = memory.size
        self.identity = identity
        # Bytes as a memoryview: slices copy at once, and it keeps the array alive.
        self.memory = memoryview(memory)  # type: ignore[arg-type]
        self.pointer: int | None = memory.ctypes.data  # None once the buffer is freed

    def address(self) -> int:
        """The host address of the first byte."""
        if self.pointer is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.pointer

    def host_bytes(self) -> memoryview:
        """Its bytes."""
        if self.pointer is None:
            raise DeviceLost("this buffer was freed: its memory is no longer there")
        return self.memory


class HostDevice(base.Device):
    """A device that computes in the process's own memory."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.closed = False
        self._why = "was closed; open it again to use it"
        self._identities = itertools.count(1)
        self._lock = forks.lock()
        self._allocated = 0
        self._peak = 0
        self._count = 0
        limit_library_threads()
        _opened.add(self)

    def check_open(self) -> None:
        """DeviceLost if the device was closed."""
        if self.closed:
            raise DeviceLost(f"the device {self.info.id} {self._why}")

    def allocate(self, size: int) -> Buffer:
        """New memory. OutOfMemory if the machine has not that much left."""
        self.check_open()
        if size > _CAREFUL_BYTES and size > machine.free_memory() > 0:
            raise self._out_of_memory(size)
        try:
            whole = np.empty(size + ALIGNMENT, np.uint8)
            start = -whole.ctypes.data % ALIGNMENT
            buffer = Buffer(self, whole[start : start + size], next(self._identities))
        except (MemoryError, ValueError, OverflowError):
            raise self._out_of_memory(size) from None
        with self._lock:
            self._allocated += size
            self._count += 1
            self._peak = max(self._peak, self._allocated)
        return buffer

    def borrow_address(self, address: int, size: int, owner: object) -> Buffer:
        """Another library's memory as a buffer, not copied. It keeps `owner` alive and does not
        count as this device's memory."""
        self.check_open()
        return Buffer(self, _bytes_at(address, size, owner), next(self._identities))

    def _out_of_memory(self, size: int) -> OutOfMemory:
        free = machine.free_memory()
        return OutOfMemory(
            f"{self.info.id} cannot allocate {size} bytes: {self._allocated} bytes are in use by "
            f"{self._count} buffers and {free} bytes of the machine's memory are free; free some "
            "arrays, or work in smaller pieces"
        )

    def free(self, buffer: base.Buffer) -> None:
        """Give memory back. All work is done when it returns, so nothing can be pending."""
        assert isinstance(buffer, Buffer)
        with self._lock:
            if buffer.pointer is None:
                return
            buffer.pointer = None
            self._allocated -= buffer.size
            self._count -= 1
        buffer.memory = memoryview(b"")

    def memory_stats(self) -> dict[str, Any]:
        """Bytes allocated now and at most, the number of buffers, and the machine's memory."""
        with self._lock:
            return {
                "allocated": self._allocated,
                "peak": self._peak,
                "buffers": self._count,
                "total": machine.total_memory(),
                "free": machine.free_memory(),
            }

    def close(self) -> None:
        """Refuse further work; buffers are freed when their last reference goes."""
        self.closed = True

    def abandon_after_fork(self) -> None:
        """Called in a forked child whose parent was forked within an operation."""
        self.closed = True
        self._why = f"is lost: {base.FORKED_AMIDST}"


def _bytes_at(address: int, size: int, owner: object) -> np.ndarray[Any, Any]:
    """The memory at an address, keeping its owner alive."""
    memory = (ctypes.c_uint8 * size).from_address(address)
    memory.owner = owner  # type: ignore[attr-defined]  # ctypes arrays take attributes
    return np.ctypeslib.as_array(memory)
