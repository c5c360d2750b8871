"""The interface of the active profile for modules that report work to it.

While a profile is active (`profile.session`), each driver stream is wrapped in one that records its
calls. What a driver does not receive, the launch path reports to `active`. Without a profile the
only cost is the test of that name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers import base
    from treadle.runtime.launch_records import LaunchRecord


class Profiler(Protocol):
    """Receives reports of work. A `stream` here is the wrapper of the driver's stream."""

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

    def replay(
        self, stream: base.Stream, recording: base.Recording, launches: Sequence[LaunchRecord]
    ) -> None:
        """Replay, and record it."""

    def copy_across(
        self, stream: base.Stream, copy: Callable[..., bool], places: tuple[Any, ...]
    ) -> bool:
        """Copy from another device, and record it if the copy succeeds; `stream` is the
        target's."""

    def note_compilation(self, kernel: str, how: str, device: str, began: float) -> None:
        """A kernel was built, or loaded."""

    def note_memory(self, device: str, used: int) -> None:
        """The arrays of a device use `used` bytes now. Finalizers call this too: it takes no
        locks."""

    def note_event(
        self, track: str, name: str, began: float | None, kind: str = "actors", **facts: Any
    ) -> None:
        """What happened to something with a track of its own in the trace, among others of its
        kind: at this moment, or since a time of `clock`."""


clock = time.perf_counter  # of all times in a profile
# Called where a profile begins and ends: what works by itself for long reports what it has done.
settlers: set[Callable[[], None]] = set()
active: Profiler | None = None  # at most one in the process


def begin(profiler: Profiler) -> None:
    """Make this the active profile."""
    global active
    active = profiler


def settle() -> None:
    """Have all that work by themselves report what they have done."""
    for each in tuple(settlers):
        each()


def end() -> None:
    """Have no active profile."""
    global active
    active = None
