"""How attention's operands lie: their axes of heads, seen so that memory is read where it is.

Heads are axes like any others. Where several heads of the query share one of the key, that axis is
seen as three, along the last ones of which the keys stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph import kinds, views
from treadle.graph.node import Node
from treadle.graph.views import View
from treadle.kernels.attend import Laid

Integers = tuple[int, ...]
_LARGEST_BASE = 4  # times what is seen of it, that is computed so that this is read in place


def in_place(node: Node, by_rows: bool) -> tuple[Node, View]:
    """What is to be computed, and the view of it that an operand is. That is the node itself, which
    is a copy if it is a view, unless what it is a view of may be read in place: all strides are
    positive, and `by_rows` neighbours in a row lie side by side."""
    base, view = node, views.whole(node.shape)
    while base.op == kinds.VIEW:
        composed = views.compose(view, base.detail)
        if composed is None:
            break
        base, view = base.sources[0], composed
    in_rows = not by_rows or view.shape[-1] <= 1 or view.strides[-1] == 1
    much = base.array is None and base.size > _LARGEST_BASE * node.size
    if min(view.strides) < 0 or not in_rows or much:
        return node, views.whole(node.shape)
    return base, view


def along_heads(view: View, front: Integers, heads: Integers, rows: Integers) -> View:
    """An operand seen along all axes in front, and rows of that shape. If heads are grouped, the
    last axis in front becomes three: heads that all have, heads that one of key and value has more,
    heads that only the query has. `heads` are those of query, key and value."""
    if heads:
        few, many = sorted(heads[1:])
        groups = (few, many // few, heads[0] // many)
        own = view.shape[-3] if len(view.shape) > 2 else 1
        mine = {1: (1, 1, 1), few: (few, 1, 1), many: (*groups[:2], 1), heads[0]: groups}[own]
        split = views.reshape(view, (*view.shape[:-3], *mine, *view.shape[-2:]))
        assert split is not None  # an axis can always be split
        view, front = split, (*front[:-1], *groups)
    return views.expand(view, (*front, *rows))


def merged(seen: Sequence[View]) -> tuple[Integers, list[Laid]]:
    """The axes in front of operands' rows and those of a contiguous result, as few as possible, and
    how each operand lies along them, along rows and (of the mask, which is the fourth) columns."""
    front = seen[0].shape[:-2]
    strides = [view.strides[:-2] for view in seen]
    axes, steps = views.merge_axes(front, [*strides, views.whole(front).strides])
    laid = []
    for position, (own, view) in enumerate(zip(steps, seen, strict=False)):
        last = 4 if position == 3 else 3
        extents, moves = (*axes, *view.shape[-2:]), (*own, *view.strides[-2:])
        kept = tuple([s if n > 1 else 0 for n, s in zip(extents, moves, strict=True)])
        laid.append(Laid(kept[: len(axes) + last - 2], view.offset))
    return axes, laid
