"""An operation that has been started, and how to wait for it."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from treadle.distributed.request import Request
from treadle.runtime import profiler

KIND = "communication"  # of tracks in a profile


class HostMemory(NamedTuple):
    """Bytes of the host, as a NumPy array, and what keeps them."""

    bytes: Any
    owner: Any


class Operation:
    """An operation and the memory that it uses until it has ended. A backend calls `end`, in any
    thread."""

    __slots__ = (
        "_signal",
        "began",
        "error",
        "given",
        "is_ended",
        "number",
        "request",
        "result",
        "wanted",
    )

    def __init__(self, request: Request, number: int, given: Any, result: Any) -> None:
        self.request = request
        self.number = number
        self.given = given
        self.result = result
        self.error: BaseException | None = None
        self.began: tuple[float, str] | None = None  # when, and its track in the active profile
        self.wanted = False  # whether something waits for it
        self.is_ended = False  # whether its result is there, or it has failed
        self._signal: threading.Event | None = None  # of what waits for it

    def end(self, error: BaseException | None = None) -> None:
        """Note that it is over, and let go of its memory."""
        self.error = error
        profile = profiler.active
        if self.began is not None and profile is not None:
            began, track = self.began
            profile.note_event(track, str(self.request), began, KIND, number=self.number)
        self.given = self.result = None
        self.is_ended = True
        if self._signal is not None:
            self._signal.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it has ended."""
        self.wanted = True
        if self.is_ended:
            return True
        signal = self._signal
        if signal is None:
            signal = self._signal = threading.Event()
        # It may have ended before there was a signal.
        return self.is_ended or signal.wait(seconds)

    def __str__(self) -> str:
        request = self.request
        if request.is_between_two:
            return str(request)
        among = "" if request.members is None else f" among {request.members}"
        number = f" number {self.number}" if self.number else ", which is recorded,"
        return f"{request}{number}{among}"
