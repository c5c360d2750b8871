"""An operation that has been started, and how to wait for it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from treadle.distributed.request import Request


class HostMemory(NamedTuple):
    """Bytes of the host, as a NumPy array, and what keeps them."""

    bytes: Any
    owner: Any


class Operation:
    """An operation and the memory that it uses until it has ended. A backend calls `end`, in any
    thread."""

    __slots__ = ("_ended", "error", "given", "number", "request", "result", "wanted")

    def __init__(self, request: Request, number: int, given: Any, result: Any) -> None:
        self.request = request
        self.number = number
        self.given = given
        self.result = result
        self.error: BaseException | None = None
        self.wanted = False  # whether something waits for it
        self._ended = threading.Event()

    @property
    def is_ended(self) -> bool:
        """Whether its result is there, or it has failed."""
        return self._ended.is_set()

    def end(self, error: BaseException | None = None) -> None:
        """Note that it is over, and let go of its memory."""
        self.error = error
        self.given = self.result = None
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it has ended."""
        self.wanted = True
        return self._ended.wait(seconds)

    def __str__(self) -> str:
        number = "" if self.request.is_between_two else f" number {self.number}"
        return f"{self.request}{number}"
