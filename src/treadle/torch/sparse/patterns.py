"""Where the elements of a sparse tensor are, and in which order sums visit them.

What sorting finds is kept with the pattern: a matrix that multiplies in each step of a training is
sorted once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import treadle as td
from treadle.core.limits import MOST_NARROW
from treadle.tensor.compiled.tracing import is_tracing
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers


class Bags(NamedTuple):
    """The elements of a matrix, row by row (or column by column)."""

    order: Inner | None  # which element comes next; None: they are in this order
    starts: Inner  # where each row's elements begin, and the end of the last, as int32
    others: Inner  # the column (or row) of each element in this order, as int32


class Merge(NamedTuple):
    """How elements with equal indices become one."""

    order: Inner  # of the elements, by their indices, as int32
    starts: Inner  # where each element of the result begins in that order, and the end, as int32
    group: Inner  # the element of the result that each element goes to
    pattern: Pattern


@dataclass(frozen=True, eq=False)
class Pattern:
    """The indices of a sparse tensor's elements: `indices` has a row for each of the axes, whose
    lengths are `extents`. A coalesced one has them in row-major order, each once; `sorted_by` is
    the axis by which they are sorted, if that is known."""

    indices: Inner
    extents: tuple[int, ...]
    is_coalesced: bool = False
    sorted_by: int | None = None
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self.indices.shape[1]

    def kept(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What is computed of the pattern once, under a name."""
        found = self._known.get(key)
        if found is None:
            found = compute()
            # What a trace of a function computes belongs to the trace.
            if not is_tracing.get():
                self._known[key] = found
        return found

    def transposed(self) -> Pattern:
        """That of the transpose of a matrix, whose elements keep their order."""

        def compute() -> Pattern:
            by = None if self._sorted_by is None else 1 - self._sorted_by
            found = Pattern(td.flip(self.indices, axis=0), self.extents[::-1], False, by)
            found._known["transposed"] = self
            return found

        found: Pattern = self.kept("transposed", compute)
        return found

    @property
    def _sorted_by(self) -> int | None:
        return 0 if self.is_coalesced else self.sorted_by

    def bags(self, axis: int) -> Bags:
        """The elements of a matrix row by row (axis 0), or column by column."""

        def compute() -> Bags:
            rows, others = self.indices[axis], self.indices[1 - axis].to(td.int32)
            order = None
            if self._sorted_by != axis:
                order = td.argsort(rows)
                rows, others = td.take(rows, order), td.take(others, order)
            ends = td.arange(self.extents[axis] + 1, dtype=rows.dtype, device=rows.device)
            return Bags(order, td.searchsorted(rows, ends).to(td.int32), others)

        found: Bags = self.kept(("bags", axis), compute)
        return found

    def keys(self) -> Inner:
        """The place of each element in the dense tensor, whose elements are counted row by row."""
        return linear(self.indices, self.extents)

    def merge(self) -> Merge:
        """Elements with equal indices as one, in row-major order. How many remain is read."""
        found: Merge = self.kept("merge", self._merge)
        return found

    def _merge(self) -> Merge:
        indices, device = self.indices, self.indices.device
        order = _order(indices, self.extents)
        ordered = td.take(indices, order, axis=1)
        is_new = td.any(ordered[:, 1:] != ordered[:, :-1], axis=0)
        first = td.ones((min(1, self.count),), dtype=td.bool, device=device)
        is_new = td.concat([first, is_new]) if self.count > 1 else first
        (starts,) = td.nonzero(is_new)
        group = td.cumulative_sum(is_new.to(td.int32)) - 1
        end = td.asarray([self.count], dtype=td.int32, device=device)
        merged = Pattern(td.take(ordered, starts, axis=1), self.extents, True)
        group = td.index_copy(td.zeros_like(group), 0, order, group)
        starts = td.concat([starts.to(td.int32), end])
        return Merge(order.to(td.int32), starts, group, merged)


def linear(indices: Inner, extents: tuple[int, ...]) -> Inner:
    """Places in an array of these extents, in row-major order, from a row of indices an axis."""
    found = td.zeros((indices.shape[1],), dtype=indices.dtype, device=indices.device)
    for at, extent in enumerate(extents):
        found = found * extent + indices[at]
    return found


def _order(indices: Inner, extents: tuple[int, ...]) -> Inner:
    """The order of elements by their indices; equal ones stay in theirs."""
    if math.prod(extents) < MOST_NARROW or indices.dtype.itemsize == 8:
        return td.argsort(linear(indices, extents))
    order = td.argsort(indices[len(extents) - 1])
    for at in range(len(extents) - 2, -1, -1):
        order = td.take(order, td.argsort(td.take(indices[at], order)))
    return order


def compressed(starts: Inner, others: Inner, extents: tuple[int, int], axis: int) -> Pattern:
    """The pattern of compressed rows (axis 0) or columns."""
    count = others.shape[0]
    places = td.arange(count, dtype=starts.dtype, device=starts.device)
    rows = (td.searchsorted(starts, places, side="right") - 1).to(integers(starts.device))
    pair = [rows, others.to(rows.dtype)]
    found = Pattern(td.stack(pair if axis == 0 else pair[::-1]), extents, False, axis)
    found._known["bags", axis] = Bags(None, starts.to(td.int32), others.to(td.int32))
    found._known["dtype"] = others.dtype
    return found


def counted(counts: Inner) -> tuple[Inner, Inner]:
    """For `counts[i]` places in a row for each i: the i of each place, and its number among those
    of i. How many places there are is read."""
    ends = td.cumulative_sum(counts)
    total = int(ends[-1]) if counts.size else 0
    places = td.arange(total, dtype=counts.dtype, device=counts.device)
    if not total:
        return places, places
    owner = td.searchsorted(ends, places, side="right")
    return owner, places - td.take(ends - counts, owner)
