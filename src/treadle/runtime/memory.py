"""Pools of device memory, and the storages that live in them.

A freed storage goes back to a free list of its size class and is handed out again without asking
the driver, while work on it may be pending, on any stream. That is safe because a buffer is handed
out again as the same `drivers.base.Buffer`, and a driver puts whatever uses a buffer after what
used it before: by running a device's work in order (cpu, webgpu), or by making a stream wait for
the streams that used the buffer last (cuda). Launches, copies, reads and replays are such uses.
What other libraries do with our memory no driver sees; `runtime.sharing` tells it (`Stream.use`).

What a recording uses is not handed out at all until the recording is released.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from treadle.core import forks
from treadle.core.errors import OutOfMemory, TreadleError
from treadle.drivers.base import Buffer, Device, Event
from treadle.runtime import lazy, profiler

_SMALLEST = 256
_LARGE = 16 << 20
_KEPT_FRACTION = 4  # the free lists keep at most total / 4, or _KEPT_BYTES if the total is unknown
_KEPT_BYTES = 1 << 30


def size_class(size: int) -> int:
    """The bytes that a request for `size` takes: eight classes to each doubling. Of what is large
    there is little, so that classes are finer: 128 to each.

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
        self.shared = Shared()
        self._lock = forks.lock()
        self._free: dict[int, list[Buffer]] = {}
        self._free_bytes = 0
        self._used_bytes = 0
        self._peak_bytes = 0
        self._keepers: list[list[Buffer]] = []
        self._reused: list[Buffer] | None = None  # the keeper whose memory is handed out again
        self._reserved: dict[Buffer, int] = {}  # how many recordings use it
        self._orphans: set[Buffer] = set()  # of these, those that were given back
        self._kept_limit: int | None = None  # asked of the driver once, which may read files for it

    @property
    def used(self) -> int:
        """The bytes that arrays have now."""
        return self._used_bytes

    def take(self, size: int) -> Buffer:
        """Memory of at least `size` bytes, contents undefined."""
        if self.shared.leaving:
            self.shared.settle()
        rounded = size_class(size)
        limits = self.device.info.limits
        for limit in (limits.max_binding_size, limits.max_buffer_size):
            if rounded > limit >= size:  # kernels may see it as vectors of 16 bytes
                rounded = -(-size // 16) * 16
        with self._lock:
            waiting = self._free.get(rounded)
            if self._reused and (kept := _of_size(self._reused, rounded)) is not None:
                buffer = kept
            elif waiting:
                buffer = waiting.pop()
                self._free_bytes -= rounded
            else:
                buffer = self._allocate(rounded, size)
            self._used_bytes += buffer.size
            self._peak_bytes = max(self._peak_bytes, self._used_bytes)
            if (active := profiler.active) is not None:
                active.note_memory(self.device.info.id, self._used_bytes)
            return buffer

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
            self.trim()
            return self.device.allocate(rounded)

    def give(self, buffer: Buffer) -> None:
        """Take memory back."""
        with self._lock:
            self._used_bytes -= buffer.size
            if (active := profiler.active) is not None:
                active.note_memory(self.device.info.id, self._used_bytes)
            if self._keepers:
                self._keepers[-1].append(buffer)
            elif buffer in self._reserved:
                self._orphans.add(buffer)
            else:
                self._shelve(buffer)

    def _shelve(self, buffer: Buffer) -> None:
        self._free.setdefault(buffer.size, []).append(buffer)
        self._free_bytes += buffer.size
        if self._kept_limit is None:
            total = self.device.memory_stats().get("total")
            self._kept_limit = total // _KEPT_FRACTION if total else _KEPT_BYTES
        if self._free_bytes > self._kept_limit:
            self.trim()

    def trim(self) -> None:
        """Give everything in the free lists back to the driver."""
        with self._lock:
            for waiting in self._free.values():
                for buffer in waiting:
                    self.device.free(buffer)
            self._free.clear()
            self._free_bytes = 0

    def keep_into(self, keeper: list[Buffer], reuse: bool = False) -> None:
        """From here on memory that is given back goes to `keeper` instead of the free lists: a
        recording still uses it. `shelve_all` gives it back for good. With `reuse` it is handed out
        again meanwhile, to who records after."""
        with self._lock:
            self._keepers.append(keeper)
            self._reused = keeper if reuse else None

    def keep_no_more(self, keeper: list[Buffer]) -> None:
        """The end of `keep_into`."""
        with self._lock:
            self._keepers = [each for each in self._keepers if each is not keeper]
            self._reused = None

    def reserve(self, buffers: Iterable[Buffer]) -> None:
        """Hand these buffers to nobody, should they be given back: recordings use them."""
        with self._lock:
            for buffer in buffers:
                self._reserved[buffer] = self._reserved.get(buffer, 0) + 1

    def unreserve(self, buffers: Iterable[Buffer]) -> None:
        """A recording is done with buffers that it has reserved."""
        with self._lock:
            for buffer in buffers:
                self._reserved[buffer] -= 1
                if not self._reserved[buffer]:
                    del self._reserved[buffer]
                    if buffer in self._orphans:
                        self._orphans.remove(buffer)
                        self._shelve(buffer)

    def shelve_all(self, keeper: list[Buffer]) -> None:
        """Put a keeper's memory onto the free lists."""
        with self._lock:
            while keeper:
                buffer = keeper.pop()
                if buffer in self._reserved:
                    self._orphans.add(buffer)
                else:
                    self._shelve(buffer)

    def stats(self) -> dict[str, Any]:
        """`used`, `peak` and `cached` bytes of arrays, and the driver's own figures."""
        self.shared.settle()
        return {
            "used": self._used_bytes,
            "peak": self._peak_bytes,
            "cached": self._free_bytes,
            "driver": self.device.memory_stats(),
        }


def _of_size(keeper: list[Buffer], size: int) -> Buffer | None:
    """Memory of a size that a keeper has, which it has no more."""
    for at in range(len(keeper) - 1, -1, -1):
        if keeper[at].size == size:
            return keeper.pop(at)
    return None


class Storage(lazy.Awaited):
    """Device memory owned by arrays; it goes back to its pool with its last array.

    A borrowed storage is always shared, and so is one that came back to us from another library,
    since several arrays may have it then.
    """

    __slots__ = ("__weakref__", "buffer", "nbytes", "owner", "pool")

    def __init__(self, pool: Pool, nbytes: int) -> None:
        super().__init__()
        self.pool: Pool | None = pool
        self.owner: object = None  # memory of somebody else, kept alive while this lives
        self.nbytes = nbytes
        self.buffer = pool.take(max(nbytes, 4))

    @classmethod
    def borrowed(cls, buffer: Buffer, nbytes: int, owner: object) -> Storage:
        """Memory that somebody else owns; it is not given to a pool."""
        storage = cls.__new__(cls)
        lazy.Awaited.__init__(storage, shared=1)
        storage.pool, storage.owner, storage.nbytes, storage.buffer = None, owner, nbytes, buffer
        return storage

    @property
    def is_shared(self) -> bool:
        """Whether another library has the memory, too. (Those who only hope that none has ask
        `shared`.)"""
        if self.shared and self.pool is not None and self.pool.shared.leaving:
            self.pool.shared.settle()
        return self.shared > 0

    def __del__(self) -> None:
        pool = getattr(self, "pool", None)
        if pool is not None and hasattr(self, "buffer"):
            # At interpreter exit the driver may be half gone; the process frees the memory then.
            try:  # noqa: SIM105  contextlib may be gone, too
                pool.give(self.buffer)
            except Exception:  # noqa: BLE001
                pass


class Shared:
    """The memory that a device and other libraries both use."""

    def __init__(self) -> None:
        self.placed: dict[Any, Any] = {}  # other libraries' arrays as arguments, by their facts
        # Reentrant: the collector may come in between, with memory to hold.
        self._lock = forks.lock()
        self._storages: weakref.WeakSet[Storage] = weakref.WeakSet()
        # Other libraries' memory that must live until work is done, which an event tells.
        self._held: deque[tuple[Event, object]] = deque()
        # What is left to do for memory that is not shared any more. Finalizers put it here, as the
        # collector may call them in the midst of a driver's work.
        self.leaving: deque[Callable[[], None]] = deque()

    def settle(self) -> None:
        """Do what finalizers left to do."""
        while self.leaving:
            with contextlib.suppress(IndexError, TreadleError):  # taken by a thread; device lost
                self.leaving.popleft()()

    def add(self, storage: Storage) -> None:
        """Remember a storage whose memory is that of others."""
        with self._lock:
            self._storages.add(storage)

    def lend(self, storage: Storage) -> Callable[[], None]:
        """Others get a storage's memory. What still has to read it is computed now, since nobody
        will hear of their writes; what comes later is computed at once (see `Storage.shared`).

        Gives what is to be put onto `leaving` when they are done, if ever they say so."""
        self.settle()
        lent = weakref.ref(storage)

        def end() -> None:
            mine = lent()
            if mine is not None:
                with self._lock:
                    mine.shared -= 1

        with self._lock:
            self._storages.add(storage)
            storage.shared += 1
        try:
            if storage.readers is not None:
                lazy.arrays.finish_readers(storage)
        except BaseException:
            end()
            raise
        return end

    def storages(self) -> list[Storage]:
        """The storages that were added and live."""
        with self._lock:
            return list(self._storages)

    def hold(self, event: Event, owner: object) -> None:
        """Keep something until an event. What is kept goes when more comes, in order."""
        with self._lock:
            done = []
            self._held.append((event, owner))
            while self._held and self._held[0][0].query():
                done.append(self._held.popleft())
        del done  # without the lock: whose it was may call us


def _readable(size: int) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size} {unit}" if unit == "bytes" else f"{size:.4g} {unit}"
        size /= 1024  # type: ignore[assignment]
    raise AssertionError
