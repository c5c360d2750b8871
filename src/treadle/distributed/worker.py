"""One process of `treadle launch`: `python -m treadle.distributed.worker [-m] script arguments`.

It tells the launcher's store of itself before the script begins, and how that has ended.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import NoReturn

from treadle.distributed import environment, lifecycle
from treadle.distributed.client import Client

_CONNECTING = 60.0  # seconds, until all processes of all hosts have begun


def main(arguments: list[str]) -> int:
    """Run the script; its exit status."""
    launched = environment.launched()
    assert launched is not None
    assert launched.store is not None
    _show_at_launcher(launched.rank, launched.key)
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _stopped)
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
    except SystemExit as error:
        status = _status(error)
        if status:
            lifecycle.fail(f"exit status {status}")
    except KeyboardInterrupt as error:
        status = 130
        lifecycle.fail(lifecycle.described(error))
    except BaseException as error:  # noqa: BLE001  said to all, and to the user
        status = 1
        lifecycle.fail(lifecycle.described(error))
        traceback.print_exception(error.with_traceback(_users(error.__traceback__)))
    if not lifecycle.is_watched:
        client.bye(lifecycle.failure)
    return status


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
    lifecycle.fail("the launcher has ended it")
    sys.exit(128 + number)


if __name__ == "__main__":
    # `runpy` runs this file as __main__, and the script will be that: its globals are not these.
    from treadle.distributed import worker

    sys.exit(worker.main(sys.argv[1:]))
