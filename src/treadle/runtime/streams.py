"""Streams and events as users hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from treadle.core import polling
from treadle.core.errors import LaunchError
from treadle.runtime import profile

if TYPE_CHECKING:
    from treadle.drivers import base
    from treadle.runtime.devices import Device
    from treadle.runtime.sharing import Guest

meeting: list[Callable[[Stream], None]] = []  # told of every stream that is made


class Stream:
    """Work that runs in order. Get one from `Device.stream()`."""

    def __init__(self, device: Device, handle: base.Stream) -> None:
        self.device = device
        self.handle = handle
        self.keeping: list[object] | None = None  # while capturing: what is launched and used
        self.guests: dict[Guest, None] = {}  # and the libraries whose memory it is
        # While a function is traced here: to be called, with words for it, before what a recording
        # cannot have.
        self.interrupt: Callable[[str], None] | None = None
        profile.opened(self)
        for meet in meeting:
            meet(self)

    def flush(self) -> None:
        """Start what was launched, without waiting for it."""
        self.handle.flush()

    def synchronize(self) -> None:
        """Wait until everything launched here is done."""
        self.handle.synchronize()

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        await self.handle.synchronize_async()

    def __repr__(self) -> str:
        return f"<treadle stream on {self.device.id}>"


class Event:
    """A point in a stream's work, with a time.

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
            from treadle.runtime.devices import default_device

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
        """`synchronize`, giving way to the event loop between looks, and at least once."""
        await polling.until(self._recorded().query)

    def query(self) -> bool:
        """Whether the point is reached."""
        return self._recorded().query()

    def elapsed(self, end: Event) -> float:
        """Seconds from this point to `end`, on the device's clock where it has one. Waits."""
        return end._recorded().seconds() - self._recorded().seconds()
