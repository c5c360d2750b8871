"""How this process ends: what the store and the other ranks hear of it.

`treadle launch` runs the script within `worker.py`, which is connected to the store before the
script begins. Under other launchers `init` connects, and Python's hook for exceptions that end a
program says whether it has failed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType

from treadle.core import forks
from treadle.distributed.client import Client
from treadle.distributed.store import Progress

# The connection of `worker.py`, for `init`.
client: Client | None = None
# Why this process fails; "" as long as it does not.
failure = ""
# Whether a function given to `watch` tells the store of this process's end.
is_watched = False
# Whether this process ends: a signal then has nothing to interrupt but that.
is_ending = False
# What ended ranks are given to: the group, once there is one.
listeners: list[Callable[[Progress | None], None]] = []
_ended: list[Progress | None] = []
_lock = forks.lock()


def heard(progress: Progress | None) -> None:
    """A rank has ended; None: the store has."""
    with _lock:
        _ended.append(progress)
        found = [*listeners]
    for each in found:
        each(progress)


def listen(listener: Callable[[Progress | None], None]) -> None:
    """Give a function the ranks that have ended, and that will."""
    with _lock:
        listeners.append(listener)
        before = [*_ended]
    for each in before:
        listener(each)


def fail(reason: str) -> None:
    """Note why this process fails. The first reason counts."""
    global failure
    failure = failure or reason


def watch(close: Callable[[], None]) -> None:
    """Call a function when the process ends, after an exception is noted that ends it."""
    global is_watched
    is_watched = True
    before = sys.excepthook

    def noted(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        fail(described(error))
        before(kind, error, where)

    sys.excepthook = noted
    atexit.register(close)


def described(error: BaseException) -> str:
    """An exception in one line, with its place in the user's program, and the notes on it."""
    # A rank is connected before it needs arrays, which take a while to import.
    from treadle.tensor.compiled.code_origin import is_package_file

    frames = traceback.extract_tb(error.__traceback__)
    users = [
        each
        for each in frames
        if not (each.filename.startswith("<frozen") or is_package_file(each.filename))
    ]
    places = [f"{os.path.basename(users[-1].filename)}, line {users[-1].lineno}"] if users else []
    places += getattr(error, "__notes__", ())
    line = f" ({'; '.join(places)})" if places else ""
    words = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}{': ' if words else ''}{words}{line}"


def leave(status: int) -> None:
    """End the process at once."""
    for stream in (sys.stdout, sys.stderr):
        # A signal may have come while something was printed.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            stream.flush()
    os._exit(status)
