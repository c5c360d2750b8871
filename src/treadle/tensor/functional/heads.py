"""The layout of attention's operands: views with split axes of heads, so that memory is read in
place.

Heads are axes like any others. If several heads of the query share one of the key, that axis is
split into three, and the keys are broadcast along the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treadle.graph import views
from treadle.graph.node import COPY, VIEW, Node
from treadle.graph.views import View
from treadle.kernels.attend import Laid, Problem

Integers = tuple[int, ...]
_LARGEST_BASE = 4  # times a view's size: a larger base is not computed for it


class AttentionOptions(NamedTuple):
    """The options of attention. `front` are the leading axes of the result, `heads` the numbers of
    heads of query, key and value if they are grouped. A query sees `left` keys before its own
    position and `right` after it; None means unlimited. Of packed texts two more operands have the
    first queries and the first keys, each with the end of the last; `longest` is the length of the
    longest, if it is given."""

    front: Integers
    heads: Integers
    scale: float
    left: int | None
    right: int | None
    dropout: float
    packed: bool = False
    longest: int | None = None

    @property
    def groups(self) -> Integers:
        """The axes of heads: heads that all three have, the factor by which one of key and value
        has more, and the factor by which the query has more. Empty if heads are not grouped."""
        if not self.heads:
            return ()
        few, many = sorted(self.heads[1:])
        return few, many // few, self.heads[0] // many

    def split(self, own: int) -> Integers:
        """The number of heads of an operand split into the axes of `groups`."""
        few, many = sorted(self.heads[1:])
        groups = self.groups
        return {1: (1, 1, 1), few: (few, 1, 1), many: (*groups[:2], 1), self.heads[0]: groups}[own]

    @property
    def split_front(self) -> Integers:
        """The leading axes with split heads."""
        return (*self.front[:-1], *self.groups) if self.heads else self.front


class LaidOut(NamedTuple):
    """The nodes of operands, their layout, and the leading axes along which the keys or the values
    differ."""

    sources: tuple[Node, ...]
    problem: Problem
    own: Integers


def laid_out(
    nodes: Sequence[Node], options: AttentionOptions, by_products: bool = False
) -> LaidOut:
    """The layout of query, key, value and perhaps a mask, or the starts of packed texts, for the
    kernel library. For products of matrices the queries of heads that share a key are made
    contiguous, as one matrix."""
    first = nodes[0]
    if by_products and options.heads and options.groups[2] > 1 and first.op == VIEW:
        copy = Node(COPY, (first,), first.shape, first.dtype, first.device)
        nodes = [copy, *nodes[1:]]
    queries, keys = nodes[0].shape[-2], nodes[1].shape[-2]
    depth, width = nodes[0].shape[-1], nodes[2].shape[-1]
    nodes, starts = (nodes[:3], nodes[3:]) if options.packed else (nodes, ())
    sources, seen = zip(
        *[in_place(node, by_rows=i < 3) for i, node in enumerate(nodes)], strict=True
    )
    rows = ((queries, depth), (keys, depth), (keys, width), (queries, keys))
    views = [along_heads(view, options, own) for view, own in zip(seen, rows, strict=False)]
    axes, laid = merged(views)
    mask = laid[3] if len(nodes) > 3 else None
    problem = Problem(
        options.front, axes, queries, keys, depth, width, laid[0], laid[1], laid[2], mask,
        options.scale, options.left, options.right, options.dropout, options.packed,
    )  # fmt: skip
    moves = zip(options.split_front, views[1].strides, views[2].strides, strict=False)
    return LaidOut((*sources, *starts), problem, tuple([n if k or v else 1 for n, k, v in moves]))


def in_place(node: Node, by_rows: bool) -> tuple[Node, View]:
    """The node to compute for an operand, and the operand's view of it. If the operand is a view
    whose base can be read in place, that is the base: strides must be positive and, if `by_rows`,
    elements of a row adjacent. Otherwise it is the operand itself, which is copied if it is a
    view."""
    base, view = node, views.whole(node.shape)
    while base.op == VIEW:
        composed = views.compose(view, base.detail)
        if composed is None:
            break
        base, view = base.sources[0], composed
    in_rows = not by_rows or view.shape[-1] <= 1 or view.strides[-1] == 1
    much = base.array is None and base.size > _LARGEST_BASE * node.size
    if min(view.strides) < 0 or not in_rows or much:
        return node, views.whole(node.shape)
    return base, view


def along_heads(view: View, options: AttentionOptions, rows: Integers) -> View:
    """An operand's view with split heads, broadcast to all leading axes and rows of a shape."""
    if options.heads:
        own = view.shape[-3] if len(view.shape) > 2 else 1
        split = views.reshape(view, (*view.shape[:-3], *options.split(own), *view.shape[-2:]))
        assert split is not None  # an axis can always be split
        view = split
    return views.expand(view, (*options.split_front, *rows))


def merged(seen: Sequence[View]) -> tuple[Integers, list[Laid]]:
    """The leading axes of operands and of a contiguous result merged into as few as possible, and
    the strides of each operand along them, along rows and (for the mask, the fourth) columns."""
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
