"""`td.Event`: points in a stream's work."""

from __future__ import annotations

from treadle.core import polling
from treadle.core.errors import LaunchError
from treadle.drivers import base
from treadle.runtime.devices import Stream, default_device


class Event:
    """A point in a stream's work, with a timestamp.

    >>> import treadle as td
    >>> start, end = td.Event(), td.Event()
    >>> stream = td.device("cpu").default_stream
    >>> start.record(stream); end.record(stream)
    >>> start.elapsed(end) >= 0
    True
    """

    def __init__(self) -> None:
        self._point: base.Event | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the point after all work so far on `stream` (the default device's if None)."""
        if stream is None:
            stream = default_device().default_stream
        self._point = stream.handle.record()

    def _recorded(self) -> base.Event:
        if self._point is None:
            raise LaunchError("this event was not recorded yet: call record() first")
        return self._point

    def synchronize(self) -> None:
        """Wait until the point is reached."""
        self._recorded().synchronize()

    async def synchronize_async(self) -> None:
        """`synchronize`, which yields to the event loop between polls, at least once."""
        await polling.until(self._recorded().query)

    def query(self) -> bool:
        """Whether the point is reached."""
        return self._recorded().query()

    def elapsed(self, end: Event) -> float:
        """Seconds from this point to `end`, on the device's clock where it has one. Waits."""
        return end._recorded().seconds() - self._recorded().seconds()
