"""What is computed from tensors of which other processes have parts, or a model's other tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from treadle.graph.history import Leaf, Ranks
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor

_JOIN = {"sum": FUNCTIONS["add"], "max": FUNCTIONS["maximum"], "min": FUNCTIONS["minimum"]}


def ranks_of(tensor: Tensor) -> Ranks | None:
    """The processes that have what this one has not; None of a tensor that is the same on all."""
    leaf: Leaf | None = getattr(tensor, "_own_leaf", None)
    return None if leaf is None else leaf.ranks


def by_ranks(tensors: Iterable[Tensor]) -> dict[Ranks | None, list[Tensor]]:
    """Tensors, by the processes that have what this one has not of them."""
    found: dict[Ranks | None, list[Tensor]] = {}
    for each in tensors:
        found.setdefault(ranks_of(each), []).append(each)
    return found


def over_ranks(values: Mapping[Ranks | None, Tensor], op: str) -> Any:
    """The "sum", "max" or "min" of what all processes have computed of their tensors, each by the
    processes that have the rest. Those with most levels come first, so that what the processes of a
    level have in common is reduced once, and on all of them."""
    left = dict(values)
    while deepest := max((each for each in left if each is not None), key=_depth, default=None):
        value = deepest.total(left.pop(deepest), op)
        known = left.get(deepest.outer)
        left[deepest.outer] = value if known is None else _JOIN[op](known, value)
    return left[None]


def _depth(ranks: Ranks | None) -> int:
    return 0 if ranks is None else 1 + _depth(ranks.outer)
