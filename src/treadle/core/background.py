"""Calls of compilers, which are C code, in worker threads beside Python.

Compilers release the interpreter lock, so several run at the same time, on all processors, while
Python goes on: who needs a result waits for that one call only. The wait can be interrupted, which
a call of C code in the main thread could not: Python hears a signal between two of its own
instructions, in the main thread. An interrupted wait leaves the call running, and its result is
there for the next one who asks.

A process that forks waits until no call is running, and meanwhile starts only those that other
threads wait for, which have to finish what they do: the child has no worker threads, and what
compilers hold would stay half changed in it. Calls that were not begun yet are begun in the child
if it waits for them. A process that ends before a call does skips the
destructors of C++: they would free what the compiler still uses.
"""

from __future__ import annotations

import atexit
import contextvars
import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from treadle.core import forks
from treadle.core.environment import count
from treadle.core.errors import DeviceLost
from treadle.core.interrupts import Uninterruptible
from treadle.core.processors import usable_processors

Result = TypeVar("Result")

_MOST_WORKERS = 64
_STACK_BYTES = 64 << 20  # compilers recurse; only what is touched takes memory
_WAKE_SECONDS = 0.1  # how often a wait draws the notice, and is interruptible on Windows
_SLOW_SECONDS = 1.0  # after which there is a notice
_PAUSE_SECONDS = 1.0  # without a call, after which the next one is counted from the beginning
_LOST = (
    "this process was forked while a kernel was being compiled, which was lost: start workers with "
    "multiprocessing's 'spawn', or fork while no other thread computes"
)


class Raised(Exception):
    """A call failed, and its error was raised before."""


class Call(Generic[Result]):
    """A call that is made in a worker thread. `name` is what the notice says of it."""

    def __init__(self, function: Callable[[], Result], name: str) -> None:
        self.name = name
        self.ended = False
        self.is_awaited = False
        self.done = threading.Event()
        self._function: Callable[[], Result] | None = function
        self._context: contextvars.Context | None = contextvars.copy_context()
        self._result: Any = None
        self._error: BaseException | None = None
        self._failed = False

    def run(self) -> None:
        """Make the call."""
        function, context = self._function, self._context
        assert function is not None
        assert context is not None
        try:
            self._result = context.run(function)
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._error, self._failed = error, True
        self._end()

    def fail(self, error: BaseException) -> None:
        """End without having been made."""
        self._error, self._failed = error, True
        self._end()

    def _end(self) -> None:
        self._function = self._context = None  # and all that they refer to
        self.ended = True
        self.done.set()

    def wait(self) -> None:
        """Wait until the call was made."""
        if not self.ended:
            _workers.wait_for(self)

    def result(self) -> Result:
        """What the call gave or raised, once it did. An error is raised once, and after that
        `Raised`: it is not kept, since its traceback has the frames of those who waited."""
        self.wait()
        if self._failed:
            error, self._error = self._error, None
            try:
                raise error or Raised
            finally:
                del error
        result: Result = self._result
        return result


class _Workers:
    """The threads, and the calls that wait for one. A thread ends when nothing waits."""

    def __init__(self) -> None:
        self.lock = forks.lock()
        self.most = count("TREADLE_COMPILE_THREADS", _MOST_WORKERS, "as many as processors") or min(
            usable_processors(), _MOST_WORKERS
        )
        self.waiting: deque[Call[Any]] = deque()
        self.running: dict[threading.Thread, Call[Any] | None] = {}
        self.paused = 0  # by threads that fork
        self.ending = False  # the process is
        # For the notice: the calls since the last pause.
        self.asked = self.finished = 0
        self.began = self.last = 0.0

    def add(self, call: Call[Any]) -> None:
        """Have a call made when a thread is free."""
        with Uninterruptible(), self.lock:
            now = time.monotonic()
            if self.asked == self.finished and now - self.last > _PAUSE_SECONDS:
                self.asked = self.finished = 0
                self.began = now
            self.asked += 1
            self.waiting.append(call)
            self._start_threads()

    def _start_threads(self) -> None:
        """Start as many threads as there are calls for."""
        calls = sum(map(self._may_begin, self.waiting))
        for _ in range(min(self.most - len(self.running), calls)):
            size = threading.stack_size(_STACK_BYTES)
            try:
                thread = threading.Thread(target=self._work, name="treadle-compile", daemon=True)
                self.running[thread] = None
                thread.start()
            except RuntimeError:  # no further thread is possible, or Python ends
                del self.running[thread]
                return
            finally:
                threading.stack_size(size)

    def _may_begin(self, call: Call[Any]) -> bool:
        """Not so if the process ends, and if it forks only if a thread waits for it."""
        return not self.ending and (call.is_awaited or not self.paused)

    def _work(self) -> None:
        thread, busy = threading.current_thread(), forks.lock()
        while True:
            with self.lock:
                # Those that are waited for are the first ones.
                if not self.waiting or not self._may_begin(self.waiting[0]):
                    self.running.pop(thread, None)
                    return
                call = self.running[thread] = self.waiting.popleft()
                busy.acquire()  # until the call ends no process is forked
            try:
                call.run()
            finally:
                busy.release()
            self._count()

    def _count(self) -> None:
        with self.lock:
            self.finished += 1
            self.last = time.monotonic()

    def wait_for(self, call: Call[Any]) -> None:
        """Wait until a call is made, before all others that wait."""
        with Uninterruptible(), self.lock:
            here = False
            if call in self.waiting:
                self.waiting.remove(call)
                self.waiting.appendleft(call)
                call.is_awaited = True
                self._start_threads()
                here = self.ending or not self.running  # there are no threads
                if here:
                    self.waiting.popleft()
        if here:
            call.run()
            self._count()
            return
        try:
            while not call.done.wait(_WAKE_SECONDS):
                show_notice()
        finally:
            hide_notice()

    # ------------------------------------------------------------------ forks and the end

    def before_fork(self) -> None:
        with self.lock:
            self.paused += 1

    def after_fork_in_parent(self) -> None:
        with self.lock:
            self.paused -= 1
            self._start_threads()

    def in_child(self) -> None:
        lost = [call for call in self.running.values() if call is not None and not call.ended]
        self.running.clear()
        self.paused = 0
        for call in (*self.waiting, *lost):
            call.done = threading.Event()  # another thread may have been about to wait
        for call in lost:
            call.fail(DeviceLost(_LOST))
        self.asked = self.finished = 0

    def before_exit(self) -> None:
        """Let the process end while C code still runs in other threads."""
        with self.lock:
            self.ending = True
            threads = [thread for thread in self.running if thread.is_alive()]
        if not threads:
            return
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        if hasattr(libc, "on_exit"):  # GNU's: functions that exit() calls with the status
            libc.on_exit(libc._exit, None)  # type: ignore[union-attr]
            return
        for thread in threads:
            thread.join()


_workers = _Workers()
atexit.register(_workers.before_exit)
forks.around(_workers.before_fork, _workers.after_fork_in_parent)
forks.in_child(lambda half_changed: _workers.in_child())


def begin(call: Call[Any]) -> None:
    """Have a call made by a worker thread."""
    if has_threads():
        _workers.add(call)
    else:
        call.run()


def has_threads() -> bool:
    """Whether Python can start threads here: not in web pages."""
    return str(sys.platform) != "emscripten"  # a string, or type checkers take it for always true


# --- the notice ----------------------------------------------------------------------------------

_shown = ""
_without = 0  # how many parts of the program want none


@contextmanager
def without_notice() -> Iterator[None]:
    """No notice meanwhile: it would overwrite a line that is being written to the terminal."""
    global _without
    _without += 1
    hide_notice()
    try:
        yield
    finally:
        _without -= 1


def show_notice() -> None:
    """Tell a person at a terminal how many kernels are compiled, once that takes long."""
    global _shown
    workers = _workers
    if _without or workers.asked == workers.finished:
        return
    if time.monotonic() - workers.began < _SLOW_SECONDS:
        return
    if workers.asked == 1:
        names = [call.name for call in [*workers.running.values()] if call is not None]
        text = f"treadle: compiling kernel {names[0]}" if names else ""
    else:
        text = f"treadle: compiling {workers.asked} kernels, {workers.finished} done"
    if text and text != _shown and _at_a_terminal():
        _write(f"\r{text}" + " " * (len(_shown) - len(text)))
        _shown = text


def hide_notice() -> None:
    """Take the notice away: what the program writes next begins on a line of its own."""
    global _shown
    if _shown:
        _write("\r" + " " * len(_shown) + "\r")
        _shown = ""


def _at_a_terminal() -> bool:
    """Whether a person may be waiting: not where output goes to a file, a pipe or a notebook, into
    whose text the notice would be mixed."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, ValueError, OSError):  # it was closed meanwhile
        return
