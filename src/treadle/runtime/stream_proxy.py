"""A stream in front of another one, which does something around all that passes through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.drivers import base

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers.dense import PreparedProduct


class Appended(NamedTuple):
    """What a call appends to a stream, as far as the call says it."""

    kind: str  # "kernel", "upload", "copy", "zero", "library" or "order"
    name: str
    reads: Sequence[base.Buffer] = ()
    writes: Sequence[base.Buffer] = ()
    bytes: int | None = None  # that are moved
    operations: int | None = None
    shape: tuple[Dim3, Dim3] | None = None  # of a launch: grid and block


class StreamProxy(base.Stream):
    """A stream that passes everything on to `inner`.

    A class below says in `appending` what it does around work, and in `before` what it does ahead
    of all else; each method may be written anew as well.
    """

    __slots__ = ("inner",)

    def __init__(self, inner: base.Stream) -> None:
        self.inner = inner
        self.device = inner.device

    def __getattr__(self, name: str) -> Any:
        """What a driver's recordings ask of their own streams."""
        return getattr(self.inner, name)

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Call `work`, which appends it."""
        work()

    def before(self, call: str) -> None:
        """Whatever comes ahead of a call of this name, which appends no work."""

    # ------------------------------------------------------------------ work

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """A launch: the code says what it writes."""
        code = kernel.code
        written = [
            buffer
            for binding, buffer in zip(code.bindings, buffers, strict=False)
            if binding.writes
        ]
        self.appending(
            Appended("kernel", code.name, buffers, written, shape=(grid, code.block)),
            lambda: self.inner.launch(kernel, grid, buffers, parameters),
        )

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """An upload."""
        what = Appended("upload", "upload", (), (buffer,), data.nbytes)
        self.appending(what, lambda: self.inner.write(buffer, offset, data))

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
        what = Appended("copy", "copy", (source,), (target,), 2 * size)
        self.appending(what, lambda: self.inner.copy(*places))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zeroing."""
        what = Appended("zero", "zero", (), (buffer,), size)
        self.appending(what, lambda: self.inner.fill_zero(buffer, offset, size))

    def call_host(self, work: Callable[[], object], buffers: Sequence[base.Buffer]) -> None:
        """The host's work, which may have a name and know what it moves and does. Which memory it
        writes is not said: new memory, as the kernel library's functions do."""
        name = getattr(work, "name", "host")
        moved, operations = getattr(work, "bytes", None), getattr(work, "operations", None)
        what = Appended("library", name, buffers, (), moved, operations)
        self.appending(what, lambda: self.inner.call_host(work, buffers))

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
        written = (out[0],) if workspace is None else (out[0], workspace)
        moved, operations = product.product.bytes, product.product.operations
        what = Appended("library", "product", (left[0], right[0]), written, moved, operations)
        self.appending(what, lambda: self.inner.multiply(*arguments))

    # ------------------------------------------------------------------ all else

    def use(self, buffers: Sequence[base.Buffer]) -> None:
        """Order alone."""
        self.inner.use(buffers)

    def flush(self) -> None:
        """Start what was appended."""
        self.inner.flush()

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """A read."""
        self.before("read")
        self.inner.read(buffer, offset, target)

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """A read that is awaited."""
        self.before("read")
        await self.inner.read_async(buffer, offset, target)

    def synchronize(self) -> None:
        """A wait."""
        self.before("synchronize")
        self.inner.synchronize()

    async def synchronize_async(self) -> None:
        """A wait that is awaited."""
        self.before("synchronize")
        await self.inner.synchronize_async()

    def record(self) -> base.Event:
        """An event."""
        self.before("record")
        return self.inner.record()

    def timed(self, append: Callable[[], object]) -> tuple[base.Event, base.Event]:
        """Two events."""
        self.before("record")
        return self.inner.timed(append)

    def native_handle(self) -> int:
        """The stream in its own API."""
        self.before("native_handle")
        return self.inner.native_handle()

    def wait_for(self, other: int) -> None:
        """Come after another library's stream."""
        self.before("wait_for")
        self.inner.wait_for(other)

    def precede(self, other: int) -> None:
        """Come before another library's stream."""
        self.before("precede")
        self.inner.precede(other)

    def begin_capture(self) -> None:
        """Record from here on."""
        self.before("begin_capture")
        self.inner.begin_capture()

    def end_capture(self) -> base.Recording:
        """What was recorded."""
        return self.inner.end_capture()
