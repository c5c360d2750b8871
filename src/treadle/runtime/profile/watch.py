"""A driver's stream that notes what passes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from treadle.drivers import base
from treadle.runtime.profile.records import Amount, Entry, clock

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers.dense import PreparedProduct
    from treadle.runtime.profile.session import Profile
    from treadle.runtime.streams import Stream


class WatchedStream(base.Stream):
    """What `Stream.handle` is while a profile is active; `inner` is the driver's own.

    What is captured runs later: it passes without a note, and each replay is noted.
    """

    __slots__ = ("_profile", "_stream", "inner", "number")

    def __init__(self, profile: Profile, stream: Stream, number: int) -> None:
        self._profile = profile
        self._stream = stream
        self.inner = stream.handle
        self.device = stream.handle.device
        self.number = number  # among the streams of the profile

    def __getattr__(self, name: str) -> Any:
        """What a driver's recordings ask of their own streams."""
        return getattr(self.inner, name)

    # ------------------------------------------------------------------ noting

    def append(
        self,
        kind: str,
        name: str,
        amount: Amount,
        work: Callable[[], object],
        shape: tuple[Dim3, Dim3] | None = None,
    ) -> Entry | None:
        """Do what appends work, between two points of the stream."""
        if self._stream.keeping is not None or self._profile.ended is not None:
            work()
            return None
        self._profile.meet(self)
        began = clock()
        points = self.inner.timed(work)
        return self._note(Entry(
            kind, name, self.device.info.id, self.number, self._profile.thread(), began, clock(),
            amount, shape, points,
        ))  # fmt: skip

    def _wait(self, name: str, began: float, kind: str = "wait", size: int | None = None) -> None:
        """Note what the host has waited for since it began."""
        self._note(Entry(
            kind, name, self.device.info.id, self.number, self._profile.thread(), began, clock(),
            Amount(size),
        ))  # fmt: skip

    def _note(self, entry: Entry) -> Entry:
        if self._profile.ended is None:  # another thread may be late
            self._profile.entries.append(entry)
        return entry

    # ------------------------------------------------------------------ work

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """A launch of which no more is known."""
        self.launch_of(kernel, grid, buffers, parameters, Amount())

    def launch_of(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
        amount: Amount,
    ) -> None:
        """A launch that moves and does so much."""
        code = kernel.code
        self.append(
            "kernel", code.name, amount,
            lambda: self.inner.launch(kernel, grid, buffers, parameters), (grid, code.block),
        )  # fmt: skip

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """An upload."""
        amount = Amount(data.nbytes)
        self.append("upload", "upload", amount, lambda: self.inner.write(buffer, offset, data))

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """A copy within the device: read once and written once."""
        places = source, source_offset, target, target_offset, size
        self.append("copy", "copy", Amount(2 * size), lambda: self.inner.copy(*places))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zeroing."""
        amount = Amount(size)
        self.append("zero", "zero", amount, lambda: self.inner.fill_zero(buffer, offset, size))

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """The host's work, which may have a name and know what it moves and does."""
        name = getattr(work, "name", "host")
        amount = Amount(getattr(work, "bytes", None), getattr(work, "operations", None))
        self.append("library", name, amount, lambda: self.inner.call_host(work, buffers))

    def multiply(
        self,
        product: PreparedProduct,
        left: tuple[base.Buffer, int],
        right: tuple[base.Buffer, int],
        out: tuple[base.Buffer, int],
        workspace: base.Buffer | None,
    ) -> None:
        """A product by the vendor's library."""
        arguments = product, left, right, out, workspace
        amount = Amount(product.product.bytes, product.product.operations)
        self.append("library", "product", amount, lambda: self.inner.multiply(*arguments))

    # ------------------------------------------------------------------ waiting

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """Waiting for the work so far, and then the read itself, apart from each other."""
        if self._stream.keeping is None and not self.device.info.traits.on_host:
            self.synchronize()
        began = clock()
        self.inner.read(buffer, offset, target)
        self._wait("read", began, "read", target.nbytes)

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """`read`, awaiting."""
        if self._stream.keeping is None and not self.device.info.traits.on_host:
            await self.synchronize_async()
        began = clock()
        await self.inner.read_async(buffer, offset, target)
        self._wait("read", began, "read", target.nbytes)

    def synchronize(self) -> None:
        """A wait."""
        began = clock()
        self.inner.synchronize()
        self._wait("wait", began)

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting."""
        began = clock()
        await self.inner.synchronize_async()
        self._wait("wait", began)

    # ------------------------------------------------------------------ passed on

    def record(self) -> base.Event:
        """An event of the user's."""
        return self.inner.record()

    def flush(self) -> None:
        """Start what was appended."""
        self.inner.flush()

    def use(self, buffers: Sequence[base.Buffer]) -> None:
        """Order alone."""
        self.inner.use(buffers)

    def native_handle(self) -> int:
        """The stream in its own API."""
        return self.inner.native_handle()

    def wait_for(self, other: int) -> None:
        """Come after another library's stream."""
        self.inner.wait_for(other)

    def precede(self, other: int) -> None:
        """Come before another library's stream."""
        self.inner.precede(other)

    def begin_capture(self) -> None:
        """Record from here on."""
        self.inner.begin_capture()

    def end_capture(self) -> base.Recording:
        """What was recorded."""
        return self.inner.end_capture()
