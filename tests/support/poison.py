"""Memory that looks wrong until it is written: what a kernel forgets shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import treadle as td
from treadle.drivers.base import Buffer

_BYTE = 0xCB  # as floats about -2.7e7 (32 bits) and -1.6e57 (64 bits), as integers large, negative
_MOST = 1 << 22  # bytes of a buffer that are filled: beyond that a test would take long


@contextlib.contextmanager
def poisoned(device: td.Device) -> Iterator[None]:
    """Fill all memory that arrays of a device get with a byte first."""
    pool = device.pool
    take = pool.take

    def take_poisoned(size: int) -> Buffer:
        buffer = take(size)
        filled = min(buffer.size, _MOST)
        device.default_stream.handle.write(buffer, 0, memoryview(bytes([_BYTE]) * filled))
        return buffer

    pool.take = take_poisoned
    try:
        yield
    finally:
        del pool.take
