"""Packed texts of different lengths, padded to one length along an axis of texts, and back.

What is padded is zeros: nothing times what lies there, perhaps a neighbour's NaN, would be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.core.dtypes import int32
from treadle.graph.history import recorded
from treadle.tensor.elementwise_functions import clip, where
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import max as largest
from treadle.tensor.searching import searchsorted
from treadle.tensor.tensor import Tensor


class PackedRows(NamedTuple):
    """Of each row: whether it is of a text, the nearest text, and its place in that text. And the
    first row of each text, with the end of the last."""

    inside: Tensor
    near: Tensor
    place: Tensor
    starts: Tensor

    @staticmethod
    def of(starts: Tensor, count: int) -> PackedRows:
        """Of so many rows."""
        with recorded(False):
            numbers = arange(count, dtype=int32, device=starts.device)
            text = searchsorted(starts, numbers, side="right").to(int32) - 1
            near = clip(text, 0, starts.size - 2)
            inside = (text >= 0) & (text < starts.size - 1)
            return PackedRows(inside, near, numbers - starts[near], starts)

    def rows(self, longest: int) -> tuple[Tensor, Tensor]:
        """Of each text and place the row, and whether there is one: (texts, longest)."""
        with recorded(False):
            places = arange(longest, dtype=int32, device=self.starts.device)
            begins, ends = self.starts[:-1].reshape((-1, 1)), self.starts[1:].reshape((-1, 1))
            index = clip(begins + places, 0, self.near.size - 1)
            return index, places < ends - begins

    def padded(self, x: Tensor, longest: int, front: int) -> Tensor:
        """(…, rows, columns) as (texts, …, longest, columns), where … are `front` axes."""
        index, there = self.rows(longest)
        found = where(there.reshape((*there.shape, 1)), x[..., index, :], 0)
        found = moveaxis(found, -3, 0)
        return found.reshape((len(index), *(1,) * (front + 2 - x.ndim), *found.shape[1:]))

    def packed(self, x: Tensor, longest: int) -> Tensor:
        """(texts, …, longest, columns) as (…, rows, columns). Rows that are of no text are zeros,
        those behind the longest NaN."""
        found = moveaxis(x, 0, -3)[..., self.near, clip(self.place, 0, longest - 1), :]
        absent = self.inside & (self.place >= longest)
        found = where(self.inside.reshape((-1, 1)), found, 0)
        return where(absent.reshape((-1, 1)), float("nan"), found).to(x.dtype)


def length_of(texts: Sequence[PackedRows], given: int | None) -> int:
    """The length that texts are padded to, 1 at least: that of the longest one, which is read
    unless it is given."""
    if given is not None:
        return max(given, 1)
    return max(1, *[int(largest(each.starts[1:] - each.starts[:-1])) for each in texts])
