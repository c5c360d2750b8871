"""The ranks: who they are, the order of their operations, and what happens if one is missing."""

from __future__ import annotations

import math
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
from treadle.distributed.members import Group, parts_of
from treadle.distributed.operation import KIND, Operation
from treadle.distributed.request import Members, Request
from treadle.distributed.store import Progress, Store
from treadle.runtime import profiler, settings
from treadle.runtime.devices import Device, default_device, devices, set_default_device
from treadle.runtime.devices import device as find_device

_LOOK = 0.02  # seconds between looks whether other ranks have failed
_COMPUTING = 30.0  # until a rank that computes is ended after a failure elsewhere
_BLOCKED = 1.0  # until a rank that a failure elsewhere blocks on its device is ended
_ASKING = 0.5  # until a value is asked for again
_GRACE = 2.0  # seconds in which data of a rank that has ended may still arrive

_world: World | None = None
_lock = forks.lock()


class World:
    """All ranks, as one of them sees them: the order of their operations, and what goes wrong."""

    def __init__(self, rank: int, size: int, local_rank: int, timeout: float, check: bool) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.timeout = timeout
        self.check = check
        self.engine: Backend | None = None  # None of a single process
        self.client: Client | None = None
        self.aborts = False  # whether this process has to end the others if it fails
        self._store: Store | None = None
        self._started = 0
        self._started_in: dict[str, int] = {}  # by the keys of groups
        self._between = 0
        self._splits = 0
        self._last: Operation | None = None
        self._unfinished: deque[Operation] = deque()
        self._tracks: list[Operation] = []  # the last operation of each, while there is a profile
        self._ended: dict[int, Progress] = {}
        self._failed: str | None = None
        self._is_closing = self._is_cut_off = self._has_left = False
        self._order = forks.lock()

    # ------------------------------------------------------------------ operations

    def start(self, request: Request, given: Any, result: Any) -> Operation:
        """Start an operation, after those before it."""
        backend = self.engine
        assert backend is not None
        with self._order:
            self._raise_failure(None)
            operation = Operation(request, self._next_number(request), given, result)
            self._last = operation
            if self.check and not request.is_between_two:
                assert self.client is not None
                ask = partial(self._ask, operation)
                compare(operation, self.rank, self._ranks_of(request), self.client, ask)
            while self._unfinished and self._unfinished[0].is_ended:
                self._unfinished.popleft()
            if profiler.active is not None and backend.on_host:
                operation.began = profiler.clock(), self._track(operation)
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

    def _track(self, operation: Operation) -> str:
        """A track of a profile on which nothing is under way."""
        tracks = self._tracks
        free = next((n for n, each in enumerate(tracks) if each.is_ended), len(tracks))
        tracks[free : free + 1] = [operation]
        return f"operations, {free + 1}"

    def _next_number(self, request: Request) -> int:
        """Count an operation among those of its ranks."""
        key = request.group_key
        if request.is_between_two:
            self._between += 1
            return self._between
        if not key:
            self._started += 1
            return self._started
        self._started_in[key] = number = self._started_in.get(key, 0) + 1
        return number

    def _ranks_of(self, request: Request) -> Sequence[int]:
        return range(self.size) if request.members is None else request.members.ranks

    def split(self, parts: Sequence[tuple[int, ...]]) -> Members | None:
        """A communicator for each of some groups, which all ranks make together. The group that
        this rank is in."""
        self._splits += 1
        members, color = None, None
        for number, ranks in enumerate(parts):
            if self.rank in ranks:
                members, color = Members(self._splits, ranks), number
        if self.engine is None:
            return members
        own = [list(ranks) for ranks in parts]
        for rank, other in enumerate(self.exchange("new_group", own)):
            if other != own:
                raise DistributedError(
                    "all ranks make the same groups in the same order: "
                    f"rank {self.rank} calls new_group with {own}, rank {rank} with {other}"
                )
        self.engine.split(members, color)
        return members

    def wait(self, operation: Operation) -> None:
        """Wait for an operation. DistributedError if it fails, or if it does not end in time."""
        profile = profiler.active
        if profile is None or operation.is_ended:
            self._wait(operation)
            return
        began = profiler.clock()
        self._wait(operation)
        profile.note_event(
            "waits", f"wait for {operation.request}", began, KIND, number=operation.number
        )

    def _wait(self, operation: Operation) -> None:
        until = time.monotonic() + self.timeout
        while not operation.wait(_LOOK):
            self._raise_failure(operation)
            self._raise_absence(operation)
            if time.monotonic() > until:
                self._raise_timeout(operation)
        if operation.error is not None:
            self._raise_failure(operation)
            raise operation.error

    def _ask(self, operation: Operation, key: str, patient: bool = False) -> Any:
        """A value that another rank gives for an operation, waited for like the operation; as long
        as that rank lives, if this one is patient."""
        assert self.client is not None
        until = math.inf if patient else time.monotonic() + self.timeout
        while True:
            try:
                return self.client.get(key, _ASKING)
            except TimeoutError:
                self._raise_failure(operation)
                self._raise_absence(operation)
                if time.monotonic() > until:
                    self._raise_timeout(operation)

    def exchange(
        self, kind: str, value: Any, members: Members | None = None, patient: bool = False
    ) -> list[Any]:
        """The values of all ranks, or of a group's, through the store: JSON, of which there is
        little. A patient rank waits for others that live without a limit: they write a file,
        say."""
        client = self.client
        assert client is not None
        with self._order:
            self._raise_failure(None)
            request = Request(kind, uint8, None, members=members)
            operation = Operation(request, self._next_number(request), None, None)
            self._last = operation
            key = f"{kind} {request.group_key} {operation.number}"
            client.set(f"{key} {self.rank}", value)
            found = [
                value if each == self.rank else self._ask(operation, f"{key} {each}", patient)
                for each in self._ranks_of(request)
            ]
            operation.end()
        return found

    def progress(self) -> Progress:
        """Where this rank is."""
        last = self._last
        return Progress(
            self.rank, self._started, "" if last is None else str(last),
            last is None or last.is_ended, is_initialized=True, groups={**self._started_in},
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
        time.sleep(min(self.timeout, _COMPUTING if on_host else _BLOCKED))
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
        found = self.client.where()
        for operation in operations:
            if not operation.request.is_between_two and self._missing(operation, found):
                return operation
        return operations[-1]

    def _missing(self, operation: Operation, found: Sequence[Progress]) -> list[int]:
        """The ranks that have not started an operation which they are to take part in."""
        request = operation.request
        return [
            each.rank
            for each in found
            if each.rank != self.rank
            and request.concerns(each.rank)
            and (each.count(request.group_key) < operation.number or not each.is_initialized)
        ]

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
            if not request.concerns(rank):
                continue
            if request.is_between_two:
                if operation.wait(_GRACE):
                    continue
            elif ended.count(request.group_key) >= operation.number or operation.is_ended:
                continue
            what = f"{operation} cannot end: {ended}"
            self._failed = self._failed or f"rank {self.rank} has failed: {what}"
            raise DistributedError(f"{what}, and has not started it")

    def _raise_timeout(self, operation: Operation) -> None:
        request, client = operation.request, self.client
        assert client is not None
        client.tell()
        found = client.where()
        missing = [] if request.is_between_two else self._missing(operation, found)
        if missing:
            plural = "ranks" if len(missing) > 1 else "rank"
            have = "have" if len(missing) > 1 else "has"
            why = f"{plural} {', '.join(map(str, missing))} {have} not started it"
        elif request.is_between_two:
            why = f"rank {request.other} has not done its part"
        else:
            who = "all ranks" if request.members is None else "its ranks"
            why = f"{who} have started it, and its data does not arrive"
        lines = "".join(f"\n  {each}" for each in found)
        text = f"{operation} has not ended within {self.timeout:g} s: {why}."
        self._failed = text
        raise DistributedError(f"{text} Where each rank is:{lines}")

    def leave(self) -> None:
        """End this rank's part, where the process goes on: after a failure the others hear of it,
        and nothing is waited for."""
        if lifecycle.failure and self.client is not None:
            self._is_closing = self._has_left = True
            self.client.bye(lifecycle.failure)
        self.close()

    def close(self) -> None:
        """End this rank's part, when the process ends."""
        if self._has_left:
            return
        self._has_left = True
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


def init(
    backend: str | None = None,
    timeout: float = 30.0,
    check: bool | None = None,
    device: str | Device | None = None,
) -> None:
    """Connect this process to the others that were launched with it, before the first collective.

    Each process, or *rank*, has a device of its own, which becomes its default device: `device`, or
    of the devices of the default one's kind that with the number of `local_rank`. `backend` moves
    the data: "nccl" between NVIDIA GPUs, "mpi" between all devices, through the host's memory; None
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
    global _world
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"the backends are {', '.join(sorted(BACKENDS))}, not {backend!r}")
    if not timeout > 0:
        raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
    with _lock:
        if _world is not None:
            used = None if _world.engine is None else _world.engine.name
            if backend is not None and used is not None and backend != used:
                raise DistributedError(
                    f"td.distributed is initialized already, with {used}: call init once"
                )
            return
        launched = environment.launched()
        checks = settings.check if check is None else bool(check)
        own = None if device is None else find_device(device)
        if launched is None:
            if own is not None:
                set_default_device(own)
            _world = World(0, 1, 0, timeout, checks)
        else:
            _world = _met(launched, backend, timeout, checks, own)


def _met(
    launched: Launched, backend: str | None, timeout: float, check: bool, chosen: Device | None
) -> World:
    name, device = _choices(launched, backend, chosen)
    if launched.size == 1 and backend is None:
        set_default_device(device)
        return World(0, 1, 0, timeout, check)
    world = World(launched.rank, launched.size, launched.local_rank, timeout, check)
    world.client = lifecycle.client
    # An MPI that mpiexec has started finds the others by itself, and takes the store's address
    # there.
    if world.client is None and not (name == "mpi" and launched.is_mpi):
        _check_store(launched, name)
        _open_store(world, launched)
        _connect(world, launched)
    elif world.client is not None:
        world.client.progress = world.progress
        world.client.tell()
        lifecycle.listen(world.heard)
    made: Any = import_module(BACKENDS[name])
    try:
        found = made.make(
            Meeting(launched, timeout, device, world.client, world.check_failure, world.look)
        )
    except DistributedError as error:
        raise _with_places(error, world) from None
    if found.size != launched.size:
        raise DistributedError(_unequal(launched, found.size))
    world.engine = found
    if world.client is None:
        world.rank, world.size = found.rank, found.size
        _connect(world, _with_shared_store(world, launched, found))
    world.aborts = not launched.store_is_open
    set_default_device(device)
    lifecycle.watch(world.close)
    return world


def _choices(launched: Launched, backend: str | None, chosen: Device | None) -> tuple[str, Device]:
    """The backend and the device of this rank."""
    default = default_device() if chosen is None else chosen
    kind, _, number = default.id.partition(":")
    name = backend or launched.backend or ("nccl" if default.traits.cuda_memory else "mpi")
    if name not in BACKENDS:
        raise DistributedError(f"{environment.BACKEND} is {name!r}: {' or '.join(BACKENDS)}")
    if name == "nccl" and not default.traits.cuda_memory:
        raise DistributedError(
            f"the backend nccl is for NVIDIA GPUs, and this rank's device is {default.id}: use "
            'init(backend="mpi")'
        )
    if not number or chosen is not None or _is_chosen():
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


def _open_store(world: World, launched: Launched) -> None:
    if launched.rank == 0 and launched.store is not None and not launched.store_is_open:
        host, port = launched.store
        try:
            world._store = Store(launched.size, "", port, launched.key)
        except OSError as error:
            raise DistributedError(
                f"rank 0 cannot open its store at port {port} of {host}: {error.strerror}. Set "
                "MASTER_PORT to a free port on all ranks"
            ) from None


def _connect(world: World, launched: Launched) -> None:
    assert launched.store is not None
    client = Client(
        launched.store, world.rank, world.size, launched.key, world.timeout, lifecycle.heard
    )
    client.progress = world.progress
    world.client = client
    lifecycle.listen(world.heard)


def _with_shared_store(world: World, launched: Launched, backend: Any) -> Launched:
    """What is known of the launch, with the store that rank 0 opens now: MPI takes its address to
    the others."""
    found = None
    if world.rank == 0:
        key = secrets.token_hex(16)
        world._store = Store(world.size, "", 0, key)
        found = socket.gethostname(), world._store.port, key
    host, port, key = backend.broadcast(found, world.timeout)
    return replace(launched, store=(host, port), key=key)


def _unequal(launched: Launched, found: int) -> str:
    """What to do where MPI does not know the other processes."""
    advice = (
        "MPI began before td.distributed.init(), which is to come first"
        if not launched.is_mpi
        else "srun starts MPI's processes with a plugin (srun --mpi=list names them: pmi2, pmix), "
        "or use treadle launch"
        if launched.launcher == "SLURM"
        else "this Python's mpi4py has another MPI than the mpiexec that has started it: use that "
        "MPI's mpiexec, or treadle launch"
    )
    return f"{launched.launcher} counts {launched.size} processes, and MPI {found}: {advice}"


def _with_places(error: DistributedError, world: World) -> DistributedError:
    """An error of a backend's beginning, with where the other ranks are."""
    places = [] if world.client is None else world.client.where()
    lines = "".join(f"\n  {each}" for each in places)
    return DistributedError(f"{error}{'. Where each rank is:' if lines else ''}{lines}")


def leave() -> None:
    """End this rank's part before the process ends."""
    if _world is not None:
        _world.leave()


# --- what users ask ----------------------------------------------------------------------------


def world() -> World:
    """All ranks. DistributedError if this process is one of several and has not called `init`."""
    if _world is None:
        launched = environment.launched()
        if launched is not None and launched.size > 1:
            raise DistributedError(
                f"this process is rank {launched.rank} of {launched.size} ({launched.launcher}), "
                "and does not know the others yet: call td.distributed.init() at the beginning of "
                "the script"
            )
        return World(0, 1, 0, 30.0, False)
    return _world


def current() -> Group:
    """The group of all ranks. DistributedError as by `world`."""
    return Group(world(), None)


def new_group(ranks: Sequence[int] | Sequence[Sequence[int]]) -> Group | None:
    """A group of some ranks, for the `group` of collectives and layers; None on the others.

    It may be several groups without a rank in common, [[0, 1], [2, 3]]: each rank gets the one that
    it is in. Ranks are numbered anew within a group, in the order given. All ranks call this with
    the same ranks, also those that are in no group, in the same order as all that all of them do.

    >>> import treadle as td
    >>> group = td.distributed.new_group([0])
    >>> td.distributed.all_reduce(td.asarray([1.0], device="cpu"), group=group).tolist()
    [1.0]
    """
    everyone = world()
    members = everyone.split(parts_of(ranks, everyone.size))
    return None if members is None else Group(everyone, members)


def is_initialized() -> bool:
    """Whether `init` was called.

    >>> import treadle as td
    >>> td.distributed.init()
    >>> td.distributed.is_initialized()
    True
    """
    return _world is not None


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
    return world().local_rank


def backend() -> str | None:
    """What moves the data: "mpi" or "nccl"; None of a single process.

    >>> import treadle as td
    >>> td.distributed.backend() is None
    True
    """
    found = current().engine
    return None if found is None else found.name
