"""The protocol of backends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from treadle.core.dtypes import DType
from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.environment import Launched
from treadle.distributed.operation import Operation
from treadle.distributed.request import Members, Request
from treadle.runtime.devices import Device

_LOOK = 0.5  # seconds between looks whether a rank that is waited for has failed


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a backend needs to find the other ranks. There is no client yet where MPI comes first,
    and says where the store is."""

    launched: Launched
    timeout: float
    device: Device
    client: Client | None
    check: Callable[[], None]
    """Raises an error if another rank has failed."""
    look: Callable[[Sequence[Operation], bool], None]
    """Called again and again with operations, in order, that have been started and of which the
    last has not ended, and that nothing waits for in a way that could raise an error. Ends this
    process if they are late, which the second argument says, or if a rank that has not started one
    of them has ended."""


def meet(meeting: Meeting) -> None:
    """Wait until all ranks have come to `init`, as far as they are connected already."""
    client, launched = meeting.client, meeting.launched
    if client is None:
        return
    client.set(f"init {launched.rank}", True)
    until = time.monotonic() + meeting.timeout
    for rank in range(launched.size):
        while True:
            try:
                client.get(f"init {rank}", _LOOK)
                break
            except TimeoutError:
                meeting.check()
                if time.monotonic() > until:
                    raise DistributedError(
                        f"rank {rank} has not called td.distributed.init() within "
                        f"{meeting.timeout:g} s"
                    ) from None


class Backend(Protocol):
    """Moves the data of operations, in the order in which they are started.

    Memory is `HostMemory` where `on_host` is set: then all_reduce, reduce and broadcast are in
    place, with `given` None, and what others are given stays unchanged until they have ended. Else
    it is `DeviceArray`s, which the backend uses in the order of the device's streams."""

    name: str
    on_host: bool
    compares_messages: bool
    """Whether a receive of another tensor than was sent is an error; else debug mode compares."""
    device: Device | None
    """The device whose memory it uses; None where it uses the host's."""
    wider: Mapping[str, DType]
    """What numbers are cast to that it cannot reduce, by their short names."""

    def refusal(self, request: Request) -> str:
        """Why it cannot do an operation; "" if it can."""

    def start(self, operation: Operation) -> None:
        """Start an operation, without waiting for it or for those before it."""

    def record(self, operation: Operation, submitted: Callable[[], object]) -> bool:
        """Record an operation as a part of what the device captures at present; `submitted` is
        called whenever a replay submits it. False if nothing is captured, or if the host starts
        each operation, in replays too: then `start` is called."""

    def split(self, members: Members | None, color: int | None) -> None:
        """Make communicators of groups, together with all ranks: one for those that give the same
        `color`, in the order of `members`; None of a rank that is in none."""

    def close(self, failed: bool) -> Callable[[], None] | None:
        """End the library's part. Where it `failed`, nothing is waited for. What is returned ends
        the other processes, where the launcher does not."""
