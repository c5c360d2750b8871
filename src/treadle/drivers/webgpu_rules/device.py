"""An opened device of WebGPU: its memory, and what of it kernels may be given."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from treadle.core import forks
from treadle.core.errors import DeviceLost, LaunchError, OutOfMemory
from treadle.core.limits import DeviceInfo
from treadle.drivers.base import FORKED, Buffer, CompiledKernel, Device
from treadle.drivers.webgpu_rules.kernels import check_bindable, check_buffers
from treadle.drivers.webgpu_rules.memory import BindGroups, WebgpuMemory
from treadle.drivers.webgpu_rules.unaligned_copies import move_code

Memory = TypeVar("Memory", bound=WebgpuMemory)
Kernel = TypeVar("Kernel", bound=CompiledKernel)

_MOST_WINDOWS = 256  # that are kept of a buffer


class MemoryDevice(Device, Generic[Memory, Kernel]):
    """What drivers of WebGPU share of a device. A driver makes buffers of its class `memory`, gives
    them back, and says how the device is lost."""

    memory: type[Memory]
    teller: str
    """Whose words an error quotes: "the driver", "the browser"."""
    opened_by: str
    """What opens a lost device again."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.lock = forks.lock()
        self.lost: str | None = None  # why, since when nothing can use it
        self.is_closed = False
        self.bind_groups = BindGroups(self._release_group)
        self._buffers: dict[int, Memory] = {}
        self._allocated = self._peak = 0
        self._move_kernel: Kernel | None = None

    @abstractmethod
    def allocate_internal(self, size: int) -> Memory:
        """Memory of the driver's own, not counted in `memory_stats`."""

    @abstractmethod
    def _part(self, buffer: Memory, start: int, size: int) -> Memory:
        """A part of a buffer as a buffer to bind."""

    @abstractmethod
    def _release_memory(self, buffer: Memory) -> None:
        """Give a buffer back, once no unsubmitted work names it."""

    @abstractmethod
    def _release_group(self, number: int) -> None:
        """Give a bind group back, once no unsubmitted work names it."""

    @abstractmethod
    def _end_batches(self) -> None:
        """Have the next append look whether the device is lost."""

    # ------------------------------------------------------------------ its end

    def lose(self, reason: str) -> DeviceLost:
        """Mark the device as lost, unless it is already; the error to raise."""
        if self.lost is None:
            self.lost = reason
            self._end_batches()
        text = f"{self.info.id} ({self.info.name}) is lost: {self.lost.rstrip('.')}"
        if self.lost == FORKED:
            return DeviceLost(text)
        opened = "its next use opens it again" if self.is_closed else self.opened_by
        return DeviceLost(
            f"{text}. Arrays that were made on it are gone, and stay so: {opened}; then make them "
            "again from your data"
        )

    def _end(self) -> bool:
        """Mark the device as closed; False if it was closed before."""
        if self.is_closed:
            return False
        self.is_closed = True
        self.lose("it was closed")
        return True

    def check(self) -> None:
        """Raise DeviceLost if the device is gone."""
        if self.lost is not None:
            raise self.lose(self.lost)

    # ------------------------------------------------------------------ memory

    def allocate(self, size: int) -> Memory:
        """New memory. OutOfMemory says what was asked and what is in use."""
        self.check()
        size = -(-size // 4) * 4
        limit = self.info.limits.max_buffer_size
        if size <= 0:
            raise LaunchError(f"a buffer has at least 4 bytes, not {size}")
        if size > limit:
            raise OutOfMemory(
                f"{self.info.id} ({self.info.name}): a buffer of {size:,} bytes is over the "
                f"device's limit of {limit:,} bytes for one buffer ({self._allocated:,} bytes are "
                "in use): split the array"
            )
        buffer = self.allocate_internal(size)
        with self.lock:
            self._buffers[buffer.identity] = buffer
            self._allocated += size
            self._peak = max(self._peak, self._allocated)
        return buffer

    def out_of_memory(self, what: str, message: str) -> OutOfMemory:
        """The error for memory that the device does not have."""
        return OutOfMemory(
            f"{self.info.id} ({self.info.name}) has no memory left {what}; "
            f"{self._allocated:,} bytes in {len(self._buffers)} buffers are in use, and WebGPU "
            f"does not tell how much is free. {self.teller.capitalize()} says: {message.strip()}"
        )

    def memory_stats(self) -> dict[str, Any]:
        """`allocated` and `peak` bytes, `buffers`. WebGPU does not tell total and free memory."""
        with self.lock:
            count = len(self._buffers)
            return {"allocated": self._allocated, "peak": self._peak, "buffers": count}

    def own(self, buffer: Buffer) -> Memory:
        """The buffer, if it is memory of this device that can be copied."""
        self.check()
        found = self._usable(buffer, "a buffer")
        if found.parent is not None:
            raise LaunchError("a window of a buffer is there for launches only: copy its buffer")
        return found

    def own_for(self, kernel: CompiledKernel, buffers: Sequence[Buffer]) -> tuple[Memory, ...]:
        """The buffers, if a kernel can be launched with them."""
        name, bindings, given = kernel.code.name, kernel.code.bindings, tuple(buffers)
        check_buffers(name, bindings, given)
        if kernel.device is not self:
            raise LaunchError(f"kernel {name} was compiled for another device")
        found = []
        for buffer, binding in zip(given, bindings, strict=True):
            what = "/".join(binding.buffers)
            found.append(self._usable(buffer, f"{what} of kernel {name}"))
            check_bindable(self.info, name, what, buffer)
        return tuple(found)

    def _usable(self, buffer: Buffer, what: str) -> Memory:
        if not isinstance(buffer, self.memory) or buffer.device is not self:
            if isinstance(buffer, self.memory):
                buffer.device.check()  # type: ignore[attr-defined]
            raise LaunchError(f"{what} is not memory of {self.info.id} ({self.info.name})")
        if buffer.freed:
            raise LaunchError(f"{what} has been freed")
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Give memory back, once pending work and recordings are done with it."""
        assert isinstance(buffer, self.memory)
        with self.lock:
            if buffer.freed:
                return
            buffer.freed = True
            self.bind_groups.forget_buffer(buffer)
            self._forget_windows(buffer)
            if not buffer.holds:
                self._give_back(buffer)

    def unhold(self, buffer: Memory) -> None:
        """A recording does not need the buffer any more."""
        with self.lock:
            buffer.holds -= 1
            if buffer.freed and not buffer.holds:
                self._give_back(buffer)

    def _give_back(self, buffer: Memory) -> None:
        if self._buffers.pop(buffer.identity, None) is not None:
            self._allocated -= buffer.size
        self._release_memory(buffer)

    def _free_all(self) -> None:
        """Free all memory and forget what names it, as the device is closed."""
        self.bind_groups.forget_all()
        for buffer in list(self._buffers.values()):
            self.free(buffer)

    # ------------------------------------------------------------------ windows

    def window(self, buffer: Buffer, offset: int, size: int) -> Memory:
        """A part of a buffer, to be bound instead of all of it; the same one each time."""
        whole = self.own(buffer)
        alignment = self.info.limits.buffer_alignment
        if offset % alignment or size % 4 or offset < 0 or not 0 < size <= whole.size - offset:
            raise LaunchError(
                f"a window of {size} bytes from byte {offset} on: it starts at a multiple of "
                f"{alignment}, has a multiple of 4 bytes, and lies within the buffer's {whole.size}"
            )
        with self.lock:
            found = whole.windows.get((offset, size))
            if found is None:
                if len(whole.windows) >= _MOST_WINDOWS:
                    self._forget_windows(whole)
                found = whole.windows[offset, size] = self._part(whole, offset, size)
            return found

    def _forget_windows(self, buffer: Memory) -> None:
        """Forget a buffer's windows; new ones are made on request."""
        for window in buffer.windows.values():
            window.freed = buffer.freed
            self.bind_groups.forget_buffer(window)
        buffer.windows.clear()

    @contextmanager
    def passing_window(
        self, buffer: Memory, offset: int, size: int
    ) -> Iterator[tuple[Memory, int]]:
        """The part of a large buffer around a range, as a buffer to bind once, and the range's
        offset in it."""
        alignment = self.info.limits.buffer_alignment
        start = offset // alignment * alignment
        end = -(-(offset + size) // 4) * 4
        window = self._part(buffer, start, end - start)
        try:
            yield window, offset - start
        finally:
            self.bind_groups.forget_buffer(window)

    # ------------------------------------------------------------------ kernels

    def move_kernel(self) -> Kernel:
        """The kernel for bytes at odd offsets."""
        with self.lock:
            if self._move_kernel is None:
                self._move_kernel = self.compile(move_code(self.info))  # type: ignore[assignment]
            assert self._move_kernel is not None
            return self._move_kernel
