"""Large copies between host and card: in pieces, through chunks of pinned memory.

While the card fetches or brings one piece, the host copies another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.drivers.cuda.memory import CudaBuffer
from treadle.drivers.cuda.staging import Pinned
from treadle.drivers.transfers import copy_bytes

if TYPE_CHECKING:
    from treadle.drivers.cuda.stream import CudaStream

_READS_AHEAD = 3  # pieces of a download that are on their way at a time


def write(stream: CudaStream, target: CudaBuffer, offset: int, raw: memoryview) -> None:
    """Append a copy from host memory, which may be reused as soon as this returns."""
    pool = stream.device.chunks
    for start in range(0, len(raw), pool.size):
        piece = raw[start : start + pool.size]
        chunk = pool.take()
        try:
            copy_bytes(chunk.view, piece)
            place = target.place + offset + start
            stream.append((), (target,), "cuMemcpyHtoDAsync", place, chunk.address, len(piece))
            chunk.mark(stream.handle)
        finally:
            pool.give(chunk)


def reading(stream: CudaStream, source: CudaBuffer, offset: int, raw: memoryview) -> Iterator[int]:
    """The steps of a copy into host memory; each yield is an event to wait for."""
    pool = stream.device.chunks
    under_way: deque[tuple[Pinned, memoryview]] = deque()
    try:
        for start in range(0, len(raw), pool.size):
            if len(under_way) == _READS_AHEAD:
                yield under_way[0][0].event
                pool.give(_land(under_way))
            piece = raw[start : start + pool.size]
            chunk = pool.take()
            under_way.append((chunk, piece))
            place = source.place + offset + start
            stream.append((source,), (), "cuMemcpyDtoHAsync", chunk.address, place, len(piece))
            chunk.mark(stream.handle)
        while under_way:
            yield under_way[0][0].event
            pool.give(_land(under_way))
    finally:
        for chunk, _ in under_way:
            pool.give(chunk)


def _land(under_way: deque[tuple[Pinned, memoryview]]) -> Pinned:
    """Copy the first piece under way, which has arrived, into host memory; its chunk."""
    chunk, piece = under_way.popleft()
    chunk.pending = False
    copy_bytes(piece, chunk.view[: len(piece)])
    return chunk
