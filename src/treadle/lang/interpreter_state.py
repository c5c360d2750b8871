"""The interpreter's state of this Python thread: whether launches are interpreted, and which runs.

It is apart from the interpreter, so that `import treadle` does not load that.
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
        """Call a device function."""

    def builtin(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call one of td's functions, or read one of its built-in variables."""


class State(threading.local):
    """The state of one Python thread."""

    active: int = 0
    run: Running | None = None
    thread: Any = None  # the kernel's running thread (interpreter.threads.ThreadState), or None


state = State()


@contextmanager
def interpret() -> Iterator[None]:
    """Launches inside this block run as plain Python, on arrays of any device.

    Reads outside an array give 0 and writes there are dropped, as on a device; `print`, `pdb` and
    `assert` work. A kernel with barriers runs a Python thread for each thread of a block.
    """
    state.active += 1
    try:
        yield
    finally:
        state.active -= 1


def current_run() -> Running | None:
    """The launch that this Python thread is interpreting, or None."""
    return state.run if state.thread is not None else None
