"""Debug mode: before each collective the ranks compare what they start."""

from __future__ import annotations

from collections.abc import Callable

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.operation import Operation


def compare(
    operation: Operation, rank: int, size: int, client: Client, ask: Callable[[str], str]
) -> None:
    """DistributedError, on each rank, if not all start the same operation. `ask` waits for what
    another rank gives."""
    number, own = operation.number, str(operation.request)
    client.set(f"check {number} {rank}", own)
    found = [own if each == rank else ask(f"check {number} {each}") for each in range(size)]
    # All ranks have had what was given for the operation before.
    client.drop(f"check {number - 1} {rank}")
    if len({*found}) > 1:
        lines = "".join(f"\n  rank {each}: {text}" for each, text in enumerate(found))
        raise DistributedError(
            f"the ranks do not start the same operation number {number}:{lines}\nAll ranks call "
            "the same collectives in the same order, with equal shapes and dtypes"
        )
