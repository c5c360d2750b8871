"""Streams of a browser's device. All of them append to the device's one batch, so that work runs in
the order in which it was appended, on any stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.base import Buffer, CompiledKernel
from treadle.drivers.pending_read import PendingRead, Steps
from treadle.drivers.webgpu_browser.commands import CLEAR, COPY, DISPATCH, REPLAY, UPLOAD, Batch
from treadle.drivers.webgpu_browser.events import BrowserEvent
from treadle.drivers.webgpu_browser.kernels import BrowserKernel, bind
from treadle.drivers.webgpu_browser.memory import BrowserBuffer
from treadle.drivers.webgpu_browser.recording import BrowserRecording, Capture
from treadle.drivers.webgpu_browser.waiting import check_can_read, check_can_synchronize, wait
from treadle.drivers.webgpu_rules.kernels import foldable
from treadle.drivers.webgpu_rules.unaligned_copies import WordStream, check_range

if TYPE_CHECKING:
    from treadle.drivers.webgpu_browser.device import BrowserDevice

FIRST_WORDS, MOST_WORDS = 8 * 32, 8 * 512  # of a batch: the first one after a wait, and the most
_SMALL_UPLOAD = 1 << 16  # bytes that are copied with the batch
_PARAMETER_BYTES, _UPLOAD_BYTES = 1 << 17, 1 << 20
# Threads of a dispatch that takes longer than its submission: the GPU gets it at once.
_LARGE = 1 << 22
_DOWNLOAD = 64 << 20  # bytes of a part of a large read
_READS_AHEAD = 2


class BrowserStream(WordStream[BrowserBuffer]):
    """Launches, copies and reads, in order."""

    __slots__ = ("__weakref__", "_alignment", "_batch", "_capture", "_largest", "device")
    device: BrowserDevice

    def __init__(self, device: BrowserDevice) -> None:
        super().__init__()
        self.device = device
        self._batch: Batch = device.batch
        self._capture: Capture | None = None
        self._largest = device.info.limits.max_grid.x
        self._alignment = device.parameter_alignment

    # ------------------------------------------------------------------ launching

    def launch(
        self,
        kernel: CompiledKernel,
        grid: Dim3,
        buffers: Sequence[Buffer],
        parameters: bytes,
    ) -> None:
        """Append a launch: its words, and its parameter block if the batch does not have it."""
        assert type(kernel) is BrowserKernel
        if type(buffers) is not tuple:
            buffers = tuple(buffers)
        group = kernel.groups.get(buffers)
        if group is None:
            group = bind(self.device, kernel, buffers)
        x, y, z = grid
        largest = self._largest
        if not (0 < x <= largest and 0 < y <= largest and 0 < z <= largest):
            if x == 0 or y == 0 or z == 0:
                return
            x, y, z = foldable(kernel.code, grid, largest)
        batch = self._batch
        size = kernel.size
        if len(parameters) != size:
            raise LaunchError(
                f"the parameter block of kernel {kernel.code.name} has {size} bytes, "
                f"not {len(parameters)}"
            )
        place = 0
        if size:
            found = batch.blocks.get(parameters)
            place = self._place(batch, parameters) if found is None else found
        words = batch.words
        words += (DISPATCH, kernel.number, group, kernel.bucket, place, x, y, z)
        if len(words) >= batch.room or x * y * z * kernel.threads >= _LARGE:
            self._appended(buffers, kernel)

    def _place(self, batch: Batch, parameters: bytes) -> int:
        """Add a parameter block that the batch does not have yet; its offset."""
        if self._capture is None and len(batch.parameters) >= _PARAMETER_BYTES - len(parameters):
            self.device.flush()
        return batch.place(parameters, self._alignment)

    def _appended(self, buffers: Iterable[Buffer] = (), kept: object = None) -> None:
        """A command was appended, and the batch is full, has a launch that should start at once, or
        has to know the buffers."""
        if self._capture is not None:
            self._capture.hold(buffers, kept)  # type: ignore[arg-type]
        else:
            self.device.flush()

    def append_replay(self, recording: BrowserRecording) -> None:
        """Append a recording of any length, as one command."""
        batch = self._batch
        needed = sum(len(change.parameters) + self._alignment for change in recording.changes)
        if self._capture is None and len(batch.parameters) + needed > _PARAMETER_BYTES:
            self.device.flush()
            if needed > _PARAMETER_BYTES:
                raise LaunchError(
                    f"a recording with {len(recording.changes)} changed launches is too long to be "
                    "replayed: record it in parts"
                )
        words = [REPLAY, recording.number, len(recording.changes)]
        for place, kernel, grid, parameters in recording.changes:
            x, y, z = grid
            largest = self._largest
            if x > largest or y > largest or z > largest:
                x, y, z = foldable(kernel.code, grid, largest)
            block = batch.place(parameters, self._alignment) if kernel.size else 0
            words += (place, kernel.bucket, block, x, y, z)
        batch.words += words
        batch.kept.append(recording)
        if self._capture is not None or len(batch.words) >= batch.room:
            self._appended()

    # ------------------------------------------------------------------ copies

    def _write_words(self, target: BrowserBuffer, offset: int, raw: memoryview) -> None:
        size = len(raw)
        device = self.device
        if self._capture is not None:
            # The data becomes memory of the recording, written once, before any replay.
            source = device.allocate_internal(size)
            self._capture.owned.append(source)
            device.default_stream.write_at_once(source, 0, raw)
            self._append_copy(source, 0, target, offset, size)
        elif size > _SMALL_UPLOAD:
            self.write_at_once(target, offset, raw)
        else:
            batch = device.batch
            if len(batch.uploads) + size > _UPLOAD_BYTES:
                device.flush()
            place = len(batch.uploads)
            batch.uploads += raw
            batch.words += (UPLOAD, place, target.number, offset, size)
            if len(batch.words) >= batch.room:
                self._appended()

    def write_at_once(self, target: BrowserBuffer, offset: int, raw: memoryview) -> None:
        """Write whole words after all that was appended, with no copy in between."""
        self.device.flush()
        self.device.helper.write(target.number, offset, raw)

    def _append_copy(
        self,
        source: BrowserBuffer,
        source_offset: int,
        target: BrowserBuffer,
        offset: int,
        size: int,
    ) -> None:
        batch = self._batch
        batch.words += (COPY, source.number, source_offset, target.number, offset, size)
        if len(batch.words) >= batch.room:
            self._appended((source, target))

    def _append_clear(self, target: BrowserBuffer, offset: int, size: int) -> None:
        batch = self._batch
        batch.words += (CLEAR, target.number, offset, size)
        if len(batch.words) >= batch.room:
            self._appended((target,))

    # ------------------------------------------------------------------ reading

    def read(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """Wait for all work so far, then copy into host memory."""
        check_can_read()
        self.begin_read(buffer, offset, target).wait()

    def begin_read(self, buffer: Buffer, offset: int, target: memoryview) -> PendingRead:
        """The copy is handed over, and a promise is what is waited for."""
        return PendingRead(self._reading(buffer, offset, target), _wait, _itself)

    async def read_async(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """`read`, awaiting instead of blocking."""
        await self.begin_read(buffer, offset, target).wait_async()

    def _reading(self, buffer: Buffer, offset: int, target: memoryview) -> Steps:
        """The steps of a read; each yields a promise for a part, and is sent what it gives.

        Large reads go in parts: while one is copied, the next one is under way.
        """
        self._not_captured("read")
        device = self.device
        source = device.own(buffer)
        size = target.nbytes
        check_range(source, offset, size)
        if not size:
            return
        raw = target.cast("B")
        device.flush()
        device.batch.room = FIRST_WORDS
        # Parts end at word boundaries of the buffer.
        begin, end = offset // 4 * 4, -(-(offset + size) // 4) * 4
        under_way: list[tuple[int, int, Any]] = []
        for first in range(begin, end, _DOWNLOAD):
            last = min(first + _DOWNLOAD, end)
            if len(under_way) == _READS_AHEAD:
                yield from self._landing(under_way.pop(0), offset, raw)
            promise = device.helper.read(source.number, first, last - first)
            under_way.append((first, last, promise))
        for each in under_way:
            yield from self._landing(each, offset, raw)
        device.raise_heard()

    def _landing(self, part: tuple[int, int, Any], offset: int, raw: memoryview) -> Steps:
        """Copy a part into host memory when it has arrived."""
        first, last, promise = part
        found = yield promise
        if found is None:
            self.device.raise_heard()
            raise self.device.lose("a read was abandoned")
        start, stop = max(first, offset), min(last, offset + len(raw))
        if (start, stop) == (first, last):
            found.bytes.assign_to(raw[start - offset : stop - offset])
        else:
            data = found.bytes.to_bytes()
            raw[start - offset : stop - offset] = data[start - first : stop - first]
        self.device.helper.landed(found)

    # ------------------------------------------------------------------ events and waiting

    def record(self) -> BrowserEvent:
        """Mark the point after all work so far."""
        self._not_captured("record an event")
        return BrowserEvent(self.device)

    def flush(self) -> None:
        """Hand over what was appended. Raises what the browser found wrong with earlier work."""
        if self._capture is None:
            self.device.flush()

    def synchronize(self) -> None:
        """Wait until everything appended is done."""
        self._not_captured("synchronize")
        check_can_synchronize()
        self.device.flush()
        wait(self.device.helper.finished())
        self.device.batch.room = FIRST_WORDS
        self.device.raise_heard()

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        self._not_captured("synchronize")
        self.device.flush()
        await self.device.helper.finished()
        self.device.batch.room = FIRST_WORDS
        self.device.raise_heard()

    def __del__(self) -> None:
        if getattr(self, "_capture", None) is not None:
            self.device.captures -= 1
        scratch = getattr(self, "_scratch", None)
        if scratch is not None:
            self.device.free(scratch)

    # ------------------------------------------------------------------ recordings

    @property
    def recorded(self) -> int:
        """How many words were recorded: where the next command goes."""
        assert self._capture is not None
        return len(self._capture.words)

    def begin_capture(self) -> None:
        """From here on launches and copies are recorded instead of run."""
        self._not_captured("begin another capture")
        self.device.check()
        self._capture = self._batch = Capture()
        self.device.captures += 1

    def end_capture(self) -> BrowserRecording:
        """The recording since `begin_capture`."""
        capture = self._capture
        if capture is None:
            raise LaunchError("end_capture without begin_capture")
        self._capture, self._batch = None, self.device.batch
        return BrowserRecording(self.device, capture)

    def _not_captured(self, what: str) -> None:
        if self._capture is not None:
            raise LaunchError(f"cannot {what} while launches are being recorded")


def _wait(promise: Any) -> Any:
    check_can_read()
    return wait(promise)


async def _itself(promise: Any) -> Any:
    return await promise
