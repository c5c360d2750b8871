"""Debug mode: before each collective the ranks compare what they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.operation import Operation


def compare(
    operation: Operation, rank: int, ranks: Sequence[int], client: Client, ask: Callable[[str], str]
) -> None:
    """DistributedError, on each rank, if not all of a group start the same operation. `ask` waits
    for what another rank gives."""
    number, own, group = operation.number, str(operation.request), operation.request.group_key
    client.set(f"check {group} {number} {rank}", own)
    found = [own if each == rank else ask(f"check {group} {number} {each}") for each in ranks]
    # All ranks have had what was given for the operation before.
    client.drop(f"check {group} {number - 1} {rank}")
    if len({*found}) > 1:
        lines = "".join(f"\n  rank {each}: {text}" for each, text in zip(ranks, found, strict=True))
        raise DistributedError(
            f"the ranks do not start the same operation number {number}:{lines}\nAll ranks call "
            "the same collectives in the same order, with equal shapes and dtypes"
        )
