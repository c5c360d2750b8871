"""Streams and events, by PyTorch's names. Tensors are computed on the default stream of their
device, in order: a stream here is that one."""

from __future__ import annotations

from typing import Any

from treadle.runtime.devices import Device
from treadle.runtime.events import Event as Inner
from treadle.torch.devices import device as Shown
from treadle.torch.devices import place


class Stream:
    """The order in which a device works. There is one: work of two streams does not overlap."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self._place: Device = place("cuda" if device is None else device)

    @property
    def device(self) -> Shown:
        """The device that it belongs to."""
        return Shown(self._place)

    @property
    def cuda_stream(self) -> int:
        """The number of the stream."""
        return 0

    def synchronize(self) -> None:
        """Wait until the device has done all work."""
        self._place.synchronize()

    def query(self) -> bool:
        """Whether all work is done: it is waited for."""
        self._place.synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Work is in order."""

    def wait_event(self, event: Any) -> None:
        """Work is in order."""

    def record_event(self, event: Any = None) -> Event:
        """An event at this point."""
        made = Event() if event is None else event
        made.record(self)
        return made  # type: ignore[no-any-return]

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._place is other._place

    def __hash__(self) -> int:
        return hash(id(self._place))


class Event:
    """A point in a device's work: `start.elapsed_time(end)` are milliseconds."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._inner: Inner | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Mark the point after all work so far. Lazy tensors that nobody has asked for are not
        computed yet, and are no part of that work."""
        device = place("cuda") if stream is None else stream._place
        self._inner = Inner()
        self._inner.record(device.default_stream)

    def _recorded(self) -> Inner:
        if self._inner is None:
            raise RuntimeError("the event was not recorded: call record() first")
        return self._inner

    def synchronize(self) -> None:
        """Wait until the point is reached."""
        if self._inner is not None:
            self._inner.synchronize()

    wait = synchronize

    def query(self) -> bool:
        """Whether the point is reached."""
        return self._inner is None or self._inner.query()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this point to another one."""
        return self._recorded().elapsed(end_event._recorded()) * 1e3
