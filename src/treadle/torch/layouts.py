"""Layouts and memory formats: names that programs hand around. Dense tensors are strided, and
new ones are row-major, whatever format is asked for. And `torch.Size`, the extents."""

from __future__ import annotations

import math
from typing import Any


class layout:
    """How elements are stored."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name  # each is one object


class memory_format(layout):
    """The order of axes in memory."""


strided = layout("strided")
sparse_coo, sparse_csr = layout("sparse_coo"), layout("sparse_csr")
sparse_csc = layout("sparse_csc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class Size(tuple[int, ...]):
    """The extents of a tensor."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return int(math.prod(self)) if self else 1

    def __add__(self, other: Any) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"
