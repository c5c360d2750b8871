"""Debug mode: before each collective the ranks compare what they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.operation import Operation

if TYPE_CHECKING:
    from treadle.distributed.group import Group


def compare(group: Group, client: Client, operation: Operation) -> None:
    """DistributedError, on each rank, if not all start the same operation."""
    number, own = operation.number, str(operation.request)
    client.set(f"check {number} {group.rank}", own)
    found = []
    for rank in range(group.size):
        key = f"check {number} {rank}"
        found.append(own if rank == group.rank else group.ask(key, operation))
    # All ranks have had what was given for the operation before.
    client.drop(f"check {number - 1} {group.rank}")
    if len({*found}) > 1:
        lines = "".join(f"\n  rank {rank}: {text}" for rank, text in enumerate(found))
        raise DistributedError(
            f"the ranks do not start the same operation number {number}:{lines}\nAll ranks call "
            "the same collectives in the same order, with equal shapes and dtypes"
        )
