"""A recording that can end by itself, of what one thread does on a device.

`Graph` refuses what a recording cannot have: a read, a wait. A traced function may do it all the
same; the recording then ends there, what it has so far is run, and the function goes on as if
nobody had recorded it. So its Python runs once, and its results are right. The same happens if
another thread uses the device meanwhile.

For this every stream's driver is wrapped while a function is traced. The wrapper also notes what
memory the recording uses, which no array is made of as long as the recording lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core import forks
from treadle.drivers import base
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, Stream, streams
from treadle.runtime.graphs import Graph
from treadle.runtime.launched import Launched
from treadle.runtime.profile.watch import WatchedStream
from treadle.runtime.stream_proxy import Appended, StreamProxy


class Traced(Graph):
    """A graph that the calling thread records. `interrupted` is called, with the reason in words
    and whether the thread itself caused it, when the recording has ended early.

    `touched` is all memory that is used, `written` that which is changed.
    """

    _reuses = True

    def __init__(self, device: Device, interrupted: Callable[[str, bool], None]) -> None:
        super().__init__(device)
        self.touched: dict[base.Buffer, None] = {}
        self.written: dict[base.Buffer, None] = {}
        self.recording = False
        self.lock = forks.lock()
        self._used = _Launches()
        self._reserved: list[base.Buffer] = []
        self._interrupted: Callable[[str, bool], None] | None = interrupted
        self._thread = threading.get_ident()
        self._wrapped: list[tuple[Stream, TracedStream]] = []

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is the one whose work is recorded."""
        return threading.get_ident() == self._thread

    def begin(self) -> None:
        """Record from here on; `close` must follow. What is pending on the device was computed."""
        self.release()
        with streams.lock:
            for stream in streams.observe(self):
                self._wrap(stream)
        self.device.default_stream.interrupt = self.interrupt
        with self.lock:  # what another thread launches comes before, or interrupts
            self._begin()
            self.recording = True

    def opened(self, one: Stream) -> None:
        """A stream was made, or a device was opened."""
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
            self.recording = False
            self.end(True)
            assert self._pool is not None
            self._reserved = list(self.touched)
            self._pool.reserve(self._reserved)
            return True

    def interrupt(self, why: str) -> None:
        """End the recording where it is."""
        with self.lock:
            if self.finish() and self._interrupted is not None:
                self._interrupted(why, self.is_own_thread)

    def close(self) -> None:
        """Leave the streams alone. What is used until then is noted, recorded or not."""
        with streams.lock:
            streams.leave(self)
            for stream, wrapper in self._wrapped:
                if stream.handle is wrapper:
                    stream.handle = wrapper.inner
                elif isinstance(stream.handle, WatchedStream) and stream.handle.inner is wrapper:
                    stream.handle.inner = wrapper.inner  # a profile began meanwhile
            self._wrapped.clear()
        self.device.default_stream.interrupt = None
        self._interrupted = None  # which has the arguments that it was recorded with
        if self.recording:  # a failure of ours
            self.recording = False
            self.end(False)

    def release(self) -> None:
        """Drop the recording and let its memory go."""
        pool, reserved = self._pool, self._reserved
        self._reserved = []
        super().release()
        if pool is not None:
            pool.unreserve(reserved)


class _Launches(list[object]):
    """Launches for profiles, without the memory of their arrays: what the recording is done with
    may serve what it does next."""

    def append(self, launched: object) -> None:
        """Keep a launch; other libraries' memory with it."""
        if isinstance(launched, Launched):
            values = [_described(value) for value in launched.values]
            launched = Launched(launched.definition, launched.built, values)
        super().append(launched)


def _described(value: Any) -> Any:
    if not isinstance(value, DeviceArray) or value.storage is None or value.storage.pool is None:
        return value
    return DeviceArray(value.device, None, value.dtype, value.shape, value.strides, value.offset)


# What ends a recording: calls of streams, with the reason in words.
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
    """What `Stream.handle` is while a function is traced; `inner` is what it was before."""

    __slots__ = ("_graph", "_recorded")

    def __init__(self, graph: Traced, inner: base.Stream, recorded: bool) -> None:
        super().__init__(inner)
        self._graph = graph
        self._recorded = recorded  # what passes here; not so for other streams and devices

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Append work, and note the memory it uses. An upload's data is a part of the recording."""
        graph = self._graph
        with graph.lock:
            if not graph.is_own_thread:
                if self._recorded:
                    graph.interrupt("another thread uses the device meanwhile")
            elif not self._recorded:
                graph.interrupt("another device or stream is used")
            else:
                for buffer in what.reads:
                    graph.touched[_whole(buffer)] = None
                for buffer in what.writes:
                    graph.touched[_whole(buffer)] = graph.written[_whole(buffer)] = None
            work()

    def use(self, buffers: Sequence[base.Buffer]) -> None:
        """Order alone: it uses no memory that would have to be noted."""
        self.appending(Appended("order", "use"), lambda: self.inner.use(buffers))

    def before(self, call: str) -> None:
        """What follows cannot be recorded."""
        if self._recorded or self._graph.is_own_thread:
            self._graph.interrupt(_ENDS[call])


def _whole(buffer: base.Buffer) -> base.Buffer:
    """The buffer that a window is a part of."""
    parent: base.Buffer | None = getattr(buffer, "parent", None)
    return buffer if parent is None else parent
