"""Memory that faults: global memory in allocations with gaps between, shared and local windows.

Addresses are 64-bit numbers as kernels see them. Every access is checked against the allocation,
the block's shared memory or the thread's local memory, and for alignment; what hardware would
punish is a `MachineFault` that names the instruction and the first thread at fault.
"""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.records import Instruction, PtxError

GLOBAL = 0x7F00_0000_0000
SHARED_WINDOW = 0x0100_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000
WINDOW_SIZE = 1 << 32
RANK_AT = 24  # the bit of a shared address from which on a block's rank in its cluster stands
_RESERVED = 1 << 34  # bytes of address space; only what is touched takes memory
_GAP = 256  # bytes that belong to nobody, between allocations
_NO_RESERVE = 0x4000  # MAP_NORESERVE on Linux
JUNK = 0xA5  # memory that was never written


class MachineFault(PtxError):
    """What a kernel did that it must not do."""


class MissingMembers(MachineFault):
    """Threads that a mask names are elsewhere: they may come yet, or return. Those that `go_on`
    lack nobody: they only came with the others."""

    def __init__(self, message: str, go_on: Any = ()) -> None:
        super().__init__(message)
        self.go_on = go_on


class NotYet(MissingMembers):
    """What threads wait for, and others may still do."""


class GlobalMemory:
    """The memory of a device: allocations at addresses, with typed views of all of it."""

    def __init__(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        self._map = mmap.mmap(-1, _RESERVED, flags=flags)
        self.bytes = np.frombuffer(self._map, np.uint8)
        self.views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        self._end = _GAP
        self._free: dict[int, list[int]] = {}  # places that were given back, by size
        self._starts: list[int] = []  # of live allocations, sorted
        self._ends: dict[int, int] = {}
        self.read_only_reads: set[int] = set()  # allocations read by ld.global.nc in this launch
        self.written: set[int] = set()  # and those written

    def allocate(self, size: int) -> int:
        """The address of new memory, full of junk."""
        rounded = -(-max(size, 1) // 256) * 256
        known = self._free.get(rounded)
        if known:
            start = known.pop()
        else:
            start = self._end
            self._end += rounded + _GAP
            if self._end > _RESERVED:
                raise MemoryError("the PTX machine's address space is used up")
        bisect.insort(self._starts, start)
        self._ends[start] = start + size
        self.bytes[start : start + min(size, 1 << 20)] = JUNK
        return GLOBAL + start

    def free(self, address: int) -> None:
        """Give memory back: accesses to it fault from here on."""
        start = address - GLOBAL
        size = self._ends.pop(start) - start
        self._starts.remove(start)
        rounded = -(-max(size, 1) // 256) * 256
        self._free.setdefault(rounded, []).append(start)
        page = mmap.PAGESIZE
        low, high = -(-start // page) * page, (start + size) // page * page
        if high - low >= 1 << 16:
            self._map.madvise(mmap.MADV_DONTNEED, low, high - low)

    def slice(self, address: int, size: int) -> np.ndarray[Any, Any]:
        """The bytes at an address, for copies by the host."""
        start = address - GLOBAL
        return self.bytes[start : start + size]

    def allocation_of(self, start: int) -> int:
        """Where the live allocation around an offset begins, or -1."""
        at = bisect.bisect_right(self._starts, start) - 1
        if at < 0 or start >= self._ends[self._starts[at]]:
            return -1
        return self._starts[at]

    def check(self, offsets: Array, size: int) -> list[int]:
        """Which allocations the accesses at `offsets` lie in; -1 among them for none."""
        low, high = int(offsets.min()), int(offsets.max())
        first = self.allocation_of(low)
        if first >= 0 and high + size <= self._ends[first]:
            return [first]
        found = {self.allocation_of(int(one)) for one in offsets}
        inside = all(
            start >= 0 and one + size <= self._ends[start]
            for one in offsets.tolist()
            for start in (self.allocation_of(one),)
        )
        return sorted(found) if inside else [-1]

    def first_bad(self, offsets: Array, size: int) -> int:
        """The place in `offsets` of the first that is nowhere."""
        for place, one in enumerate(offsets.tolist()):
            start = self.allocation_of(one)
            if start < 0 or one + size > self._ends[start]:
                return place
        return 0

    def begin_launch(self) -> None:
        self.read_only_reads.clear()
        self.written.clear()

    def end_launch(self, name: str) -> None:
        """MachineFault if ld.global.nc read what the same launch wrote."""
        if both := self.read_only_reads & self.written:
            start = min(both)
            raise MachineFault(
                f"{name}: ld.global.nc reads memory at 0x{GLOBAL + start:x} that the same launch "
                "writes: the value is undefined"
            )


class Spaces:
    """All memories as the threads of some blocks see them.

    `lanes` numbers threads, `row` says which of the blocks each is in. Methods take addresses of
    some threads (`threads`: their numbers) and words of 1, 2, 4 or 8 bytes.
    """

    def __init__(
        self, memory: GlobalMemory, blocks: int, lanes: int, shared_bytes: int, local_bytes: int,
        cluster: int = 1,
    ) -> None:  # fmt: skip
        self.memory = memory
        self.cluster = cluster
        self.shared_bytes, self.local_bytes = shared_bytes, local_bytes
        self._shared_step = -(-shared_bytes // 16) * 16
        self._local_step = -(-local_bytes // 16) * 16
        self._shared = _views(blocks * self._shared_step)
        self._local = _views(lanes * self._local_step)

    # --- generic addresses ---

    def locate(
        self, space: str, address: Array, threads: Array, rows: Array, size: int, one: Instruction
    ) -> list[tuple[dict[int, Any], Array | slice, Array]]:
        """Where accesses go: typed views, which of the accesses, and byte offsets in the views."""
        if space == "global":
            return [self._global(address, slice(None), threads, size, one)]
        if space == "shared":
            return [self._window("shared", address, slice(None), threads, rows, size, one)]
        if space == "local":
            return [self._window("local", address, slice(None), threads, rows, size, one)]
        found = []
        shared = address - np.uint64(SHARED_WINDOW)
        local = address - np.uint64(LOCAL_WINDOW)
        in_shared, in_local = shared < WINDOW_SIZE, local < WINDOW_SIZE
        for name, offsets, mask in (("shared", shared, in_shared), ("local", local, in_local)):
            if mask.any():
                at = np.flatnonzero(mask)
                found.append(self._window(name, offsets[at], at, threads[at], rows[at], size, one))
        rest = np.flatnonzero(~(in_shared | in_local))
        if len(rest):
            found.append(self._global(address[rest], rest, threads[rest], size, one))
        return found

    def _global(
        self, address: Array, which: Any, threads: Array, size: int, one: Instruction
    ) -> tuple[dict[int, Any], Any, Array]:
        offsets = (address - np.uint64(GLOBAL)).view("i8")
        found = self.memory.check(offsets, size)
        if found[0] < 0:
            at = self.memory.first_bad(offsets, size)
            raise MachineFault(
                f"{one}: {size} bytes at 0x{int(address[at]):x} of thread {int(threads[at])} are "
                "in no buffer"
            )
        _check_aligned(address, threads, size, one)
        reads = one.opcode == "ld" or (one.opcode == "cp" and "bulk" not in one.modifiers)
        if not reads:
            self.memory.written.update(found)
        elif "nc" in one.modifiers:
            self.memory.read_only_reads.update(found)
        return self.memory.views, which, offsets

    def _window(
        self,
        space: str,
        offsets: Array,
        which: Any,
        threads: Array,
        rows: Array,
        size: int,
        one: Instruction,
    ) -> tuple[dict[int, Any], Any, Array]:
        shared = space == "shared"
        if shared and self.cluster > 1:
            offsets, rows = self.in_cluster(offsets, rows, "shared::cluster" in one.modifiers, one)
        most = self.shared_bytes if shared else self.local_bytes
        outside = offsets > np.uint64(max(most - size, 0)) if most >= size else offsets >= 0
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise MachineFault(
                f"{one}: {size} bytes at {int(offsets[at].view('i8'))} of thread "
                f"{int(threads[at])} are outside of the {most} bytes of {space} memory"
            )
        _check_aligned(offsets, threads, size, one)
        step = self._shared_step if shared else self._local_step
        base = (rows if shared else threads) * step
        return self._shared if shared else self._local, which, offsets.view("i8") + base

    def in_cluster(
        self, address: Array, rows: Array, any_block: bool, one: Instruction
    ) -> tuple[Array, Array]:
        """Places in blocks' shared memory, and the rows of these blocks: threads' own, or any of
        their clusters."""
        rank = (address >> np.uint64(RANK_AT)).astype(np.int64)
        if np.any(rank >= self.cluster) or not (any_block or np.all(rank == rows % self.cluster)):
            raise MachineFault(
                f"{one}: an address of another block, as if it were the thread's own"
            )
        place = address & np.uint64((1 << RANK_AT) - 1)
        return place, rows - rows % self.cluster + rank


def _check_aligned(address: Array, threads: Array, size: int, one: Instruction) -> None:
    if size > 1 and int(np.bitwise_or.reduce(address)) & (size - 1):
        at = int(np.flatnonzero(address & np.uint64(size - 1))[0])
        raise MachineFault(
            f"{one}: the address 0x{int(address[at]):x} of thread {int(threads[at])} is not "
            f"aligned to {size} bytes"
        )


def _views(size: int) -> dict[int, Any]:
    raw = np.full(max(size, 16), JUNK, np.uint8)
    return {width: raw.view(f"u{width}") for width in (1, 2, 4, 8)}


_SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3}


def load(
    spaces: Spaces,
    space: str,
    address: Array,
    threads: Array,
    rows: Array,
    width: int,
    count: int,
    one: Instruction,
) -> list[Array]:
    """`count` words of `width` bytes each, at the address of each thread."""
    located = spaces.locate(space, address, threads, rows, width * count, one)
    if len(located) == 1:
        views, _, offsets = located[0]
        first = offsets >> _SHIFTS[width]
        return [views[width].take(first + k if k else first) for k in range(count)]
    results = [np.zeros(len(threads), f"u{width}") for _ in range(count)]
    for views, which, offsets in located:
        first = offsets >> _SHIFTS[width]
        for k in range(count):
            results[k][which] = views[width].take(first + k)
    return results


def store(
    spaces: Spaces,
    space: str,
    address: Array,
    values: Sequence[Array],
    threads: Array,
    rows: Array,
    width: int,
    one: Instruction,
) -> None:
    """Words to memory; where threads write the same place, the last one's stays."""
    for views, which, offsets in spaces.locate(
        space, address, threads, rows, width * len(values), one
    ):
        first = offsets >> _SHIFTS[width]
        for k, value in enumerate(values):
            views[width][first + k] = value[which] if np.ndim(value) else value
