"""The ranks that have what this one has not: parts of its tensors, or other tensors of a model.
Leaves name them, so that norms and overflows are of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from treadle.distributed.collectives import all_reduce
from treadle.distributed.members import Group
from treadle.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Holders:
    """The ranks of a group, and around them those of others: of a layer that is divided within a
    stage of a pipeline, the stages."""

    ranks: tuple[int, ...]
    group: Group = field(compare=False, repr=False)
    divides: bool = True  # whether they have parts of one tensor, rather than other tensors
    outer: Holders | None = None

    def total(self, x: Tensor, op: str) -> Tensor:
        """The "sum", "max" or "min" of what the ranks of the group have."""
        return all_reduce(x, op, group=self.group)


def held_by(tensors: Iterable[Tensor], group: Group, divides: bool = True) -> None:
    """Note that the ranks of a group have what this rank has not of parameters."""
    for each in tensors:
        leaf = each._own_leaf
        assert leaf is not None
        known = leaf.ranks
        assert known is None or isinstance(known, Holders)
        leaf.ranks = _around(known, Holders(group.ranks, group, divides))


def _around(known: Holders | None, others: Holders) -> Holders:
    if known is None:
        return others
    if (known.ranks, known.divides) == (others.ranks, others.divides):
        return known  # a stage of two pipelines
    return replace(known, outer=_around(known.outer, others))
