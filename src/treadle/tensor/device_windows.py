"""`x[n : n + 3]` with an integer on the device: a window of three elements, wherever it begins.

NumPy would need the value of `n`, since a slice that reaches over an end is shorter. A window has
as many elements always: those outside the axis are 0 where they are read and dropped where they are
written, as single indices on the device are.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.sizes import Size
from treadle.graph.origins import origin_of
from treadle.graph.placeholders import within

PLAIN_BOUNDS = frozenset({type(None), int, Size})  # with which a slice is not a window


@dataclass(frozen=True, slots=True)
class Window:
    """The elements `start`, `start + step`, … of an axis: so many. The start is an integer on a
    device, which counts from the end if it is negative."""

    start: Any  # a Tensor
    count: int
    step: int
    axis: int = 0  # of the plan's view
    extent: int = 0  # of the axis

    def begin_inside(self) -> int | None:
        """The position at which it begins, where reading that costs next to nothing: in the host's
        memory. None elsewhere, and for a window that reaches outside its axis."""
        device = self.start.device
        recorded = device.default_stream.capturing is not None
        if recorded or not device.traits.host_memory or within.get() is not None:
            return None
        place = int(self.start.item())
        place += self.extent if place < 0 else 0
        is_inside = place >= 0 and place + (self.count - 1) * self.step < self.extent
        return place if is_inside else None

    def check(self, start: int) -> None:
        """IndexError if the window reaches outside its axis."""
        first = start + self.extent if start < 0 else start
        last = first + (self.count - 1) * self.step
        if first < 0 or last >= self.extent:
            raise IndexError(
                f"a window of {self.count} elements that begins at {start} reaches outside its "
                f"axis, which has {self.extent}"
            )


def window_of(part: slice) -> Window | slice:
    """A slice as a window, if its bounds are one integer on a device and a number apart; else the
    slice, whose bounds have to be read."""
    start, stop = part.start, part.stop
    if not (_is_on_device(start) and _is_on_device(stop) and start.device is stop.device):
        return part
    step = 1 if part.step is None else operator.index(part.step)
    recorded = start.device.default_stream.capturing is not None and within.get() is None
    first, last = origin_of(start._node, recorded), origin_of(stop._node, recorded)
    if first[:2] != last[:2] or step <= 0:
        return part
    length = last.added - first.added
    count = (length - 1) // step + 1 if length > 0 else 0
    return Window(start, count, step) if count else slice(0, 0)


def _is_on_device(bound: Any) -> bool:
    """Whether a bound is a tensor of one integer, whose value is not known here."""
    return (
        not isinstance(bound, (np.ndarray, np.generic))
        and hasattr(bound, "_node")
        and not bound.shape
        and isinstance(bound.dtype, DType)
        and bound.dtype.kind in ("int", "uint")
    )
