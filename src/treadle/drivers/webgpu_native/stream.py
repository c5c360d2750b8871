"""Streams of a WebGPU device.

Appending writes a record into the open batch and calls nothing of the library; a flush encodes the
batch with the compiled loop and submits it. All streams of a device share its one queue, and the
first record of a batch flushes the other stream that has one: work runs in the order in which it
was appended, on any stream, so memory may pass from one to another.

Several threads may use one stream: appending holds the device's lock, waiting and large copies in
host memory do not.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError, TreadleError
from treadle.core.interrupts import Uninterruptible
from treadle.drivers.base import Buffer, CompiledKernel, Event
from treadle.drivers.pending_read import PendingRead, Steps
from treadle.drivers.transfers import copy_bytes
from treadle.drivers.webgpu_native import encode_loop as loop
from treadle.drivers.webgpu_native.batch import (
    MAX_DISPATCHES,
    UPLOAD_BYTES,
    Batch,
    CaptureBatch,
    LiveBatch,
)
from treadle.drivers.webgpu_native.events import RESOLVE_ALIGNMENT, WebgpuEvent
from treadle.drivers.webgpu_native.exchange import WebgpuExchange
from treadle.drivers.webgpu_native.memory import (
    SMALL_UPLOAD,
    Staging,
    StagingPool,
    WebgpuBuffer,
)
from treadle.drivers.webgpu_native.pipelines import WebgpuKernel, bind
from treadle.drivers.webgpu_native.recording import WebgpuRecording
from treadle.drivers.webgpu_rules.kernels import PARAMETER_BYTES, foldable
from treadle.drivers.webgpu_rules.unaligned_copies import WordStream, check_range

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

_pack_dispatch = loop.pack_dispatch
_DISPATCH, _RECORD = loop.DISPATCH, loop.RECORD
# Threads of a dispatch that takes longer than its submission: the GPU gets it at once.
_LARGE = 1 << 22
_READS_AHEAD = 3  # parts of a large download that are under way at once


class WebgpuStream(WordStream[WebgpuBuffer]):
    """Launches, copies and reads, in order."""

    __slots__ = (
        "__weakref__", "_batch", "_capture", "_commands", "_events", "_largest", "_live", "_owner",
        "_timing", "device",
    )  # fmt: skip
    device: WebgpuDevice

    def __init__(self, device: WebgpuDevice) -> None:
        super().__init__()
        self.device = device
        self._live = LiveBatch(device)
        self._capture: CaptureBatch | None = None
        self._owner = 0  # the thread whose work a capture records
        self._batch: Batch = self._live
        self._commands = device.native.ffi.new("WGPUCommandBuffer[1]")
        self._events: list[WebgpuEvent] = []  # recorded in the open batch
        self._largest = device.info.limits.max_grid.x
        self._timing = False  # whether what is appended stays in one batch
        device.add_batch(self._live)

    # ------------------------------------------------------------------ launching

    def launch(
        self,
        kernel: CompiledKernel,
        grid: Dim3,
        buffers: Sequence[Buffer],
        parameters: bytes,
    ) -> None:
        """Append a launch: a record, and the parameter block in mapped memory."""
        assert type(kernel) is WebgpuKernel
        if type(buffers) is not tuple:
            buffers = tuple(buffers)
        with self.device.lock:
            if self._capture is not None and self._owner != get_ident():
                with self._outside_capture():
                    self.launch(kernel, grid, buffers, parameters)
                return
            group = kernel.groups.get(buffers)
            if group is None:
                group = bind(self.device, kernel, buffers)
            x, y, z = grid
            largest = self._largest
            if not (0 < x <= largest and 0 < y <= largest and 0 < z <= largest):
                if x == 0 or y == 0 or z == 0:
                    return
                x, y, z = foldable(kernel.code, grid, largest)
            size = kernel.size
            if len(parameters) != size:
                raise LaunchError(
                    f"the parameter block of kernel {kernel.code.name} has {size} bytes, "
                    f"not {len(parameters)}"
                )
            batch = self._batch
            if size:
                place = batch.blocks.get(parameters)
                if place is None:
                    place = self._place_parameters(batch, parameters, kernel.stride)
                _pack_dispatch(
                    batch.records, batch.at, _DISPATCH, x, y, z,
                    kernel.pipeline, group, batch.groups[kernel.bucket], place, 0,
                )  # fmt: skip
            else:
                _pack_dispatch(
                    batch.records, batch.at, _DISPATCH, x, y, z, kernel.pipeline, group, 0, 0, 0
                )
            at = batch.at + _RECORD
            batch.at = at
            large = x * y * z * kernel.threads >= _LARGE
            if at >= batch.room or large:
                self._appended(buffers, large=large and not self._timing)

    def _place_parameters(self, batch: Batch, parameters: bytes, stride: int) -> int:
        """Write a parameter block that the batch does not have yet; its offset."""
        if batch.used + stride > batch.limit:
            if self._capture is not None:
                self._capture.open_parameters()
            else:
                if self._live.limit:  # it is full
                    self.flush()
                self._live.open_parameters(self.device)
        place = batch.used
        batch.view[place : place + len(parameters)] = parameters
        batch.used = place + stride
        batch.blocks[parameters] = place
        return place

    def _appended(self, buffers: Iterable[Buffer] = (), *, large: bool = False) -> None:
        """A record was appended, and the batch was empty, is full or has to know the buffers, or
        the record is `large` enough to be submitted at once."""
        live = self._live
        if self._capture is not None:
            self._capture.appended(buffers)  # type: ignore[arg-type]
            return
        if not live.room and self.device.lost is None:
            self._begin_batch()
        if large or live.at >= live.room or live.dispatches >= MAX_DISPATCHES:
            self.flush()

    def _begin_batch(self) -> None:
        """The live batch gets its first record: submit what another stream has appended first."""
        other = self.device.appending()
        if other is not None and other is not self:
            other._submit()
        self.device.appending = weakref.ref(self)
        self._live.open_room(idle=self.device.idle)

    def append_replay(self, recording: WebgpuRecording) -> None:
        """Append a recording of any length, as one record."""
        with self._appending():
            if recording.changes:
                self._append_changed(recording)
                return
            batch = self._batch
            loop.pack_call(
                batch.records, batch.at, loop.CALL, 0, recording.address, recording.count
            )
            batch.at += _RECORD
            batch.dispatches += recording.dispatches
            batch.kept.append(recording)
            self._appended()

    def _append_changed(self, recording: WebgpuRecording) -> None:
        """Append a recording with changed launches: a copy of its records, whose parameter blocks
        are the batch's. Replays before it, which may not be submitted yet, keep theirs."""
        records = bytearray(recording.records)
        first = 0  # of the records that are not appended yet
        largest, batch = self._largest, self._batch
        for at, kernel, group, grid, parameters in recording.changes:
            x, y, z = grid
            if x > largest or y > largest or z > largest:
                x, y, z = foldable(kernel.code, grid, largest)
            if not kernel.size:
                _pack_dispatch(records, at, _DISPATCH, x, y, z, kernel.pipeline, group, 0, 0, 0)
                continue
            block = batch.blocks.get(parameters)
            if block is None:
                if batch.used + kernel.stride > batch.limit and batch is self._live:
                    # The blocks so far are of this batch, so what has them is submitted with it.
                    place = at // _RECORD
                    self._append_call(recording, records, first, place)
                    first = place
                block = self._place_parameters(batch, parameters, kernel.stride)
            _pack_dispatch(
                records, at, _DISPATCH, x, y, z,
                kernel.pipeline, group, batch.groups[kernel.bucket], block, 0,
            )  # fmt: skip
        self._append_call(recording, records, first, recording.count)

    def _append_call(
        self, recording: WebgpuRecording, records: bytearray, first: int, end: int
    ) -> None:
        """Append some of the records of a recording, as one record."""
        if first == end:
            return
        batch, native = self._batch, self.device.native
        pointer = native.ffi.from_buffer(records)
        address = native.address(pointer) + first * _RECORD
        loop.pack_call(batch.records, batch.at, loop.CALL, 0, address, end - first)
        batch.at += _RECORD
        batch.dispatches += end - first
        batch.kept += [recording, records, pointer]
        self._appended()

    def exchange(
        self,
        kernel: CompiledKernel,
        buffers: Sequence[Buffer],
        source: tuple[int, int],
        result: tuple[int, int],
        launches: Sequence[tuple[Dim3, bytes]],
        near: bool,
    ) -> WebgpuExchange | None:
        """Launches that are made again and again, with a little data of the host's."""
        if not self.device.loop.compiled:
            return None
        return WebgpuExchange(self.device, kernel, buffers, source, result, launches, near)

    # ------------------------------------------------------------------ copies

    def _write_words(self, target: WebgpuBuffer, offset: int, raw: memoryview) -> None:
        size = len(raw)
        if self._records:
            self._write_captured(target, offset, raw)
        elif size <= UPLOAD_BYTES:
            with self._appending():
                live = self._live
                if live.chunk is not None and live.uploaded + size > SMALL_UPLOAD:
                    self.flush()
                chunk = live.chunk or live.open_chunk(self.device)
                at = live.uploaded
                chunk.view[at : at + size] = raw
                live.uploaded = at + size
                self._append_copy_from(chunk.number, at, target, offset, size)
        else:
            pool = self.device.large_uploads
            for start in range(0, size, pool.size):
                part = raw[start : start + pool.size]
                chunk = pool.take()
                copy_bytes(chunk.view, part)
                with self._appending():
                    self._live.chunks.append(chunk)
                    self._append_copy_from(chunk.number, 0, target, offset + start, len(part))
                    self.flush()  # the device copies this part while the host fills the next

    def _write_captured(self, target: WebgpuBuffer, offset: int, raw: memoryview) -> None:
        """The data becomes device memory of the recording, written once, before any replay."""
        with self.device.lock:
            assert self._capture is not None
            source = self.device.allocate_internal(len(raw))
            self._capture.owned.append(source)
            with self._outside_capture():
                self._write_words(source, 0, raw)
            self._append_copy_from(source.number, 0, target, offset, len(raw))

    @property
    def _records(self) -> bool:
        """Whether a capture records what this thread does."""
        return self._capture is not None and self._owner == get_ident()

    @contextlib.contextmanager
    def _appending(self) -> Iterator[None]:
        """Hold the device's lock. What is appended then is recorded only if this thread captures
        the stream: another one may have begun since the work was asked for."""
        with self.device.lock:
            if self._capture is None or self._owner == get_ident():
                yield
                return
            with self._outside_capture():
                yield

    @contextlib.contextmanager
    def _outside_capture(self) -> Iterator[None]:
        """Append to the live batch, under the device's lock."""
        capture, self._capture, self._batch = self._capture, None, self._live
        try:
            yield
        finally:
            self._capture = capture
            self._batch = capture or self._live

    def _append_copy(
        self, source: WebgpuBuffer, source_offset: int, target: WebgpuBuffer, offset: int, size: int
    ) -> None:
        with self._appending():
            self._append_copy_from(source.number, source_offset, target, offset, size)
            self._hold((source,))

    def _append_copy_from(
        self, source: int, source_offset: int, target: WebgpuBuffer, offset: int, size: int
    ) -> None:
        batch = self._batch
        loop.pack_copy(
            batch.records, batch.at, loop.COPY, 0,
            source, source_offset, target.number, offset, size,
        )  # fmt: skip
        batch.at += _RECORD
        self._appended((target,))

    def _append_clear(self, target: WebgpuBuffer, offset: int, size: int) -> None:
        with self._appending():
            batch = self._batch
            loop.pack_clear(batch.records, batch.at, loop.CLEAR, 0, target.number, offset, size)
            batch.at += _RECORD
            self._appended((target,))

    def _hold(self, buffers: tuple[WebgpuBuffer, ...]) -> None:
        """Tell a capture of buffers that the last record reads."""
        if self._capture is not None:
            self._capture.appended(buffers)

    # ------------------------------------------------------------------ reading

    def read(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """Wait for all work so far, then copy into host memory."""
        self.begin_read(buffer, offset, target).wait()

    def begin_read(self, buffer: Buffer, offset: int, target: memoryview) -> PendingRead:
        """The copy is submitted, and the mapping of where it goes is what is waited for."""
        device = self.device
        return PendingRead(
            self._reading(buffer, offset, target),
            lambda step: device.wait(*step),
            lambda step: device.wait_async(*step),
        )

    async def read_async(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """`read`, awaiting instead of blocking."""
        await self.begin_read(buffer, offset, target).wait_async()

    def _reading(self, buffer: Buffer, offset: int, target: memoryview) -> Steps:
        """The steps of a read; each yield is a flag and the value to wait for.

        Large reads go in parts: while the host copies one, the next ones are under way.
        """
        self._not_captured("read")
        source = self.device.own(buffer)
        size = target.nbytes
        check_range(source, offset, size)
        if not size:
            return
        raw = target.cast("B")
        pool = self.device.download_pool(size)
        # Parts end at word boundaries of the buffer.
        begin, end = offset // 4 * 4, -(-(offset + size) // 4) * 4
        parts = [(at, min(at + pool.size, end)) for at in range(begin, end, pool.size)]
        under_way: list[tuple[Staging, int, int]] = []
        try:
            for first, last in parts:
                if len(under_way) == _READS_AHEAD:
                    yield under_way[0][0].flag, 1
                    self._land(pool, under_way, raw, offset)
                under_way.append((self._request(pool, source, first, last - first), first, last))
            while under_way:
                yield under_way[0][0].flag, 1
                self._land(pool, under_way, raw, offset)
        finally:
            for staging, _, _ in under_way:
                pool.drop(staging)

    def _request(self, pool: StagingPool, source: WebgpuBuffer, offset: int, size: int) -> Staging:
        """Submit a copy into staging memory, and ask to have that mapped."""
        staging = pool.take()
        try:
            # A copy that stays in the batch when its target goes would end the process.
            with self._appending(), Uninterruptible():
                batch = self._batch
                loop.pack_copy(
                    batch.records, batch.at, loop.COPY, 0,
                    source.number, offset, staging.number, 0, size,
                )  # fmt: skip
                batch.at += _RECORD
                self._appended()
                self._hand_over()
                staging.request_map()
            self.device.limit_work_in_flight()
        except BaseException:
            pool.drop(staging)
            raise
        return staging

    def _land(
        self,
        pool: StagingPool,
        under_way: list[tuple[Staging, int, int]],
        raw: memoryview,
        offset: int,
    ) -> None:
        """Copy the first part under way, which has arrived, into host memory."""
        staging, first, last = under_way[0]
        if staging.flag[0] != 1:
            self.device.raise_errors("a read")
            raise self.device.lose("a read was abandoned")
        staging.open()
        start, stop = max(first, offset), min(last, offset + len(raw))
        copy_bytes(raw[start - offset : stop - offset], staging.view[start - first : stop - first])
        staging.close()
        del under_way[0]
        pool.give(staging)

    def read_timestamps(self, queries: int, runs: Sequence[tuple[int, int]]) -> list[bytes]:
        """The eight bytes, in ticks, of each recorded timestamp in runs of a query set: pairs of
        the first index and how many, of one set at most."""
        self._not_captured("read a timestamp")
        device = self.device
        places = []  # of each run where all are resolved to
        end = 0
        for _, count in runs:
            places.append(end)
            end += -(-8 * count // RESOLVE_ALIGNMENT) * RESOLVE_ALIGNMENT
        result = bytearray(end)
        pool, resolved = device.download_pool(end), device.timestamps.resolved
        with self._appending():  # all timestamps are resolved into the same place
            for (first, count), place in zip(runs, places, strict=True):
                batch = self._batch
                loop.pack_resolve(
                    batch.records, batch.at, loop.RESOLVE, first, queries, resolved.number, place,
                    count,
                )  # fmt: skip
                batch.at += _RECORD
                self._appended()
            under_way = [(self._request(pool, resolved, 0, end), 0, end)]
        try:
            device.wait(under_way[0][0].flag, 1)
            self._land(pool, under_way, memoryview(result), 0)
        finally:
            for staging, _, _ in under_way:
                pool.drop(staging)
        return [
            bytes(result[place + 8 * i : place + 8 * i + 8])
            for (_, count), place in zip(runs, places, strict=True)
            for i in range(count)
        ]

    # ------------------------------------------------------------------ events and waiting

    def record(self) -> WebgpuEvent:
        """Mark the point after all work so far."""
        with self._appending():
            self._not_captured("record an event")
            device = self.device
            if "timestamps" not in device.info.features:
                self.synchronize()
                return WebgpuEvent(self)
            batch, pool = self._batch, device.timestamps
            slot = pool.take()
            loop.pack_timestamp(batch.records, batch.at, loop.TIMESTAMP, slot[1], slot[0])
            batch.at += _RECORD
            event = WebgpuEvent(self, slot, pool)
            self._events.append(event)
            self._appended()
            return event

    def timed(self, append: Callable[[], object]) -> tuple[Event, Event]:
        """The points before and after what `append` appends: no other thread's work between, and
        no submission either, for the device would wait there for the next one."""
        with self.device.lock:
            live = self._live
            if 2 * live.at > live.room or 2 * live.used > live.limit:
                self.flush()
            start = self.record()
            live.widen()
            self._timing = True
            try:
                append()
            finally:
                self._timing = False
            submitted = not live.at  # a large upload goes in parts
            end = self.record()
            if submitted:
                self.flush()
            return start, end

    def flush(self) -> None:
        """Encode and submit what was appended. Raises what the library found wrong with it."""
        if not self._records:
            self._submit()

    def _submit(self) -> None:
        with self.device.lock:
            if self._live.at:
                with Uninterruptible():
                    self._hand_over()
                self.device.limit_work_in_flight()

    def _hand_over(self) -> None:
        """Submit what was appended, which an interrupt must not divide: part of it would be lost.
        No waiting."""
        live = self._live
        if not live.at:
            return
        try:
            serial = self.device.submit(live, self._commands)
            for event in self._events:
                event.submitted(serial)
        finally:
            self._events.clear()
            live.reset()

    def synchronize(self) -> None:
        """Wait until everything appended is done."""
        self._not_captured("synchronize")
        self.device.check()
        self.flush()
        self.device.wait_for(self.device.serial)

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        self._not_captured("synchronize")
        self.device.check()
        self.flush()
        await self.device.wait_for_async(self.device.serial)

    def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
        live = getattr(self, "_live", None)
        if live is None:
            return
        if self.device.lost is None and not ends():  # then modules have lost their names
            self._capture, self._batch = None, live
            with contextlib.suppress(TreadleError):  # no caller is left to handle it
                self.flush()
        self.device.remove_batch(live)
        if not ends():
            live.release(self.device)
        # As Python ends, the globals of modules may be None, those of this one, too.
        if self._scratch is not None and not ends():
            self.device.free(self._scratch)

    # ------------------------------------------------------------------ recordings

    @property
    def recorded(self) -> int:
        """How many calls were recorded."""
        assert self._capture is not None
        return self._capture.count

    def begin_capture(self) -> None:
        """From here on launches and copies are recorded instead of run."""
        with self.device.lock:
            if self._capture is not None:
                raise LaunchError("cannot begin another capture while launches are being recorded")
            self.device.check()
            self._capture, self._owner = CaptureBatch(self.device), get_ident()
            self._batch = self._capture
            self.device.add_batch(self._capture)

    def take_capture(self) -> None:
        """Record what this thread does, instead of the one that began."""
        with self.device.lock:
            self._owner = get_ident()

    def end_capture(self) -> WebgpuRecording:
        """The recording since `begin_capture`."""
        with self.device.lock:
            capture = self._capture
            if capture is None:
                raise LaunchError("end_capture without begin_capture")
            self._capture, self._batch = None, self._live
            recording = WebgpuRecording(self.device, capture)
            self.device.remove_batch(capture)
            for parameters, block in capture.parameter_blocks():
                target = self.device.wrap(parameters.handle, PARAMETER_BYTES)
                self._write_words(target, 0, block)
            self.flush()  # another stream may be the first to replay
            return recording

    def _not_captured(self, what: str) -> None:
        if self._records:
            raise LaunchError(f"cannot {what} while launches are being recorded")
