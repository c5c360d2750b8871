"""Graphs: captured work, whose replay costs no more than its submission to the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treadle.core.errors import LaunchError
from treadle.runtime import lazy, profiler
from treadle.runtime.devices import Device, Stream
from treadle.runtime.devices import device as find_device
from treadle.runtime.launch_records import LaunchRecord
from treadle.runtime.libraries import ForeignStream
from treadle.runtime.memory import Pool
from treadle.runtime.sharing import Order

if TYPE_CHECKING:
    from treadle.drivers import base


class Graph:
    """A list of launches and copies, recorded once and replayed any number of times.

    The graph keeps the arrays that it uses alive; a replay reads their contents at that time.
    Nothing can be read back to the host while capturing, since nothing has run yet.

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

    _reuses = False  # whether memory that is freed while recording is used by later launches

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = find_device(device)
        self._recording: base.Recording | None = None
        self._used: list[object] = []  # launches and arrays, kept alive with the recording
        self._kept: list[base.Buffer] = []  # memory freed while capturing
        self._foreign_streams: list[ForeignStream] = []  # of libraries whose memory is used
        self._pool: Pool | None = None  # while there is a recording: the pool of its memory

    @property
    def captured(self) -> base.Recording:
        """What was recorded."""
        if self._recording is None:
            raise LaunchError("nothing was captured: use `with graph.capture():` first")
        return self._recording

    @contextlib.contextmanager
    def capture(self) -> Iterator[Graph]:
        """Record the launches on the device's default stream instead of running them."""
        self.begin()
        finished = False
        try:
            yield self
            lazy.arrays.compute_pending(self.device)  # pending from within the block: recorded
            finished = True
        finally:
            self.end(finished)

    def begin(self) -> None:
        """Start recording, where `with` cannot be used. `end` must follow."""
        self.release()
        lazy.arrays.compute_pending(self.device)  # pending from before: not recorded
        self._begin()

    def _begin(self) -> None:
        stream = self.device.default_stream
        stream.handle.begin_capture()
        stream.capturing = self._used
        self._pool = self.device.pool
        self._pool.divert_frees(self._kept, self._reuses)

    def end(self, finished: bool) -> None:
        """Stop recording. The recording is dropped unless it is `finished`."""
        stream, pool = self.device.default_stream, self._pool
        assert pool is not None
        pool.stop_diverting(self._kept)
        stream.capturing = None
        self._foreign_streams = list(stream.foreign_streams)
        stream.foreign_streams.clear()
        recording = stream.handle.end_capture()
        if finished:
            self._recording = recording
        else:
            recording.release()
            self._used.clear()
            pool.free_all(self._kept)

    def replay(self, stream: Stream | None = None) -> None:
        """Run the captured work. Does not wait for it."""
        recording = self.captured
        stream = stream or self.device.default_stream
        if stream.interrupt is not None:
            stream.interrupt("a graph is replayed")
        if not self._foreign_streams:
            self._replay(recording, stream)
            return
        order = Order(stream)
        for library, theirs in self._foreign_streams:
            order.include(library, theirs, None)
        with order:
            self._replay(recording, stream)

    def _replay(self, recording: base.Recording, stream: Stream) -> None:
        if (active := profiler.active) is None:
            recording.replay(stream.handle)
        else:
            launches = [used for used in self._used if isinstance(used, LaunchRecord)]
            active.replay(stream.handle, recording, launches)

    def release(self) -> None:
        """Drop the recording and the arrays that it keeps alive."""
        if self._recording is not None:
            self._recording.release()
            self._recording = None
        self._used.clear()
        if self._pool is not None:
            self._pool.free_all(self._kept)
            self._pool = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.release()
