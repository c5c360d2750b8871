"""Seconds of launches on the device's own clock.

Launches are recorded as a graph and replayed between two events, so that the host's time for each
is not in what is measured. Several candidates are measured by interleaved batches: a device's clock
rate and other load change with time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from treadle.runtime.devices import Device
from treadle.runtime.events import Event
from treadle.runtime.graphs import Graph

Run = Callable[[int], None]  # a launch, on a set of arrays

_BATCH = 2e-3  # seconds of launches between two events
_MOST = 64  # launches in a graph


class Batch:
    """Launches of a candidate, ready to be timed."""

    def __init__(self, device: Device, run: Run, sets: int) -> None:
        self._device = device
        self._graph = self._recorded(run, [at % sets for at in range(max(sets, 2))])
        self._count = max(sets, 2)
        once = min(self.seconds(), self.seconds())
        count = min(max(int(_BATCH / max(once, 1e-9)), 1), _MOST)
        if count > self._count:
            self._graph = self._recorded(run, [at % sets for at in range(count)])
            self._count = count

    def _recorded(self, run: Run, numbers: Sequence[int]) -> Graph:
        graph = Graph(self._device)
        with graph.capture():
            for number in numbers:
                run(number)
        return graph

    def seconds(self) -> float:
        """The seconds of a launch, the mean of a batch."""
        stream = self._device.default_stream
        start, end = Event(), Event()
        start.record(stream)
        self._graph.replay()
        end.record(stream)
        return start.elapsed(end) / self._count


def least(batch: Batch, rounds: int) -> float:
    """The seconds of the fastest of some batches."""
    return min(batch.seconds() for _ in range(rounds))


def medians(batches: Sequence[Batch], rounds: int) -> list[float]:
    """The median seconds of each, by interleaved batches."""
    times = [[batch.seconds() for batch in batches] for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*times, strict=True)]
