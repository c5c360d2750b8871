"""Collectives by NCCL between NVIDIA GPUs, on a stream of their own.

The driver of CUDA knows which buffers a collective reads and writes, so kernels that do not use
these run meanwhile, and those that do come after it. In a capture a collective becomes a part of
the graph, in the order of its calls. A thread looks whether operations end in time.
"""

from __future__ import annotations

import itertools
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from treadle.core import dtypes
from treadle.core.errors import DistributedError
from treadle.distributed.backends.base import Meeting, meet
from treadle.distributed.client import Client
from treadle.distributed.operation import KIND, Operation
from treadle.distributed.request import Members, Request
from treadle.drivers import base
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Stream

_LOOK = 20e-3  # seconds between looks at what is under way
_LOOK_AT_CALLS = 0.2
_INSTALL = 'pip install "treadle[nccl]" (nccl4py and NVIDIA\'s library), or use backend="mpi"'
# NCCL's numbers of dtypes, and how many of these one of ours is.
_TYPES = {
    "i8": ("Int8", 1), "u8": ("Uint8", 1), "i32": ("Int32", 1), "u32": ("Uint32", 1),
    "i64": ("Int64", 1), "u64": ("Uint64", 1), "f16": ("Float16", 1), "f32": ("Float32", 1),
    "f64": ("Float64", 1), "bf16": ("Bfloat16", 1), "c64": ("Float32", 2), "c128": ("Float64", 2),
}  # fmt: skip
_IN_NO_GROUP = -1  # NCCL_SPLIT_NOCOLOR
_REDUCTIONS = {"sum": "Sum", "product": "Prod", "min": "Min", "max": "Max"}


class _Mark(NamedTuple):
    """A point in the stream, and how many operations are before it."""

    operations: int
    event: base.Event


class _Calling(NamedTuple):
    """A call of the library that has not returned, and since when."""

    operation: Operation
    since: float


class Nccl:
    """A communicator, its stream, and the thread that looks after both."""

    name = "nccl"
    on_host = False
    compares_messages = False
    wider = {"i16": dtypes.int32, "u16": dtypes.uint32, "bool": dtypes.uint8}

    def __init__(self, meeting: Meeting, library: Any) -> None:
        self._library = library
        self.device = meeting.device
        self._timeout = meeting.timeout
        self._look = meeting.look
        self.rank, self.size = meeting.launched.rank, meeting.launched.size
        assert meeting.client is not None
        meet(meeting)
        _check_devices(meeting, meeting.client)
        self._communicator = self._met(meeting.client)
        self._groups: dict[str, Any] = {}  # communicators by the keys of groups
        self._stream = meeting.device.stream(KIND)
        self._running: deque[Operation] = deque()
        self._calling: _Calling | None = None
        self._is_closed = False
        for name, watch in (("stream", self._watch), ("calls", self._watch_calls)):
            threading.Thread(target=watch, name=f"treadle nccl {name}", daemon=True).start()

    def refusal(self, request: Request) -> str:
        """A product of complex numbers, and messages with tags."""
        if request.reduction == "product" and request.dtype.is_complex:
            return (
                "NCCL has no product of complex numbers: gather them (all_gather), and multiply; "
                'or use init(backend="mpi")'
            )
        if request.tag:
            return "NCCL has no tags: messages between two ranks arrive in the order of the sends"
        return ""

    def start(self, operation: Operation) -> None:
        """Append the operation to the stream."""
        if not self._append(operation, self._stream):
            operation.end()
            return
        # The driver keeps memory until the stream has used it, and orders what uses it next.
        operation.given = operation.result = None
        self._running.append(operation)

    def record(self, operation: Operation, submitted: Callable[[], object]) -> bool:
        """Append the operation to what is captured, if something is."""
        stream = self.device.default_stream
        if stream.capturing is None:
            return False
        stream.handle.at_submission(submitted)
        self._append(operation, stream)
        operation.end()
        return True

    def _append(self, operation: Operation, stream: Stream) -> bool:
        """Append the operation to a stream; False if it moves nothing."""
        given: DeviceArray | None = operation.given
        result: DeviceArray = operation.result
        arrays = [array for array in (given, result) if array is not None and array.size]
        if not arrays:
            return False
        reads = [] if given is None or not given.size else [given.buffer]
        writes = [result.buffer] if result.size else []
        request = operation.request

        def work(handle: int) -> None:
            key = request.group_key
            ranks = self._groups[key] if key else self._communicator
            size = self.size if request.members is None else len(request.members.ranks)
            call = _Call(self._library, ranks, size, request, handle)
            self._calling = _Calling(operation, time.monotonic())
            try:
                _START[request.kind](call, _address(given), _address(result))
            except self._library.NCCLError as error:
                raise DistributedError(f"NCCL failed in {operation}: {error}") from None
            finally:
                self._calling = None

        stream.handle.call_library(str(request), work, reads, writes)
        return True

    def bare(self, request: Request, given: DeviceArray, result: DeviceArray, times: int) -> None:
        """Have the library alone do an operation of all ranks so many times: for measuring."""

        def work(stream: int) -> None:
            call = _Call(self._library, self._communicator, self.size, request, stream)
            for _ in range(times):
                _START[request.kind](call, _address(given), _address(result))

        self._stream.handle.call_library(request.kind, work, [given.buffer], [result.buffer])

    def split(self, members: Members | None, color: int | None) -> None:
        """A communicator of a group. NCCL wants nothing else to be under way meanwhile."""
        self.device.synchronize()
        order = 0 if members is None else members.ranks.index(self.rank)
        made = self._joined(
            "make groups",
            lambda: self._library.comm_split(
                self._communicator, _IN_NO_GROUP if color is None else color, order, 0
            ),
        )
        if members is not None:
            self._groups[members.key] = made

    def close(self, failed: bool) -> Callable[[], None] | None:
        """Destroy the communicator; after a failure the process's end does that."""
        self._is_closed = True
        if not failed:
            self.device.synchronize()
            for each in (*self._groups.values(), self._communicator):
                self._library.comm_destroy(each)
        return None

    # ------------------------------------------------------------------ the beginning

    def _met(self, client: Client) -> Any:
        """The communicator, once all ranks have come. NCCL itself would wait for ever."""
        if self.rank == 0:
            client.set("nccl id", bytes(self._library.get_unique_id()).hex())
        try:
            identity = bytes.fromhex(client.get("nccl id", self._timeout))
        except TimeoutError:
            raise DistributedError(
                f"rank 0 has not begun NCCL within {self._timeout:g} s"
            ) from None
        return self._joined(
            "start",
            lambda: self._library.comm_init_rank_scalable(
                self.size, self.rank, 1, bytearray(identity), 0
            ),
        )

    def _joined(self, what: str, join: Callable[[], Any]) -> Any:
        """What a call gives for which NCCL waits until all ranks make it."""
        found: list[Any] = []
        driver: Any = self.device.handle

        def meet() -> None:
            try:
                with driver.current():
                    found.append(join())
            except Exception as error:  # noqa: BLE001  raised by the thread that waits
                found.append(
                    DistributedError(
                        f"NCCL does not {what} on rank {self.rank}: {error}. NCCL_DEBUG=WARN lets "
                        "it say more"
                    )
                )

        thread = threading.Thread(target=meet, name="treadle nccl start", daemon=True)
        thread.start()
        thread.join(self._timeout)
        if not found:
            raise DistributedError(
                f"NCCL has not connected the ranks within {self._timeout:g} s: one of them does "
                "not take part, or they do not reach each other (NCCL_DEBUG=INFO says more)"
            )
        if isinstance(found[0], DistributedError):
            raise found[0]
        return found[0]

    # ------------------------------------------------------------------ looking after operations

    def _watch(self) -> None:
        """Mark the stream from time to time, and see that marks are reached."""
        self.device.handle.work_apart()
        mark: _Mark | None = None
        since = 0.0
        while not self._is_closed:
            time.sleep(_LOOK)
            if mark is None and self._running:
                count = len(self._running)  # first: what is appended now is before the mark, too
                mark, since = _Mark(count, self._stream.handle.record()), time.monotonic()
            if mark is None:
                continue
            if mark.event.query():
                for _ in range(mark.operations):
                    operation = self._running.popleft()
                    operation.end(self._error(operation))
                mark = None
            else:
                before = list(itertools.islice(self._running, mark.operations))
                self._look(before, time.monotonic() - since > self._timeout)

    def _watch_calls(self) -> None:
        """See that calls return: NCCL connects two ranks in their first call, which waits for the
        other rank, with the driver's lock held."""
        while not self._is_closed:
            time.sleep(_LOOK_AT_CALLS)
            calling = self._calling
            if calling is not None:
                is_late = time.monotonic() - calling.since > self._timeout
                self._look([calling.operation], is_late)

    def _error(self, operation: Operation) -> DistributedError | None:
        code = self._library.comm_get_async_error(self._communicator)
        if not code:
            return None
        return DistributedError(
            f"NCCL failed in {operation}: {self._library.get_error_string(code)}"
        )


def _check_devices(meeting: Meeting, client: Client) -> None:
    """DistributedError if two ranks have one GPU, which NCCL does not do."""
    launched, device = meeting.launched, meeting.device
    host = os.environ.get("NCCL_HOSTID") or socket.gethostname()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    own = [host, visible, device.id]
    client.set(f"device {launched.rank}", own)
    all_ranks = [client.get(f"device {r}", meeting.timeout) for r in range(launched.size)]
    same = [rank for rank, each in enumerate(all_ranks) if each == own]
    if len(same) > 1:
        raise DistributedError(
            f"ranks {', '.join(map(str, same))} have the same GPU, {device.id} ({device.name}) of "
            f'{host}, and NCCL wants one for each rank: start fewer, or use backend="mpi"'
        )


def _address(array: DeviceArray | None) -> int:
    if array is None or not array.size:
        return 0
    place: int = array.buffer.address()
    return place + array.offset * array.dtype.itemsize


# --- one function for each kind of operation ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Call:
    """What all calls of NCCL take."""

    library: Any
    communicator: Any
    size: int
    request: Request
    stream: int

    @property
    def count(self) -> int:
        """The elements of the input."""
        return math.prod(self.request.shape or ())

    @property
    def numbers(self) -> tuple[int, int]:
        """How many numbers the input has for NCCL, and their type: bytes if they are only moved."""
        dtype = self.request.dtype
        if not self.request.reduction:
            return self.count * dtype.itemsize, int(self.library.DataType.Uint8)
        name, times = _TYPES[dtype.short]
        return self.count * times, int(getattr(self.library.DataType, name))

    @property
    def reduction(self) -> int:
        """What the numbers are reduced by."""
        return int(getattr(self.library.RedOp, _REDUCTIONS[self.request.reduction]))

    @property
    def end(self) -> tuple[Any, int]:
        """The last arguments."""
        return self.communicator, self.stream


def _all_reduce(call: _Call, given: int, result: int) -> None:
    call.library.all_reduce(given, result, *call.numbers, call.reduction, *call.end)


def _reduce(call: _Call, given: int, result: int) -> None:
    root = call.request.peer
    call.library.reduce(given, result, *call.numbers, call.reduction, root, *call.end)


def _broadcast(call: _Call, given: int, result: int) -> None:
    call.library.broadcast(given, result, *call.numbers, call.request.peer, *call.end)


def _all_gather(call: _Call, given: int, result: int) -> None:
    call.library.all_gather(given, result, *call.numbers, *call.end)


def _reduce_scatter(call: _Call, given: int, result: int) -> None:
    count, dtype = call.numbers
    part = count // call.size
    call.library.reduce_scatter(given, result, part, dtype, call.reduction, *call.end)


def _all_to_all(call: _Call, given: int, result: int) -> None:
    part = call.numbers[0] // call.size
    call.library.group_start()
    try:
        for rank in range(call.size):
            _exchange(call, given + rank * part, result + rank * part, part, rank)
    finally:
        call.library.group_end()


def _exchange(call: _Call, given: int, result: int, size: int, rank: int) -> None:
    kind = call.numbers[1]
    call.library.send(given, size, kind, rank, *call.end)
    call.library.recv(result, size, kind, rank, *call.end)


def _send(call: _Call, given: int, result: int) -> None:
    call.library.send(given, *call.numbers, call.request.peer, *call.end)


def _recv(call: _Call, given: int, result: int) -> None:
    call.library.recv(result, *call.numbers, call.request.peer, *call.end)


_START: dict[str, Callable[[_Call, int, int], None]] = {
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "send": _send,
    "recv": _recv,
}


def make(meeting: Meeting) -> Nccl:
    """The backend, connected to the other ranks."""
    try:
        library: Any = import_module("nccl.bindings.nccl")
    except ImportError as error:
        raise DistributedError(f"the backend nccl needs nccl4py ({error}): {_INSTALL}") from None
    try:
        library.get_version()
    except Exception as error:  # noqa: BLE001  whatever it raises where it finds no library
        raise DistributedError(
            f"nccl4py is here, and finds no NCCL ({error}): {_INSTALL}"
        ) from None
    return Nccl(meeting, library)
