"""Ctrl-C: short sections of code that it does not interrupt."""

from __future__ import annotations

# Not `signal`, which makes enums of what it gives: that takes longer than the rest.
import _signal  # type: ignore[import-not-found]
import threading
from collections.abc import Callable
from typing import Any

_SIGINT = int(_signal.SIGINT)


class Uninterruptible:
    """A context that defers SIGINT to its end.

    It is for steps that must all happen or none: append a command and submit it, move memory from
    one owner to another. The code inside must not wait.
    """

    __slots__ = ("_arguments", "_handler")

    def __enter__(self) -> None:
        self._handler: Callable[..., Any] | None = None
        self._arguments: tuple[Any, ...] | None = None
        if threading.current_thread() is not threading.main_thread():
            return  # Python runs signal handlers in the main thread only
        handler = _signal.getsignal(_SIGINT)
        if callable(handler):
            self._handler = handler
            _signal.signal(_SIGINT, self._defer)

    def _defer(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            _signal.signal(_SIGINT, self._handler)
            if self._arguments is not None:
                self._handler(*self._arguments)
