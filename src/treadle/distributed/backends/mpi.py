"""Collectives by MPI (mpi4py), in the host's memory.

One thread of this process makes all calls of MPI: it starts operations in order, without blocking,
and asks for their ends. So a rank that waits can hear meanwhile that another one has failed.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from treadle.core import dtypes
from treadle.core.errors import DistributedError
from treadle.distributed import lifecycle
from treadle.distributed.backends import pmi, shared_memory
from treadle.distributed.backends.base import Meeting, meet
from treadle.distributed.operation import Operation
from treadle.distributed.request import Members, Request

# How long the thread sleeps between looks at what is in progress: not at all at first, since small
# operations take microseconds; then as little as a rank that waits can bear.
_SPINS = 200
_WANTED, _UNWANTED = 20e-6, 200e-6
_IDLE = 0.2  # between looks at whether the process ends
_INSTALL = (
    "pip install mpi4py mpich (MPI and its mpiexec as wheels), or treadle[mpi]; a cluster has an "
    "MPI of its own, for which mpi4py is enough"
)
_REDUCTIONS = {"sum": "SUM", "product": "PROD", "min": "MIN", "max": "MAX"}
_TYPES = {
    "i8": "INT8_T", "i16": "INT16_T", "i32": "INT32_T", "i64": "INT64_T", "u8": "UINT8_T",
    "u16": "UINT16_T", "u32": "UINT32_T", "u64": "UINT64_T", "f32": "FLOAT", "f64": "DOUBLE",
    "c64": "C_FLOAT_COMPLEX", "c128": "C_DOUBLE_COMPLEX",
}  # fmt: skip


class Mpi:
    """The thread that talks to MPI."""

    name = "mpi"
    on_host = True
    compares_messages = True
    device = None
    wider = {"f16": dtypes.float32, "bf16": dtypes.float32, "bool": dtypes.uint8}

    def refusal(self, request: Request) -> str:
        """It does all of them."""
        return ""

    def __init__(self, meeting: Meeting) -> None:
        self._queue: deque[Operation | Callable[[], None]] = deque()
        self._given = threading.Event()
        self._active: list[tuple[Any, Operation]] = []
        self._is_closed = False
        self._mpi: Any = None
        self._is_within = False  # whether the thread does what `_call` was given
        self._thread = threading.Thread(target=self._run, name="treadle mpi", daemon=True)
        self._thread.start()
        atexit.register(self._leave_within)
        self._timeout = meeting.timeout
        self._meeting = meeting
        self._end: Callable[[], None] | None = None  # of an MPI that no mpiexec has started
        self._ranks: Any = None  # a communicator for these operations alone
        self._groups: dict[str, Any] = {}  # communicators by the keys of groups
        # MPI waits for ever for a rank that does not come, and lets no other thread run meanwhile.
        meet(meeting)
        self.rank, self.size = self._call(self._open, meeting.timeout)

    def start(self, operation: Operation) -> None:
        """Give an operation to the thread."""
        self._queue.append(operation)
        self._given.set()

    def broadcast(self, value: Any, timeout: float) -> Any:
        """Rank 0's value on all ranks; before there are operations."""
        return self._call(lambda: self._ranks.bcast(value, root=0), timeout)

    def record(self, operation: Operation, submitted: Callable[[], object]) -> bool:
        """The host starts each operation."""
        return False

    def split(self, members: Members | None, color: int | None) -> None:
        """A communicator of a group; MPI waits until all ranks have come."""
        self._call(lambda: self._divide(members, color), self._timeout, "make groups")

    def close(self, failed: bool) -> Callable[[], None] | None:
        """Finalize, which all ranks do at about the same time."""
        if failed:
            self._is_closed = True
            is_mpi = self._meeting.launched.is_mpi
            return (lambda: self._mpi.COMM_WORLD.Abort(1)) if is_mpi else None
        self._call(self._finalize, self._timeout, "end")
        return None

    def _leave_within(self) -> None:
        """End the process at once if its thread is within a call of MPI that other ranks have to
        come to: the end of Python would take MPI from under it."""
        if self._is_within:
            lifecycle.leave(1)

    # ------------------------------------------------------------------ the thread

    def _call(self, work: Callable[[], Any], timeout: float, what: str = "start") -> Any:
        """Have the thread do something, and wait for it."""
        found: list[Any] = []
        done = threading.Event()

        def do() -> None:
            self._is_within = True
            try:
                found.append((work(), None))
            except BaseException as error:  # noqa: BLE001  raised where it was asked for
                found.append((None, error))
            self._is_within = False
            done.set()

        self._queue.append(do)
        self._given.set()
        if not done.wait(timeout):
            raise DistributedError(
                f"MPI did not {what} within {timeout:g} s: another rank does not take part"
            )
        value, error = found[0]
        if error is not None:
            raise error
        return value

    def _open(self) -> tuple[int, int]:
        try:
            import mpi4py
        except ImportError:
            raise DistributedError(f"the backend mpi needs mpi4py: {_INSTALL}") from None
        mpi4py.rc.initialize = mpi4py.rc.finalize = False
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise DistributedError(
                f"mpi4py is here, and finds no MPI ({error}): {_INSTALL}"
            ) from None
        self._mpi = MPI
        if not MPI.Is_initialized():
            self._begin_mpi(MPI)
        self._ranks = MPI.COMM_WORLD.Dup()
        shared_memory.forget_names()
        self._ranks.Set_errhandler(MPI.ERRORS_RETURN)
        return self._ranks.rank, self._ranks.size

    def _divide(self, members: Members | None, color: int | None) -> None:
        if members is None or color is None:
            self._ranks.Split(self._mpi.UNDEFINED, 0)
            return
        made = self._ranks.Split(color, members.ranks.index(self.rank))
        made.Set_errhandler(self._mpi.ERRORS_RETURN)
        self._groups[members.key] = made

    def _begin_mpi(self, mpi: Any) -> None:
        launched, client = self._meeting.launched, self._meeting.client
        if launched.is_mpi or client is None:
            mpi.Init_thread(mpi.THREAD_SERIALIZED)
            return
        rank, size = launched.rank, launched.size
        answers = pmi.Answers(rank, size, client, self._meeting.check)
        self._end = pmi.begin(mpi, answers, rank, size)

    def _finalize(self) -> None:
        self._is_closed = True
        if not self._mpi.Is_finalized():
            for each in (*self._groups.values(), self._ranks):
                self._free(each)
            (self._end or self._mpi.Finalize)()

    def _free(self, communicator: Any) -> None:
        """Free a communicator, which MPICH may refuse where a message was not received."""
        try:
            communicator.Free()
        except self._mpi.Exception as error:
            reason = str(error).strip().splitlines()[-1]
            sys.stderr.write(
                f"treadle: rank {self.rank}: MPI ends, and says: {reason}. Each send has a receive "
                "on the other rank; treadle launch --check names those that have none\n"
            )

    def _run(self) -> None:
        looks = 0
        while not self._is_closed:
            while self._queue:
                looks = 0
                self._begin(self._queue.popleft())
            if not self._active:
                self._given.wait(_IDLE)
                self._given.clear()
                continue
            if self._advance():
                looks = 0
                continue
            looks += 1
            if looks < _SPINS:
                time.sleep(0)
            else:
                wanted = any(operation.wanted for _, operation in self._active)
                time.sleep(_WANTED if wanted else _UNWANTED)

    def _begin(self, work: Operation | Callable[[], None]) -> None:
        if not isinstance(work, Operation):
            work()
            return
        try:
            key = work.request.group_key
            ranks = self._groups[key] if key else self._ranks
            request = _START[work.request.kind](self._mpi, ranks, work)
        except Exception as error:  # noqa: BLE001  raised by what waits for the operation
            work.end(_in_words(work, error))
            return
        self._active.append((request, work))

    def _advance(self) -> bool:
        """Ask for ends. Whether an operation has ended."""
        left = []
        for request, operation in self._active:
            try:
                if request.Test():
                    operation.end()
                else:
                    left.append((request, operation))
            except Exception as error:  # noqa: BLE001  raised by what waits for the operation
                operation.end(_in_words(operation, error))
        changed = len(left) < len(self._active)
        self._active = left
        return changed


def _in_words(operation: Operation, error: Exception) -> DistributedError:
    if isinstance(error, DistributedError):
        return DistributedError(
            f"{operation}: {error}. Both ranks give the same shape and dtype, and send and receive "
            "in the same order"
        )
    return DistributedError(
        f"MPI failed in {operation}: {error}. If ranks may have given other shapes or dtypes: "
        "treadle launch --check compares them"
    )


# --- one function for each kind of operation ---------------------------------------------------


def _bytes(mpi: Any, memory: Any) -> list[Any]:
    """Memory, moved as it is."""
    return [memory.bytes, memory.bytes.size, mpi.BYTE]


def _numbers(mpi: Any, operation: Operation, memory: Any) -> list[Any]:
    """Memory that MPI computes with."""
    dtype = operation.request.dtype
    count = memory.bytes.size // dtype.itemsize
    return [memory.bytes, count, getattr(mpi, _TYPES[dtype.short])]


def _reduction(mpi: Any, operation: Operation) -> Any:
    return getattr(mpi, _REDUCTIONS[operation.request.reduction])


def _barrier(mpi: Any, ranks: Any, operation: Operation) -> Any:
    return ranks.Ibarrier()


def _all_reduce(mpi: Any, ranks: Any, operation: Operation) -> Any:
    memory = _numbers(mpi, operation, operation.result)
    return ranks.Iallreduce(mpi.IN_PLACE, memory, _reduction(mpi, operation))


def _reduce(mpi: Any, ranks: Any, operation: Operation) -> Any:
    memory, root = _numbers(mpi, operation, operation.result), operation.request.peer
    reduction = _reduction(mpi, operation)
    if ranks.rank == root:
        return ranks.Ireduce(mpi.IN_PLACE, memory, reduction, root)
    return ranks.Ireduce(memory, None, reduction, root)


def _broadcast(mpi: Any, ranks: Any, operation: Operation) -> Any:
    memory = _bytes(mpi, operation.result)
    return ranks.Ibcast(memory, operation.request.peer)


def _all_gather(mpi: Any, ranks: Any, operation: Operation) -> Any:
    given, result = _bytes(mpi, operation.given), _bytes(mpi, operation.result)
    result[1] = given[1]  # of each rank
    return ranks.Iallgather(given, result)


def _reduce_scatter(mpi: Any, ranks: Any, operation: Operation) -> Any:
    given = _numbers(mpi, operation, operation.given)
    result = _numbers(mpi, operation, operation.result)
    given[1] = result[1]  # for each rank
    return ranks.Ireduce_scatter_block(given, result, _reduction(mpi, operation))


def _all_to_all(mpi: Any, ranks: Any, operation: Operation) -> Any:
    given, result = _bytes(mpi, operation.given), _bytes(mpi, operation.result)
    given[1] = result[1] = given[1] // ranks.size  # for each rank
    return ranks.Ialltoall(given, result)


# A message is two: what it is, in words, and its data. Their tags are neighbours.
_WORDS = 128  # bytes


class _Message:
    """A send or a receive under way, which MPI alone would end where sender and receiver mean
    tensors of other shapes or dtypes."""

    def __init__(self, words: Any, data: Any, announced: bytearray, own: str) -> None:
        self._words, self._data = words, data
        self._announced, self._own = announced, own
        self._found: str | None = None

    def Test(self) -> bool:
        """Whether it has ended, as MPI's requests say it. DistributedError if it is another one,
        once its data is gone, too: the next receive would be given it."""
        if self._found is None:
            if not self._words.Test():
                return False
            self._found = self._announced.rstrip(b"\0").decode()
        if self._found == self._own:
            return bool(self._data.Test())
        try:
            if not self._data.Test():
                return False
        except Exception:  # noqa: BLE001  it is longer than this receive
            pass
        raise DistributedError(f"the message that arrives is {self._found}")


def _what(operation: Operation) -> str:
    request = operation.request
    return f"{request.dtype}{list(request.shape or ())}"[:_WORDS]


def _send(mpi: Any, ranks: Any, operation: Operation) -> Any:
    request, own = operation.request, _what(operation)
    words = bytearray(own.encode().ljust(_WORDS, b"\0"))
    tag = 2 * request.tag
    return _Message(
        ranks.Isend([words, mpi.BYTE], request.peer, tag),
        ranks.Isend(_bytes(mpi, operation.given), request.peer, tag + 1),
        words,
        own,
    )


def _recv(mpi: Any, ranks: Any, operation: Operation) -> Any:
    request, own = operation.request, _what(operation)
    words = bytearray(_WORDS)
    tag = 2 * request.tag
    return _Message(
        ranks.Irecv([words, mpi.BYTE], request.peer, tag),
        ranks.Irecv(_bytes(mpi, operation.result), request.peer, tag + 1),
        words,
        own,
    )


_START: dict[str, Callable[[Any, Any, Operation], Any]] = {
    "barrier": _barrier,
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "send": _send,
    "recv": _recv,
}


def make(meeting: Meeting) -> Mpi:
    """The backend, connected to the other ranks."""
    return Mpi(meeting)
