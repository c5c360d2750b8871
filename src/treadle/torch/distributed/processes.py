"""Which processes there are: `init_process_group`, and groups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from treadle.core.errors import DistributedError
from treadle.distributed import environment
from treadle.distributed import group as processes
from treadle.runtime.devices import Device
from treadle.torch import devices

# What PyTorch calls what moves the data, and what does it here; None is NCCL where the default
# device is an NVIDIA GPU, else MPI.
_BACKENDS: Mapping[str | None, str | None] = {
    None: None, "nccl": "nccl", "gloo": "mpi", "mpi": "mpi", "cpu:gloo,cuda:nccl": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Some of the processes. `inner` is treadle's group, None of all processes."""

    ranks: tuple[int, ...]
    inner: Any = None

    def rank(self) -> int:
        """The number of this process in the group; -1 if it is not in it."""
        here = processes.rank()
        return self.ranks.index(here) if here in self.ranks else -1

    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)


class GroupMember:
    """The groups that are known by name."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = ProcessGroup(())


group = GroupMember
_backend: str | None = None


def is_available() -> bool:
    """Whether processes can train together.

    >>> import treadle.torch as torch
    >>> torch.distributed.is_available(), torch.distributed.is_initialized()
    (True, False)
    """
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return GroupMember.WORLD is not None


def is_nccl_available() -> bool:
    """Whether the backend "nccl" may be asked for."""
    return True


def is_gloo_available() -> bool:
    """Whether the backend "gloo" may be asked for: MPI moves its data."""
    return True


def is_mpi_available() -> bool:
    """Whether the backend "mpi" may be asked for."""
    return True


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started this process and others."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Connect this process to the others, as `td.distributed.init` does.

    Ranks are those of the launcher (`treadle launch`, torchrun, mpiexec, srun), or `rank` and
    `world_size`, which meet at MASTER_ADDR and MASTER_PORT or at `init_method="tcp://host:port"`.
    "nccl" is NCCL; "gloo" and "mpi" are MPI, on all devices. A rank waits for `timeout` (a
    timedelta or seconds, 10 minutes if it is None) at most. `device_id` is this rank's GPU, else it
    is the one of `torch.cuda.set_device`, or that with the number of the local rank. RuntimeError
    for what there is not.

    >>> import treadle.torch as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> torch.distributed.get_rank(), torch.distributed.get_world_size()
    (0, 1)
    >>> torch.distributed.destroy_process_group()
    """
    global _backend
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None:
        raise DistributedError(
            "init_process_group takes no store: the ranks have their own, at MASTER_ADDR and "
            'MASTER_PORT or init_method="tcp://host:port"'
        )
    name = backend if backend is None else str(backend).lower()
    if name not in _BACKENDS:
        known = ", ".join(each for each in _BACKENDS if each)
        raise ValueError(f"the backends are {known}, not {backend!r}")
    _meeting_place(init_method)
    if world_size > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world_size))
    found = environment.launched()
    engine = _BACKENDS[name] if found is not None and found.size > 1 else None
    processes.init(engine, _seconds(timeout), device=_device(device_id, engine))
    GroupMember.WORLD = ProcessGroup(tuple(range(processes.size())))
    _backend = name or ("nccl" if processes.backend() == "nccl" else "gloo")


def _meeting_place(method: str | None) -> None:
    """Set the variables that say where ranks meet."""
    if method is None or method.startswith("env://"):
        return
    found = urlsplit(method)
    if found.scheme != "tcp" or not found.hostname or not found.port:
        raise DistributedError(
            f"ranks do not meet at {method!r}: use tcp://host:port with the host of rank 0, or "
            "env:// with MASTER_ADDR and MASTER_PORT"
        )
    os.environ.update(MASTER_ADDR=found.hostname, MASTER_PORT=str(found.port))


def _seconds(timeout: Any) -> float:
    if timeout is None:
        return 600.0
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _device(chosen: Any, backend: str | None) -> Any:
    """The device of this rank; None if nothing says which."""
    if chosen is not None:
        return devices.place(chosen)
    if backend == "nccl" and devices.current_card():
        return devices.place("cuda")
    return None


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget the groups. The processes stay connected until they end, as `init_process_group` may
    be called again."""
    global _backend
    if group is None or group is GroupMember.WORLD:
        GroupMember.WORLD = _backend = None


def world() -> ProcessGroup:
    """All processes. ValueError if `init_process_group` was not called."""
    if GroupMember.WORLD is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return GroupMember.WORLD


def where() -> Device:
    """A device whose memory the backend reaches."""
    engine = processes.current().engine
    found = None if engine is None else engine.device
    return devices.place("cpu") if found is None else found


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup:
    """The group of some processes, which all processes make in the same order, also those outside.
    Collectives do nothing in a process outside their group. `timeout` and `backend` are those of
    `init_process_group`."""
    whole = world()
    chosen = whole.ranks if ranks is None else tuple(sorted(ranks))
    if chosen == whole.ranks:
        return whole
    return ProcessGroup(chosen, processes.new_group(chosen))


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: Any = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup]]:
    """Groups without a process in common: that of this process, and all."""
    world()
    listed = [tuple(each) for each in ranks_per_subgroup_list]
    here = processes.new_group(listed)
    rank = processes.rank()
    found = [ProcessGroup(each, here if rank in each else None) for each in listed]
    own = [each for each in found if rank in each.ranks]
    return own[0] if own else GroupMember.NON_GROUP_MEMBER, found


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process among those of a group; -1 if it is not in it."""
    return (group or world()).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes a group has; -1 if this one is not in it."""
    found = group or world()
    return found.size() if found.rank() >= 0 else -1


def get_backend(group: ProcessGroup | None = None) -> str:
    """What moves the data, by the name that was asked for: "nccl", "gloo" or "mpi"."""
    world()
    assert _backend is not None
    return _backend


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number among all processes of one of a group's."""
    return group.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of one of all processes. ValueError if it is not in it."""
    if global_rank not in group.ranks:
        raise ValueError(f"rank {global_rank} is not in the group of ranks {list(group.ranks)}")
    return group.ranks.index(global_rank)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The numbers among all processes of a group's."""
    return [*(group or world()).ranks]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those of its host."""
    world()
    return processes.local_rank()
