"""`torch.multiprocessing`: Python's processes, and `spawn` for scripts that start their own ranks.

Tensors are not shared between processes. Children are begun anew ("spawn"), since a process that
was forked has none of the threads that compute.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import (
    Event,
    Lock,
    Manager,
    Process,
    Queue,
    SimpleQueue,
    Value,
    get_context,
    get_start_method,
    set_start_method,
)
from multiprocessing.connection import wait
from pathlib import Path
from signal import Signals
from typing import Any

__all__ = [
    "Event", "Lock", "Manager", "Process", "ProcessContext", "ProcessExitedException",
    "ProcessRaisedException", "Queue", "SimpleQueue", "SpawnContext", "Value", "get_context",
    "get_sharing_strategy", "get_start_method", "set_sharing_strategy", "set_start_method", "spawn",
    "start_processes",
]  # fmt: skip
_ENDING = 5.0  # seconds that processes have after they are asked to end


class ProcessException(Exception):
    """A process that has failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process whose function has raised an exception, with its traceback."""


class ProcessExitedException(ProcessException):
    """A process that has ended with a status other than 0, or by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def get_sharing_strategy() -> str:
    """How tensors are shared between processes: they are not, so the name means nothing."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Nothing: tensors are not shared between processes."""


class ProcessContext:
    """Processes that `spawn` has started."""

    def __init__(self, processes: Sequence[Any], errors: Sequence[Path], folder: Any) -> None:
        self.processes = [*processes]
        self._errors = errors
        self._folder = folder  # of the errors' files, and gone with this
        self._running = {each.sentinel: number for number, each in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' numbers."""
        return [each.pid for each in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process has ended; whether all have. If one has failed the others are ended,
        and its error is raised."""
        if not self._running:
            return True
        failed = None
        for sentinel in wait([*self._running], timeout):
            number = self._running.pop(sentinel)  # type: ignore[arg-type]
            self.processes[number].join()
            if self.processes[number].exitcode and failed is None:
                failed = number
        if failed is None:
            return not self._running
        # What has failed first says why: others fail since it is gone.
        wait([*self._running], _ENDING if grace_period is None else grace_period)
        _end(self.processes)
        raise self._error(self._first(failed))

    def _first(self, failed: int) -> int:
        written = [path for path in self._errors if path.stat().st_size]
        if not written or not self._errors[failed].stat().st_size:
            return failed
        return self._errors.index(min(written, key=lambda path: path.stat().st_mtime_ns))

    def _error(self, number: int) -> ProcessException:
        process, text = self.processes[number], self._errors[number].read_text()
        if text:
            return ProcessRaisedException(
                f"\n\n-- Process {number} terminated with the following error:\n{text}", number,
                process.pid,
            )  # fmt: skip
        code = process.exitcode
        how = f"signal {Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ProcessExitedException(
            f"process {number} terminated with {how}", number, process.pid, code
        )


SpawnContext = ProcessContext


def _end(processes: Sequence[Any]) -> None:
    """Ask what is left to end, and then do not."""
    for end in ("terminate", "kill"):
        left = [each for each in processes if each.is_alive()]
        for each in left:
            getattr(each, end)()
        if left:
            wait([each.sentinel for each in left], _ENDING)
    for each in processes:
        each.join(_ENDING)


def _run(function: Callable[..., Any], rank: int, args: Sequence[Any], errors: Path) -> None:
    try:
        function(rank, *args)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  raised by the process that waits
        errors.write_text(traceback.format_exc())
        from treadle.distributed import lifecycle

        lifecycle.fail(lifecycle.described(error))
        sys.exit(1)


@contextmanager
def _divided(count: int) -> Iterator[None]:
    """What children start with: their part of the processor's cores."""
    from treadle.distributed.environment import threads_of

    added = threads_of(os.environ, count)
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def start_processes(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(number, *args)` in so many processes. With `join` wait for them, and raise a
    `ProcessRaisedException` or `ProcessExitedException` for the first that fails, when the others
    are ended."""
    context: Any = multiprocessing.get_context(start_method)
    folder = tempfile.TemporaryDirectory(prefix="treadle-", ignore_cleanup_errors=True)
    errors = [Path(folder.name) / str(number) for number in range(nprocs)]
    processes = []
    with _divided(nprocs):
        for number, path in enumerate(errors):
            path.touch()
            process = context.Process(
                target=_run, args=(fn, number, tuple(args), path), daemon=daemon
            )
            process.start()
            processes.append(process)
    found = ProcessContext(processes, errors, folder)
    if not join:
        return found
    try:
        while not found.join():
            pass
    finally:
        _end(processes)
        folder.cleanup()
    return None


def spawn(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """The same: `torch.multiprocessing.spawn(train, args=(size,), nprocs=size)`."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
