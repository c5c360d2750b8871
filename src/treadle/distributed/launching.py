"""`treadle launch`: starting the processes, showing what they print, and ending all of them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from treadle.core import forks
from treadle.core.errors import DistributedError
from treadle.distributed import environment
from treadle.distributed.guard import Guard
from treadle.distributed.store import KILLED, Progress, Store, close_listening, listening

# How long processes have to end by themselves after the first one has failed, then after they were
# asked to, and how long what has started them has when they are gone.
_GRACE, _ASKED, _LEFT = 5.0, 3.0, 1.0
# How long the others may end when a rank is gone, and all have said that they end: one that has
# ended in the middle of MPI's end is waited for there for ever.
_FINALIZED = 60.0
_LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Launch:
    """What is to be run."""

    count: int
    script: Sequence[str]  # with its arguments; "-m" first for a module
    backend: str
    hosts: Sequence[str] = ()
    prefix: bool = True
    variables: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """Where what processes print goes."""

    out: Any
    err: Any


def run(launch: Launch, say: Callable[[str], None], shown: Shown | None = None) -> int:
    """Run it; the exit status: 0 if all ranks have ended with 0, else 1, or 128 and the number of
    a signal that has stopped this process: 130 after Ctrl-C."""
    shown = shown or Shown(sys.stdout, sys.stderr)
    failures: list[Progress] = []

    def changed(progress: Progress) -> None:
        if progress.ended:
            failures.append(progress)

    host = "" if launch.hosts else "127.0.0.1"
    key = secrets.token_hex(16)
    with (
        _Stops() as stops,
        contextlib.closing(Guard(f"{environment.KEY}={key}")) as guard,
        contextlib.closing(Store(launch.count, host, 0, key, changed)) as store,
        contextlib.closing(_Output(host, key, launch, shown, store.left)) as output,
    ):
        variables = _variables(launch, store.port, output.port, key)
        processes: list[_Process] = []
        job = _Job(launch.count, processes, output, store, guard, stops)
        try:
            for command, own, rank in _STARTERS[launch.backend](launch, variables):
                processes.append(_Process(command, own, rank, shown))
            status = job.watch(failures)
        finally:
            job.end()
        for each in processes:
            each.drain()
        output.drain()
        if stops.first is not None:
            say("stopped")
            return 128 + stops.first
        return _said(store, processes, failures, status, launch.hosts, say)


class _Stops:
    """The signals that stop this process, as numbers to look at: an exception could come in the
    middle of anything, and leave the processes without an end. Only the main thread has signals."""

    def __init__(self) -> None:
        self._found: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stops:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup's
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._found.append(number)

    @property
    def first(self) -> int | None:
        """The first one; None as long as there is none."""
        return self._found[0] if self._found else None

    @property
    def are_urgent(self) -> bool:
        """Whether there was another one, as a second Ctrl-C."""
        return len(self._found) > 1


def _variables(launch: Launch, store: int, output: int, key: str) -> dict[str, str]:
    """The environment of all ranks."""
    address = socket.gethostname() if launch.hosts else "127.0.0.1"
    given = {**os.environ, **(launch.variables or {})}
    found = {
        **given,
        **environment.threads_of(given, launch.count),
        environment.STORE: f"{address}:{store}",
        environment.KEY: key,
        environment.OUTPUT: f"{address}:{output}",
        environment.BACKEND: launch.backend,
        "WORLD_SIZE": str(launch.count),
    }
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        found.pop(name, None)
    return found


class _Output:
    """Shows what ranks print, line by line, and knows their processes: an mpiexec may end before
    the ranks that it has started."""

    def __init__(
        self, host: str, key: str, launch: Launch, shown: Shown, left: Callable[[int], None]
    ) -> None:
        """`left` is called with a rank whose process has ended."""
        self._key = key
        self._left = left
        self._shown = shown
        self._prefix = f"[{{:{len(str(launch.count - 1))}}}] " if launch.prefix else ""
        self._socket = listening(host, 0)
        self.port: int = self._socket.getsockname()[1]
        self._readers: list[threading.Thread] = []
        self._lock = forks.lock()
        self._pids: dict[int, int] = {}  # of ranks on this host, by ranks
        self._open: Counter[int] = Counter()  # connections by ranks
        threading.Thread(target=self._accept, name="treadle output", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            reader = threading.Thread(target=self._show, args=(found,), daemon=True)
            self._readers.append(reader)
            reader.start()

    def _show(self, found: socket.socket) -> None:
        with found, found.makefile("rb") as lines:
            try:
                hello = json.loads(lines.readline())
                if hello["key"] != self._key:
                    return
            except (OSError, ValueError, KeyError, TypeError):
                return  # what is not a rank's
            rank = hello["rank"]
            if hello["host"] == socket.gethostname():
                self._pids[rank] = hello["pid"]
            with self._lock:
                self._open[rank] += 1
            target = self._shown.out if hello["stream"] == 1 else self._shown.err
            with contextlib.suppress(OSError):
                _show(lines, target, self._prefix.format(rank))
            with self._lock:
                self._open[rank] -= 1
                has_left = not self._open[rank]
            if has_left:
                self._left(rank)

    @property
    def is_open(self) -> bool:
        """Whether a rank is still there (or a process that it has started)."""
        return any(self._open.values())

    @property
    def has_lost_one(self) -> bool:
        """Whether the process of a rank has ended."""
        return not all(self._open.values())

    def has(self, ranks: Iterable[int]) -> bool:
        """Whether all of some ranks are processes of this host that have begun."""
        return all(rank in self._pids for rank in ranks)

    def signal(self, number: int) -> None:
        """Send a signal to the ranks of this host that are still there."""
        for rank, pid in self._pids.items():
            if self._open[rank]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def close(self) -> None:
        """Let no rank in any more."""
        close_listening(self._socket)

    def drain(self) -> None:
        """Show the last lines."""
        for reader in self._readers:
            reader.join(2.0)


class _Process:
    """A process that is a rank, or starts all of them (then its rank is None). What it prints
    itself, before a rank is connected, is shown as it is."""

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        rank: int | None,
        shown: Shown,
    ) -> None:
        self.rank = rank
        self._process = subprocess.Popen(
            [*command], env=dict(variables), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._readers = [
            threading.Thread(target=_show, args=(pipe, target, ""), daemon=True)
            for pipe, target in (
                (self._process.stdout, shown.out), (self._process.stderr, shown.err)
            )
        ]  # fmt: skip
        for reader in self._readers:
            reader.start()

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal to it and to what it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def drain(self) -> None:
        """Show its last lines."""
        for reader in self._readers:
            reader.join(2.0)


_showing = forks.lock()


def _show(pipe: IO[bytes], target: Any, prefix: str) -> None:
    """Show lines as they come, whole."""
    with pipe:
        for line in pipe:
            text = line.decode(errors="replace")
            with _showing:
                target.write(prefix + text if text.endswith("\n") else prefix + text + "\n")
                target.flush()


@dataclass(frozen=True, slots=True)
class _Job:
    """All that runs, and its end."""

    count: int
    processes: Sequence[_Process]
    output: _Output
    store: Store
    guard: Guard
    stops: _Stops

    def watch(self, failures: Sequence[Progress]) -> int:
        """Wait until all have ended, by themselves or because one has failed, or until this process
        is stopped. Whether something has gone wrong, as 0 or 1."""
        until: float | None = None
        while self.stops.first is None:
            found = [each.status for each in self.processes]
            have_ended = all(status is not None for status in found)
            if have_ended and not self.output.is_open:
                return int(any(found))
            if until is None and (failures or any(found) or have_ended):
                until = time.monotonic() + _GRACE
            if until is None and self.output.has_lost_one and self._are_done:
                until = time.monotonic() + _FINALIZED
            if until is not None and time.monotonic() > until:
                return int(any(found) or not have_ended)
            time.sleep(_LOOK)
        return 1

    def end(self) -> None:
        """End what still runs: ask ranks, then what has started them, and then do not ask."""
        if not self._is_running:
            return
        self._ask(signal.SIGINT if self.stops.first == signal.SIGINT else signal.SIGTERM)
        self._wait(_ASKED, lambda: self.output.is_open)
        # An mpiexec may wait for ever for ranks that are gone.
        self._wait(_LEFT, lambda: self._is_running)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for each in self.processes:
                each.signal(number)
            if number == signal.SIGKILL:
                self.output.signal(number)
            self._wait(_LEFT, lambda: self._is_running)
        self.guard.end()
        self._wait(_ASKED, lambda: self._is_running)

    def _ask(self, number: int) -> None:
        """Send a signal to ranks, which may have something to do before they end, and to what has
        started them only as long as they are not all known: an mpiexec passes it on."""
        self.output.signal(number)
        for each in self.processes:
            if not self.output.has(range(self.count) if each.rank is None else [each.rank]):
                each.signal(signal.SIGTERM)

    def _wait(self, seconds: float, is_needed: Callable[[], bool]) -> None:
        until = time.monotonic() + seconds
        while is_needed() and time.monotonic() < until and not self.stops.are_urgent:
            time.sleep(_LOOK)

    @property
    def _are_done(self) -> bool:
        """Whether all ranks have said that they end as they should."""
        return all(each.ended == "" for each in self.store.progress())

    @property
    def _is_running(self) -> bool:
        return self.output.is_open or any(each.status is None for each in self.processes)


def _said(
    store: Store,
    processes: Sequence[_Process],
    failures: Sequence[Progress],
    status: int,
    hosts: Sequence[str],
    say: Callable[[str], None],
) -> int:
    """Say how it has ended."""
    ends = {each.rank: each.status for each in processes if each.rank is not None}
    if failures:
        first = failures[0]
        reason = first.ended or ""
        code = ends.get(first.rank)
        if reason == KILLED and code is not None and code < 0:
            reason = f"it was ended by {signal.Signals(-code).name}"
        elif reason == KILLED and code:
            reason = f"it ended itself with exit status {code}"
        where = f" (its last operation: {first.last})" if first.last else ""
        others = sorted({each.rank for each in failures} - {first.rank})
        rest = f"; then rank{'s' * (len(others) > 1)} {_listed(others)} ended" if others else ""
        say(f"rank {first.rank} failed first: {reason}{where}{rest}")
        return 1
    found = store.progress()
    absent = [each.rank for each in found if each.ended is None]
    if status and len(absent) == len(found):
        unknown = [host for host in hosts if not _has_address(host)]
        why = f", and {_quoted(unknown)} has no address (is --hosts right?)" if unknown else ""
        say(f"no process has begun: see above what starting them has printed{why}")
    elif status and all(each.ended == "" for each in found) and not any(ends.values()):
        say("all ranks have said that they end, and some did not within 60 s: they are ended")
    elif status:
        say(f"a process ended with an exit status other than 0: {ends or 'see above'}")
    elif not any(each.is_initialized for each in found) and len(found) > 1:
        say(
            f"the script has not called td.distributed.init(): {len(found)} processes ran, each by "
            "itself"
        )
    return int(bool(status))


def _has_address(host: str) -> bool:
    """Whether a host of --hosts is known, which ssh may have another name for."""
    name, _, count = host.rpartition(":")
    try:
        socket.getaddrinfo(name if name and count.isdecimal() else host, None)
    except OSError:
        return False
    return True


def _quoted(hosts: Sequence[str]) -> str:
    return ", ".join(map(repr, hosts))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


# --- how processes are started -------------------------------------------------------------------


def _worker(launch: Launch) -> list[str]:
    return [sys.executable, "-m", "treadle.distributed.worker", *launch.script]


# A command, its variables, and its rank (None: it starts all of them).
Start = tuple[Sequence[str], Mapping[str, str], int | None]


def _mpi(launch: Launch, variables: dict[str, str]) -> list[Start]:
    """All ranks by mpiexec."""
    mpiexec = _mpiexec()
    # An mpiexec ends all processes as soon as one has ended: no other could say why.
    is_hydra = _is_hydra(mpiexec)
    options = ["-disable-auto-cleanup"] if is_hydra else []
    if launch.hosts:
        options += ["-hosts" if is_hydra else "--host", ",".join(launch.hosts)]
    command = [mpiexec, *options, "-n", str(launch.count), *_worker(launch)]
    return [(command, variables, None)]


def _plain(launch: Launch, variables: dict[str, str]) -> list[Start]:
    """Each rank as a process of its own; on several hosts by mpiexec, which starts any program."""
    if launch.hosts:
        return _mpi(launch, variables)
    return [
        (
            _worker(launch),
            {
                **variables, "RANK": str(rank), "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(launch.count),
            },
            rank,
        )
        for rank in range(launch.count)
    ]  # fmt: skip


_STARTERS = {"mpi": _mpi, "nccl": _plain}


def _mpiexec() -> str:
    """The mpiexec of this Python's environment, or of the system."""
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if found is None:
        raise DistributedError(
            "mpiexec, which starts the processes, is not here: pip install mpich mpi4py, or the "
            "system's MPI"
        )
    return found


def _is_hydra(mpiexec: str) -> bool:
    """Whether it is MPICH's (Intel's is too), not Open MPI's."""
    found = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
    return "HYDRA" in found.stdout.upper() or "Intel" in found.stdout
