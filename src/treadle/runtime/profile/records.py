"""What a profile notes, and what it knows of the work."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import TreadleError
from treadle.ir.definition import Work
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launched import Launched

if TYPE_CHECKING:
    from treadle.drivers import base

clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class Amount:
    """Bytes moved and operations done, where known; `estimated` bytes are the arguments' sizes."""

    bytes: int | None = None
    operations: int | None = None
    estimated: bool = False

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            _sum(self.bytes, other.bytes),
            _sum(self.operations, other.operations),
            self.estimated or other.estimated,
        )


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(slots=True)
class Entry:
    """One thing that the host did, and what it made a device do.

    `began` and `ended` are the host's; `points` are events around the work in its stream, whose
    times, once known and on the host's clock, are `on_device`.
    """

    kind: str  # "kernel", "library", "replay", "upload", "read", "copy", "zero", "wait", "compile"
    name: str
    device: str
    stream: int
    thread: int
    began: float
    ended: float
    amount: Amount = Amount()
    shape: tuple[Dim3, Dim3] | None = None  # of a kernel: grid and block
    points: tuple[base.Event, base.Event] | None = None
    on_device: tuple[float, float] | None = None


class Notes:
    """What was noted while a profile was active, and what its entries are on."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.memory: dict[str, int] = {}  # the most bytes that arrays had, by device
        self.memory_used: list[tuple[float, str, int]] = []  # when, device, bytes of arrays
        self.threads: dict[int, str] = {}
        self.timed: dict[str, bool] = {}  # whether a device tells the time
        self.untimed = ""  # why some entries have no time, if so
        self.gpus: set[str] = set()
        self.began = 0.0
        self.ended: float | None = None

    def thread(self) -> int:
        """The calling thread's number, with its name noted."""
        number = threading.get_ident()
        if number not in self.threads:
            self.threads[number] = threading.current_thread().name
        return number

    @property
    def seconds(self) -> float:
        """From the beginning of the block until all that it started was done."""
        return self.end_for("seconds") - self.began

    def is_gpu(self, device: str) -> bool:
        """Whether a device's time is another one than the host's."""
        return device in self.gpus

    def end_for(self, what: str) -> float:
        """When it ended. TreadleError with what is asked for, if it has not."""
        if self.ended is None:
            raise TreadleError(f"the profile has not ended: ask for {what} after the with block")
        return self.ended


def amount_of(launched: Launched) -> Amount:
    """What a launch moves and does, as its definition says. Where that does not say the bytes, the
    arrays' sizes tell."""
    definition, built, values = launched
    tell = getattr(definition, "work", None)
    known: Work = Work() if tell is None else tell(values)
    if known.bytes is not None:
        return Amount(known.bytes, known.operations)
    estimate = _bytes_touched(values, built.read, built.written)
    return Amount(estimate, known.operations, estimated=True)


def _bytes_touched(values: Sequence[Any], read: frozenset[int], written: frozenset[int]) -> int:
    """The bytes of the arrays among a launch's values, for those that are read and those that are
    written. Several views of the same elements count once."""
    total = 0
    for positions in (read, written):
        seen = set()
        for position in positions:
            array: DeviceArray = values[position]
            part = array.buffer, array.offset, array.shape, array.strides
            if part not in seen:
                seen.add(part)
                total += _bytes_reached(array)
    return total


def _bytes_reached(array: DeviceArray) -> int:
    """The bytes of an array's elements; those along an axis of stride 0 are the same."""
    if array.contiguous:
        return array.size * array.dtype.itemsize
    extents = zip(array.shape, array.strides, strict=True)
    return math.prod(n if s else min(n, 1) for n, s in extents) * array.dtype.itemsize
