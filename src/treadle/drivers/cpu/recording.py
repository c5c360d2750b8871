"""Replays of recorded work, by all threads together.

The first replay runs and measures each operation. From then on a loop in machine code goes through
the calls (`native`), and other threads help with those that take more than a few microseconds. To
wake a thread takes longer than most launches, so they are woken once for many calls, and spin
between these.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from treadle.core import forks
from treadle.core.dim3 import Dim3
from treadle.drivers import base
from treadle.drivers.cpu import launches, native, workers
from treadle.drivers.cpu.launches import Call, HostCall, check_grid, run_call, words_of
from treadle.drivers.host_streams import clock

# A call from so much on has the help of threads that spin already.
_TOGETHER_SECONDS = 4e-6
_PYTHON_SECONDS = 2e-6  # of a call that was measured by itself
_CHUNK_SECONDS = 1.5e-6  # what a thread takes at least
_HELPER_SECONDS = 8e-6  # of the longest call, for each helper
_LONGEST = 20e-3  # in machine code, where Python hears no interrupt
_IDLE = 0.3e-3  # until helpers are woken again; they spin longer than that
# After so many waits for helpers in a replay that have no processor, short calls are not shared in
# the next ones: in four, and in twice as many each time that it has not become better.
_MOST_STALLS = 2
_FEWEST_UNSHARED, _MOST_UNSHARED = 4, 64


class _Step(NamedTuple):
    """Calls that are replayed by one call of machine code: where their words are, how many they
    are, and how many threads help."""

    start: int
    calls: int
    helpers: int


class Recording(base.Recording):
    """Captured work."""

    def __init__(self, calls: list[Call | HostCall]) -> None:
        self._calls = calls
        self._seconds: list[float] = []  # that a block of each call took; empty before
        self._steps: list[HostCall | _Step] = []
        # Parameters and grids of calls that have changed.
        self._changed: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._words = (ctypes.c_uint64 * 0)()
        self._team = (ctypes.c_int64 * native.TEAM_WORDS)()
        self._leading = forks.lock()
        self._threads = 1
        self._unshared = 0  # replays until short calls are shared again
        self._patience = _FEWEST_UNSHARED

    def replay(self, stream: base.Stream) -> None:
        """Run everything again, in order."""
        stream.device.check_open()  # type: ignore[attr-defined]
        if stream.record_again(self._calls):  # type: ignore[attr-defined]
            return
        if not self._seconds:
            self._threads = stream.device.threads
            self._measure()
            return
        loop, stalls = native.replay(), 0
        is_busy = self._unshared > 0
        self._team[native.SHARED_FROM] = native.LONG if is_busy else native.SHORT
        for step in self._steps:
            if isinstance(step, HostCall):
                step.work()
            elif step.helpers and self._leading.acquire(blocking=False):
                try:
                    stalls += workers.lead(
                        step.start, step.calls, self._team, step.helpers, self._words
                    )
                finally:
                    self._leading.release()
            else:  # or another thread replays the same work
                loop(step.start, step.calls)
        if is_busy:
            self._unshared -= 1
        elif stalls > _MOST_STALLS:
            self._unshared = self._patience
            self._patience = min(2 * self._patience, _MOST_UNSHARED)
        else:
            self._patience = _FEWEST_UNSHARED

    def _measure(self) -> None:
        """Run all calls by themselves."""
        found: list[float] = []
        for call in self._calls:
            began = clock()
            run_call(call)
            taken = clock() - began - _PYTHON_SECONDS
            blocks = 1 if isinstance(call, HostCall) else max(call.last, 1)
            found.append(max(taken, 1e-7) / blocks)
        self._seconds = found
        self._prepare()

    def _sharing(self, place: int) -> tuple[int, int]:
        """The fewest blocks of a call that a thread takes, and its weight."""
        call, seconds = self._calls[place], self._seconds[place]
        if isinstance(call, HostCall) or call.kernel is None or self._threads == 1:
            return 1, native.SINGLE
        least, taken = max(int(_CHUNK_SECONDS / seconds), 1), call.last * seconds
        if taken <= _TOGETHER_SECONDS or call.last <= least:
            return least, native.SINGLE
        return least, native.LONG if taken > launches.SHARED_SECONDS else native.SHORT

    def _prepare(self) -> None:
        """Lay the calls out as words, one after the other, and divide them into steps."""
        calls = self._calls
        self._words = (ctypes.c_uint64 * (len(calls) * native.CALL_WORDS))()
        self._changed = {}
        self._steps = []
        start, serial, total, shared, longest = 0, 0.0, 0.0, 0.0, 0.0

        def end(place: int) -> None:
            nonlocal start, serial, total, shared, longest
            if place > start:
                helpers = 0
                if shared > launches.SHARED_SECONDS:
                    helpers = min(self._threads - 1, int(longest / _HELPER_SECONDS) + 1)
                address = ctypes.addressof(self._words) + start * native.CALL_WORDS * 8
                self._steps.append(_Step(address, place - start, helpers))
            start, serial, total, shared, longest = place, 0.0, 0.0, 0.0, 0.0

        for place, call in enumerate(calls):
            if isinstance(call, HostCall):
                end(place)
                self._steps.append(call)
                start = place + 1
                continue
            least, weight = self._sharing(place)
            taken = call.last * self._seconds[place]
            if total > _LONGEST or (weight and serial > _IDLE):
                end(place)
            at = place * native.CALL_WORDS
            self._words[at : at + native.CALL_WORDS] = [*words_of(call, least, weight)]
            total += taken
            if weight:
                serial, shared, longest = 0.0, shared + taken, max(longest, taken)
            else:
                serial += taken
        end(len(calls))
        self._team[native.PARTS] = 2 * self._threads

    def change(
        self, place: int, kernel: base.CompiledKernel, grid: Dim3, parameters: bytes
    ) -> None:
        """Give a launch another grid and other parameters."""
        known = kernel.grids.get(grid)  # type: ignore[attr-defined]
        packed, blocks = known if known is not None else check_grid(kernel, grid)
        old = self._calls[place]
        assert type(old) is Call
        was_shared = bool(self._seconds) and self._sharing(place)[1] > 0
        self._calls[place] = Call(
            old.entry, old.bindings, parameters, packed, blocks, old.kernel, old.keep
        )
        if not self._seconds:
            return
        if (self._sharing(place)[1] > 0) != was_shared:
            self._prepare()
        else:
            self._write(place, parameters, packed, blocks)

    def _write(self, place: int, parameters: bytes, grid: bytes, blocks: int) -> None:
        """Write a call's words, which from here on name memory that is written again."""
        at = place * native.CALL_WORDS
        memory = self._changed.get(place)
        if memory is None:
            memory = ctypes.create_string_buffer(len(parameters) + len(grid))
            self._changed[place] = memory
            address = ctypes.addressof(memory)
            self._words[at + 2], self._words[at + 3] = address, address + len(parameters)
        memory.raw = parameters + grid
        self._words[at + 5 : at + 8] = [blocks, *self._sharing(place)]

    def release(self) -> None:
        """Let go of buffers and kernels."""
        self._calls, self._steps, self._seconds = [], [], [0.0]
