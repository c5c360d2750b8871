"""A graph of one thread's work on a device, whose recording may end early.

`Graph` refuses operations that cannot be recorded, such as a read or a wait. A traced function may
use them: the recording then ends, the work recorded so far runs, and the function continues without
recording. So its Python code runs once, and its results are correct. The same happens if another
thread uses the device meanwhile.

To notice these operations, every driver stream is wrapped while a function is traced. The wrapper
also collects the memory that the recording uses, which is not reused as long as the recording
lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.core.sizes import fixed
from treadle.drivers import base
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, Stream, streams
from treadle.runtime.graphs import Graph
from treadle.runtime.launch_records import LaunchRecord
from treadle.runtime.pending_kernel import PendingKernel
from treadle.runtime.profile.profiled_stream import ProfiledStream
from treadle.runtime.stream_proxy import Appended, StreamProxy, written_by
from treadle.runtime.varying import varying

if TYPE_CHECKING:
    from treadle.drivers.dense import PreparedProduct


class LibraryWork(NamedTuple):
    """Work of a library in a recording, as a product by the vendor's library or by BLAS."""

    bytes: int | None
    operations: int | None


class TracedGraph(Graph):
    """A graph that the calling thread records. `interrupted` is called when the recording has ended
    early, with the reason for messages and whether the thread itself caused it.

    `touched` is all memory that the recording uses, `written` the memory that it writes.

    Kernels that are not compiled yet are launched when the recording ends, and so is all that comes
    after the first of them: until then the function goes on, and the kernels that it launches are
    compiled side by side.
    """

    _reuses = True

    def __init__(self, device: Device, interrupted: Callable[[str, bool], None]) -> None:
        super().__init__(device)
        self.touched: dict[base.Buffer, None] = {}
        self.written: dict[base.Buffer, None] = {}
        self.recording = False
        self.lock = forks.lock()
        self.failed: BaseException | None = None  # why the recording could not be ended
        self._later: list[Callable[[], object]] | None = None  # work, once kernels are compiled
        self._used = _Launches()
        self._reserved: list[base.Buffer] = []
        self._interrupted: Callable[[str, bool], None] | None = interrupted
        self._thread = threading.get_ident()
        self._wrapped: list[tuple[Stream, TracedStream]] = []

    @property
    def used(self) -> list[object]:
        """The launches of the recording, its `LibraryWork`, and what else it keeps alive."""
        return self._used

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is the one whose work is recorded."""
        return threading.get_ident() == self._thread

    def begin(self) -> None:
        """Start recording; `close` must follow. The caller has computed what was pending."""
        self.release()
        with streams.lock:
            for stream in streams.subscribe(self):
                self._wrap(stream)
        self.device.default_stream.interrupt = self.interrupt
        with self.lock:  # another thread's launch comes before, or interrupts
            self._begin()
            self.recording = True

    def added(self, one: Stream) -> None:
        """A new stream, maybe of a device that was just opened."""
        if self.is_own_thread:
            self.interrupt("another device or stream is used")

    def _wrap(self, stream: Stream) -> None:
        wrapper = TracedStream(self, stream.handle, stream is self.device.default_stream)
        self._wrapped.append((stream, wrapper))
        stream.handle = wrapper

    def finish(self) -> bool:
        """End the recording; False if it had ended before."""
        with self.lock:
            if not self.recording:
                return False
            self.record_all()
            self.recording = False
            self.end(True)
            assert self._pool is not None
            self._reserved = list(self.touched)
            self._pool.reserve(self._reserved)
            return True

    def interrupt(self, why: str) -> None:
        """End the recording early."""
        with self.lock:
            try:
                ended = self.finish()
            except Exception:
                if self.is_own_thread:
                    raise
                return  # it is raised where the function ends (`failed`), not in another thread
            if ended and self._interrupted is not None:
                self._interrupted(why, self.is_own_thread)

    def used_by(self, reads: Sequence[base.Buffer], writes: Sequence[base.Buffer]) -> None:
        """Note the memory that recorded work uses."""
        for buffer in reads:
            self.touched[_whole(buffer)] = None
        for buffer in writes:
            self.touched[_whole(buffer)] = self.written[_whole(buffer)] = None

    def append(self, work: Callable[[], object], pending: bool = False) -> None:
        """Do work that the driver records: now, or after what waits for kernels. `pending` says
        that this work has to."""
        if pending and self._later is None:
            self._later = []
        if self._later is None:
            work()
        else:
            self._later.append(work)

    def record_all(self) -> None:
        """Wait for kernels, and have the driver record what waited for them. If that fails, nothing
        is recorded any more."""
        works, self._later = self._later, None
        if works and not self.is_own_thread:
            self.device.default_stream.handle.take_capture()
        try:
            for work in works or ():
                work()
        except BaseException as error:
            self.failed = error
            self.recording = False
            self.end(False)
            raise

    @property
    def waiting(self) -> int:
        """How many calls the driver has not recorded yet."""
        return len(self._later or ())

    def close(self) -> None:
        """Unwrap the streams. Until then the memory in use is collected, recorded or not."""
        with streams.lock:
            streams.unsubscribe(self)
            for stream, wrapper in self._wrapped:
                if stream.handle is wrapper:
                    stream.handle = wrapper.inner
                elif isinstance(stream.handle, ProfiledStream) and stream.handle.inner is wrapper:
                    stream.handle.inner = wrapper.inner  # a profile has begun since
            self._wrapped.clear()
        self.device.default_stream.interrupt = None
        self._interrupted = None  # it refers to the arguments of the traced call
        if self.recording:  # an error in the tracing itself
            self.recording = False
            self.end(False)

    def release(self) -> None:
        """Drop the recording and release its memory."""
        pool, reserved = self._pool, self._reserved
        self._reserved = []
        super().release()
        if pool is not None:
            pool.unreserve(reserved)


class _Launches(list[object]):
    """Launches for profiles, without the memory of their arrays, which later launches of the
    recording may reuse."""

    def append(self, launched: object) -> None:
        """Add a launch. It keeps other libraries' memory alive."""
        if isinstance(launched, LaunchRecord):
            values = [_described(value) for value in launched.values]
            launched = LaunchRecord(launched.definition, launched.built, values)
        super().append(launched)


def _described(value: Any) -> Any:
    if not isinstance(value, DeviceArray) or value.storage is None or value.storage.pool is None:
        return value
    return DeviceArray(value.device, None, value.dtype, value.shape, value.strides, value.offset)


# The calls of streams that end a recording, with the reason for messages.
_ENDS = {
    "read": "a tensor is read",
    "synchronize": "the device is waited for",
    "record": "an event is recorded",
    "native_handle": "another library gets a tensor's memory",
    "wait_for": "another library's memory is used",
    "precede": "another library gets a tensor's memory",
    "begin_capture": "a graph is captured",
}


class TracedStream(StreamProxy):
    """The value of `Stream.handle` while a function is traced; `inner` is the value before."""

    __slots__ = ("_graph", "_recorded")

    def __init__(self, graph: TracedGraph, inner: base.Stream, recorded: bool) -> None:
        super().__init__(inner)
        self._graph = graph
        self._recorded = recorded  # whether this stream is recorded; others only interrupt

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Append work, and collect the memory it uses. An upload's data becomes part of the
        recording."""
        graph = self._graph
        with graph.lock:
            if not graph.is_own_thread:
                if self._recorded:
                    graph.interrupt("another thread uses the device meanwhile")
            elif not self._recorded:
                graph.interrupt("another device or stream is used")
            else:
                graph.used_by(what.reads, what.writes)
                if what.kind == "library":
                    graph.used.append(LibraryWork(what.bytes, what.operations))
                graph.append(work)
                return
            work()

    # What reaches the driver is recorded as it is: a size that stands there has this value in every
    # replay, so that it has it must be a fact. Launches that vary are noted before (`Varying`).

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """A launch, of a kernel that may still be compiled."""
        graph, grid = self._graph, Dim3(*fixed(tuple(grid)))
        with graph.lock:
            waits = kernel.is_pending or graph.waiting
            if not waits or not graph.recording or not self._recorded or not graph.is_own_thread:
                super().launch(_compiled(kernel), grid, buffers, parameters)
                return
            most = self.device.info.limits.max_binding_size
            if any(buffer.size > most for buffer in buffers):  # the driver may refuse it: find out
                graph.record_all()
                super().launch(_compiled(kernel), grid, buffers, parameters)
                return
            graph.used_by(buffers, written_by(kernel, buffers))
            given, numbers = tuple(buffers), bytes(parameters)
            graph.append(lambda: self.inner.launch(_compiled(kernel), grid, given, numbers), True)

    def write(self, buffer: base.Buffer, offset: int, data: memoryview) -> None:
        """An upload."""
        if self._graph.waiting:  # the caller may change its data before it is recorded
            data = memoryview(bytes(data))
        super().write(buffer, fixed(offset), data)

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """A copy within the device."""
        super().copy(source, fixed(source_offset), target, fixed(target_offset), fixed(size))

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zeroing."""
        super().fill_zero(buffer, fixed(offset), fixed(size))

    def multiply(
        self,
        product: PreparedProduct,
        left: tuple[base.Buffer, int],
        right: tuple[base.Buffer, int],
        out: tuple[base.Buffer, int],
        workspace: base.Buffer | None,
    ) -> None:
        """A matrix product by the vendor's library."""
        super().multiply(product, fixed(left), fixed(right), fixed(out), workspace)

    @property
    def takes_pending(self) -> bool:
        """While it is recorded; but what varies with sizes is noted with the kernel itself."""
        graph = self._graph
        own = self._recorded and graph.recording and graph.is_own_thread
        return own and varying.get() is None

    @property
    def recorded(self) -> int:
        """How many calls were recorded, or will be."""
        return self.inner.recorded + self._graph.waiting

    def use(self, buffers: Sequence[base.Buffer]) -> None:
        """Ordering without work: it uses no memory to collect."""
        self.appending(Appended("order", "use"), lambda: self.inner.use(buffers))

    def at_submission(self, work: Callable[[], object]) -> None:
        """What the host does at each replay."""
        self.appending(Appended("order", "at_submission"), lambda: self.inner.at_submission(work))

    def before(self, call: str) -> None:
        """End the recording before a call that cannot be recorded."""
        if self._recorded or self._graph.is_own_thread:
            self._graph.interrupt(_ENDS[call])


def _compiled(kernel: base.CompiledKernel) -> base.CompiledKernel:
    """A kernel, waited for if it is still compiled."""
    return kernel.ready() if isinstance(kernel, PendingKernel) else kernel


def _whole(buffer: base.Buffer) -> base.Buffer:
    """The buffer of a window, or the buffer itself."""
    parent: base.Buffer | None = getattr(buffer, "parent", None)
    return buffer if parent is None else parent
