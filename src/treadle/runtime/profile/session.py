"""`td.profile()`: a profile, from its start to its results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from treadle.core import forks
from treadle.core.errors import TreadleError
from treadle.core.paths import as_path
from treadle.runtime import profiler
from treadle.runtime.devices import Stream, streams
from treadle.runtime.profile.profiled_stream import ProfiledStream
from treadle.runtime.profile.records import Amount, Entry, Event, ProfileData, amount_of, clock
from treadle.runtime.profile.table import ProfileTable, tabulate
from treadle.runtime.profile.trace import write_trace

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers import base
    from treadle.runtime.launch_records import LaunchRecord

_CALIBRATIONS = 5
_NAMED = 3  # kernels in the name of a replay


def profile() -> Profile:
    """A profile of what runs within a `with` block, on all devices and from all threads.

    >>> import treadle as td
    >>> double = td.kernel(source='''
    ... def double(x: td.Array[td.f32]):
    ...     x[td.grid(1)] *= 2.0
    ... ''')
    >>> x = td.ones(1000, device="cpu").realize()
    >>> with td.profile() as p:
    ...     for _ in range(3):
    ...         double.launch(x.size, x)
    >>> [(row.name, row.count, row.bytes) for row in p.table().rows]
    [('double', 3, 24000)]
    """
    return Profile()


class Profile(ProfileData):
    """The work that ran while it was active. `table()` sums it up, `save` writes a trace for
    Perfetto.

    `memory` is the peak number of bytes of arrays in that time, by device.
    """

    def __init__(self) -> None:
        super().__init__()
        self._memory_before: dict[str, tuple[float, int]] = {}
        self._drivers: dict[str, base.Device] = {}  # of the devices used
        self._offsets: dict[str, float] = {}  # from a device's clock to the host's
        self._watched: list[tuple[Stream, ProfiledStream]] = []
        self._calibrating = forks.lock()

    # ------------------------------------------------------------------ beginning and end

    def __enter__(self) -> Profile:
        profiler.settle()  # what was done before is not the profile's
        with streams.lock:
            if profiler.active is not None:
                raise TreadleError(
                    "a profile is active already, and it records everything in the process: end "
                    "it before you begin another one"
                )
            if self.began:
                raise TreadleError("this profile has ended: begin a new one with td.profile()")
            profiler.begin(self)
            for stream in streams.subscribe(self):
                self.watch(stream)
            self.began = clock()
        profiler.settle()  # outside of the lock, which they may need; from here on they report
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        profiler.settle()
        try:
            # Work that was launched belongs to the profile: wait for it.
            for stream, watched in list(self._watched):
                if stream.capturing is None and self._used(watched):
                    with contextlib.suppress(TreadleError):  # a device was lost
                        watched.synchronize()
        finally:
            with streams.lock:
                profiler.end()
                streams.unsubscribe(self)
                self.ended = clock()
                for stream, watched in self._watched:
                    stream.handle = watched.inner
                self._watched.clear()
        self._add_memory_before()
        self._read_times()
        for entry in self.entries:
            self._place_on_device(entry)

    def _read_times(self) -> None:
        """Read all times of each device at once."""
        for device in self._drivers.values():
            name = device.info.id
            points = [e.points for e in self.entries if e.points and e.device == name]
            with contextlib.suppress(TreadleError):  # reading each one will raise it again
                device.read_times([event for pair in points for event in pair])
        self._drivers.clear()

    def _add_memory_before(self) -> None:
        """Add the memory of arrays at the start, for the devices that were used."""
        used = {entry.device for entry in self.entries} | set(self.memory)
        for device, (when, size) in self._memory_before.items():
            if device in used:
                self.memory_used.insert(0, (when, device, size))
                self.memory[device] = max(self.memory.get(device, 0), size)

    def _used(self, watched: ProfiledStream) -> bool:
        return any(e.points and e.stream == watched.number for e in list(self.entries))

    def added(self, one: Stream) -> None:
        """A new stream: record it too."""
        with streams.lock:
            if self.ended is None:
                self.watch(one)

    def watch(self, stream: Stream) -> None:
        """Record the calls of a stream from here on."""
        device = stream.device
        if device.is_open_as(stream.handle.device):
            watched = ProfiledStream(self, self.calibrate, stream, len(self._watched))
            self.stream_names[device.id, watched.number] = stream.name
            self._watched.append((stream, watched))
            if not stream.device.traits.on_host:
                self.gpus.add(stream.device.id)
            stream.handle = watched
            self._memory_before.setdefault(device.id, (clock(), device.pool.used))

    def calibrate(self, watched: ProfiledStream) -> None:
        """Measure the offset of a device's clock to the host's, before its first work."""
        info = watched.device.info
        if info.id in self._offsets:
            return
        with self._calibrating:
            timed = "timestamps" in info.features
            offset = 0.0
            if timed and not info.traits.on_host:
                offset = _clock_offset(watched.inner)
            self.timed[info.id] = timed
            self._drivers[info.id] = watched.device
            self._offsets[info.id] = offset

    def _place_on_device(self, entry: Entry) -> None:
        points, entry.points = entry.points, None
        if points is None:
            return
        try:
            start, end = (point.seconds() for point in points)
        except TreadleError as error:  # for example, the device was lost
            self.untimed = str(error)
            return
        offset = self._offsets[entry.device]
        entry.on_device = start + offset, max(start, end) + offset

    # ------------------------------------------------------------------ reports of other modules

    def launch(
        self,
        stream: base.Stream,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
        launched: LaunchRecord,
    ) -> None:
        """Launch, and record it."""
        if isinstance(stream, ProfiledStream):
            stream.launch_of(kernel, grid, buffers, parameters, amount_of(launched))
        else:
            stream.launch(kernel, grid, buffers, parameters)

    def replay(
        self, stream: base.Stream, recording: base.Recording, launches: Sequence[LaunchRecord]
    ) -> None:
        """Replay, and record it."""
        if isinstance(stream, ProfiledStream):
            inner = stream.inner
            amount = Amount(0, 0)
            for launched in launches:
                amount += amount_of(launched)
            name = _replay_name([launched.definition.name for launched in launches])
            stream.append("replay", name, amount, lambda: recording.replay(inner))
        else:
            recording.replay(stream)

    def copy_across(
        self, stream: base.Stream, copy: Callable[..., bool], places: tuple[Any, ...]
    ) -> bool:
        """Copy from another device, and record it if the copy succeeds; `stream` is the
        target's."""
        done = False

        def append() -> None:
            nonlocal done
            done = copy(*places)

        if not isinstance(stream, ProfiledStream):
            append()
            return done
        entry = stream.append("copy", "copy from another device", Amount(places[-1]), append)
        if entry is not None and not done and entry in self.entries:
            self.entries.remove(entry)
        return done

    def note_compilation(self, kernel: str, how: str, device: str, began: float) -> None:
        """A kernel was built, or loaded."""
        thread = self.thread()
        self.entries.append(Entry("compile", f"{kernel}, {how}", device, 0, thread, began, clock()))

    def note_memory(self, device: str, used: int) -> None:
        """Memory was allocated from a pool or freed. Finalizers call this too: it takes no
        locks."""
        self.memory[device] = max(self.memory.get(device, 0), used)
        self.memory_used.append((clock(), device, used))

    def note_event(
        self, track: str, name: str, began: float | None, kind: str = "actors", **facts: Any
    ) -> None:
        """What happened to something with a track of its own."""
        now = clock()
        if self.ended is None:
            since = now if began is None else max(began, self.began)
            self.events.append(Event(track, name, since, now, facts, kind))

    # ------------------------------------------------------------------ results

    def table(self) -> ProfileTable:
        """The sums: each kernel and kind of copy with its count, times, bytes and operations.

        Print it, or let rich print it; `rows` has the numbers.
        """
        self.end_for("table()")
        return tabulate(self)

    def save(self, path: str | Path) -> None:
        """Write everything as JSON of Chrome's trace events, for https://ui.perfetto.dev."""
        target = as_path("save", path)
        self.end_for("save()")
        write_trace(self, target)

    def __repr__(self) -> str:
        if self.ended is None:
            return "<treadle profile, active>" if self.began else "<treadle profile, not begun>"
        return f"<treadle profile of {self.seconds:.3g} s, {len(self.entries)} entries>"


def _clock_offset(stream: base.Stream) -> float:
    """The offset from a device's clock to the host's, from the fastest of a few readings of
    both."""
    stream.synchronize()
    best = None
    for _ in range(_CALIBRATIONS):
        before = clock()
        event = stream.record()
        event.synchronize()
        after = clock()
        if best is None or after - before < best[0]:
            best = after - before, (before + after) / 2, event
    assert best is not None
    return best[1] - best[2].seconds()


def _replay_name(kernels: list[str]) -> str:
    counts = {name: kernels.count(name) for name in dict.fromkeys(kernels)}
    names = [name if n == 1 else f"{name} ×{n}" for name, n in counts.items()]
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"replay of {', '.join(names[:_NAMED])}{more}" if names else "replay"
