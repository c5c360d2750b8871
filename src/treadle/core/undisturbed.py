"""Short stretches of code that Ctrl-C does not divide."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any


class Undisturbed:
    """Within the block an interrupt is only noted; it is raised at its end.

    For what must happen as a whole: a command that is appended and submitted, memory that is handed
    over. There is no waiting within it.
    """

    __slots__ = ("_handler", "_heard")

    def __enter__(self) -> None:
        self._handler: Callable[..., Any] | None = None
        self._heard: tuple[Any, ...] | None = None
        if threading.current_thread() is not threading.main_thread():
            return  # Python interrupts the main thread alone
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._hear)

    def _hear(self, *arguments: Any) -> None:
        self._heard = arguments

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._heard is not None:
                self._handler(*self._heard)
