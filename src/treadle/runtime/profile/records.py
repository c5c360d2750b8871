"""The records of a profile, and the bytes and operations of a launch."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import TreadleError
from treadle.ir.definition import Work
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.launch_records import LaunchRecord
from treadle.runtime.profiler import clock as clock

if TYPE_CHECKING:
    from treadle.drivers import base


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
    """One action of the host, with the device's work that it started.

    `began` and `ended` are host times. `points` are events around the work in its stream; their
    times, once read and converted to the host's clock, are `on_device`.
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


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to something that has a track of its own, such as an actor, among others of its
    kind. It began when it ended, if it took no time."""

    track: str
    name: str
    began: float
    ended: float
    facts: dict[str, Any]
    kind: str = "actors"


class ProfileData:
    """The entries of a profile, with the devices, threads and memory that they refer to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.events: list[Event] = []
        self.memory: dict[str, int] = {}  # peak bytes of arrays, by device
        self.memory_used: list[tuple[float, str, int]] = []  # when, device, bytes of arrays
        self.threads: dict[int, str] = {}
        self.timed: dict[str, bool] = {}  # whether a device has timestamps
        self.untimed = ""  # why some entries have no time
        self.gpus: set[str] = set()
        self.stream_names: dict[tuple[str, int], str] = {}  # by device and number; "" has none
        self.began = 0.0
        self.ended: float | None = None

    def thread(self) -> int:
        """The calling thread's number; its name is recorded."""
        number = threading.get_ident()
        if number not in self.threads:
            self.threads[number] = threading.current_thread().name
        return number

    @property
    def seconds(self) -> float:
        """From the beginning of the block until all work that it started is done."""
        return self.end_for("seconds") - self.began

    def is_gpu(self, device: str) -> bool:
        """Whether a device works apart from the host, so that its time is not the host's."""
        return device in self.gpus

    def end_for(self, what: str) -> float:
        """When the profile ended; TreadleError, which names `what`, if it has not."""
        if self.ended is None:
            raise TreadleError(f"the profile has not ended: ask for {what} after the with block")
        return self.ended


def amount_of(launched: LaunchRecord) -> Amount:
    """The bytes and operations of a launch, from its definition. If the definition does not give
    the bytes, they are estimated by the sizes of the arrays."""
    definition, built, values = launched
    work_of = getattr(definition, "work", None)
    known: Work = Work() if work_of is None else work_of(values)
    if known.bytes is not None:
        return Amount(known.bytes, known.operations)
    estimate = _bytes_touched(values, built.read, built.written)
    return Amount(estimate, known.operations, estimated=True)


def _bytes_touched(values: Sequence[Any], read: frozenset[int], written: frozenset[int]) -> int:
    """The bytes of a launch's arrays that are read, plus those that are written. Several views of
    the same elements count once."""
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
    """The bytes of an array's elements, counted once along an axis of stride 0."""
    if array.contiguous:
        return array.size * array.dtype.itemsize
    extents = zip(array.shape, array.strides, strict=True)
    return math.prod(n if s else min(n, 1) for n, s in extents) * array.dtype.itemsize
