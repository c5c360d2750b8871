"""Recorded work with loops and branches: what a graph is made of whose bodies depend on memory.

The leaves are recordings of a driver. A driver may make one recording of the whole
(`Device.compose`); else the runtime runs it, and reads the conditions (`runtime.decided_replay`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.dtypes import DType
from treadle.drivers.base import Buffer, Recording


@dataclass(frozen=True, slots=True)
class Condition:
    """An element in memory: of a buffer, at a byte. It holds unless it is 0 (-0.0 is; NaN is
    not)."""

    buffer: Buffer
    offset: int
    dtype: DType

    @property
    def masks(self) -> tuple[int, ...]:
        """Of the element's parts (a complex number has two), the bits that tell it from 0.

        >>> from treadle.core.dtypes import complex64, float16, uint8
        >>> [[hex(m) for m in Condition(None, 0, t).masks] for t in (uint8, float16, complex64)]
        [['0xff'], ['0x7fff'], ['0x7fffffff', '0x7fffffff']]
        """
        part = self.dtype.component
        signed = part.kind == "float"
        return ((1 << (part.bits - signed)) - 1,) * (self.dtype.itemsize // part.itemsize)

    def holds(self, element: bytes | bytearray) -> bool:
        """Whether it holds, by the bytes of the element."""
        masks = self.masks
        size = len(element) // len(masks)
        return any(
            int.from_bytes(element[at * size : (at + 1) * size], "little") & mask
            for at, mask in enumerate(masks)
        )


@dataclass(frozen=True, slots=True)
class Work:
    """What runs without a condition. `launches` are the runtime's records of it, for profiles."""

    recording: Recording
    launches: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A body that runs if a condition holds."""

    condition: Condition
    body: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Loop:
    """A body that runs while a condition holds, at most `limit` times (None: without a limit).

    `carried` is memory that the body writes and that an iteration may read before it does."""

    condition: Condition
    limit: int | None
    body: Sequence[Item]
    carried: Sequence[Buffer] = ()


Item = Work | Branch | Loop


def recordings_of(items: Sequence[Item]) -> Iterator[Recording]:
    """All recordings of a program."""
    for item in items:
        if isinstance(item, Work):
            yield item.recording
        else:
            yield from recordings_of(item.body)
