"""Work that has been appended and not yet submitted: records, and their parameter blocks.

A stream appends to its `LiveBatch`, which is submitted when it is full or when a caller waits.
While a stream is being captured it appends to a `CaptureBatch` instead, which grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from treadle.core import forks
from treadle.drivers.webgpu_native import encode_loop as loop
from treadle.drivers.webgpu_native.memory import (
    SMALL_UPLOAD,
    Parameters,
    Staging,
    WebgpuBuffer,
)
from treadle.drivers.webgpu_native.native import Handle
from treadle.drivers.webgpu_rules.kernels import PARAMETER_BYTES

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

# A batch is submitted at so many records or so many dispatches (replays count as theirs), so that
# the GPU starts early and a loop that never reads does not grow.
MAX_RECORDS = 256
MAX_DISPATCHES = 1024
# A batch that begins while the GPU is idle is submitted at so few, and each further one at twice as
# many: the GPU works while the host appends the next one.
FIRST_RECORDS = 16
# In a staging chunk, parameter blocks come first and uploads behind them.
UPLOAD_BYTES = SMALL_UPLOAD - PARAMETER_BYTES
# Reentrant: a garbage collection inside may finish another stream, which settles its batch.
_SETTLING = forks.lock()


class Deferred:
    """A release that waits until the batches that were open at its time are submitted."""

    __slots__ = ("handle", "release", "waiting")

    def __init__(self, release: Callable[[Handle], None], handle: Handle, waiting: int) -> None:
        self.release = release
        self.handle = handle
        self.waiting = waiting

    def settle(self) -> None:
        """One of the batches is done with it."""
        with _SETTLING:
            self.waiting -= 1
            last = self.waiting == 0
        if last:
            self.release(self.handle)


class Batch:
    """Records and parameter blocks; `room` and `limit` say when they are full."""

    __slots__ = (
        "__weakref__", "after", "at", "blocks", "dispatches", "groups", "kept", "limit",
        "records", "room", "used", "view",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records = bytearray((MAX_RECORDS + 1) * loop.RECORD)
        self.at = 0  # where the next record goes
        self.room = MAX_RECORDS * loop.RECORD
        self.view: Any = None  # writable memory for parameter blocks
        self.used = 0
        self.limit = 0
        self.blocks: dict[bytes, int] = {}  # parameter blocks that are there already
        self.groups: list[int] = []  # of the uniform buffer, by parameter bucket
        self.dispatches = 0  # of replayed recordings
        self.after: list[Deferred] = []
        self.kept: list[object] = []  # alive as long as the batch

    @property
    def count(self) -> int:
        """How many records there are."""
        return self.at // loop.RECORD

    @property
    def open(self) -> bool:
        """Whether anything was appended."""
        return self.at > 0

    def settle(self) -> None:
        """Do the releases that waited for the batch."""
        after, self.after = self.after, []
        for deferred in after:
            deferred.settle()


class LiveBatch(Batch):
    """What a stream appends to. It is emptied by each submission and used again."""

    __slots__ = (
        "_block", "_most", "block_pointer", "chunk", "chunks", "parameters", "pointer", "uploaded",
    )  # fmt: skip

    def __init__(self, device: WebgpuDevice) -> None:
        super().__init__()
        self.room = 0  # so that the stream looks at the first record of each batch
        self._most = FIRST_RECORDS
        self.pointer = device.native.ffi.from_buffer(self.records)
        # Where the device's memory is not the host's: parameter blocks, until they are submitted.
        self.parameters: Parameters | None = None
        self._block = bytearray(0)
        self.block_pointer: Any = None
        self.chunk: Staging | None = None
        self.chunks: list[Staging] = []  # all staging that the batch copies from
        self.uploaded = PARAMETER_BYTES

    def open_room(self, *, idle: bool) -> None:
        """Take records until the batch is full. `idle`: the GPU has nothing to do."""
        self._most = FIRST_RECORDS if idle else min(2 * self._most, MAX_RECORDS)
        self.room = self._most * loop.RECORD

    def widen(self) -> None:
        """Take as many records as there is memory for."""
        self.room = MAX_RECORDS * loop.RECORD

    def open_parameters(self, device: WebgpuDevice) -> None:
        """Memory for parameter blocks: mapped staging memory that kernels read them from, or the
        host's, which is written into a buffer of the device before the batch runs."""
        if device.unified:
            chunk = self.chunk or self.open_chunk(device)
            if chunk.parameters is None:
                chunk.parameters = Parameters(device, chunk)
            self.groups = chunk.parameters.groups
            self.view = chunk.view
        else:
            if self.parameters is None:
                self.parameters = Parameters(device)
                self._block = bytearray(PARAMETER_BYTES)
                self.block_pointer = device.native.ffi.from_buffer(self._block)
            self.groups = self.parameters.groups
            self.view = self._block
        self.limit = PARAMETER_BYTES

    def open_chunk(self, device: WebgpuDevice) -> Staging:
        """Mapped staging memory for small uploads, and for parameters where kernels reach it."""
        self.chunk = chunk = device.small_uploads.take()
        self.chunks.append(chunk)
        return chunk

    def release(self, device: WebgpuDevice) -> None:
        """Let go of the memory for parameters."""
        parameters, self.parameters = self.parameters, None
        if parameters is not None:
            parameters.release(device)

    def reset(self) -> None:
        """Empty it after its submission."""
        self.at = self.used = self.limit = self.dispatches = self.room = 0
        self.uploaded = PARAMETER_BYTES
        self.view = self.chunk = None
        self.chunks.clear()
        self.blocks.clear()
        self.kept.clear()
        self.settle()


class CaptureBatch(Batch):
    """What a captured stream appends to."""

    __slots__ = ("_device", "_filled", "owned", "parameters", "used_buffers")

    def __init__(self, device: WebgpuDevice) -> None:
        super().__init__()
        self.room = 0  # so that the stream calls `appended` after each record
        self._device = device
        self.used_buffers: dict[WebgpuBuffer, None] = {}
        self.parameters: list[Parameters] = []
        self._filled: list[tuple[bytearray, int]] = []
        self.owned: list[WebgpuBuffer] = []  # data written while capturing

    def appended(self, buffers: Iterable[WebgpuBuffer]) -> None:
        """Hold the buffers that the last record uses, and have room for another one."""
        for each in buffers:
            buffer = each.parent or each
            if buffer not in self.used_buffers:
                self.used_buffers[buffer] = None
                buffer.holds += 1
        if self.at + loop.RECORD > len(self.records):
            self.records.extend(bytes(len(self.records)))

    def open_parameters(self) -> None:
        """Go on in a new uniform buffer."""
        self._close_parameters()
        self.parameters.append(Parameters(self._device))
        self.groups = self.parameters[-1].groups
        self.view = bytearray(PARAMETER_BYTES)
        self.blocks.clear()
        self.used, self.limit = 0, PARAMETER_BYTES

    def _close_parameters(self) -> None:
        if self.view is not None:
            self._filled.append((self.view, self.used))
            self.view = None

    def parameter_blocks(self) -> list[tuple[Parameters, memoryview]]:
        """Each uniform buffer and what it must hold."""
        self._close_parameters()
        return [
            (parameters, memoryview(block)[: -(-used // 4) * 4])
            for parameters, (block, used) in zip(self.parameters, self._filled, strict=True)
            if used
        ]
