"""What ran, when, and for how long: `td.profile()`.

While a profile is active, each stream's driver is wrapped in one that notes what passes through it
(`watch.py`); where more is known than a driver is told, the launch path looks at `active` and says
so. Without a profile that look is all it costs. This package is imported by the launch path, so it
imports nothing itself.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from treadle.core import forks

if TYPE_CHECKING:
    from treadle.runtime.profile.session import Profile
    from treadle.runtime.streams import Stream

active: Profile | None = None  # at most one, of the whole process
lock = forks.lock()  # held while a profile begins or ends, or a stream is made
streams: weakref.WeakSet[Stream] = weakref.WeakSet()  # all there are


def opened(stream: Stream) -> None:
    """A stream was made: an active profile watches it too."""
    with lock:
        streams.add(stream)
        if active is not None:
            active.watch(stream)
