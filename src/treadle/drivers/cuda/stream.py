"""An order of work on a card.

A launch is one call: the pointers of its buffers and its parameter block are assembled as the
bytes that the kernel takes, and machine code hands them to the driver with a prepared record. While
something is unusual (a capture, several streams, a lost device) launches go the longer way.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import TYPE_CHECKING

from treadle.core import forks, polling
from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.drivers.base import Buffer, CompiledKernel, Event, Stream
from treadle.drivers.cuda import errors, events, order
from treadle.drivers.cuda.memory import CudaBuffer
from treadle.drivers.cuda.modules import CudaKernel
from treadle.drivers.cuda.recording import Capture, CudaRecording
from treadle.drivers.cuda.staging import SLOT, SMALL_WRITE, UploadRing, read_large, write_large
from treadle.drivers.pending_read import PendingRead, Steps

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice
    from treadle.drivers.dense import PreparedProduct

_RECENT = 32  # names of kernels that are kept to name those that may have lost the device


class CudaStream(Stream):
    """Launches, copies and reads, in order."""

    __slots__ = (
        "__weakref__", "_begun", "_crossing", "_crossing_lock", "_launch", "_owner", "_place",
        "_place_address", "_resting", "_ring", "_ring_lock", "anchor", "device", "handle", "plain",
        "recent", "timeline",
    )  # fmt: skip
    device: CudaDevice

    def __init__(self, device: CudaDevice, handle: int, anchor: events.CudaEvent) -> None:
        self.device = device
        self.handle = handle
        self.anchor = anchor  # what the times of events are measured from
        self.recent: deque[str] = deque(maxlen=_RECENT)  # launched since the last wait
        self.timeline = device.make_timeline()
        self.plain = True  # whether a launch needs nothing but to be made
        self._launch = device.calls.launch
        self._place = device.calls.place(handle)
        self._place_address = self._place.address
        self._begun: Capture | None = None
        self._owner = 0  # the thread whose work the capture records
        self._ring: UploadRing | None = None
        self._ring_lock = forks.lock()
        self._crossing = 0  # an event to record and wait for at once
        self._crossing_lock = forks.lock()
        self._resting = 0  # the event of `rest`

    # ------------------------------------------------------------------ launching

    def launch(
        self,
        kernel: CompiledKernel,
        grid: Dim3,
        buffers: Sequence[Buffer],
        parameters: bytes,
    ) -> None:
        """Launch a kernel."""
        assert type(kernel) is CudaKernel
        record = kernel.records.get(grid)
        if record is None:
            record = kernel.make_record(grid)
            if record is None:
                return
        device = self.device
        try:
            pointers = kernel.pack(*[b.pointer for b in buffers if b.device is device])  # type: ignore[attr-defined]
        except struct.error:
            raise self._wrong_buffers(kernel, buffers) from None
        if len(parameters) != kernel.size:
            raise LaunchError(
                f"the parameter block of kernel {kernel.name} has {kernel.size} bytes, "
                f"not {len(parameters)}"
            )
        if kernel.maps:
            arguments = kernel.arguments(pointers, parameters)
        else:
            arguments = pointers + parameters
        if self.plain:
            code = self._launch(self._place_address, record, arguments)
            self.recent.append(kernel.name)
            if code:
                raise self._refused(code, kernel, grid)
        else:
            self._launch_with_care(kernel, grid, record, buffers, arguments)  # type: ignore[arg-type]

    def _launch_with_care(
        self,
        kernel: CudaKernel,
        grid: Dim3,
        record: bytes,
        buffers: Sequence[CudaBuffer],
        arguments: bytes,
    ) -> None:
        self.device.check()
        if self._capture is not None:
            self._capture.launch(kernel, record, arguments, buffers)
            return
        with self.device.lock:
            reads, writes = kernel.split(buffers)
            self.wait_for_users(reads, writes)
            self._place.mark(self.timeline.next_event())
            code = self._launch(self._place_address, record, arguments)
            self._place.mark(0)
            self.recent.append(kernel.name)
            if code:
                raise self._refused(code, kernel, grid)
            order.note(self.timeline, reads, writes)

    def _refused(self, code: int, kernel: CudaKernel, grid: Dim3) -> Exception:
        if not errors.is_sticky(code) and self.device.lost is None:
            self.recent.pop()  # it never ran
        return kernel.refusal(code, grid) or self.device.failure(code, f"kernel {kernel.name}")

    def _wrong_buffers(self, kernel: CudaKernel, buffers: Sequence[Buffer]) -> Exception:
        expected = len(kernel.code.bindings)
        if len(buffers) != expected:
            return LaunchError(f"`{kernel.name}` takes {expected} buffers, not {len(buffers)}")
        try:
            for buffer in buffers:
                self.device.own(buffer)
        except Exception as error:  # noqa: BLE001  # it says what is wrong
            return error
        return LaunchError(f"`{kernel.name}` was launched on memory without an address")

    def append_replay(self, recording: CudaRecording) -> None:
        """Launch a recording's graph."""
        device = self.device
        if self._capture is not None:
            device.check()
            self._capture.replay(recording)
            return
        if self.plain:
            device.do("cuGraphLaunch", recording.executable, self.handle)
            self.recent.append(recording.name)
        else:
            device.check()
            with device.lock:
                self.wait_for_users(recording.reads, recording.writes)
                device.do("cuGraphLaunch", recording.executable, self.handle)
                self.recent.append(recording.name)
                self.note(recording.reads, recording.writes)
        # Without the lock and after the launch: they may wait for another process, which may wait
        # for what is launched.
        for notice in recording.notices:
            notice()

    # ------------------------------------------------------------------ several streams

    def wait_for_users(self, reads: Sequence[CudaBuffer], writes: Sequence[CudaBuffer]) -> None:
        """Come after what other streams did with buffers. Call with the device's lock held."""
        if self.device.several_streams:
            for event in order.waits(self.timeline, reads, writes):
                self.device.do("cuStreamWaitEvent", self.handle, event, 0)

    def note(self, reads: Sequence[CudaBuffer], writes: Sequence[CudaBuffer]) -> None:
        """Work that uses buffers was appended. Call with the device's lock held."""
        if self.device.several_streams:
            self.device.do("cuEventRecord", self.timeline.next_event(), self.handle)
            order.note(self.timeline, reads, writes)

    def use(self, buffers: Sequence[Buffer]) -> None:
        """As a launch that writes these buffers, without one."""
        if self.plain:
            return
        used = [self.device.own(buffer) for buffer in buffers]
        with self.device.lock:
            self.wait_for_users((), used)
            self.note((), used)

    def append(
        self,
        reads: Sequence[CudaBuffer],
        writes: Sequence[CudaBuffer],
        name: str,
        *arguments: int,
    ) -> None:
        """Append a call of the driver that uses buffers; the stream is its last argument."""
        if self.plain:
            self.device.do(name, *arguments, self.handle)
            return
        with self.device.lock:
            self.wait_for_users(reads, writes)
            self.device.do(name, *arguments, self.handle)
            self.note(reads, writes)

    def multiply(
        self,
        product: PreparedProduct,
        left: tuple[Buffer, int],
        right: tuple[Buffer, int],
        out: tuple[Buffer, int],
        workspace: Buffer | None,
    ) -> None:
        """Append a product by cuBLASLt."""
        device = self.device
        places = [(device.own(buffer), offset) for buffer, offset in (left, right, out)]
        addresses = [buffer.place + offset for buffer, offset in places]
        reads, writes = [buffer for buffer, _ in places[:2]], [places[2][0]]
        scratch = 0
        if workspace is not None:
            writes.append(device.own(workspace))
            scratch = writes[-1].place
        blas = device.blas
        assert blas is not None, "there was a prepared product"
        if self._capture is not None:
            self._capture.foreign(
                lambda stream: blas.multiply(product, addresses, scratch, stream), reads, writes
            )
            return
        self.recent.append("cuBLASLt")
        if self.plain:
            blas.multiply(product, addresses, scratch, self.handle)
            return
        with device.lock:
            self.wait_for_users(reads, writes)
            blas.multiply(product, addresses, scratch, self.handle)
            self.note(reads, writes)

    def call_library(
        self,
        name: str,
        work: Callable[[int], object],
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
    ) -> None:
        """Append what another library appends to a CUstream."""
        device = self.device
        read = [device.own(buffer) for buffer in reads]
        written = [device.own(buffer) for buffer in writes]
        if self._capture is not None:
            with device.current():
                self._capture.foreign(work, read, written)
            return
        self.recent.append(name)
        with device.lock, device.current():
            self.wait_for_users(read, written)
            work(self.handle)
            self.note(read, written)

    def at_submission(self, work: Callable[[], object]) -> None:
        """Call a function of the host's now, or at each replay of what is captured."""
        if self._capture is None:
            work()
        else:
            self._capture.notices.append(work)

    # ------------------------------------------------------------------ copies

    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Append a copy from host memory, through pinned memory."""
        target = self.device.own(buffer)
        size = data.nbytes
        check_range(target, offset, size)
        if not size:
            return
        raw = data.cast("B")
        if self._capture is not None:
            self._write_captured(target, offset, raw)
        elif size <= SMALL_WRITE:
            with self._ring_lock:
                if self._ring is None:
                    self._ring = self.device.take_ring()
                source = self._ring.put(raw, self.handle)
                self.append((), (target,), "cuMemcpyHtoDAsync", target.place + offset, source, size)
        else:
            write_large(self, target, offset, raw)

    def _write_captured(self, target: CudaBuffer, offset: int, raw: memoryview) -> None:
        """The data becomes device memory of the recording, written once, before any replay."""
        assert self._capture is not None
        capture, self._begun = self._capture, None
        try:
            source = self.device.allocate_kept(len(raw))
            capture.owned.append(source)
            self.write(source, 0, raw)
        finally:
            self._begun = capture
        capture.copy(source, 0, target, offset, len(raw))

    def copy(
        self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int
    ) -> None:
        """Append a copy between buffers of the device."""
        origin, into = self.device.own(source), self.device.own(target)
        check_range(origin, source_offset, size)
        check_range(into, target_offset, size)
        if not size:
            return
        if self._capture is not None:
            self._capture.copy(origin, source_offset, into, target_offset, size)
            return
        self.append(
            (origin,), (into,), "cuMemcpyDtoDAsync",
            into.place + target_offset, origin.place + source_offset, size,
        )  # fmt: skip

    def fill_zero(self, buffer: Buffer, offset: int, size: int) -> None:
        """Append zeroing a range."""
        target = self.device.own(buffer)
        check_range(target, offset, size)
        if not size:
            return
        if self._capture is not None:
            self._capture.fill_zero(target, offset, size)
            return
        place = target.place + offset
        words = place % 4 == 0 and size % 4 == 0
        if words:
            self.append((), (target,), "cuMemsetD32Async", place, 0, size // 4)
        else:
            self.append((), (target,), "cuMemsetD8Async", place, 0, size)

    # ------------------------------------------------------------------ reading

    def read(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """Wait for all work so far, then copy into host memory."""
        size = target.nbytes
        if 0 < size <= SLOT:
            self._read_small(buffer, offset, target.cast("B"), size)
            return
        self.begin_read(buffer, offset, target).wait()
        self.recent.clear()

    def begin_read(self, buffer: Buffer, offset: int, target: memoryview) -> PendingRead:
        """The copy is appended, and its event is what is waited for."""
        steps = self._reading(buffer, offset, target)
        return PendingRead(
            steps, lambda event: self.device.do("cuEventSynchronize", event), self._reached
        )

    def _read_small(self, buffer: Buffer, offset: int, target: memoryview, size: int) -> None:
        """Copy into a slot, and wait for the stream: one call."""
        device = self.device
        source = device.own(buffer)
        check_range(source, offset, size)
        slot = device.take_slot()
        if self.plain:
            code = device.calls.read(self._place_address, slot.address, source.place + offset, size)
            if code:
                raise device.failure(code, "a read")
        else:
            self.refuse_capture("read")
            self.append(
                (source,), (), "cuMemcpyDtoHAsync", slot.address, source.place + offset, size
            )
            device.do("cuStreamSynchronize", self.handle)
        target[:] = slot.view[:size]
        device.idle_slots.append(slot)
        self.recent.clear()

    async def read_async(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """`read`, awaiting instead of blocking."""
        await self.begin_read(buffer, offset, target).wait_async()
        self.recent.clear()

    def _reading(self, buffer: Buffer, offset: int, target: memoryview) -> Steps:
        """The steps of a read; each yield is an event to wait for."""
        self.refuse_capture("read")
        source = self.device.own(buffer)
        check_range(source, offset, target.nbytes)
        if target.nbytes:
            yield from read_large(self, source, offset, target.cast("B"))

    # ------------------------------------------------------------------ events and waiting

    def record(self) -> events.CudaEvent:
        """Mark the point after all work so far."""
        self.refuse_capture("record an event")
        event = events.CudaEvent(self.device, events.new_anchor(self))
        self.device.do("cuEventRecord", event.handle, self.handle)
        return event

    def timed(self, append: Callable[[], object]) -> tuple[Event, Event]:
        """The points before and after what `append` appends. Those of a launch are recorded with
        it in one call, or an idle card would wait for the host between them."""
        with self.device.lock:
            start = self.record()
            end = events.CudaEvent(self.device, events.new_anchor(self))
            self._place.mark_around(start.handle, end.handle)
            try:
                append()
                if self._place.around:  # it was not a launch
                    self.device.do("cuEventRecord", end.handle, self.handle)
            finally:
                self._place.mark_around(0, 0)
            return start, end

    def flush(self) -> None:
        """Nothing waits to be started: the driver starts work when it is given."""

    def synchronize(self) -> None:
        """Wait until everything appended is done."""
        self.refuse_capture("synchronize")
        self.device.do("cuStreamSynchronize", self.handle)
        self.recent.clear()

    def rest(self) -> None:
        """Wait for an event that lets the thread sleep; `synchronize` may poll."""
        self.refuse_capture("synchronize")
        if not self._resting:
            self._resting = self.device.make_event(asleep=True)
        self.device.do("cuEventRecord", self._resting, self.handle)
        self.device.do("cuEventSynchronize", self._resting)
        self.recent.clear()

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        event = self.record()
        await self._reached(event.handle)
        self.recent.clear()

    async def _reached(self, event: int) -> None:
        """Wait for an event, giving way to the event loop between looks, and at least once."""
        await polling.until(lambda: self.device.is_reached(event))

    # ------------------------------------------------------------------ other libraries

    def native_handle(self) -> int:
        """The CUstream as a number."""
        self.device.check()
        return self.handle

    def wait_for(self, other: int) -> None:
        """Work appended from here on runs after all work so far on another library's stream."""
        self.refuse_capture("wait for another library's stream")
        self._cross(other, self.handle, self.device)

    def precede(self, other: int) -> None:
        """Work given to another library's stream from here on runs after all work so far here."""
        self.refuse_capture("precede another library's stream")
        self._cross(self.handle, other, self.device)

    def precede_on(self, other: CudaStream) -> None:
        """`precede` for a stream of another card."""
        self._cross(self.handle, other.handle, other.device)

    def _cross(self, first: int, then: int, device: CudaDevice) -> None:
        with self._crossing_lock:
            if not self._crossing:
                self._crossing = self.device.make_event()
            # A wait keeps the state recorded when it was made, so one event serves all crossings.
            self.device.do("cuEventRecord", self._crossing, first)
            device.do("cuStreamWaitEvent", then, self._crossing, 0)

    # ------------------------------------------------------------------ recordings

    @property
    def _capture(self) -> Capture | None:
        """What records this thread's work, if this thread captures the stream."""
        return self._begun if self._owner == get_ident() else None

    @property
    def recorded(self) -> int:
        """How many calls were recorded."""
        assert self._begun is not None
        return self._begun.count

    def begin_capture(self) -> None:
        """From here on this thread's launches and copies are recorded instead of run."""
        if self._begun is not None:
            raise LaunchError("this stream is being captured already")
        self.device.check()
        self._begun, self._owner = Capture(self.device), get_ident()
        self.plain = False

    def take_capture(self) -> None:
        """Record what this thread does, instead of the one that began."""
        self._owner = get_ident()

    def end_capture(self) -> CudaRecording:
        """The recording since `begin_capture`."""
        capture = self._begun
        if capture is None:
            raise LaunchError("this stream is not being captured: call begin_capture first")
        self._begun = None
        self.plain = not self.device.several_streams and self.device.lost is None
        return CudaRecording(self.device, capture)

    def refuse_capture(self, what: str) -> None:
        """LaunchError if launches are being recorded: nothing has run yet."""
        if self._capture is not None:
            raise LaunchError(
                f"cannot {what} while launches are being recorded: end the capture first, "
                "replay it, then do so"
            )

    # ------------------------------------------------------------------ the end

    def finish(self) -> None:
        """Wait for the stream's work before its device closes."""
        self.device.quietly("cuStreamSynchronize", self.handle)

    def release(self) -> None:
        """Give the stream back to the driver; what was appended still runs."""
        handle, self.handle = self.handle, 0
        if not handle:
            return
        if self._ring is not None:
            self.device.give_ring(self._ring, handle)
            self._ring = None
        if self._crossing:
            self.device.quietly("cuEventDestroy", self._crossing)
            self._crossing = 0
        if self._resting:
            self.device.quietly("cuEventDestroy", self._resting)
            self._resting = 0
        self.device.quietly("cuStreamDestroy", handle)

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.release()


def check_range(buffer: CudaBuffer, offset: int, size: int) -> None:
    """LaunchError unless a range of bytes lies in a buffer."""
    if offset < 0 or offset + size > buffer.size:
        raise LaunchError(
            f"bytes {offset} to {offset + size} are not all within a buffer of {buffer.size} bytes"
        )


def copy_between(
    source: CudaBuffer, source_offset: int, target: CudaBuffer, target_offset: int, size: int
) -> None:
    """Append a copy from one card to another, in the order of both default streams.

    It runs on the target's, after what the source's has been given so far; what that one is given
    from here on comes after the copy. Where the cards cannot reach each other's memory the driver
    goes through the host's.
    """
    there, here = source.device, target.device
    source = there.own(source)
    check_range(source, source_offset, size)
    check_range(target, target_offset, size)
    giver, taker = there.default_stream, here.default_stream
    for stream in (giver, taker):
        stream.refuse_capture("copy from another device")
    if not size:
        return
    here.reach(there)
    with there.lock:
        giver.wait_for_users((source,), ())
        giver.precede_on(taker)
    with here.lock:
        taker.wait_for_users((), (target,))
        here.do(
            "cuMemcpyPeerAsync", target.place + target_offset, here.context,
            source.place + source_offset, there.context, size, taker.handle,
        )  # fmt: skip
        taker.note((), (target,))
        taker.precede_on(giver)
    with there.lock:
        giver.note((source,), ())
