"""Whether launches on this Python thread are interpreted, and what is being interpreted.

Apart from the interpreter itself, so that `import treadle` does not load that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from treadle.lang import builtins as names

if TYPE_CHECKING:
    from treadle.lang.interpreter import Run
    from treadle.lang.interpreter.threads import ThreadState


class State(threading.local):
    """What this Python thread interprets."""

    active: int = 0
    run: Run | None = None
    thread: ThreadState | None = None


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


def current_run() -> Run | None:
    """The launch that this Python thread is interpreting, or None."""
    return state.run if state.thread is not None else None


def _builtin_runner() -> Callable[..., Any] | None:
    thread = state.thread
    if thread is None:
        return None
    from treadle.lang.interpreter.functions import run_builtin

    return lambda target, arguments, keywords: run_builtin(thread, target, arguments, keywords)


names.set_interpreter(_builtin_runner)
