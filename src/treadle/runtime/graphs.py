"""Captured work, replayed at the price of handing it to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.core.errors import LaunchError
from treadle.runtime import lazy, profiler
from treadle.runtime.devices import Device, Stream
from treadle.runtime.devices import device as find_device
from treadle.runtime.launched import Launched
from treadle.runtime.libraries import Guest
from treadle.runtime.memory import Pool
from treadle.runtime.sharing import Order

if TYPE_CHECKING:
    from treadle.drivers import base


class Graph:
    """A list of launches and copies, recorded once and run as often as wanted.

    Arrays used in it stay alive with it; a replay reads what they hold then. Nothing may be read
    back to the host while capturing: nothing has run yet.

    >>> import numpy as np, treadle as td
    >>> double = td.kernel(source='''
    ... def double(x: td.Array[td.f32]):
    ...     x[td.grid(1)] *= 2.0
    ... ''')
    >>> x = td.asarray(np.ones(4, np.float32), device="cpu")
    >>> graph = td.Graph("cpu")
    >>> with graph.capture():
    ...     double.launch(4, x)
    >>> graph.replay(); graph.replay(); x.tolist()
    [4.0, 4.0, 4.0, 4.0]
    """

    _reuses = False  # whether memory that is given back while recording serves what comes after

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = find_device(device)
        self._recording: base.Recording | None = None
        self._used: list[object] = []  # launches and arrays, kept alive with the recording
        self._kept: list[base.Buffer] = []  # memory given back while capturing
        self._guests: list[Guest] = []  # other libraries whose memory is used
        self._pool: Pool | None = None  # while there is a recording: whose memory it uses

    @contextlib.contextmanager
    def capture(self) -> Iterator[Graph]:
        """Record the launches on the device's default stream instead of running them."""
        self.begin()
        finished = False
        try:
            yield self
            lazy.arrays.compute_pending(self.device)  # from within: it is recorded
            finished = True
        finally:
            self.end(finished)

    def begin(self) -> None:
        """Record from here on, for those who cannot use `with`: `end` must follow."""
        self.release()
        lazy.arrays.compute_pending(self.device)  # from before: it is not for the recording
        self._begin()

    def _begin(self) -> None:
        stream = self.device.default_stream
        stream.handle.begin_capture()
        stream.keeping = self._used
        self._pool = self.device.pool
        self._pool.keep_into(self._kept, self._reuses)

    def end(self, finished: bool) -> None:
        """Record no more. What was recorded is dropped unless it was `finished`."""
        stream, pool = self.device.default_stream, self._pool
        assert pool is not None
        pool.keep_no_more(self._kept)
        stream.keeping = None
        self._guests = list(stream.guests)
        stream.guests.clear()
        recording = stream.handle.end_capture()
        if finished:
            self._recording = recording
        else:
            recording.release()
            self._used.clear()
            pool.shelve_all(self._kept)

    def replay(self, stream: Stream | None = None) -> None:
        """Run what was captured. Does not wait for it."""
        if self._recording is None:
            raise LaunchError("nothing was captured: use `with graph.capture():` first")
        stream = stream or self.device.default_stream
        if stream.interrupt is not None:
            stream.interrupt("a graph is replayed")
        if not self._guests:
            self._replay(self._recording, stream)
            return
        order = Order(stream)
        for library, theirs in self._guests:
            order.include(library, theirs, None)
        with order:
            self._replay(self._recording, stream)

    def _replay(self, recording: base.Recording, stream: Stream) -> None:
        if (active := profiler.active) is None:
            recording.replay(stream.handle)
        else:
            launches = [used for used in self._used if isinstance(used, Launched)]
            active.replay(stream.handle, recording, launches)

    def release(self) -> None:
        """Drop the recording and what it kept alive."""
        if self._recording is not None:
            self._recording.release()
            self._recording = None
        self._used.clear()
        if self._pool is not None:
            self._pool.shelve_all(self._kept)
            self._pool = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.release()
