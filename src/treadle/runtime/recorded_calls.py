"""Calls of functions that launch kernels, repeated without running their Python.

A convolution or an attention decides much in Python before its launches: tiles, splits, strides,
scratch memory. For arrays that lie in memory in the same way, and the same other arguments, it
decides the same again. So the second such call is recorded, as the launches that reach the driver,
and later ones repeat these with other buffers.

A call is recorded only if all that it does is known: its launches write memory that was allocated
during the call, and it neither reads, nor uploads, nor computes on the host, nor uses memory of
anyone else's. The device's tables of constants are the exception: a recording is repeated as long
as those that it reads are in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from treadle.core import forks
from treadle.core.recent_cache import RecentCache
from treadle.drivers import base
from treadle.runtime import profiler, settings
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, Stream
from treadle.runtime.memory import Storage
from treadle.runtime.stream_proxy import Appended, StreamProxy, written_by

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3

_RECENT = 1024  # calls
_MOST_LAUNCHES = 64  # of such a call
_RECENT_LONG = 8  # calls with more launches, for which Python takes long, and their recordings room
_MOST_OF_LONG = 8192

Results = DeviceArray | Sequence[DeviceArray]


class _Launch(NamedTuple):
    """A launch, a copy or zeroing: `work` is called with buffers, and the memory that is allocated
    before it (place, bytes) and freed after it."""

    work: Callable[..., None]
    buffers: tuple[int, ...]  # their places: those of the arguments, then those of new memory
    taken: tuple[tuple[int, int], ...]
    freed: tuple[int, ...]


class _Result(NamedTuple):
    """A result: the place of its buffer, and an array like it; how many bytes were asked for."""

    place: int
    like: DeviceArray
    nbytes: int


class _Recording(NamedTuple):
    launches: tuple[_Launch, ...]
    results: tuple[_Result, ...]
    several: bool
    tables: tuple[tuple[Hashable, base.Buffer], ...]  # keys of `Device.tables`, and what they had
    places: int  # of the arguments' buffers, then of the tables', then of new memory


class _Seen:
    """A call that is not recorded: its first one, one that can't be, or one that is, among the long
    ones."""

    __slots__ = ("is_long", "is_refused")

    def __init__(self) -> None:
        self.is_refused = self.is_long = False


_known: RecentCache[Any, _Recording | _Seen] = RecentCache(_RECENT)
_long: RecentCache[Any, _Recording] = RecentCache(_RECENT_LONG)


def call(
    function: Callable[..., Results], arrays: Sequence[DeviceArray], options: tuple[Any, ...]
) -> Results:
    """What a function of the kernel library gives for arrays and options: `function(*arrays,
    *options)`, by the launches of an earlier call where these are known."""
    device = arrays[0].device if arrays else None
    if device is None or profiler.active is not None or current is not None:
        return function(*arrays, *options)
    stream = device.default_stream
    if stream.capturing is not None or arrays[0].key.imagined:
        return function(*arrays, *options)
    key: tuple[Any, ...] | None = _key(function, arrays, options, stream)
    try:
        known = _known.get(key)
    except TypeError:  # an option cannot be hashed
        key = None
    if key is None:
        return function(*arrays, *options)
    if isinstance(known, _Seen) and known.is_long:
        known = _long.get(key)
    if isinstance(known, _Recording):
        if all(_is_table(device, *table) for table in known.tables):
            return _repeated(known, arrays, stream)
        known = None
    if known is None:
        _known[key] = _Seen()
    elif not known.is_refused:
        return _recorded(function, arrays, options, stream, key, known)
    return function(*arrays, *options)


def _key(
    function: Callable[..., Results],
    arrays: Sequence[DeviceArray],
    options: tuple[Any, ...],
    stream: Stream,
) -> tuple[Any, ...]:
    facts: list[Any] = [function, options, stream, settings.check]
    _add_exact(options, facts)
    buffers: list[Any] = []
    for array in arrays:
        buffer = array.buffer
        same = buffers.index(buffer) if buffer in buffers else -1
        facts += array.key, array.shape, array.strides, array.offset, same, buffer.size
        buffers.append(buffer)
    return tuple(facts)


def _is_table(device: Device, name: Hashable, buffer: base.Buffer) -> bool:
    """Whether a table is where it was; counts as a use of it."""
    table = device.tables.pop(name, None)
    if table is None:
        return False
    device.tables[name] = table
    return table.buffer is buffer


def _add_exact(values: tuple[Any, ...], facts: list[Any]) -> None:
    """What tells numbers apart that are equal: -0.0 and 0.0, True and 1 and 1.0."""
    for value in values:
        kind = type(value)
        if kind is float:
            facts.append(value.hex())
        elif kind is bool:
            facts.append(kind)
        elif kind is not int and isinstance(value, tuple):
            _add_exact(value, facts)


# --- recording ------------------------------------------------------------------------------------

# The stream of the call that is recorded; never two at once.
current: _RecordedStream | None = None
_turn = forks.lock()


def refuse_recording() -> None:
    """Called where something happens that the stream does not see: what this thread records, if it
    does, is not repeated."""
    if current is not None and current.is_own_thread:
        current.is_complete = False


class _RecordedStream(StreamProxy):
    """The device's stream while a call is recorded."""

    __slots__ = ("_thread", "is_complete", "work")

    def __init__(self, inner: base.Stream) -> None:
        super().__init__(inner)
        self._thread = threading.get_ident()
        self.is_complete = True
        self.work: list[tuple[Callable[..., None], tuple[base.Buffer, ...], Sequence[Any]]] = []

    def end(self) -> None:
        """Note nothing more."""
        self._thread = 0

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is the one whose call is recorded."""
        return threading.get_ident() == self._thread

    def launch(
        self,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
    ) -> None:
        """Launch, and note it."""
        self.inner.launch(kernel, grid, buffers, parameters)
        if self.is_own_thread:
            launch, parameters = self.inner.launch, bytes(parameters)
            written = written_by(kernel, buffers)
            self.work.append(
                (
                    lambda *found: launch(kernel, grid, found, parameters),
                    tuple(buffers),
                    written,
                )
            )

    def fill_zero(self, buffer: base.Buffer, offset: int, size: int) -> None:
        """Zero, and note it."""
        self.inner.fill_zero(buffer, offset, size)
        if self.is_own_thread:
            fill = self.inner.fill_zero
            self.work.append((lambda found: fill(found, offset, size), (buffer,), (buffer,)))

    def copy(
        self,
        source: base.Buffer,
        source_offset: int,
        target: base.Buffer,
        target_offset: int,
        size: int,
    ) -> None:
        """Copy, and note it."""
        self.inner.copy(source, source_offset, target, target_offset, size)
        if self.is_own_thread:
            copy = self.inner.copy
            self.work.append(
                (
                    lambda one, other: copy(one, source_offset, other, target_offset, size),
                    (source, target),
                    (target,),
                )
            )

    def appending(self, what: Appended, work: Callable[[], object]) -> None:
        """Other work is not repeated."""
        self._refuse()
        work()

    def before(self, call: str) -> None:
        """Nor is what waits."""
        self._refuse()

    def _refuse(self) -> None:
        if self.is_own_thread:
            self.is_complete = False


def _recorded(
    function: Callable[..., Results],
    arrays: Sequence[DeviceArray],
    options: tuple[Any, ...],
    stream: Stream,
    key: tuple[Any, ...],
    seen: _Seen,
) -> Results:
    """Call the function, and keep its launches if they can be repeated."""
    global current
    if not _turn.acquire(blocking=False):
        return function(*arrays, *options)
    device, inner = stream.device, stream.handle
    recorded = current = _RecordedStream(inner)
    stream.handle = recorded
    try:
        with device.pool.noting_taken() as taken:
            found = function(*arrays, *options)
    finally:
        if stream.handle is recorded:
            stream.handle = inner
        else:
            recorded.is_complete = False
        recorded.end()
        current = None
        _turn.release()
    recording = _recording_of(recorded, arrays, found, taken, device)
    if recording is None:
        seen.is_refused = True
    elif len(recording.launches) > _MOST_LAUNCHES:
        seen.is_long = True
        _long[key] = recording
    else:
        _known[key] = recording
    return found


def _recording_of(
    recorded: _RecordedStream,
    arrays: Sequence[DeviceArray],
    found: Results,
    taken: Sequence[base.Buffer],
    device: Device,
) -> _Recording | None:
    if not recorded.is_complete or not 0 < len(recorded.work) <= _MOST_OF_LONG:
        return None
    several = not isinstance(found, DeviceArray)
    results: Sequence[DeviceArray] = found if several else (found,)  # type: ignore[assignment]
    given = list(dict.fromkeys(array.buffer for array in arrays))
    used = {buffer for _, buffers, _ in recorded.work for buffer in buffers}
    tables = [
        (name, table.buffer)
        for name, table in list(device.tables.items())
        if table.buffer in used and table.buffer not in given
    ]
    given += [buffer for _, buffer in tables]
    new = {buffer: len(given) + at for at, buffer in enumerate(dict.fromkeys(taken))}
    kept = {array.buffer for array in results}
    if not kept <= new.keys():
        return None
    places: dict[base.Buffer, int] = {buffer: at for at, buffer in enumerate(given)} | new
    last: dict[base.Buffer, int] = {}
    for number, (_, buffers, written) in enumerate(recorded.work):
        if any(buffer not in places for buffer in buffers):
            return None
        if any(buffer not in new for buffer in written):
            return None
        last |= dict.fromkeys(buffers, number)
    if not kept <= last.keys():
        return None
    launches = []
    begun: set[base.Buffer] = set()
    for number, (work, buffers, _) in enumerate(recorded.work):
        first = [b for b in dict.fromkeys(buffers) if b in new and b not in begun]
        begun |= set(first)
        done = [b for b in dict.fromkeys(buffers) if b in new and last[b] == number]
        launches.append(
            _Launch(
                work,
                tuple([places[buffer] for buffer in buffers]),
                tuple([(places[buffer], buffer.size) for buffer in first]),
                tuple([places[buffer] for buffer in done if buffer not in kept]),
            )
        )
    return _Recording(
        tuple(launches),
        tuple([_Result(places[a.buffer], _without_memory(a), a.storage.nbytes) for a in results]),
        several,
        tuple(tables),
        len(given) + len(new),
    )


def _without_memory(array: DeviceArray) -> DeviceArray:
    return DeviceArray(array.device, None, array.dtype, array.shape, array.strides, array.offset)


# --- repeating ------------------------------------------------------------------------------------


def _repeated(recording: _Recording, arrays: Sequence[DeviceArray], stream: Stream) -> Results:
    """The launches again, with these arrays and new memory."""
    pool = stream.device.pool
    buffers: list[Any] = list(dict.fromkeys([array.buffer for array in arrays]))
    buffers += [buffer for _, buffer in recording.tables]
    count = len(buffers)
    buffers += [None] * (recording.places - count)
    try:
        for work, places, taken, freed in recording.launches:
            for place, size in taken:
                buffers[place] = pool.take(size)
            work(*[buffers[place] for place in places])
            for place in freed:
                buffer, buffers[place] = buffers[place], None
                pool.give(buffer)
    except BaseException:
        for buffer in buffers[count:]:
            if buffer is not None:
                pool.give(buffer)
        raise
    device: Device = stream.device
    storages: dict[int, Storage] = {}
    found = []
    for place, like, nbytes in recording.results:
        storage = storages.get(place)
        if storage is None:
            storage = storages[place] = Storage.of(device.pool, buffers[place], nbytes)
        found.append(like.with_storage(storage))
    return found if recording.several else found[0]
