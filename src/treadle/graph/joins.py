"""Where the parts of a joined array are in a kernel's loops.

A kernel that reads a joined array at a point of its loops reads one of the parts, which one the
point's indices say. Each part is in a box of the loops, and is seen from there through a view whose
shape is the box: so views below compose as they do elsewhere, as if there were no other points.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.graph.node import Node
from treadle.graph.views import Integers, View, along_axes, whole
from treadle.runtime.arrays import packed_strides

MOST_PARTS = 8  # that a kernel chooses from
_NOWHERE = ([0], [0])  # the box of a part that is not seen


class Bound(NamedTuple):
    """A range of a loop axis, without the bounds that the loop itself has (None)."""

    axis: int
    low: int | None
    high: int | None


class Sight(NamedTuple):
    """A part in a box of the loops, which begins at the indices `first`."""

    part: Node
    view: View
    first: Integers
    bounds: tuple[Bound, ...]


def sights(node: Node, view: View | None, first: Integers | None) -> list[Sight] | None:
    """The parts of a joined array that are seen through a view, whose shape is a box of the loops
    that begins at `first`. None if a part is in no box."""
    if view is None:
        view = whole(node.shape)
    found = along_axes(view, node.shape)
    if found is None:
        return None
    begin, moves = found
    start = first if first is not None else (0,) * len(view.shape)
    seen: list[Sight] = []
    for part, origin in zip(node.sources, node.detail, strict=True):
        box = _box(node.shape, part.shape, origin, view, begin, moves)
        if box is None:
            return None
        low, high = box
        if any(to <= since for since, to in zip(low, high, strict=True)):
            continue
        steps = packed_strides(part.shape)
        strides = tuple([sum(map(_times, move, steps)) for move in moves])
        offset = sum((at - to) * step for at, to, step in zip(begin, origin, steps, strict=True))
        offset += sum(map(_times, low, strides))
        bounds = [
            Bound(
                axis, start[axis] + since if since else None, start[axis] + to if to < n else None
            )
            for axis, (since, to, n) in enumerate(zip(low, high, view.shape, strict=True))
            if since or to < n
        ]
        extents = tuple([to - since for since, to in zip(low, high, strict=True)])
        corner = tuple(map(sum, zip(start, low, strict=True)))
        seen.append(Sight(part, View(extents, strides, offset), corner, tuple(bounds)))
    return seen


def _times(one: int, other: int) -> int:
    return one * other


def _box(
    shape: Integers,
    extents: Integers,
    origin: Integers,
    view: View,
    begin: Integers,
    moves: tuple[Integers, ...],
) -> tuple[list[int], list[int]] | None:
    """The box of a view's indices in which it sees a part; None if they do not form a box."""
    low, high = [0] * len(view.shape), list(view.shape)
    for axis, extent in enumerate(extents):
        if extent == shape[axis]:
            continue
        since = origin[axis] - begin[axis]  # of what the indices add along this axis
        to = since + extent
        loops = [loop for loop, move in enumerate(moves) if move[axis]]
        if len(loops) > 1:
            return None
        if not loops:
            if not since <= 0 < to:
                return _NOWHERE
            continue
        loop = loops[0]
        step = moves[loop][axis]
        if step > 0:
            first, last = -(-since // step), -(-to // step)
        else:
            first, last = to // step + 1, since // step + 1
        low[loop], high[loop] = max(low[loop], first), min(high[loop], last)
    return low, high
