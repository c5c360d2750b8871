"""What a collective is, without its data."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.dtypes import DType


@dataclass(frozen=True, slots=True)
class Members:
    """The ranks of a group that is not all of them. Groups that are made together have one number
    and no rank in common."""

    number: int
    ranks: tuple[int, ...]

    @property
    def key(self) -> str:
        """What tells the group from all others, the same on all its ranks."""
        return f"{self.number}.{min(self.ranks)}"

    def __str__(self) -> str:
        plural = "s" if len(self.ranks) > 1 else ""
        return f"rank{plural} {', '.join(map(str, self.ranks))}"


@dataclass(frozen=True, slots=True)
class Request:
    """An operation of all ranks, of a group, or of two. `shape` is that of this rank's input (of a
    receive, of what it gets), None if there is none; `peer` the root, or the other rank, counted
    within the group."""

    kind: str
    dtype: DType
    shape: tuple[int, ...] | None
    reduction: str = ""
    peer: int | None = None
    tag: int = 0
    members: Members | None = None  # None: all ranks

    @property
    def is_between_two(self) -> bool:
        """Whether it is a send or a receive, which only two ranks know of."""
        return self.kind in ("send", "recv")

    @property
    def other(self) -> int | None:
        """The root, or the other rank, counted among all."""
        if self.peer is None or self.members is None:
            return self.peer
        return self.members.ranks[self.peer]

    @property
    def group_key(self) -> str:
        """What tells its group from others; "" for all ranks."""
        return "" if self.members is None else self.members.key

    def concerns(self, rank: int) -> bool:
        """Whether a rank takes part in it."""
        if self.is_between_two:
            return rank == self.other
        return self.members is None or rank in self.members.ranks

    def __str__(self) -> str:
        peers = {"send": " to rank {}", "recv": " from rank {}"}
        peer = "" if self.peer is None else peers.get(self.kind, " with root {}").format(self.other)
        if self.shape is None:
            return self.kind
        reduction = f" ({self.reduction})" if self.reduction else ""
        return f"{self.kind}{reduction}{peer} of {self.dtype}{list(self.shape)}"
