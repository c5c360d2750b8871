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


def _whole(buffer: base.Buffer) -> base.Buffer:
    parent: base.Buffer | None = getattr(buffer, "parent", None)
    return buffer if parent is None else parent


class _NotingStream(StreamProxy):
    """A stream that notes the memory which is used through it."""

    __slots__ = ("used",)

    def __init__(self, inner: base.Stream) -> None:
        super().__init__(inner)
        self.used = UsedMemory()

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Note the buffers."""
        self.used.add(what)
        work()

    @property
    def takes_pending(self) -> bool:
        """What the stream itself does."""
        return self.inner.takes_pending


@contextlib.contextmanager
def noting_used(stream: Stream) -> Iterator[UsedMemory]:
    """Note the memory that work on a stream uses within this context, by any thread."""
    noting = _NotingStream(stream.handle)
    stream.handle = noting
    try:
        yield noting.used
    finally:
        outer: base.Stream = stream.handle
        if outer is noting:
            stream.handle = noting.inner
        else:  # a profile has begun since, and wraps it
            while isinstance(outer, StreamProxy):
                if outer.inner is noting:
                    outer.inner = noting.inner
                outer = outer.inner
