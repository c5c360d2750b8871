"""Kernels that stay on a device, and calls of its driver that wait for all that runs there."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from treadle.core import forks


class Residents:
    """The kernels that stay now. Each has a function that makes it end soon.

    What waits for everything on the device would wait for them: before such a call all of them are
    made to end, and none begins until it returns.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition(forks.lock())
        self.inside: set[Callable[[], None]] = set()
        self._closed = 0  # calls during which none may begin

    def enter(self, leave: Callable[[], None]) -> None:
        """One begins, as soon as it may. The caller holds no lock that a call of the driver's is
        made under."""
        with self._condition:
            while self._closed:
                self._condition.wait()
            self.inside.add(leave)

    def exit(self, leave: Callable[[], None]) -> None:
        """It has ended."""
        with self._condition:
            self.inside.discard(leave)
            self._condition.notify_all()

    @contextlib.contextmanager
    def parked(self, patience: float = 0.0) -> Iterator[None]:
        """Have all of them end, and none begin meanwhile. Those that are about to be launched end
        at once; the driver's call waits for their end by itself. With `patience`, in seconds, their
        end is waited for here: then the caller holds no lock that launches take."""
        with self._condition:
            self._closed += 1
            leaving = list(self.inside)
        try:
            for leave in leaving:
                leave()
            if patience:
                with self._condition:
                    self._condition.wait_for(lambda: not self.inside, patience)
            yield
        finally:
            with self._condition:
                self._closed -= 1
                self._condition.notify_all()
