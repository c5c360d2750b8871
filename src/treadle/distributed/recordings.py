"""What ranks tell each other through the host cannot be a part of a recording."""

from __future__ import annotations

from treadle.core.errors import LaunchError
from treadle.runtime.devices import streams


def end_recordings(what: str) -> None:
    """Called before the ranks tell each other something that a replay would not: what is recorded
    by `td.compile` ends here, so that the function's Python runs at each call. LaunchError where a
    graph is captured."""
    for stream in streams.all():
        if stream.interrupt is not None:
            stream.interrupt(what)
        elif stream.capturing is not None:
            raise LaunchError(
                f"{what}, which a replay of a graph would not do again: do it once before the "
                "capture, or outside of it"
            )
