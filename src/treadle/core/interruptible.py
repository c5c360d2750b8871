"""Long calls of C code that Ctrl-C does not have to wait for.

Python hears an interrupt between two of its own instructions, in the main thread. While that thread
is in a compiler written in C, for seconds or minutes, nothing is heard. So the call is made by
another thread, and the main thread waits, which can be interrupted. What was called then goes on
until it ends, and what it gives is dropped.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from treadle.core import forks

Result = TypeVar("Result")

_STACK_BYTES = 64 << 20  # compilers recurse; only what is touched takes memory
_WAKE_SECONDS = 0.2  # where a wait itself cannot be interrupted (Windows)
_starting = forks.lock()


def interruptibly(call: Callable[[], Result]) -> Result:
    """What a function gives, or raises. It takes a thread's start longer than the function."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "emscripten":
        return call()
    made = _Call(contextvars.copy_context(), call)
    with _starting:
        size = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=made.run, name="treadle-compile", daemon=True)
            thread.start()
        finally:
            threading.stack_size(size)
    while not made.done.wait(_WAKE_SECONDS):
        pass
    if made.error is not None:
        try:
            raise made.error
        finally:
            made.error = None  # which has this frame in its traceback
    result: Result = made.result
    return result


class _Call:
    """A call, and what came of it."""

    def __init__(self, context: contextvars.Context, call: Callable[[], Any]) -> None:
        self._context = context
        self._call = call
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001  it is raised where the call was asked for
            self.error = error
        self.done.set()
