"""How the parameters of a unit lie in one flat array, of which each rank has an equal part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from treadle.core.dtypes import DType
from treadle.graph.node import constant
from treadle.nn.module import Module
from treadle.runtime.devices import Device
from treadle.tensor.assembly import concat
from treadle.tensor.conversions import number_as
from treadle.tensor.tensor import Tensor, from_node

_ALIGNMENT = 64  # bytes that where a parameter begins is a multiple of, for wide loads


@dataclass(frozen=True, slots=True)
class Member:
    """A parameter of a flat array: its name in the model, where modules have it, the tensor that
    has this rank's part, its shape as a whole, and where it begins."""

    name: str
    places: tuple[tuple[Module, str], ...]
    piece: Tensor
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        """The number of its elements."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Flat:
    """Parameters of one dtype, one after the other, with gaps of zeros; `part` elements of it are
    each rank's."""

    members: tuple[Member, ...]
    dtype: DType
    device: Device
    part: int
    ranks: int

    def piece(self, member: Member, rank: int) -> tuple[int, int]:
        """Which elements of a parameter a rank has: from and to, counted in the parameter."""
        first = rank * self.part - member.start
        begin = min(max(first, 0), member.size)
        return begin, min(max(first + self.part, 0), member.size)

    def joined(self, pieces: Sequence[Tensor], rank: int, dtype: DType) -> Tensor:
        """A rank's part: pieces of all members, and zeros between them."""
        found: list[Tensor] = []
        at = rank * self.part
        for member, piece in zip(self.members, pieces, strict=True):
            begin, end = self.piece(member, rank)
            if begin < end:
                self._fill(found, member.start + begin - at, dtype)
                found.append(piece if piece.dtype is dtype else piece.to(dtype))
                at = member.start + end
        self._fill(found, (rank + 1) * self.part - at, dtype)
        return found[0].clone() if len(found) == 1 else concat(found)

    def _fill(self, found: list[Tensor], count: int, dtype: DType) -> None:
        if count:
            zero = number_as(0, dtype)
            found.append(from_node(constant(zero, (count,), dtype, self.device)))

    def pieces(self, part: Tensor, rank: int) -> list[Tensor]:
        """The pieces of a rank's part, of all members."""
        found = []
        for member in self.members:
            begin, end = self.piece(member, rank)
            at = member.start + begin - rank * self.part if begin < end else 0
            found.append(part[at : at + end - begin])
        return found

    def wholes(self, whole: Tensor) -> list[Tensor]:
        """The parameters in the whole array."""
        line = whole.reshape((-1,))
        return [
            line[each.start : each.start + each.size].reshape(each.shape) for each in self.members
        ]


def starts(sizes: Sequence[int], dtype: DType, ranks: int) -> tuple[list[int], int]:
    """Where parameters of some sizes begin, and how many elements a rank has."""
    unit = max(_ALIGNMENT // dtype.itemsize, 1)
    found, end = [], 0
    for size in sizes:
        found.append(end)
        end += -(-size // unit) * unit
    each = unit * ranks
    return found, max(-(-end // each), 1) * unit
