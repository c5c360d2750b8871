"""What a traced function has to do with gradients.

A replay makes no histories. So a function whose results still lead back to leaves, a model without
its backward pass, say, is not replayed; nor is one that leaves gradients in memory of its own. What
else it does to gradients is done by every replay: the leaves that it sets have them then.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from treadle.graph.history import Leaf, has_way_back
from treadle.graph.views import View
from treadle.tensor.cells import Cell
from treadle.tensor.tensor import Tensor, from_cell

RESULTS = "it gives tensors that require gradients"
_MADE = "it leaves gradients, x.grad, that no optimizer has memory for"


class Given(NamedTuple):
    """A leaf's gradient before, if the function looked at it, and after it."""

    leaf: Leaf
    is_read: bool
    before: Any
    after: Any
    cell: Cell | None  # where it is, whatever becomes of the tensor: steps in Python may move it
    view: View | None

    @property
    def is_current(self) -> bool:
        """Whether a replay would find what the function found."""
        return not self.is_read or self.leaf._gradient is self.before

    def put(self) -> None:
        """Leave what the function left."""
        after, cell = self.after, self.cell
        if cell is not None and after._cell is not cell:
            after = from_cell(cell, self.view)
        self.leaf._gradient = after


def given(noted: Mapping[Leaf, tuple[bool, Any]]) -> list[Given]:
    """What has become of the gradients that were looked at."""
    found = []
    for leaf, first in noted.items():
        after = leaf._gradient
        cell, view = (None, None) if after is None else (after._cell, after._view)
        found.append(Given(leaf, *first, after, cell, view))
    return found


def reason(results: Iterable[Tensor], found: Iterable[Given], outside: Container[Cell]) -> str:
    """Why a function is not replayed; nothing if it can be."""
    if any(has_way_back(each._history) for each in results if each._leaf is None):
        return RESULTS
    for each in found:
        if each.after is not None and each.after._cell not in outside:
            return _MADE
    return ""
