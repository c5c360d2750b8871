"""A driver's stream that records the calls made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.drivers import base
from treadle.drivers.pending_read import PendingRead
from treadle.runtime.profile.records import Amount, Entry, ProfileData, clock
from treadle.runtime.stream_proxy import Appended, StreamProxy

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.runtime.devices import Stream


class ProfiledStream(StreamProxy):
    """The value of `Stream.handle` while a profile is active; `inner` is the driver's own stream.

    Captured work runs later, so it is not recorded here; each replay is.
    """

    __slots__ = ("_calibrate", "_notes", "_stream", "number")

    def __init__(
        self,
        notes: ProfileData,
        calibrate: Callable[[ProfiledStream], None],
        stream: Stream,
        number: int,
    ) -> None:
        super().__init__(stream.handle)
        self._notes = notes
        self._calibrate = calibrate  # called before its first work
        self._stream = stream
        self.number = number  # among the streams of the profile

    # ------------------------------------------------------------------ noting

    def append(
        self,
        kind: str,
        name: str,
        amount: Amount,
        work: Callable[[], object],
        shape: tuple[Dim3, Dim3] | None = None,
    ) -> Entry | None:
        """Call `work`, which appends work to the stream, between two events."""
        if self._stream.capturing is not None or self._notes.ended is not None:
            work()
            return None
        self._calibrate(self)
        began = clock()
        points = self.inner.timed(work)
        return self._note(kind, name, began, amount, shape, points)

    def _wait(self, name: str, began: float, kind: str = "wait", size: int | None = None) -> None:
        """Record a wait of the host since `began`."""
        self._note(kind, name, began, Amount(size))

    def _note(self, kind: str, name: str, began: float, amount: Amount, *of_device: Any) -> Entry:
        """Record what began at a time and ends now; `of_device`: an entry's shape and points."""
        where = self.device.info.id, self.number, self._notes.thread()
        entry = Entry(kind, name, *where, began, clock(), amount, *of_device)
        if self._notes.ended is None:  # another thread may append late
            self._notes.entries.append(entry)
        return entry

    def launch_of(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
        amount: Amount,
    ) -> None:
        """A launch with a known amount of work."""
        code = kernel.code

        def work() -> None:
            self.inner.launch(kernel, grid, buffers, parameters)

        self.append("kernel", code.name, amount, work, (grid, code.block))

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Other work, with what its call states about it."""
        self.append(what.kind, what.name, Amount(what.bytes, what.operations), work, what.shape)

    # ------------------------------------------------------------------ waiting

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Wait for the work so far, then read: two entries."""
        if self._stream.capturing is None and not self.device.info.traits.on_host:
            self.synchronize()
        began = clock()
        self.inner.read(buffer, offset, target)
        self._wait("read", began, "read", target.nbytes)

    def begin_read(self, buffer: base.Buffer, offset: int, target: memoryview) -> PendingRead:
        """A read that waits at once, so that its time is its own."""
        return base.Stream.begin_read(self, buffer, offset, target)

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """`read`, asynchronous."""
        if self._stream.capturing is None and not self.device.info.traits.on_host:
            await self.synchronize_async()
        began = clock()
        await self.inner.read_async(buffer, offset, target)
        self._wait("read", began, "read", target.nbytes)

    def synchronize(self) -> None:
        """Wait, and record it."""
        began = clock()
        self.inner.synchronize()
        self._wait("wait", began)

    async def synchronize_async(self) -> None:
        """`synchronize`, asynchronous."""
        began = clock()
        await self.inner.synchronize_async()
        self._wait("wait", began)
