"""Bytes at offsets that WebGPU's own copies refuse.

A WebGPU copy needs offsets and sizes that are multiples of 4, and two different buffers. Any other
copy goes through a scratch buffer of the stream: an ordinary copy brings whole words there, and a
small kernel moves single bytes to their place without changing their neighbours.

`WordStream` is a stream that copies at any offset, made of copies of whole words.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.core.limits import DeviceInfo
from treadle.drivers.base import Buffer, CompiledKernel, Stream

Memory = TypeVar("Memory", bound=Buffer)

LARGEST = 1 << 21  # bytes moved at a time
SCRATCH = LARGEST + 8  # a part that starts and ends within words
pack = struct.Struct("<IIII").pack  # the kernel's parameters: offset from, offset to, size, unused

_SOURCE = """
struct Move {
  source: u32,  // byte offsets
  result: u32,
  size: u32,
  unused: u32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(1) @binding(0) var<uniform> bytes: Move;

@compute @workgroup_size(WIDTH)
fn move_bytes(@builtin(global_invocation_id) thread: vec3<u32>) {
  let first = (bytes.result / 4u + thread.x) * 4u;
  let end = bytes.result + bytes.size;
  if (first >= end) {
    return;
  }
  var word = 0u;
  if (first < bytes.result || first + 4u > end) {
    word = result[first / 4u];
  }
  for (var i = 0u; i < 4u; i++) {
    let place = first + i;
    if (place >= bytes.result && place < end) {
      let origin = bytes.source + (place - bytes.result);
      let byte = (source[origin / 4u] >> (origin % 4u * 8u)) & 0xffu;
      word = (word & ~(0xffu << (i * 8u))) | (byte << (i * 8u));
    }
  }
  result[first / 4u] = word;
}
"""


def move_code(info: DeviceInfo) -> KernelCode:
    """The kernel that moves bytes from its first buffer to its second."""
    width = min(64, info.limits.max_threads_per_block, info.limits.max_block.x)
    return KernelCode(
        target="wgsl",
        dialect=info.dialect,
        name="move_bytes",
        entry="move_bytes",
        source=_SOURCE.replace("WIDTH", str(width)),
        block=Dim3(width),
        workgroup=Dim3(width),
        bindings=(Binding(("source",), writes=False), Binding(("result",), writes=True)),
        layout=ParameterLayout((), 16, "<IIII"),
    )


def split(offset: int, size: int) -> tuple[int, int, int]:
    """A range as bytes before the first whole word, in whole words, and after the last.

    >>> split(3, 7)
    (1, 4, 2)
    """
    head = min(-offset % 4, size)
    middle = (size - head) // 4 * 4
    return head, middle, size - head - middle


class WordDevice(Protocol[Memory]):
    """What a stream needs of its device."""

    info: DeviceInfo
    lock: Any

    def own(self, buffer: Buffer) -> Memory: ...
    def allocate_internal(self, size: int) -> Memory: ...
    def move_kernel(self) -> CompiledKernel: ...
    def passing_window(
        self, buffer: Memory, offset: int, size: int
    ) -> AbstractContextManager[tuple[Memory, int]]: ...


class WordStream(Stream, Generic[Memory]):
    """Copies at any offset. A driver adds those of whole words."""

    __slots__ = ("_scratch",)
    device: WordDevice[Memory]  # type: ignore[assignment]

    def __init__(self) -> None:
        self._scratch: Memory | None = None

    @abstractmethod
    def _write_words(self, target: Memory, offset: int, raw: memoryview) -> None: ...

    @abstractmethod
    def _append_copy(
        self, source: Memory, source_offset: int, target: Memory, offset: int, size: int
    ) -> None: ...

    @abstractmethod
    def _append_clear(self, target: Memory, offset: int, size: int) -> None: ...

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Append a copy from host memory."""
        target = self.device.own(buffer)
        size = data.nbytes
        check_range(target, offset, size)
        if not size:
            return
        raw = data.cast("B")
        head, middle, tail = split(offset, size)
        if head:
            self._write_bytes(target, offset, raw[:head])
        if middle:
            self._write_words(target, offset + head, raw[head : head + middle])
        if tail:
            self._write_bytes(target, offset + head + middle, raw[head + middle :])

    def _write_bytes(self, target: Memory, offset: int, raw: memoryview) -> None:
        """A part of a word: its bytes go to scratch memory and from there into their place."""
        with self.device.lock:
            scratch = self._scratch_memory()
            self._write_words(scratch, 0, memoryview(bytes(raw).ljust(4, b"\0")))
            self._move_bytes(0, target, offset, len(raw))

    def copy(
        self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int
    ) -> None:
        """Append a copy between buffers of the device."""
        with self.device.lock:
            origin, into = self.device.own(source), self.device.own(target)
            check_range(origin, source_offset, size)
            check_range(into, target_offset, size)
            if size and origin is not into and not (source_offset | target_offset | size) & 3:
                self._append_copy(origin, source_offset, into, target_offset, size)
                return
            head, middle, tail = split(target_offset, size)
            if origin is not into and source_offset % 4 == target_offset % 4:
                self._copy_bytes(origin, source_offset, into, target_offset, head)
                if middle:
                    self._append_copy(
                        origin, source_offset + head, into, target_offset + head, middle
                    )
                done = head + middle
                self._copy_bytes(origin, source_offset + done, into, target_offset + done, tail)
            else:
                self._copy_bytes(origin, source_offset, into, target_offset, size)

    def _copy_bytes(
        self, source: Memory, source_offset: int, target: Memory, offset: int, size: int
    ) -> None:
        """A copy at any offsets, also within one buffer, through scratch memory."""
        for start in range(0, size, LARGEST):
            scratch = self._scratch_memory()
            length = min(LARGEST, size - start)
            first = source_offset + start
            aligned = first // 4 * 4
            words = -(-(first + length) // 4) * 4 - aligned
            self._append_copy(source, aligned, scratch, 0, words)
            if first % 4 == 0 and (offset + start) % 4 == 0 and length % 4 == 0:
                self._append_copy(scratch, 0, target, offset + start, length)
            else:
                self._move_bytes(first - aligned, target, offset + start, length)

    def fill_zero(self, buffer: Buffer, offset: int, size: int) -> None:
        """Append zeroing a range."""
        with self.device.lock:
            target = self.device.own(buffer)
            check_range(target, offset, size)
            head, middle, tail = split(offset, size)
            if head or tail:
                self._append_clear(self._scratch_memory(), 0, 4)
                self._move_bytes(0, target, offset, head)
                self._move_bytes(0, target, offset + head + middle, tail)
            if middle:
                self._append_clear(target, offset + head, middle)

    def _scratch_memory(self) -> Memory:
        if self._scratch is None:
            self._scratch = self.device.allocate_internal(SCRATCH)
        return self._scratch

    def _move_bytes(self, scratch_offset: int, target: Memory, offset: int, size: int) -> None:
        """Launch the kernel that puts bytes from scratch memory into their place."""
        if not size:
            return
        device, scratch = self.device, self._scratch_memory()
        kernel = device.move_kernel()
        words = (offset % 4 + size + 3) // 4
        grid = Dim3(-(-words // kernel.code.block.x))
        if target.size <= device.info.limits.max_binding_size:
            parameters = pack(scratch_offset, offset, size, 0)
            self.launch(kernel, grid, (scratch, target), parameters)
            return
        # Too large to bind as a whole: bind the part that matters, as a buffer of its own.
        with device.passing_window(target, offset, size) as (window, window_offset):
            parameters = pack(scratch_offset, window_offset, size, 0)
            self.launch(kernel, grid, (scratch, window), parameters)


def check_range(buffer: Buffer, offset: int, size: int) -> None:
    """LaunchError unless a range lies within a buffer."""
    if offset < 0 or offset + size > buffer.size:
        raise LaunchError(
            f"bytes {offset} to {offset + size} are not all within a buffer of {buffer.size} bytes"
        )
