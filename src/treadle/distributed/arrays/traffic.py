"""What travels between ranks, as a table: `td.distributed.explain`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """One collective: the line of the user's code, the operation that needed it, the collective,
    the mesh axis, and how many bytes each rank sends for it."""

    line: str
    operation: str
    collective: str
    axis: str
    bytes: int


class Traffic:
    """The collectives of a block of code, in `sent`. As text a table: a row for each line of code
    and each kind of collective there."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []

    @property
    def bytes(self) -> int:
        """How many bytes each rank sends, all in all."""
        return sum(each.bytes for each in self.sent)

    def __str__(self) -> str:
        if not self.sent:
            return "nothing travels"
        rows: dict[tuple[str, ...], list[int]] = {}
        for each in self.sent:
            key = each.line, each.operation, each.collective, each.axis
            rows.setdefault(key, []).append(each.bytes)
        head = ("line", "operation", "collective", "over", "times", "bytes a rank sends")
        cells = [head, *((*key, str(len(own)), f"{sum(own):,}") for key, own in rows.items())]
        cells.append(("all", "", "", "", str(len(self.sent)), f"{self.bytes:,}"))
        widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
        lines = []
        for row in cells:
            texts = [text.ljust(wide) for text, wide in zip(row[:4], widths, strict=False)]
            numbers = [text.rjust(wide) for text, wide in zip(row[4:], widths[4:], strict=True)]
            lines.append("  ".join([*texts, *numbers]).rstrip())
        return "\n".join(lines)


_watching: ContextVar[Traffic | None] = ContextVar("traffic", default=None)


@contextmanager
def explain() -> Iterator[Traffic]:
    """Within the block all collectives of sharded arrays are noted, and shown by `print`: the line
    of the code, the operation, the collective, the mesh axis, and the bytes that each rank sends
    (those of a ring: *k* ranks send (k - 1) / k of an array twice for an all_reduce).

    Those of a backward pass have the line of the operation whose gradient is computed, which is in
    the block, too. Replays of a compiled function are not noted, its first call is.

    >>> import treadle as td
    >>> mesh = td.distributed.Mesh({"data": 1})
    >>> with td.distributed.explain() as traffic:
    ...     total = td.shard(td.ones(4, device="cpu"), mesh, ("data",)).sum()
    >>> print(traffic)  # of one rank
    nothing travels
    """
    traffic = Traffic()
    token = _watching.set(traffic)
    try:
        yield traffic
    finally:
        _watching.reset(token)


def watching() -> Traffic | None:
    """What notes the collectives here."""
    return _watching.get()
