"""The base class of streams that wrap another one, to profile or trace its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.drivers import base
from treadle.drivers.pending_read import PendingRead

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers.dense import PreparedProduct


class Appended(NamedTuple):
    """The work that a call appends to a stream, as far as its arguments describe it."""

    kind: str  # "kernel", "upload", "copy", "zero", "library" or "order"
    name: str
    reads: Sequence[base.Buffer] = ()
    writes: Sequence[base.Buffer] = ()
    bytes: int | None = None  # that are moved
    operations: int | None = None
    shape: tuple[Dim3, Dim3] | None = None  # of a launch: grid and block


def written_by(kernel: base.CompiledKernel, buffers: Sequence[base.Buffer]) -> list[base.Buffer]:
    """Those of a launch's buffers that its kernel writes."""
    bindings = zip(kernel.code.bindings, buffers, strict=False)
    return [buffer for binding, buffer in bindings if binding.writes]


class StreamProxy(base.Stream):
    """A stream that forwards all calls to `inner`.

    A subclass overrides `appending`, which is called around work, and `before`, which is called
    before all other calls. It may override single methods as well.
    """

    __slots__ = ("inner",)

    def __init__(self, inner: base.Stream) -> None:
        self.inner = inner
        self.device = inner.device

    def __getattr__(self, name: str) -> Any:
        """Attributes of its streams that a driver's recordings use."""
        return getattr(self.inner, name)

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Call `work`, which appends the work `what`."""
        work()

    def before(self, call: str) -> None:
        """Called before a call of this name that appends no work."""

    # ------------------------------------------------------------------ work

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """A launch; its code states which buffers it writes."""
        code = kernel.code
        written = written_by(kernel, buffers)
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
        """Work of the host, which may have a name and an amount of work. It writes only new memory,
        as the kernel library's functions do, so no buffers count as written."""
        name = getattr(work, "name", "host")
        moved, operations = getattr(work, "bytes", None), getattr(work, "operations", None)
        what = Appended("library", name, buffers, (), moved, operations)
        self.appending(what, lambda: self.inner.call_host(work, buffers))

    def call_library(
        self,
        name: str,
        work: Callable[[int], object],
        reads: Sequence[base.Buffer],
        writes: Sequence[base.Buffer],
    ) -> None:
        """Work of another library."""
        what = Appended("library", name, reads, writes)
        self.appending(what, lambda: self.inner.call_library(name, work, reads, writes))

    def multiply(
        self,
        product: PreparedProduct,
        left: tuple[base.Buffer, int],
        right: tuple[base.Buffer, int],
        out: tuple[base.Buffer, int],
        workspace: base.Buffer | None,
    ) -> None:
        """A matrix product by the vendor's library."""
        arguments = product, left, right, out, workspace
        written = (out[0],) if workspace is None else (out[0], workspace)
        moved, operations = product.product.bytes, product.product.operations
        what = Appended("library", "product", (left[0], right[0]), written, moved, operations)
        self.appending(what, lambda: self.inner.multiply(*arguments))

    # ------------------------------------------------------------------ all else

    def use(self, buffers: Sequence[base.Buffer]) -> None:
        """Ordering without work."""
        self.inner.use(buffers)

    def at_submission(self, work: Callable[[], object]) -> None:
        """What the host does when work is submitted."""
        self.inner.at_submission(work)

    def flush(self) -> None:
        """Start the appended work."""
        self.inner.flush()

    def read(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """A read."""
        self.before("read")
        self.inner.read(buffer, offset, target)

    async def read_async(self, buffer: base.Buffer, offset: int, target: memoryview) -> None:
        """An asynchronous read."""
        self.before("read")
        await self.inner.read_async(buffer, offset, target)

    def begin_read(self, buffer: base.Buffer, offset: int, target: memoryview) -> PendingRead:
        """The beginning of a read."""
        self.before("read")
        return self.inner.begin_read(buffer, offset, target)

    def synchronize(self) -> None:
        """A wait."""
        self.before("synchronize")
        self.inner.synchronize()

    async def synchronize_async(self) -> None:
        """An asynchronous wait."""
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
        """The stream's handle in its API."""
        self.before("native_handle")
        return self.inner.native_handle()

    def wait_for(self, other: int) -> None:
        """Wait for another library's stream."""
        self.before("wait_for")
        self.inner.wait_for(other)

    def precede(self, other: int) -> None:
        """Make another library's stream wait for this one."""
        self.before("precede")
        self.inner.precede(other)

    @property
    def recorded(self) -> int:
        """How many calls were recorded."""
        return self.inner.recorded

    def begin_capture(self) -> None:
        """Start recording."""
        self.before("begin_capture")
        self.inner.begin_capture()

    def take_capture(self) -> None:
        """Record what this thread does."""
        self.inner.take_capture()

    def end_capture(self) -> base.Recording:
        """Stop recording; returns the recording."""
        return self.inner.end_capture()
