"""Which memory work uses, noted while it is recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from treadle.drivers import base
from treadle.runtime.devices import Stream
from treadle.runtime.stream_proxy import Appended, StreamProxy


class UsedMemory:
    """Memory that work touches, and that it writes: whole buffers, where a launch has windows."""

    def __init__(self) -> None:
        self.touched: dict[base.Buffer, None] = {}
        self.written: dict[base.Buffer, None] = {}

    def add(self, what: Appended) -> None:
        """Note what an operation uses."""
        for buffer in (*what.reads, *what.writes):
            self.touched[_whole(buffer)] = None
        for buffer in what.writes:
            self.written[_whole(buffer)] = None

    def update(self, other: UsedMemory) -> None:
        """Note what other work uses."""
        self.touched.update(other.touched)
        self.written.update(other.written)


def _whole(buffer: base.Buffer) -> base.Buffer:
    parent: base.Buffer | None = getattr(buffer, "parent", None)
    return buffer if parent is None else parent


class NotingStream(StreamProxy):
    """The value of `Stream.handle` while the memory is noted that work on it uses."""

    __slots__ = ("_stream", "used")

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream.handle)
        self._stream = stream
        self.used = UsedMemory()
        stream.handle = self

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Note the buffers."""
        self.used.add(what)
        work()

    @property
    def takes_pending(self) -> bool:
        """What the stream itself does."""
        return self.inner.takes_pending

    def remove(self) -> None:
        """The end."""
        outer: base.Stream = self._stream.handle
        if outer is self:
            self._stream.handle = self.inner
            return
        while isinstance(outer, StreamProxy):  # a profile has begun since, and wraps it
            if outer.inner is self:
                outer.inner = self.inner
            outer = outer.inner


@contextlib.contextmanager
def noting_used(stream: Stream) -> Iterator[UsedMemory]:
    """Note the memory that work on a stream uses within this context, by any thread."""
    noting = NotingStream(stream)
    try:
        yield noting.used
    finally:
        noting.remove()


def note_used(stream: Stream, used: UsedMemory) -> None:
    """Work that uses memory was appended to a stream as a whole, as a recording is."""
    handle = stream.handle
    while isinstance(handle, StreamProxy):
        if isinstance(handle, NotingStream):
            handle.used.update(used)
        handle = handle.inner
