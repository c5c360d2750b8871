"""Graphs: captured work, whose replay costs no more than its submission to the driver.

Work with loops and branches is a tree of recordings (`drivers.program`): a recording ends where a
body begins or ends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, LaunchError, ShapeError
from treadle.drivers.program import Branch, Condition, Item, Loop, Work, recordings_of
from treadle.runtime import lazy, profiler
from treadle.runtime.arrays import as_array
from treadle.runtime.decided_replay import DecidedReplay
from treadle.runtime.devices import Device, Stream
from treadle.runtime.devices import device as find_device
from treadle.runtime.launch_records import LaunchRecord
from treadle.runtime.libraries import ForeignStream
from treadle.runtime.memory import Pool
from treadle.runtime.sharing import Order
from treadle.runtime.used_memory import NotingStream, UsedMemory, note_used, noting_used

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

    Bodies of `while_` and `if_` run as often as an element of an array says, at each replay anew:

    >>> x, large = td.ones(4, device="cpu"), td.ones((), dtype=td.bool, device="cpu")
    >>> with graph.capture():
    ...     with graph.while_(large):
    ...         x *= 3
    ...         large[...] = x.sum() < 100
    >>> graph.replay(); x.tolist()
    [27.0, 27.0, 27.0, 27.0]
    """

    _reuses = False  # whether memory that is freed while recording is used by later launches

    def __init__(self, device: str | Device | None = None) -> None:
        self.device = find_device(device)
        self._recording: base.Recording | None = None
        self._used: list[object] = []  # launches and arrays, kept alive with the recording
        self._kept: list[base.Buffer] = []  # memory freed while capturing
        self._foreign_streams: list[ForeignStream] = []  # of libraries whose memory is used
        self._pool: Pool | None = None  # while there is a recording: the pool of its memory
        self._is_capturing = False
        self._unfinished: str | None = None  # the body that an exception has ended
        # Where there are bodies: what was recorded before the present recording, on each level.
        self._levels: list[list[Item]] = []
        self._first_used = 0  # of the present recording
        self._conditions: list[base.Buffer] = []  # whose elements are read
        self._decided: DecidedReplay | None = None
        self._decides = False  # whether there are loops or branches
        self._arrays: lazy.UsedArrays | None = None  # whose memory the recordings name
        self._noting: NotingStream | None = None  # while it is captured
        self._memory = UsedMemory()  # of the recording

    @property
    def captured(self) -> base.Recording:
        """What was recorded."""
        if self._recording is None:
            raise LaunchError("nothing was captured: use `with graph.capture():` first")
        return self._recording

    @contextlib.contextmanager
    def capture(self) -> Iterator[Graph]:
        """Record the launches on the device's default stream instead of running them. A tensor from
        before that is written here has what it had until the first replay, and each replay goes on
        from what the last one has written."""
        self.begin()
        self._levels, self._unfinished, self._is_capturing = [[]], None, True
        self._conditions = []
        finished = False
        try:
            with lazy.arrays.carrying(self.device, None):
                yield self
            assert self._noting is not None
            used = self._noting.used
            touched = [*used.touched, *self._conditions]
            arrays = lazy.arrays.used_arrays(self.device, touched, used.written)
            if self._unfinished is not None:
                raise LaunchError(
                    f"an exception has ended the body of {self._unfinished}, which is recorded in "
                    "part: let it end the capture too"
                )
            finished = True
            self._arrays = arrays
        finally:
            self._is_capturing = False
            self.end(finished)

    def while_(
        self, condition: Any, limit: int | None = None
    ) -> contextlib.AbstractContextManager[None]:
        """Record a body that a replay runs while an element is not 0, at most `limit` times.

        `condition` is an array of one element on the graph's device, of any dtype, which the body
        writes. It is read before the body and after each iteration; NaN is true. Where the limit
        ends the loop, the condition still holds afterwards.

        The block runs once, to be recorded. What it writes to tensors from before it is there in
        the next iteration and after the loop; what it makes is not usable after it.

        >>> import treadle as td
        >>> x = td.asarray(2.0, device="cpu")         # Newton's method for the square root of 2
        >>> change = td.ones((), device="cpu")
        >>> graph = td.Graph("cpu")
        >>> with graph.capture(), graph.while_(change > 1e-6):
        ...     pass
        Traceback (most recent call last):
            ...
        treadle.core.errors.LaunchError: nothing in the body of while_ writes the condition, so \
the loop would not end: write to the array that was given (flag[...] = x > 0), or give a limit
        """
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise LaunchError(f"the limit of while_ is a number of iterations, not {limit!r}")
        return self._body("while_", condition, lambda *made: Loop(made[0], limit, *made[1:]))

    def if_(self, condition: Any) -> contextlib.AbstractContextManager[None]:
        """Record a body that a replay runs if an element is not 0 at that time.

        `condition` is an array of one element on the graph's device. The block runs once, to be
        recorded; what is said of `while_` holds.

        >>> import treadle as td
        >>> x, flag = td.ones(2, device="cpu"), td.zeros((), dtype=td.int32, device="cpu")
        >>> graph = td.Graph("cpu")
        >>> with graph.capture():
        ...     with graph.if_(flag):
        ...         x += 1
        >>> graph.replay(); flag[...] = 1; graph.replay(); x.tolist()
        [2.0, 2.0]
        """
        return self._body("if_", condition, lambda *made: Branch(*made[:2]))

    @contextlib.contextmanager
    def _body(
        self, name: str, condition: Any, make: Callable[..., Loop | Branch]
    ) -> Iterator[None]:
        if not self._is_capturing:
            raise LaunchError(f"{name} is for captures: use it in `with graph.capture():`")
        found = self._condition(name, condition)
        lazy.arrays.compute_pending(self.device)  # pending from before the body
        self._cut()
        self._levels.append([])
        stream, pool = self.device.default_stream, self.device.pool
        try:
            with (
                noting_used(stream) as used,
                pool.noting_taken() as taken,
                lazy.arrays.carrying(self.device, name),
            ):
                yield
        except BaseException:
            self._unfinished = name
            raise
        carried = [buffer for buffer in used.written if buffer not in set(taken)]
        self._cut()
        made = make(found, self._levels.pop(), carried)
        if isinstance(made, Loop) and made.limit is None and found.buffer not in used.written:
            self._unfinished = name
            raise LaunchError(
                "nothing in the body of while_ writes the condition, so the loop would not end: "
                "write to the array that was given (flag[...] = x > 0), or give a limit"
            )
        self._levels[-1].append(made)

    def _condition(self, name: str, value: Any) -> Condition:
        array = as_array(value)
        if array is None:
            raise TypeError(
                f"the condition of {name} is an array on the device, since it is read at each "
                f"replay, not {type(value).__name__}"
            )
        if array.device is not self.device:
            raise LaunchError(
                f"the condition of {name} is on {array.device.id}, and the graph is of "
                f"{self.device.id}: copy it there first"
            )
        if array.size != 1:
            raise ShapeError(
                f"the condition of {name} is one element, not {array.size} (shape {array.shape}): "
                "use x.any() or x.all(), written to an array of one element"
            )
        if not isinstance(array.dtype, DType):
            raise DtypeError(f"the condition of {name} is a number, not {array.dtype}")
        self._used.append(array)
        self._conditions.append(array.buffer)
        return Condition(array.buffer, array.offset * array.dtype.itemsize, array.dtype)

    def _cut(self) -> None:
        """End the present recording, and begin the next one."""
        handle = self.device.default_stream.handle
        is_empty = handle.recorded == 0
        recording = handle.end_capture()
        handle.begin_capture()
        self._note(recording, is_empty)

    def _note(self, recording: base.Recording, is_empty: bool) -> None:
        first, self._first_used = self._first_used, len(self._used)
        if is_empty:
            recording.release()
        else:
            self._levels[-1].append(Work(recording, self._used[first:]))

    def begin(self) -> None:
        """Start recording, where `with` cannot be used. `end` must follow."""
        if self.device.is_capturing:
            raise LaunchError(
                f"a graph of {self.device.id} is being captured already: end that capture first"
            )
        self.release()
        lazy.arrays.compute_pending(self.device)  # pending from before: not recorded
        self._begin()
        self._noting = NotingStream(self.device.default_stream)

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
        if self._noting is not None:
            self._noting.remove()
            self._memory, self._noting = self._noting.used, None
        pool.stop_diverting(self._kept)
        stream.capturing = None
        self._foreign_streams = list(stream.foreign_streams)
        stream.foreign_streams.clear()
        recording = stream.handle.end_capture()
        levels, self._levels = self._levels, []
        if not finished:
            recording.release()
            for each in recordings_of([item for level in levels for item in level]):
                each.release()
            self._used.clear()
            pool.free_all(self._kept)
        elif not any(levels):
            self._recording = recording
        else:
            self._decides = True
            items = [*levels[0], Work(recording, self._used[self._first_used :])]
            self._recording = self.device.handle.compose(items)
            if self._recording is None:
                self._decided = DecidedReplay(self.device, items, self._replay)

    def replay(self, stream: Stream | None = None) -> None:
        """Run the captured work. Does not wait for it, except where the host reads the conditions
        of `while_` and `if_` (on all devices but CUDA's): then until the last one is read."""
        stream = stream or self.device.default_stream
        recording = self._recording
        is_plain = stream.capturing is None and stream.interrupt is None
        if (
            recording is not None
            and is_plain
            and not self._foreign_streams
            and (profiler.active is None)
        ):  # the usual case, where each step of Python counts
            if self._arrays is not None:
                self._arrays.prepare()
            recording.replay(stream.handle)
            return
        with self._replaying(stream):
            if self._decided is not None:
                self._decided.run(stream)
            else:
                self._replay(Work(self.captured, self._used), stream)

    async def replay_async(self, stream: Stream | None = None) -> None:
        """`replay`, awaiting instead of blocking. Until it has ended, nothing else is to write the
        arrays that the graph uses."""
        stream = stream or self.device.default_stream
        with self._replaying(stream):
            if self._decided is not None:
                await self._decided.run_async(stream)
            else:
                self._replay(Work(self.captured, self._used), stream)

    @contextlib.contextmanager
    def _replaying(self, stream: Stream) -> Iterator[None]:
        if self._decided is None:
            _ = self.captured
        if self._decides and stream.capturing is not None and stream.interrupt is None:
            raise LaunchError(
                "a graph with while_ or if_ cannot be replayed into another capture: record its "
                "work there"
            )
        if stream.interrupt is not None:
            stream.interrupt("a graph is replayed")
        if self._arrays is not None:
            self._arrays.prepare()
        if stream.capturing is not None:
            note_used(stream, self._memory)
        if not self._foreign_streams:
            yield
            return
        order = Order(stream)
        for library, theirs in self._foreign_streams:
            order.include(library, theirs, None)
        with order:
            yield

    def _replay(self, work: Work, stream: Stream) -> None:
        if (active := profiler.active) is None:
            work.recording.replay(stream.handle)
        else:
            launches = [used for used in work.launches if isinstance(used, LaunchRecord)]
            active.replay(stream.handle, work.recording, launches)

    def release(self) -> None:
        """Drop the recording and the arrays that it keeps alive."""
        if self._recording is not None:
            self._recording.release()
            self._recording = None
        if self._decided is not None:
            self._decided.release()
            self._decided = None
        self._decides = False
        self._arrays = None
        self._used.clear()
        self._first_used = 0
        if self._pool is not None:
            self._pool.free_all(self._kept)
            self._pool = None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.release()
