"""Whether launches on this Python thread are interpreted, and what is being interpreted.

Apart from the interpreter itself, so that `import treadle` does not load that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Protocol

from treadle.lang.source import Source


class Running(Protocol):
    """A launch that is being interpreted (`interpreter.Run`)."""

    def call(
        self,
        function: FunctionType,
        source: Source,
        arguments: Sequence[Any],
        keywords: dict[str, Any],
    ) -> Any:
        """A device function."""

    def builtin(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """One of td's own functions or places."""


class State(threading.local):
    """What this Python thread interprets."""

    active: int = 0
    run: Running | None = None
    thread: Any = None  # the thread of the kernel, if one runs (interpreter.threads.ThreadState)


state = State()


@contextmanager
def interpret() -> Iterator[None]:
    """Launches inside this block run as plain Python, on arrays of any device.

    Reads outside an array give 0 and writes there are dropped, as on a device; `print`, `pdb` and
    `assert` work; a kernel with barriers gets a Python thread for each of its block's threads.
    """
    state.active += 1
    try:
        yield
    finally:
        state.active -= 1


def current_run() -> Running | None:
    """The launch that this Python thread is interpreting, or None."""
    return state.run if state.thread is not None else None
