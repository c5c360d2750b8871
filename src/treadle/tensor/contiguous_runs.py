"""Tensors that are adjacent in memory, as one tensor each run: a few kernels instead of many."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.graph.views import View
from treadle.runtime.arrays import is_contiguous
from treadle.tensor.cells import Cell
from treadle.tensor.tensor import Tensor, from_cell


def contiguous_runs(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The elements of tensors as few contiguous runs, in any order, for operations that treat all
    elements alike. Writing a run writes its tensors. A tensor without adjacent ones is a run of its
    own; the gradients of an optimizer's parameters are adjacent.

    >>> import treadle as td
    >>> x = td.arange(6, device="cpu")
    >>> [each.tolist() for each in contiguous_runs([x[:2], x[2:5]])]
    [[0, 1, 2, 3, 4]]
    """
    found: list[Tensor] = []
    parts: dict[Cell, list[tuple[int, int, Tensor]]] = {}
    for each in tensors:
        view = each._view
        if view is None or not is_contiguous(view.shape, view.strides):
            found.append(each)
        elif each.size:
            part = view.offset, view.offset + each.size, each
            parts.setdefault(each._cell, []).append(part)
    for own in parts.values():
        found += _runs(sorted(own, key=lambda part: part[:2]))
    return found


def _runs(parts: list[tuple[int, int, Tensor]]) -> list[Tensor]:
    """Parts of one cell in memory order, merged where one begins at the end of another."""
    runs: list[list[tuple[int, int, Tensor]]] = []
    for part in parts:
        if runs and runs[-1][-1][1] == part[0] and _alike(runs[-1][-1][2], part[2]):
            runs[-1].append(part)
        else:
            runs.append([part])
    found = []
    for run in runs:
        first = run[0][2]
        if len(run) > 1:
            start, end = run[0][0], run[-1][1]
            made = from_cell(first._cell, View((end - start,), (1,), start))
            made._boundary = first._boundary
            first = made
        found.append(first)
    return found


def _alike(one: Tensor, other: Tensor) -> bool:
    """Whether gradients flow to the same leaf through both."""
    mine, theirs = one._boundary, other._boundary
    if mine is None or theirs is None:
        return mine is theirs
    return mine.leaf is theirs.leaf
