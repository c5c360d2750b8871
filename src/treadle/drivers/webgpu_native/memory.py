"""Buffers of the device, and the host memory that data passes through on its way to and from it.

Creating and mapping a buffer for each transfer costs more than the transfer itself, so staging
buffers are kept. Upload chunks stay mapped between uses: what is written into them is copied by
the batch that is being collected, and they are mapped again while that batch runs. Download slots
are mapped when a copy into them is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.drivers.webgpu_native.native import (
    COPY_DST,
    COPY_SRC,
    MAP_READ,
    MAP_WRITE,
    UNIFORM,
    Handle,
)
from treadle.drivers.webgpu_rules.kernels import PARAMETER_BYTES, PARAMETER_SIZES
from treadle.drivers.webgpu_rules.memory import WebgpuMemory

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

# Sizes of staging buffers: for many small transfers in a batch, and for parts of large ones.
SMALL_UPLOAD, LARGE_UPLOAD = 1 << 20, 16 << 20
SMALL_DOWNLOAD, LARGE_DOWNLOAD = 1 << 16, 16 << 20


class WebgpuBuffer(WebgpuMemory):
    """Device memory. `number` is the address of its handle."""

    __slots__ = ("handle",)
    device: WebgpuDevice

    def __init__(
        self,
        device: WebgpuDevice,
        identity: int,
        size: int,
        handle: Handle,
        start: int = 0,
        parent: WebgpuBuffer | None = None,
    ) -> None:
        super().__init__(device, identity, size, device.native.address(handle), start, parent)
        self.handle = handle


class Staging:
    """One staging buffer: `flag` becomes 1 when it is mapped, another number when that failed."""

    __slots__ = (
        "_device", "flag", "handle", "info", "number", "parameters", "pointer", "size", "view",
        "write",
    )  # fmt: skip

    def __init__(self, device: WebgpuDevice, size: int, *, write: bool, usage: int = 0) -> None:
        """`usage` is what it is used for beside copies."""
        native = device.native
        usage |= MAP_WRITE | COPY_SRC if write else MAP_READ | COPY_DST
        if write and device.unified:
            usage |= UNIFORM  # kernels read their parameters where the host wrote them
        self.parameters: Parameters | None = None
        self._device = device
        self.size = size
        self.write = write
        self.handle = native.create_buffer(
            device.handle, size, usage, mapped=write, label="treadle staging"
        )
        device.raise_errors(f"staging memory of {size} bytes")
        self.number = native.address(self.handle)
        self.flag = native.flag()
        self.info = native.map_info(device.loop.on_mapped, self.flag)
        self.pointer: Any = None
        self.view: Any = None
        if write:
            self.flag[0] = 1
            self.open()

    def request_map(self) -> None:
        """Ask for the mapping, once everything submitted so far is done with the buffer."""
        self.flag[0] = 0
        self._device.native.map_async(self.handle, self.size, self.info, write=self.write)

    def open(self) -> None:
        """Make the mapped memory reachable as `pointer` and `view`."""
        native = self._device.native
        self.pointer = native.mapped_range(self.handle, self.size, write=self.write)
        if self.pointer == native.null:
            self._device.check()
            raise self._device.lose("staging memory could not be mapped")
        self.view = memoryview(native.ffi.buffer(self.pointer, self.size)).cast("B")

    def close(self) -> None:
        """End the mapping, so that the device can use the buffer."""
        self.pointer = self.view = None
        self._device.native.unmap(self.handle)

    def release(self) -> None:
        """Give the buffer back to the library."""
        self.pointer = self.view = None
        if self.parameters is not None:
            self.parameters.release(self._device)
        self._device.native.release_buffer(self.handle)


class Parameters:
    """A uniform buffer for parameter blocks, bound with each of the usual sizes.

    Where host and device share their memory it is the staging chunk itself; elsewhere a buffer of
    the device, which each batch fills from its chunk.
    """

    __slots__ = ("groups", "handle", "owned")

    def __init__(self, device: WebgpuDevice, chunk: Staging | None = None) -> None:
        native = device.native
        self.owned = chunk is None
        if chunk is not None:
            self.handle = chunk.handle
        else:
            # The last block may be bound with more bytes than it has.
            size = PARAMETER_BYTES + PARAMETER_SIZES[-1]
            self.handle = native.create_buffer(
                device.handle, size, UNIFORM | COPY_DST, label="treadle parameters"
            )
        groups = [
            native.create_bind_group(
                device.handle, device.parameter_layout, [(self.handle, 0, bound)]
            )
            for bound in PARAMETER_SIZES
        ]
        self.groups = [native.address(group) for group in groups]
        device.raise_errors("a buffer for parameters")

    def release(self, device: WebgpuDevice) -> None:
        """Give it back once pending work is submitted."""
        native = device.native
        for group in self.groups:
            handle = native.handle("WGPUBindGroup", group)
            device.release_later(native.release_bind_group, handle)
        if self.owned:
            device.release_later(native.release_buffer, self.handle)


class StagingPool:
    """Staging buffers of one size and direction; up to `keep` of them stay.

    More exist for a while when many streams need one at the same time.
    """

    def __init__(self, device: WebgpuDevice, size: int, *, write: bool, keep: int) -> None:
        self._device = device
        self._write = write
        self._keep = keep
        self._idle: list[Staging] = []
        self._count = 0
        self.size = size

    def take(self) -> Staging:
        """A staging buffer to use now; one for uploads is mapped, after a wait if need be."""
        with self._device.lock:
            # The oldest first: the likeliest to be mapped again.
            free = bool(self._idle) and (
                not self._write or self._idle[0].flag[0] != 0 or self._count >= self._keep
            )
            if free:
                staging = self._idle.pop(0)
            else:
                staging = Staging(self._device, self.size, write=self._write)
                self._count += 1
        if self._write:
            try:
                self._make_mapped(staging)
            except BaseException:
                self.drop(staging)
                raise
        return staging

    def _make_mapped(self, staging: Staging) -> None:
        if staging.view is None:
            self._device.wait(staging.flag, 1)
            if staging.flag[0] != 1:
                raise self._device.lose("staging memory could not be mapped")
            staging.open()

    def give(self, staging: Staging) -> None:
        """Return one; an upload chunk has been asked to map again."""
        with self._device.lock:
            if self._count > self._keep:
                self.drop(staging)
            else:
                self._idle.append(staging)

    def drop(self, staging: Staging) -> None:
        """Return one to the library, in any state."""
        with self._device.lock:
            self._count -= 1
        self._device.dropped.append(staging)  # a late callback may still write to its flag
        staging.release()

    def release(self) -> None:
        """Give all idle ones back to the library."""
        while self._idle:
            self.drop(self._idle.pop())
