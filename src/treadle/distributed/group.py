"""The ranks: who they are, the order of their operations, and what happens if one is missing."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from treadle.core import forks
from treadle.core.dtypes import uint8
from treadle.core.errors import DistributedError
from treadle.distributed import environment, lifecycle
from treadle.distributed.backends import BACKENDS
from treadle.distributed.backends.base import Backend, Meeting
from treadle.distributed.checks import compare
from treadle.distributed.client import Client
from treadle.distributed.environment import Launched
from treadle.distributed.operation import Operation
from treadle.distributed.request import Request
from treadle.distributed.store import Progress, Store
from treadle.runtime import settings
from treadle.runtime.devices import Device, default_device, devices, set_default_device

_LOOK = 0.02  # seconds between looks whether other ranks have failed
_BLOCKED = 1.0  # until a rank that a failure elsewhere blocks on its device is ended
_ASKING = 0.5  # until a value is asked for again
_GRACE = 2.0  # seconds in which data of a rank that has ended may still arrive

_group: Group | None = None
_lock = forks.lock()


class Group:
    """All ranks, as one of them sees them."""

    def __init__(self, rank: int, size: int, local_rank: int, timeout: float, check: bool) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.timeout = timeout
        self.check = check
        self.engine: Backend | None = None  # None of a single process
        self.client: Client | None = None
        self.aborts = False  # whether this process has to end the others if it fails
        self._store: Store | None = None
        self._started = 0
        self._between = 0
        self._last: Operation | None = None
        self._unfinished: deque[Operation] = deque()
        self._ended: dict[int, Progress] = {}
        self._failed: str | None = None
        self._is_closing = self._is_cut_off = False
        self._order = forks.lock()

    # ------------------------------------------------------------------ operations

    def start(self, request: Request, given: Any, result: Any) -> Operation:
        """Start an operation, after those before it."""
        backend = self.engine
        assert backend is not None
        with self._order:
            self._raise_failure(None)
            if request.is_between_two:
                self._between += 1
                number = self._between
            else:
                self._started += 1
                number = self._started
            operation = Operation(request, number, given, result)
            self._last = operation
            if self.check and not request.is_between_two:
                assert self.client is not None
                ask = partial(self._ask, operation)
                compare(operation, self.rank, self.size, self.client, ask)
            while self._unfinished and self._unfinished[0].is_ended:
                self._unfinished.popleft()
            self._unfinished.append(operation)
            try:
                backend.start(operation)
            except DistributedError:
                # The library may notice first that a rank is gone. The store knows which, and why.
                until = time.monotonic() + _GRACE
                while self._failed is None and time.monotonic() < until:
                    time.sleep(_LOOK)
                self._raise_failure(operation)
                raise
        return operation

    def wait(self, operation: Operation) -> None:
        """Wait for an operation. DistributedError if it fails, or if it does not end in time."""
        until = time.monotonic() + self.timeout
        while not operation.wait(_LOOK):
            self._raise_failure(operation)
            self._raise_absence(operation)
            if time.monotonic() > until:
                self._raise_timeout(operation)
        if operation.error is not None:
            self._raise_failure(operation)
            raise operation.error

    def _ask(self, operation: Operation, key: str) -> Any:
        """A value that another rank gives for an operation, waited for like the operation."""
        assert self.client is not None
        until = time.monotonic() + self.timeout
        while True:
            try:
                return self.client.get(key, _ASKING)
            except TimeoutError:
                self._raise_failure(operation)
                self._raise_absence(operation)
                if time.monotonic() > until:
                    self._raise_timeout(operation)

    def exchange(self, kind: str, value: Any) -> list[Any]:
        """All ranks' values, through the store: JSON, of which there is little."""
        client = self.client
        assert client is not None
        with self._order:
            self._raise_failure(None)
            self._started += 1
            operation = Operation(Request(kind, uint8, None), self._started, None, None)
            self._last = operation
            key = f"{kind} {operation.number}"
            client.set(f"{key} {self.rank}", value)
            ranks = range(self.size)
            found = [
                value if each == self.rank else self._ask(operation, f"{key} {each}")
                for each in ranks
            ]
            operation.end()
        return found

    def progress(self) -> Progress:
        """Where this rank is."""
        last = self._last
        return Progress(
            self.rank, self._started, "" if last is None else str(last),
            last is None or last.is_ended, is_initialized=True,
        )  # fmt: skip

    # ------------------------------------------------------------------ what goes wrong

    def heard(self, progress: Progress | None) -> None:
        """A rank has ended (None: the store), which a thread of the connection reports."""
        if progress is None:
            self._is_cut_off = True
            if self._is_closing:
                return
            failed = "the store of the ranks is gone: the launcher or rank 0 has ended"
        elif progress.rank == self.rank:
            return
        else:
            self._ended[progress.rank] = progress
            if not progress.ended:
                return
            failed = str(progress)
        if self._failed is None:
            self._failed = failed
            if self._is_closing:
                return
            threading.Thread(target=self._end_soon, name="treadle end", daemon=True).start()

    def _end_soon(self) -> None:
        """End this process, if it does not do so by itself: it computes, and starts no operation
        that would fail."""
        # A wait for a device cannot raise an error.
        on_host = self.engine is None or self.engine.on_host
        time.sleep(self.timeout if on_host else min(self.timeout, _BLOCKED))
        lifecycle.fail(self._failed or "")
        sys.stderr.write(f"treadle: rank {self.rank} is ended: {self._failed}\n")
        lifecycle.leave(1)

    def look(self, operations: Sequence[Operation], is_late: bool) -> None:
        """End this process if operations on a device are late, or wait for a rank that has ended:
        a wait for a device cannot raise an error."""
        try:
            for operation in operations:
                if not operation.request.is_between_two:
                    self._raise_absence(operation)
            if is_late:
                # Some of them may have ended: it is the first that a rank has not started.
                self._raise_timeout(self._first_missing(operations))
        except DistributedError as error:
            sys.stderr.write(f"treadle: rank {self.rank} is ended: {error}\n")
            lifecycle.fail(f"DistributedError: {str(error).splitlines()[0]}")
            if self.client is not None:
                self.client.bye(lifecycle.failure)
            lifecycle.leave(1)

    def _first_missing(self, operations: Sequence[Operation]) -> Operation:
        assert self.client is not None
        others = [each.started for each in self.client.where() if each.rank != self.rank]
        fewest = min(others, default=0)
        for operation in operations:
            if not operation.request.is_between_two and operation.number > fewest:
                return operation
        return operations[-1]

    def check_failure(self) -> None:
        """DistributedError if another rank has failed."""
        self._raise_failure(None)

    def _raise_failure(self, operation: Operation | None) -> None:
        if self._failed is not None:
            what = "" if operation is None else f"{operation} cannot end: "
            raise DistributedError(what + self._failed)

    def _raise_absence(self, operation: Operation) -> None:
        """DistributedError if a rank has ended as it should, without an operation."""
        request = operation.request
        for rank, ended in list(self._ended.items()):
            if request.is_between_two:
                if rank != request.peer or operation.wait(_GRACE):
                    continue
            elif ended.started >= operation.number or operation.is_ended:
                continue
            what = f"{operation} cannot end: {ended}"
            self._failed = self._failed or f"rank {self.rank} has failed: {what}"
            raise DistributedError(f"{what}, and has not started it")

    def _raise_timeout(self, operation: Operation) -> None:
        request, client = operation.request, self.client
        assert client is not None
        client.tell()
        found = client.where()
        missing = [
            str(each.rank)
            for each in found
            if each.rank != self.rank
            and not request.is_between_two
            and (each.started < operation.number or not each.is_initialized)
        ]
        if missing:
            plural = "ranks" if len(missing) > 1 else "rank"
            have = "have" if len(missing) > 1 else "has"
            why = f"{plural} {', '.join(missing)} {have} not started it"
        elif request.is_between_two:
            why = f"rank {request.peer} has not done its part"
        else:
            why = "all ranks have started it, and its data does not arrive"
        lines = "".join(f"\n  {each}" for each in found)
        text = f"{operation} has not ended within {self.timeout:g} s: {why}."
        self._failed = text
        raise DistributedError(f"{text} Where each rank is:{lines}")

    def close(self) -> None:
        """End this rank's part, when the process ends."""
        failure = lifecycle.failure
        if not failure and self._failed is None:
            try:
                for operation in [*self._unfinished]:
                    self.wait(operation)
            except DistributedError as error:
                sys.stderr.write(f"treadle: rank {self.rank}: {error}\n")
                failure = str(error).split("\n")[0]
        failure = failure or self._failed or ""
        self._is_closing = True
        if self.client is not None:
            self.client.bye(failure)
        if self.engine is None:
            return
        while not (failure or self._is_cut_off or len(self._ended) == self.size - 1):
            time.sleep(_LOOK)
            failure = self._failed or ""
        try:
            abort = self.engine.close(bool(failure) or self._is_cut_off)
        except DistributedError as error:
            sys.stderr.write(f"treadle: rank {self.rank}: {error}\n")
            lifecycle.leave(1)
        if failure:
            if abort is not None and self.aborts:
                time.sleep(0.5)  # for what the others have to say
                abort()
            lifecycle.leave(1)
        if self._store is not None:
            _outlive(self._store)


def _outlive(store: Store) -> None:
    """Answer until all other ranks have ended."""
    while any(each.ended is None for each in store.progress()):
        time.sleep(_LOOK)
    store.close()


# --- making it ---------------------------------------------------------------------------------


def init(backend: str | None = None, timeout: float = 30.0, check: bool | None = None) -> None:
    """Connect this process to the others that were launched with it, before the first collective.

    Each process, or *rank*, has a device of its own, which becomes its default device: of the
    devices of the default one's kind that with the number of `local_rank`. `backend` moves the
    data: "nccl" between NVIDIA GPUs, "mpi" between all devices, through the host's memory; None
    takes what `treadle launch --backend` says, else NCCL where the default device is an NVIDIA GPU.
    A rank that waits longer than `timeout` seconds for others gets a `DistributedError`, which says
    where each rank is. `check` compares each collective's kind, shape and dtype among the ranks
    before it starts; None does so under `TREADLE_CHECK=1`.

    A process that was not launched with others is the only rank: every collective gives what it is
    given.

    >>> import treadle as td
    >>> td.distributed.init()
    >>> td.distributed.rank(), td.distributed.size()
    (0, 1)
    """
    global _group
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"the backends are {', '.join(sorted(BACKENDS))}, not {backend!r}")
    if not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    with _lock:
        if _group is not None:
            used = None if _group.engine is None else _group.engine.name
            if backend is not None and used is not None and backend != used:
                raise DistributedError(
                    f"td.distributed is initialized already, with {used}: call init once"
                )
            return
        launched = environment.launched()
        checks = settings.check if check is None else bool(check)
        if launched is None:
            _group = Group(0, 1, 0, timeout, checks)
        else:
            _group = _met(launched, backend, timeout, checks)


def _met(launched: Launched, backend: str | None, timeout: float, check: bool) -> Group:
    name, device = _choices(launched, backend)
    if launched.size == 1 and backend is None:
        set_default_device(device)
        return Group(0, 1, 0, timeout, check)
    group = Group(launched.rank, launched.size, launched.local_rank, timeout, check)
    group.client = lifecycle.client
    if group.client is None and name != "mpi":
        _check_store(launched, name)
        _open_store(group, launched)
        _connect(group, launched)
    elif group.client is not None:
        group.client.progress = group.progress
        group.client.tell()
        lifecycle.listen(group.heard)
    made: Any = import_module(BACKENDS[name])
    try:
        found = made.make(
            Meeting(launched, timeout, device, group.client, group.check_failure, group.look)
        )
    except DistributedError as error:
        raise _with_places(error, group) from None
    group.engine = found
    if group.client is None:
        group.rank, group.size = found.rank, found.size
        _connect(group, _with_shared_store(group, launched, found))
    group.aborts = not launched.store_is_open
    set_default_device(device)
    lifecycle.watch(group.close)
    return group


def _choices(launched: Launched, backend: str | None) -> tuple[str, Device]:
    """The backend and the device of this rank."""
    default = default_device()
    kind, _, number = default.id.partition(":")
    name = backend or launched.backend or ("nccl" if default.traits.cuda_memory else "mpi")
    if name not in BACKENDS:
        raise DistributedError(f"{environment.BACKEND} is {name!r}: {' or '.join(BACKENDS)}")
    if name == "nccl" and not default.traits.cuda_memory:
        raise DistributedError(
            f"the backend nccl is for NVIDIA GPUs, and this rank's device is {default.id}: use "
            'init(backend="mpi")'
        )
    if not number or _is_chosen():
        return name, default
    same = [each for each in devices() if each.id.partition(":")[0] == kind]
    if name == "nccl" and launched.local_rank >= len(same):
        raise DistributedError(
            f"this host has {len(same)} NVIDIA GPUs for {launched.local_size} ranks, and NCCL "
            f'wants one for each: use -n {len(same)}, or init(backend="mpi")'
        )
    return name, same[launched.local_rank % len(same)]


def _is_chosen() -> bool:
    """Whether the user has named one device for this process."""
    return ":" in os.environ.get("TREADLE_DEVICE", "")


def _check_store(launched: Launched, backend: str) -> None:
    if launched.store is None:
        raise DistributedError(
            f"{launched.launcher} does not say where ranks meet, which {backend} needs: set "
            "MASTER_ADDR (the host of rank 0) and MASTER_PORT (a free port there)"
        )


def _open_store(group: Group, launched: Launched) -> None:
    if launched.rank == 0 and launched.store is not None:
        host, port = launched.store
        try:
            group._store = Store(launched.size, "", port, launched.key)
        except OSError as error:
            raise DistributedError(
                f"rank 0 cannot open its store at port {port} of {host}: {error.strerror}. Set "
                "MASTER_PORT to a free port on all ranks"
            ) from None


def _connect(group: Group, launched: Launched) -> None:
    assert launched.store is not None
    client = Client(
        launched.store, group.rank, group.size, launched.key, group.timeout, lifecycle.heard
    )
    client.progress = group.progress
    group.client = client
    lifecycle.listen(group.heard)


def _with_shared_store(group: Group, launched: Launched, backend: Any) -> Launched:
    """What is known of the launch, with the store that rank 0 opens now: MPI takes its address to
    the others."""
    found = None
    if group.rank == 0:
        key = secrets.token_hex(16)
        group._store = Store(group.size, "", 0, key)
        found = socket.gethostname(), group._store.port, key
    host, port, key = backend.broadcast(found, group.timeout)
    return replace(launched, store=(host, port), key=key)


def _with_places(error: DistributedError, group: Group) -> DistributedError:
    """An error of a backend's beginning, with where the other ranks are."""
    places = [] if group.client is None else group.client.where()
    lines = "".join(f"\n  {each}" for each in places)
    return DistributedError(f"{error}{'. Where each rank is:' if lines else ''}{lines}")


# --- what users ask ----------------------------------------------------------------------------


def current() -> Group:
    """The group. DistributedError if this process is one of several and has not called `init`."""
    if _group is None:
        launched = environment.launched()
        if launched is not None and launched.size > 1:
            raise DistributedError(
                f"this process is rank {launched.rank} of {launched.size} ({launched.launcher}), "
                "and does not know the others yet: call td.distributed.init() at the beginning of "
                "the script"
            )
        return Group(0, 1, 0, 30.0, False)
    return _group


def is_initialized() -> bool:
    """Whether `init` was called.

    >>> import treadle as td
    >>> td.distributed.init()
    >>> td.distributed.is_initialized()
    True
    """
    return _group is not None


def rank() -> int:
    """The number of this process, from 0.

    >>> import treadle as td
    >>> td.distributed.rank()
    0
    """
    return current().rank


def size() -> int:
    """How many processes compute together.

    >>> import treadle as td
    >>> td.distributed.size()
    1
    """
    return current().size


def local_rank() -> int:
    """The number of this process among those of its host, from 0.

    >>> import treadle as td
    >>> td.distributed.local_rank()
    0
    """
    return current().local_rank


def backend() -> str | None:
    """What moves the data: "mpi" or "nccl"; None of a single process.

    >>> import treadle as td
    >>> td.distributed.backend() is None
    True
    """
    found = current().engine
    return None if found is None else found.name
