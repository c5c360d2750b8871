"""Whether functions look at values that they are given, as indices, before they use them.

On a device that is not the host this would wait for it: treadle reads 0 outside an array instead,
and looks under TREADLE_CHECK=1 alone. An interface whose users expect errors has functions look
where it costs little: at tensors in the host's memory.
"""

from __future__ import annotations

from contextvars import ContextVar

from treadle.graph.placeholders import within
from treadle.runtime import settings
from treadle.runtime.devices import Device

_in_host_memory: ContextVar[bool] = ContextVar("in_host_memory", default=False)


def looked_at(device: Device) -> bool:
    """Whether values on a device are looked at."""
    if settings.check:
        return True
    return _in_host_memory.get() and device.traits.host_memory and within.get() is None


class in_host_memory:
    """Within it values in the host's memory are looked at."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _in_host_memory.set(True)

    def __exit__(self, *exception: object) -> None:
        _in_host_memory.reset(self._before)
