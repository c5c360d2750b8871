"""Which rank this process is: connecting it to the others, and groups of ranks."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from treadle.core import forks
from treadle.core.errors import DistributedError
from treadle.distributed import environment, lifecycle
from treadle.distributed.backends import BACKENDS
from treadle.distributed.backends.base import Meeting
from treadle.distributed.client import Client
from treadle.distributed.environment import Launched
from treadle.distributed.members import Group, parts_of
from treadle.distributed.store import Store
from treadle.distributed.world import World
from treadle.runtime import settings
from treadle.runtime.devices import Device, default_device, devices, set_default_device
from treadle.runtime.devices import device as find_device

_world: World | None = None
_lock = forks.lock()


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
            world.store = Store(launched.size, "", port, launched.key)
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
        world.store = Store(world.size, "", 0, key)
        found = socket.gethostname(), world.store.port, key
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


def new_group(ranks: Sequence[int] | Sequence[Sequence[int]]) -> Group:
    """A group of some ranks, for the `group` of collectives and layers. On the other ranks its
    `is_member` is False, and what is given it raises a `DistributedError`.

    It may be several groups without a rank in common, [[0, 1], [2, 3]]: each rank gets the one that
    it is in. Ranks are numbered anew within a group, in the order given. All ranks call this with
    the same ranks, also those that are in no group, in the same order as all that all of them do.

    >>> import treadle as td
    >>> group = td.distributed.new_group([0])
    >>> td.distributed.all_reduce(td.asarray([1.0], device="cpu"), group=group).tolist()
    [1.0]
    """
    everyone = world()
    parts = parts_of(ranks, everyone.size)
    members = everyone.split(parts)
    return Group(everyone, members, parts if members is None else None)


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
