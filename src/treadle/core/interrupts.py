"""Ctrl-C: long calls of C code that it interrupts, and short sections of code that it does not.

Python handles a signal between two of its own instructions, in the main thread. While that thread
is in a compiler written in C, for seconds or minutes, no signal is handled. So another thread makes
the call, and the main thread waits, which can be interrupted. The call then runs on to its end, and
its result is dropped. A process that ends before the call skips the destructors of C++: they would
free what the compiler still uses.
"""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from treadle.core import forks

Result = TypeVar("Result")

_STACK_BYTES = 64 << 20  # compilers recurse; only what is touched takes memory
_WAKE_SECONDS = 0.2  # where a wait itself cannot be interrupted (Windows)
_starting = forks.lock()
_abandoned: list[threading.Thread] = []


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
    try:
        while not made.done.wait(_WAKE_SECONDS):
            pass
    except BaseException:  # an interrupt
        if not _abandoned:
            atexit.register(_before_exit)
        _abandoned.append(thread)
        raise
    if made.error is not None:
        try:
            raise made.error
        finally:
            made.error = None  # which has this frame in its traceback
    result: Result = made.result
    return result


def _before_exit() -> None:
    """Let the process end while C code still runs in another thread."""
    if not any(thread.is_alive() for thread in _abandoned):
        return
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "on_exit"):  # GNU's: functions that exit() calls with the status
        libc.on_exit(libc._exit, None)  # type: ignore[union-attr]
        return
    for thread in _abandoned:
        thread.join()


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
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._defer)

    def _defer(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            if self._arguments is not None:
                self._handler(*self._arguments)
