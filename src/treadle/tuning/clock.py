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
_SLOW = 0.1  # seconds of a batch that is measured once
_ROUNDS = 7


class Batch:
    """Launches of a candidate, ready to be timed."""

    def __init__(self, device: Device, run: Run, sets: int) -> None:
        self._device = device
        self._count = max(sets, 1)
        self._graph = self._recorded(run, range(self._count))
        once = self.seconds()
        if once < _SLOW:
            once = min(once, self.seconds())
        count = min(max(int(_BATCH / max(once, 1e-9)), 1), _MOST)
        if count > self._count:
            self._graph = self._recorded(run, [at % max(sets, 1) for at in range(count)])
            self._count = count
        self.rounds = 1 if once * self._count > _SLOW else _ROUNDS
        """How often a batch is worth being measured again."""

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


def medians(batches: Sequence[Batch]) -> list[float]:
    """The median seconds of each, by interleaved batches."""
    rounds = min(batch.rounds for batch in batches)
    times = [[batch.seconds() for batch in batches] for _ in range(rounds)]
    return [statistics.median(each) for each in zip(*times, strict=True)]
