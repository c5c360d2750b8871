"""Calls of kernels, and running one: on the caller's thread, or with the help of others.

Only when the blocks of a launch promise to take long enough (as measured on earlier launches, or on
the first few blocks of this one) do other threads help.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.drivers import base
from treadle.drivers.cpu import native, workers
from treadle.drivers.cpu.kernels import CompiledKernel
from treadle.drivers.host_streams import check_extents, clock

# Work that is worth waking other threads for, and what one thread should claim at least.
SHARED_SECONDS = 100e-6
_CHUNK_SECONDS = 20e-6
_PROBED_BLOCKS = 32  # from so many blocks on, a part runs first to see how long they take
_CHUNKS_PER_THREAD = 8
_pack_call = struct.Struct(f"{native.CALL_WORDS}Q").pack


class Call(NamedTuple):
    """One recorded operation."""

    entry: int
    bindings: bytes
    parameters: bytes
    grid: bytes
    last: int
    kernel: CompiledKernel | None
    keep: tuple[Any, ...]  # what must live as long as the recording


class HostCall(NamedTuple):
    """Recorded work that is Python's, as a product by NumPy."""

    work: Callable[[], object]
    keep: tuple[Any, ...]


def address_of(data: bytes) -> int:
    """Where the bytes of an object lie; they must be kept alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def words_of(call: Call, least: int = 1, weight: int = native.SINGLE) -> tuple[int, ...]:
    """A call as words (see `native`), which keep nothing alive."""
    return (
        call.entry, address_of(call.bindings), address_of(call.parameters), address_of(call.grid),
        0, call.last, least, weight,
    )  # fmt: skip


def run_call(call: Call | HostCall) -> None:
    """Run a recorded operation by itself."""
    if isinstance(call, HostCall):
        call.work()
    elif call.kernel is None:
        native.replay()(_pack_call(*words_of(call)), 1)
    else:
        run(call.kernel, call.bindings, call.parameters, call.grid, call.last)


def run(
    kernel: CompiledKernel, bindings: bytes, parameters: bytes, grid: bytes, blocks: int
) -> None:
    """Run the blocks of a launch: here, or with the help of other threads."""
    start = clock()
    first = 0
    if blocks >= _PROBED_BLOCKS:
        first = blocks // _PROBED_BLOCKS
        kernel.entry(bindings, parameters, grid, 0, first)
        now = clock()
        kernel.seconds = (now - start) / first
        start = now
    rest = blocks - first
    expected = rest * kernel.seconds
    threads: int = kernel.device.threads
    if rest <= 1 or threads == 1 or expected < SHARED_SECONDS:
        kernel.entry(bindings, parameters, grid, first, blocks)
        measured = (clock() - start) / rest
        # Being interrupted looks like work: one launch may not raise the estimate by much.
        known = kernel.seconds
        kernel.seconds = measured if not known or measured < 2 * known else 2 * known
        return
    chunk = max(
        1, rest // (threads * _CHUNKS_PER_THREAD), int(_CHUNK_SECONDS / max(kernel.seconds, 1e-9))
    )
    helpers = min(threads - 1, -(-rest // chunk) - 1)
    call = _pack_call(
        kernel.pointer, address_of(bindings), address_of(parameters), address_of(grid), 0, blocks,
        0, 0,
    )  # fmt: skip
    workers.run(call, (bindings, parameters, grid), first, blocks, chunk, helpers)
    if clock() - start < 3 * SHARED_SECONDS:  # it may have been worth less than it seemed
        kernel.seconds *= 0.7


def check_grid(kernel: base.CompiledKernel, grid: Dim3) -> tuple[bytes, int]:
    """The grid as three words, and how many blocks it has."""
    check_extents(kernel, grid)
    grids: dict[Dim3, tuple[bytes, int]] = kernel.grids  # type: ignore[attr-defined]
    if len(grids) > 1024:
        grids.clear()
    grids[grid] = known = struct.pack("3I", *grid), grid.count
    return known
