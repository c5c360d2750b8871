"""The active profile, as those see it who tell it what they do.

While a profile is active (`profile.session`), each stream's driver is wrapped in one that notes
what passes through it. Where more is known than a driver receives, the launch path looks at
`active` and says so: without a profile, that look is all that it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers import base
    from treadle.runtime.launched import Launched


class Profiler(Protocol):
    """What receives reports of work. A `stream` is what the driver's stream is wrapped in."""

    def launch(
        self,
        stream: base.Stream,
        kernel: base.CompiledKernel,
        grid: Dim3,
        buffers: Sequence[base.Buffer],
        parameters: bytes,
        launched: Launched,
    ) -> None:
        """Launch, with a note."""

    def replay(
        self, stream: base.Stream, recording: base.Recording, launches: Sequence[Launched]
    ) -> None:
        """Replay, with a note."""

    def copy_across(
        self, stream: base.Stream, copy: Callable[..., bool], places: tuple[Any, ...]
    ) -> bool:
        """Copy from another device, with a note if that can be; `stream` is the target's."""

    def note_compilation(self, kernel: str, how: str, device: str, began: float) -> None:
        """A kernel was built, or loaded."""

    def note_memory(self, device: str, used: int) -> None:
        """The arrays of a device have so many bytes now. Finalizers call this too: no locks."""


active: Profiler | None = None  # at most one, of the whole process


def begin(profiler: Profiler) -> None:
    """Tell this one from here on."""
    global active
    active = profiler


def end() -> None:
    """Tell none."""
    global active
    active = None
