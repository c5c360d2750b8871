"""Streams of the CPU: work is done when the call returns.

A launch runs on the caller's thread. Only when its blocks promise to take long enough (as measured
on earlier launches, or on the first few blocks of this one) do other threads help.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceLost, LaunchError
from treadle.drivers import base
from treadle.drivers.cpu import native, workers
from treadle.drivers.cpu.kernels import CompiledKernel

_LARGEST_EXTENT = (1 << 31) - 1
# Work that is worth waking other threads for, and what one thread should claim at least.
_SHARED_SECONDS = 100e-6
_CHUNK_SECONDS = 20e-6
_PROBED_BLOCKS = 32  # from so many blocks on, a part runs first to see how long they take
_CHUNKS_PER_THREAD = 8
_pack_call = struct.Struct(f"{native.CALL_WORDS}Q").pack
_clock = time.perf_counter


class Event(base.Event):
    """A point in time."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = _clock()

    def synchronize(self) -> None:
        """Nothing to wait for: work is done when it was asked for."""

    def query(self) -> bool:
        """Always reached."""
        return True

    def seconds(self) -> float:
        """The point on the host's clock."""
        return self.time


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


class Stream(base.Stream):
    """Work in order. Different streams may be used by different threads at once."""

    __slots__ = ("_captured",)

    def __init__(self, device: base.Device) -> None:
        self.device = device
        self._captured: list[Call | HostCall] | None = None

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """Run `grid` blocks of a kernel."""
        known = kernel.grids.get(grid)  # type: ignore[attr-defined]
        packed, blocks = known if known is not None else _check_grid(kernel, grid)
        try:
            bindings = kernel.pack(*[b.pointer for b in buffers])  # type: ignore[attr-defined]
        except struct.error:
            raise _wrong_buffers(kernel, buffers) from None
        if self._captured is not None or self.device.closed:  # type: ignore[attr-defined]
            self._capture(kernel, bindings, parameters, packed, blocks, tuple(buffers))
        elif blocks:
            _run(kernel, bindings, parameters, packed, blocks)  # type: ignore[arg-type]

    def _capture(
        self,
        kernel: base.CompiledKernel,
        bindings: bytes,
        parameters: bytes,
        grid: bytes,
        blocks: int,
        buffers: tuple[base.Buffer, ...],
    ) -> None:
        self.device.check_open()  # type: ignore[attr-defined]
        call = Call(
            kernel.pointer,  # type: ignore[attr-defined]
            bindings,
            bytes(parameters),
            grid,
            blocks,
            kernel,  # type: ignore[arg-type]
            buffers,
        )
        if self._captured is not None and blocks:
            self._captured.append(call)

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """Copy from host memory."""
        data = data.cast("B")
        if self._captured is not None:
            kept = ctypes.create_string_buffer(bytes(data), len(data))
            self._capture_copy(
                _memory(buffer)[1] + offset, ctypes.addressof(kept), len(data), (buffer, kept)
            )
            return
        memory, _ = _memory(buffer)
        memory[offset : offset + len(data)] = data

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Copy between buffers."""
        source_memory, source_pointer = _memory(source)
        target_memory, target_pointer = _memory(target)
        if self._captured is not None:
            self._capture_copy(
                target_pointer + target_offset, source_pointer + source_offset, size,
                (source, target),
            )  # fmt: skip
            return
        target_memory[target_offset : target_offset + size] = source_memory[
            source_offset : source_offset + size
        ]

    def _capture_copy(self, target: int, source: int, size: int, keep: tuple[Any, ...]) -> None:
        assert self._captured is not None
        bindings = struct.pack("2Q", target, source)
        self._captured.append(Call(native.address("copy"), bindings, b"", b"", size, None, keep))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero a range."""
        _, pointer = _memory(buffer)
        if self._captured is not None:
            bindings = struct.pack("Q", pointer + offset)
            zero = native.address("zero")
            self._captured.append(Call(zero, bindings, b"", b"", size, None, (buffer,)))
            return
        if not 0 <= offset <= offset + size <= buffer.size:
            raise LaunchError(f"bytes {offset} to {offset + size} are not in the buffer")
        ctypes.memset(pointer + offset, 0, size)

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """Do work of the host's."""
        self.device.check_open()  # type: ignore[attr-defined]
        if self._captured is not None:
            for buffer in buffers:
                _memory(buffer)  # an error here, not at a replay
            self._captured.append(HostCall(work, tuple(buffers)))
        else:
            work()

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Copy into host memory."""
        if self._captured is not None:
            raise LaunchError("a capture cannot read: end it first, replay it, then read")
        target = target.cast("B")
        memory, _ = _memory(buffer)
        target[:] = memory[offset : offset + len(target)]

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """`read`: there is nothing to await."""
        self.read(buffer, offset, target)

    def record(self) -> Event:
        """The present moment."""
        return Event()

    def flush(self) -> None:
        """Nothing waits to be started."""

    def synchronize(self) -> None:
        """Nothing is pending."""
        self.device.check_open()  # type: ignore[attr-defined]

    async def synchronize_async(self) -> None:
        """Nothing is pending."""
        self.synchronize()

    @property
    def recorded(self) -> int:
        """How many calls were recorded."""
        assert self._captured is not None
        return len(self._captured)

    def begin_capture(self) -> None:
        """Record from here on."""
        if self._captured is not None:
            raise LaunchError("this stream is being captured already")
        self._captured = []

    def end_capture(self) -> Recording:
        """What was recorded."""
        if self._captured is None:
            raise LaunchError("this stream is not being captured: call begin_capture first")
        calls, self._captured = self._captured, None
        return Recording(calls)


class Recording(base.Recording):
    """Captured work. The first replay runs and measures each operation; from then on a machine-code
    loop runs all the small ones between two large ones."""

    def __init__(self, calls: list[Call | HostCall]) -> None:
        self._calls = calls
        self._measured = False
        # A large call, or a range of words.
        self._steps: list[tuple[Call | HostCall | None, int, int]] = []
        self._large: dict[int, int] = {}  # the steps of large calls, by their numbers
        # Parameters and grids of small calls that have changed.
        self._changed: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._words = (ctypes.c_uint64 * 0)()

    def replay(self, stream: base.Stream) -> None:
        """Run everything again, in order."""
        stream.device.check_open()  # type: ignore[attr-defined]
        if not self._measured:
            for call in self._calls:
                _run_call(call)
            self._prepare()
            return
        loop = native.replay()
        for large, start, count in self._steps:
            if large is not None:
                _run_call(large)
            else:
                loop(start, count)

    def _prepare(self) -> None:
        """Lay the small calls out as words, one after the other."""
        calls = self._calls
        self._words = (ctypes.c_uint64 * (len(calls) * native.CALL_WORDS))()
        self._large, self._changed = {}, {}
        base_address = ctypes.addressof(self._words)
        steps: list[tuple[Call | HostCall | None, int, int]] = []
        for i, call in enumerate(calls):
            if isinstance(call, HostCall):
                steps.append((call, 0, 0))
                continue
            at = i * native.CALL_WORDS
            self._words[at : at + native.CALL_WORDS] = [*_words(call)]
            if _is_large(call):
                self._large[i] = len(steps)
                steps.append((call, 0, 0))
            elif steps and steps[-1][0] is None:
                steps[-1] = (None, steps[-1][1], steps[-1][2] + 1)
            else:
                steps.append((None, base_address + at * 8, 1))
        self._steps = steps
        self._measured = True

    def change(
        self, place: int, kernel: base.CompiledKernel, grid: Dim3, parameters: bytes
    ) -> None:
        """Give a launch another grid and other parameters."""
        known = kernel.grids.get(grid)  # type: ignore[attr-defined]
        packed, blocks = known if known is not None else _check_grid(kernel, grid)
        old = self._calls[place]
        assert type(old) is Call
        call = self._calls[place] = Call(
            old.entry, old.bindings, parameters, packed, blocks, old.kernel, old.keep
        )
        if not self._measured:
            return
        step = self._large.get(place)
        if _is_large(call) != (step is not None):
            self._prepare()
        elif step is not None:
            self._steps[step] = (call, 0, 0)
        else:
            self._write(place, parameters, packed, blocks)

    def _write(self, place: int, parameters: bytes, grid: bytes, blocks: int) -> None:
        """Write a small call's words, which from here on name memory that is written again."""
        at = place * native.CALL_WORDS
        memory = self._changed.get(place)
        if memory is None:
            memory = ctypes.create_string_buffer(len(parameters) + len(grid))
            self._changed[place] = memory
            address = ctypes.addressof(memory)
            self._words[at + 2], self._words[at + 3] = address, address + len(parameters)
        memory.raw = parameters + grid
        self._words[at + 5] = blocks

    def release(self) -> None:
        """Let go of buffers and kernels."""
        self._calls, self._steps, self._measured = [], [], True


def _address(data: bytes) -> int:
    """Where the bytes of an object lie; they must be kept alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _is_large(call: Call) -> bool:
    """Whether threads share the work of a call."""
    return call.kernel is not None and call.last * call.kernel.seconds > _SHARED_SECONDS


def _words(call: Call) -> tuple[int, ...]:
    return (
        call.entry, _address(call.bindings), _address(call.parameters), _address(call.grid),
        0, call.last,
    )  # fmt: skip


def _run_call(call: Call | HostCall) -> None:
    if isinstance(call, HostCall):
        call.work()
    elif call.kernel is None:
        native.replay()(_pack_call(*_words(call)), 1)
    else:
        _run(call.kernel, call.bindings, call.parameters, call.grid, call.last)


def _run(
    kernel: CompiledKernel, bindings: bytes, parameters: bytes, grid: bytes, blocks: int
) -> None:
    """Run the blocks of a launch: here, or with the help of other threads."""
    start = _clock()
    first = 0
    if blocks >= _PROBED_BLOCKS:
        first = blocks // _PROBED_BLOCKS
        kernel.entry(bindings, parameters, grid, 0, first)
        now = _clock()
        kernel.seconds = (now - start) / first
        start = now
    rest = blocks - first
    expected = rest * kernel.seconds
    threads: int = kernel.device.threads
    if rest <= 1 or threads == 1 or expected < _SHARED_SECONDS:
        kernel.entry(bindings, parameters, grid, first, blocks)
        measured = (_clock() - start) / rest
        # Being interrupted looks like work: one launch may not raise the estimate by much.
        known = kernel.seconds
        kernel.seconds = measured if not known or measured < 2 * known else 2 * known
        return
    chunk = max(
        1, rest // (threads * _CHUNKS_PER_THREAD), int(_CHUNK_SECONDS / max(kernel.seconds, 1e-9))
    )
    helpers = min(threads - 1, -(-rest // chunk) - 1)
    call = _pack_call(
        kernel.pointer, _address(bindings), _address(parameters), _address(grid), 0, blocks
    )
    workers.run(call, (bindings, parameters, grid), first, blocks, chunk, helpers)
    if _clock() - start < 3 * _SHARED_SECONDS:  # it may have been worth less than it seemed
        kernel.seconds *= 0.7


def _check_grid(kernel: base.CompiledKernel, grid: Dim3) -> tuple[bytes, int]:
    """The grid as three words, and how many blocks it has."""
    for extent, threads in zip(grid, kernel.code.block, strict=True):
        if not 0 <= extent * threads <= _LARGEST_EXTENT:
            raise LaunchError(
                f"a grid of {tuple(grid)} blocks of {tuple(kernel.code.block)} threads has "
                f"{extent * threads} threads along one axis, and the cpu counts up to "
                f"{_LARGEST_EXTENT}: launch it in parts, or spread it over more axes"
            )
    grids: dict[Dim3, tuple[bytes, int]] = kernel.grids  # type: ignore[attr-defined]
    if len(grids) > 1024:
        grids.clear()
    grids[grid] = known = struct.pack("3I", *grid), grid.count
    return known


def _memory(buffer: base.Buffer) -> tuple[memoryview, int]:
    pointer = buffer.pointer  # type: ignore[attr-defined]
    if pointer is None:
        raise DeviceLost("this buffer was freed: its memory is no longer there")
    if buffer.device.closed:  # type: ignore[attr-defined]
        buffer.device.check_open()  # type: ignore[attr-defined]
    return buffer.memory, pointer  # type: ignore[attr-defined]


def _wrong_buffers(kernel: base.CompiledKernel, buffers: Sequence[base.Buffer]) -> Exception:
    if any(buffer.pointer is None for buffer in buffers):  # type: ignore[attr-defined]
        return DeviceLost(f"`{kernel.code.name}` was launched on a buffer that was freed")
    return LaunchError(
        f"`{kernel.code.name}` takes {len(kernel.code.bindings)} buffers, not {len(buffers)}"
    )
