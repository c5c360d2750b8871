"""What a collective is, without its data."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.dtypes import DType


@dataclass(frozen=True, slots=True)
class Request:
    """An operation of all ranks, or of two. `shape` is that of this rank's input (of a receive, of
    what it gets), None if there is none; `peer` the root, or the other rank."""

    kind: str
    dtype: DType
    shape: tuple[int, ...] | None
    reduction: str = ""
    peer: int | None = None
    tag: int = 0

    @property
    def is_between_two(self) -> bool:
        """Whether it is a send or a receive, which only two ranks know of."""
        return self.kind in ("send", "recv")

    def __str__(self) -> str:
        peers = {"send": " to rank {}", "recv": " from rank {}"}
        peer = "" if self.peer is None else peers.get(self.kind, " with root {}").format(self.peer)
        if self.shape is None:
            return self.kind
        reduction = f" ({self.reduction})" if self.reduction else ""
        return f"{self.kind}{reduction}{peer} of {self.dtype}{list(self.shape)}"
