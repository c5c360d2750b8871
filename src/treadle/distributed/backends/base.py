"""The protocol of backends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from treadle.distributed.client import Client
from treadle.distributed.environment import Launched
from treadle.distributed.operation import Operation
from treadle.runtime.devices import Device


@dataclass(frozen=True, slots=True)
class Meeting:
    """What a backend needs to find the other ranks. There is no client yet where MPI comes first,
    and says where the store is."""

    launched: Launched
    timeout: float
    device: Device
    client: Client | None


class Backend(Protocol):
    """Moves the data of operations, in the order in which they are started.

    Memory is `HostMemory` where `on_host` is set, else a `DeviceArray`. In place are
    all_reduce, reduce and broadcast, whose `given` is None; what others are given stays unchanged
    until they have ended."""

    name: str
    on_host: bool

    def start(self, operation: Operation) -> None:
        """Start an operation, without waiting for it or for those before it."""

    def close(self, failed: bool) -> Callable[[], None] | None:
        """End the library's part. Where it `failed`, nothing is waited for. What is returned ends
        the other processes, where the launcher does not."""
