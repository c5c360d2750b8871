"""One process of `treadle launch`: `python -m treadle.distributed.worker [-m] script arguments`.

It tells the launcher's store of itself before the script begins, and how that has ended.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NoReturn

from treadle.distributed import environment, lifecycle
from treadle.distributed.client import Client
from treadle.distributed.store import Progress

_CONNECTING = 60.0  # seconds, until all processes of all hosts have begun
_ORPHANED = 5.0  # until a process ends whose launcher is gone


def main(arguments: list[str]) -> int:
    """Run the script; its exit status."""
    # Threads of libraries may be in the middle of something when a script fails, which the end of
    # Python would take from under them. What is registered first is called last.
    failed: list[int] = []
    atexit.register(_leave_failed, failed)
    launched = environment.launched()
    assert launched is not None
    assert launched.store is not None
    _show_at_launcher(launched.rank, launched.key)
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stopped)
    lifecycle.listen(_heard)
    client = Client(
        launched.store, launched.rank, launched.size, launched.key, _CONNECTING, lifecycle.heard
    )
    lifecycle.client = client
    is_module = arguments[0] == "-m"
    script, *rest = arguments[is_module:]
    sys.argv[:] = [script, *rest]
    if not is_module:
        sys.path[0] = os.path.dirname(os.path.abspath(script))  # as Python does
    status = 0
    try:
        with _profiled():
            _run(script, is_module)
    except BaseException as error:  # noqa: BLE001  said to all, and to the user
        lifecycle.is_ending = True
        status = _failed(error)
    lifecycle.is_ending = True
    if not lifecycle.is_watched:
        client.bye(lifecycle.failure)
    if status:
        failed.append(status)
    return status


def _leave_failed(statuses: list[int]) -> None:
    if statuses:
        lifecycle.leave(statuses[0])


def _failed(error: BaseException) -> int:
    """Note why the script fails, and show it; the exit status."""
    if isinstance(error, SystemExit):
        status = _status(error)
        if status:
            lifecycle.fail(f"exit status {status}")
        return status
    lifecycle.fail(lifecycle.described(error))
    if isinstance(error, KeyboardInterrupt):
        return 130
    traceback.print_exception(error.with_traceback(_users(error.__traceback__)))
    return 1


def _run(script: str, is_module: bool) -> None:
    try:
        if is_module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code:
            raise


@contextmanager
def _profiled() -> Iterator[None]:
    """Write a trace of all ranks, where the launcher has said so, if the script ends as it
    should."""
    path = os.environ.pop(environment.PROFILE, "")
    if not path:
        yield
        return
    from treadle.distributed.group import is_initialized  # which cost time
    from treadle.distributed.traces import save_profile
    from treadle.runtime.profile.session import profile

    with profile() as measured:
        yield
    if is_initialized():
        save_profile(measured, path)


def _show_at_launcher(rank: int, key: str) -> None:
    """Print to the launcher from here on, and not to what has started this process: an mpiexec
    drops what ranks print after one has been killed."""
    if environment.OUTPUT not in os.environ:
        return
    address = environment.address_in(environment.OUTPUT, os.environ)
    for stream in (1, 2):
        with socket.create_connection(address, _CONNECTING) as found:
            found.settimeout(None)
            hello = {
                "rank": rank, "key": key, "stream": stream, "host": socket.gethostname(),
                "pid": os.getpid(),
            }  # fmt: skip
            found.sendall(json.dumps(hello).encode() + b"\n")
            os.dup2(found.fileno(), stream)


def _status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def _users(found: TracebackType | None) -> TracebackType | None:
    """A traceback from the script on."""
    here, first = found, found
    while here is not None:
        name = here.tb_frame.f_code.co_filename
        if name != __file__ and "runpy" not in name:
            return here
        here = here.tb_next
    return first


def _stopped(number: int, frame: FrameType | None) -> NoReturn:
    """The launcher ends this process, or the user has pressed Ctrl-C."""
    if lifecycle.is_ending:
        lifecycle.leave(128 + number)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    lifecycle.fail("the launcher has ended it")
    sys.exit(128 + number)


def _heard(progress: Progress | None) -> None:
    """End this process if the launcher is gone, whose store it is: also one that is not connected
    to other ranks, or computes on."""
    if progress is None and not lifecycle.is_ending:
        threading.Thread(target=_end_orphaned, name="treadle end", daemon=True).start()


def _end_orphaned() -> None:
    time.sleep(_ORPHANED)
    lifecycle.leave(1)


if __name__ == "__main__":
    # `runpy` runs this file as __main__, and the script will be that: its globals are not these.
    from treadle.distributed import worker

    sys.exit(worker.main(sys.argv[1:]))
