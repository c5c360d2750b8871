"""The processes of a job that are still there, and ending them, whatever has become of what they
were started by.

An mpiexec starts its processes in sessions of their own, so no signal to its group reaches them;
and one whose ranks are gone in the middle of MPI's end waits for them for ever. What all of them
have is the environment that the launcher gave to the first: the job's key in it says whose they
are.

Run as a program, which imports nothing of treadle's, this file waits for the end of the launcher
and then ends what it has left, also where the launcher was killed. Its first line of input is the
variable and its value; "done" is the second one if there is nothing to do any more.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

_PROCESSES = "/proc"  # Linux's
_ASKED = 1.0  # seconds that processes have to end by themselves
_KILLED = 5.0  # until killed ones are gone
_LOOK = 0.02
_PARENT = 0.5  # seconds between looks whether the launcher is there


def can_find() -> bool:
    """Whether this system says which environment a process has."""
    return os.path.exists(f"{_PROCESSES}/self/environ")


def processes_with(variable: str) -> list[int]:
    """The processes of this host, except this one, that have `NAME=value` in the environment they
    were started with."""
    wanted, found = variable.encode(), []
    for name in os.listdir(_PROCESSES):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"{_PROCESSES}/{name}/environ", "rb") as file:
            if wanted in file.read().split(b"\0"):
                found.append(int(name))
    return found


def end(variable: str) -> None:
    """End the processes that have a variable: ask them, and after some seconds do not."""
    for number, seconds in ((signal.SIGTERM, _ASKED), (signal.SIGKILL, _KILLED)):
        until = time.monotonic() + seconds
        has_asked: set[int] = set()
        while time.monotonic() < until:
            found = processes_with(variable)
            if not found:
                return
            # A process that is asked twice would end without its own work at the end.
            for each in {*found} - has_asked:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, number)
            has_asked.update(found)
            time.sleep(_LOOK)


class Guard:
    """The program that ends what this process leaves, where the system lets it find that."""

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._program: subprocess.Popen[bytes] | None = None
        if can_find():
            self._program = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                cwd="/",
            )  # fmt: skip
            self._say(variable)

    def end(self) -> None:
        """End now what is left of the job."""
        if can_find():
            end(self._variable)

    def close(self) -> None:
        """There is nothing to end any more."""
        if self._program is not None:
            self._say("done")
            self._program.communicate()

    def _say(self, line: str) -> None:
        assert self._program is not None
        assert self._program.stdin is not None
        with contextlib.suppress(OSError):  # it was killed
            self._program.stdin.write(line.encode() + b"\n")
            self._program.stdin.flush()


def main() -> None:
    """Wait for the launcher's end, and end what it has left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent, said = os.getppid(), b""
    while os.getppid() == parent:
        ready, _, _ = select.select([0], [], [], _PARENT)
        if ready:
            found = os.read(0, 4096)
            if not found:
                break
            said += found
    variable, _, rest = said.decode().partition("\n")
    if variable and "done" not in rest:
        end(variable)


if __name__ == "__main__":
    main()
