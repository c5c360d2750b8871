"""Pools of device memory, and the storages that are allocated from them.

A freed storage goes to the free list of its size class and is reused without a call of the driver,
even while work on it is pending, on any stream. That is safe because the same
`drivers.base.Buffer` is reused, and a driver orders each use of a buffer after the earlier ones:
by running a device's work in order (cpu, webgpu), or by making a stream wait for the streams that
used the buffer last (cuda). Launches, copies, reads and replays are such uses. A driver does not
see what other libraries do with the memory; `runtime.sharing` reports it (`Stream.use`).

Memory that a recording uses is not reused until the recording is released.

A storage that is no longer referenced puts its buffer onto a queue of its pool, which each later
call of the pool empties first. Python runs signal handlers between the steps of Python code, so in
a finalizer written in Python Ctrl-C would be ignored, and the memory lost with it; this one is C.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from treadle.core import forks
from treadle.core.errors import OutOfMemory, TreadleError
from treadle.core.sizes import is_size, valued
from treadle.drivers.base import Buffer, Device, Event
from treadle.runtime import lazy, profiler
from treadle.runtime.varying import room_for

_SMALLEST = 256
_LARGE = 16 << 20
_KEPT_FRACTION = 4  # the free lists keep at most total / 4, or _KEPT_BYTES if the total is unknown
_KEPT_BYTES = 1 << 30
_MOST_SIZES = 4096  # whose classes are remembered


def size_class(size: int) -> int:
    """The bytes allocated for a request of `size`: eight classes for each power of two. Large
    buffers are few, and waste more, so their classes are finer: 128 for each power of two.

    >>> size_class(1), size_class(257), size_class(1000), size_class(1 << 20)
    (256, 288, 1024, 1048576)
    >>> size_class(1_648_361_472) / 1_648_361_472 < 1.01
    True
    """
    if size <= _SMALLEST:
        return _SMALLEST
    step = 1 << max((size - 1).bit_length() - (4 if size <= _LARGE else 8), 5)
    return -(-size // step) * step


class Pool:
    """The memory of one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.shared_storages = SharedStorages()
        self.freed: deque[Buffer] = deque()  # by finalizers, since the last call
        self._lock = forks.lock()
        self._free: dict[int, list[Buffer]] = {}
        self._free_bytes = 0
        self._used_bytes = 0
        self._peak_bytes = 0
        self._diverted: list[list[Buffer]] = []
        self._reused: list[Buffer] | None = None  # the diverted list that `take` reuses
        self._reserved: dict[Buffer, int] = {}  # how many recordings use it
        self._orphans: set[Buffer] = set()  # reserved buffers that were freed
        self._taken: list[Buffer] | None = None  # what `noting_taken` notes
        self._rounded: dict[int, int] = {}  # sizes that were asked for, and their classes
        self._kept_limit: int | None = None  # queried once, since a driver may read files for it

    @property
    def used(self) -> int:
        """The bytes that arrays use now."""
        self.collect()
        return self._used_bytes

    def take(self, size: int) -> Buffer:
        """Memory of at least `size` bytes, contents undefined."""
        if self.shared_storages.deferred:
            self.shared_storages.run_deferred()
        rounded = self._rounded.get(size) or self._round(size)
        with self._lock:
            while self.freed:
                self.give(self.freed.popleft())
            free = self._free.get(rounded)
            if self._reused and (kept := _of_size(self._reused, rounded)) is not None:
                buffer = kept
            elif free:
                buffer = free.pop()
                self._free_bytes -= rounded
            else:
                buffer = self._allocate(rounded, size)
            used = self._used_bytes = self._used_bytes + buffer.size
            if used > self._peak_bytes:
                self._peak_bytes = used
            if (active := profiler.active) is not None:
                active.note_memory(self.device.info.id, self._used_bytes)
            if self._taken is not None:
                self._taken.append(buffer)
            return buffer

    @contextlib.contextmanager
    def noting_taken(self) -> Iterator[list[Buffer]]:
        """The memory that is taken within this context, by any thread. Contexts may be nested: an
        outer one has what inner ones have. Otherwise there is one at a time."""
        taken: list[Buffer] = []
        with self._lock:
            outer, self._taken = self._taken, taken
        try:
            yield taken
        finally:
            with self._lock:
                self._taken = outer
                if outer is not None:
                    outer += taken

    def _round(self, size: int) -> int:
        """The bytes allocated for a request."""
        rounded = size_class(size)
        limits = self.device.info.limits
        for limit in (limits.max_binding_size, limits.max_buffer_size):
            if rounded > limit >= size:  # a kernel may bind it as vectors of 16 bytes
                rounded = -(-size // 16) * 16
        if len(self._rounded) >= _MOST_SIZES:
            self._rounded.clear()
        self._rounded[size] = rounded
        return rounded

    def _allocate(self, rounded: int, asked: int) -> Buffer:
        limit = self.device.info.limits.max_buffer_size
        if rounded > limit:
            raise OutOfMemory(
                f"asked for {_readable(asked)} in one array; {self.device.info.id} allows at most "
                f"{_readable(limit)} in one. Split the array, or use another device."
            )
        try:
            return self.device.allocate(rounded)
        except OutOfMemory:
            if not self._free_bytes:
                raise
        # Not while the error is handled, or another one would show it as well.
        self.trim()
        return self.device.allocate(rounded)

    def collect(self) -> None:
        """Free the memory that finalizers have put onto the queue."""
        with self._lock:
            while self.freed:
                self.give(self.freed.popleft())

    def give(self, buffer: Buffer) -> None:
        """Free memory for reuse."""
        with self._lock:
            self._used_bytes -= buffer.size
            if (active := profiler.active) is not None:
                active.note_memory(self.device.info.id, self._used_bytes)
            if self._diverted:
                self._diverted[-1].append(buffer)
            elif buffer in self._reserved:
                self._orphans.add(buffer)
            else:
                self._to_free_list(buffer)

    def _to_free_list(self, buffer: Buffer) -> None:
        self._free.setdefault(buffer.size, []).append(buffer)
        self._free_bytes += buffer.size
        if self._kept_limit is None:
            total = self.device.memory_stats().get("total")
            self._kept_limit = total // _KEPT_FRACTION if total else _KEPT_BYTES
        if self._free_bytes > self._kept_limit:
            self._return_all()  # what waits in the queue comes after this, one by one

    def reset_peak(self) -> None:
        """Count the most bytes anew, from those in use."""
        self._peak_bytes = self.used

    def trim(self) -> None:
        """Return all memory in the free lists to the driver."""
        with self._lock:
            self.collect()
            self._return_all()

    def _return_all(self) -> None:
        for free in self._free.values():
            for buffer in free:
                self.device.free(buffer)
        self._free.clear()
        self._free_bytes = 0

    def divert_frees(self, target: list[Buffer], reuse: bool = False) -> None:
        """Collect freed memory in `target` from here on, not in the free lists, since a recording
        still uses it. `free_all` frees it. With `reuse`, later allocations of the recording may
        take it meanwhile."""
        with self._lock:
            self.collect()
            self._diverted.append(target)
            self._reused = target if reuse else None

    def stop_diverting(self, target: list[Buffer]) -> None:
        """The end of `divert_frees`."""
        with self._lock:
            self.collect()
            self._diverted = [each for each in self._diverted if each is not target]
            self._reused = None

    @contextlib.contextmanager
    def without_reuse(self) -> Iterator[None]:
        """Within it, memory that a recording has freed is not taken: for what is written before a
        replay, which would write that memory, too."""
        reused, self._reused = self._reused, None
        try:
            yield
        finally:
            self._reused = reused

    def reserve(self, buffers: Iterable[Buffer]) -> None:
        """Keep these buffers from being reused once they are freed, since recordings use them."""
        with self._lock:
            self.collect()
            for buffer in buffers:
                self._reserved[buffer] = self._reserved.get(buffer, 0) + 1

    def unreserve(self, buffers: Iterable[Buffer]) -> None:
        """Release buffers that a recording has reserved."""
        with self._lock:
            self.collect()
            for buffer in buffers:
                self._reserved[buffer] -= 1
                if not self._reserved[buffer]:
                    del self._reserved[buffer]
                    if buffer in self._orphans:
                        self._orphans.remove(buffer)
                        self._to_free_list(buffer)

    def free_all(self, target: list[Buffer]) -> None:
        """Move the memory of a diverted list to the free lists."""
        with self._lock:
            while target:
                buffer = target.pop()
                if buffer in self._reserved:
                    self._orphans.add(buffer)
                else:
                    self._to_free_list(buffer)

    def stats(self) -> dict[str, Any]:
        """`used`, `peak` and `cached` bytes of arrays, and the driver's own figures."""
        self.shared_storages.run_deferred()
        self.collect()
        return {
            "used": self._used_bytes,
            "peak": self._peak_bytes,
            "cached": self._free_bytes,
            "driver": self.device.memory_stats(),
        }


def _of_size(target: list[Buffer], size: int) -> Buffer | None:
    """Remove a buffer of this size from a diverted list; None if it has none."""
    for at in range(len(target) - 1, -1, -1):
        if target[at].size == size:
            return target.pop(at)
    return None


_NOTHING: Callable[[], object] = int  # a C function that does nothing


class Storage(lazy.TrackedMemory):
    """Device memory owned by arrays; it is freed with the last of them.

    A borrowed storage always counts as shared, and so does one that was lent and imported again,
    since several arrays may have it then.
    """

    __slots__ = ("__weakref__", "_finalizer", "buffer", "nbytes", "owner", "pool")

    def __init__(self, pool: Pool, nbytes: int) -> None:
        super().__init__()
        self._finalizer: Callable[[], object] = _NOTHING
        self.pool: Pool | None = pool
        self.owner: object = None  # of borrowed memory, kept alive with this
        if is_size(nbytes):
            self.buffer = _with_room(pool, nbytes)
            nbytes = valued(nbytes)
        else:
            self.buffer = pool.take(nbytes if nbytes > 4 else 4)
        self.nbytes = nbytes
        self._finalizer = partial(pool.freed.append, self.buffer)

    @classmethod
    def borrowed(cls, buffer: Buffer, nbytes: int, owner: object) -> Storage:
        """Memory that another object owns; it is not returned to a pool."""
        storage = cls.__new__(cls)
        lazy.TrackedMemory.__init__(storage, shared=1)
        storage._finalizer = _NOTHING
        storage.pool, storage.owner, storage.nbytes, storage.buffer = None, owner, nbytes, buffer
        return storage

    @classmethod
    def of(cls, pool: Pool, buffer: Buffer, nbytes: int) -> Storage:
        """A storage of memory that was taken from a pool."""
        storage = cls.__new__(cls)
        lazy.TrackedMemory.__init__(storage)
        storage.pool, storage.owner, storage.nbytes, storage.buffer = pool, None, nbytes, buffer
        storage._finalizer = partial(pool.freed.append, buffer)
        return storage

    @property
    def is_shared(self) -> bool:
        """Whether another library has the memory too. (`shared` may count loans that have
        ended.)"""
        if self.shared and self.pool is not None and self.pool.shared_storages.deferred:
            self.pool.shared_storages.run_deferred()
        return self.shared > 0


# Python calls what the slot holds, without arguments: a C function, which no signal interrupts.
Storage.__del__ = Storage._finalizer  # type: ignore[attr-defined, misc]


def _with_room(pool: Pool, size: Any) -> Buffer:
    """Memory for a size that may be another one at a replay, of which it is a fact that it fits."""
    limits = pool.device.info.limits
    most = min(room_for(size), limits.max_binding_size, limits.max_buffer_size)
    buffer = pool.take(max(size.value, most, 4))
    size.record.has_room(size, buffer.size)
    return buffer


class SharedStorages:
    """The storages of a device whose memory other libraries use too."""

    def __init__(self) -> None:
        self.placed: dict[Any, Any] = {}  # other libraries' arrays as arguments, by their facts
        # Reentrant: the garbage collector may run in between, and hold memory.
        self._lock = forks.lock()
        self._storages: set[weakref.ref[Storage]] = set()  # a WeakSet's callbacks are Python
        # Owners of other libraries' memory that must live until an event is reached.
        self._held: deque[tuple[Event, object]] = deque()
        # Work on memory whose loan has ended. Finalizers defer it, since the garbage collector may
        # run them in the middle of a driver's call.
        self.deferred: deque[Callable[[], None]] = deque()

    def run_deferred(self) -> None:
        """Run what finalizers deferred."""
        while self.deferred:
            with contextlib.suppress(IndexError, TreadleError):  # taken meanwhile; device lost
                self.deferred.popleft()()

    def add(self, storage: Storage) -> None:
        """Add a storage of another library's memory."""
        with self._lock:
            self._storages.add(weakref.ref(storage, self._storages.discard))

    def lend(self, storage: Storage) -> Callable[[], None]:
        """Lend a storage's memory to another library. Pending values that read it are computed now,
        since that library's writes are not visible to treadle; later operations on it are computed
        at once (see `Storage.shared`).

        Returns the function that ends the loan, to be put onto `deferred` if that library signals
        that it is done."""
        self.run_deferred()
        lent = weakref.ref(storage)

        def end() -> None:
            mine = lent()
            if mine is not None:
                with self._lock:
                    mine.shared -= 1

        self.add(storage)
        with self._lock:
            storage.shared += 1
        try:
            if storage.readers is not None:
                lazy.arrays.finish_readers(storage)
        except BaseException:
            end()
            raise
        return end

    def storages(self) -> list[Storage]:
        """The added storages that are alive."""
        with self._lock:
            return [each for one in self._storages.copy() if (each := one()) is not None]

    def hold(self, event: Event, owner: object) -> None:
        """Keep `owner` alive until an event is reached. Each call releases those that are done."""
        with self._lock:
            done = []
            self._held.append((event, owner))
            while self._held and self._held[0][0].query():
                done.append(self._held.popleft())
        del done  # without the lock: a finalizer may call this object


def _readable(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size} {unit}" if unit == "bytes" else f"{size:.4g} {unit}"
        size /= 1024  # type: ignore[assignment]
    raise AssertionError
