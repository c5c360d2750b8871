"""Gradients in traced functions.

A replay makes no histories. So a function whose results have histories, such as a model without its
backward pass, is not replayed; nor is one that leaves gradients in the trace's own memory. All
other changes of gradients are repeated by every replay, which sets those of the same leaves.
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


class GradientChange(NamedTuple):
    """A leaf's gradient before the function, if that read it, and after it."""

    leaf: Leaf
    is_read: bool
    before: Any
    after: Any
    cell: Cell | None  # of the gradient; steps in Python may move the tensor to another one
    view: View | None

    @property
    def is_current(self) -> bool:
        """Whether the gradient is as the function found it."""
        return not self.is_read or self.leaf._gradient is self.before

    def put(self) -> None:
        """Set the gradient that the function left."""
        after, cell = self.after, self.cell
        if cell is not None and after._cell is not cell:
            after = from_cell(cell, self.view)
        self.leaf._gradient = after


def given(noted: Mapping[Leaf, tuple[bool, Any]]) -> list[GradientChange]:
    """The changes of the gradients that were read or set."""
    found = []
    for leaf, first in noted.items():
        after = leaf._gradient
        cell, view = (None, None) if after is None else (after._cell, after._view)
        found.append(GradientChange(leaf, *first, after, cell, view))
    return found


def reason(
    results: Iterable[Tensor], found: Iterable[GradientChange], outside: Container[Cell]
) -> str:
    """Why a function cannot be replayed; empty if it can."""
    if any(has_way_back(each._history) for each in results if each._leaf is None):
        return RESULTS
    for each in found:
        if each.after is not None and each.after._cell not in outside:
            return _MADE
    return ""
