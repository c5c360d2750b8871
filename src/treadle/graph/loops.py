"""`Loops`: which loops a kernel that is being built has, and whether they can do a reduction.

They run over the axes of what is stored (the outer space). A reduction whose result has these axes
opens an inner space, with its source's other axes behind them; one whose result is broadcast over
some of the axes makes these the reduced ones ("rows", as in a softmax). All further reductions of
the kernel have to fit into these loops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from treadle.graph.node import Node
from treadle.graph.program import IN_PARTS, Kind, Space
from treadle.graph.views import View, is_in_order
from treadle.runtime.arrays import packed_strides
from treadle.runtime.devices import Device

_LONG_ROW, _FEW_ROWS = 1 << 13, 64  # rows this long are only one kernel's if there are so many
_MOST_REDUCTIONS = 8  # in a kernel


@dataclass(slots=True)
class Loops:
    """The loops of a kernel. `reduced` are axes of the inner space if the kind is REDUCE, else of
    the outer one. `rows` says whether the kernel may have reductions of one row that depend on each
    other, or values of each element that depend on one; `nested` whether a reduction depends on
    another one's result."""

    device: Device
    outer: tuple[int, ...]
    rows: bool
    kind: Kind = Kind.MAP
    inner: tuple[int, ...] = ()
    reduced: tuple[int, ...] = ()
    nested: bool = False
    reductions: int = 0
    factors: dict[Space, tuple[int, ...]] = field(default_factory=dict)  # of a product: their axes

    def axes_of(self, space: Space) -> tuple[int, ...]:
        """The extents of a space's axes."""
        if space == Space.OUTER:
            return self.outer
        return self.inner if space == Space.INNER else self.factors[space]

    @property
    def space(self) -> tuple[int, ...]:
        """The axes that all loops together have."""
        return self.inner if self.kind == Kind.REDUCE else self.outer

    @property
    def program_kind(self) -> Kind:
        """The kind of the program that these loops become."""
        return Kind.ROWS if self.kind == Kind.REDUCE and self.nested else self.kind

    def axes(self) -> tuple[list[int], list[int]]:
        """The positions of kept and reduced axes: in the outer space, and in the reduced one."""
        outer = range(len(self.outer))
        if self.kind == Kind.MAP:
            return list(outer), []
        if self.kind == Kind.REDUCE:
            return list(outer), list(self.reduced)
        return [a for a in outer if a not in self.reduced], list(self.reduced)


def reduced_view(loops: Loops, node: Node, view: View | None, space: Space) -> View | None:
    """The view through which the loops see the source of a reduction, whose result they see through
    `view` in a space. None if they can't do it. The first reduction says which loops there are."""
    inner = space == Space.INNER
    if loops.kind == Kind.PRODUCT or space > Space.INNER:
        return None
    if view is None:
        view = View(node.shape, packed_strides(node.shape), 0)
    if loops.kind == Kind.MAP and not inner and not _open(loops, node, view):
        return None
    if loops.kind == Kind.REDUCE and not inner:
        if not is_in_order(view):
            return None
        behind = (0,) * (len(loops.inner) - len(loops.outer))
        view = View(loops.inner, view.strides + behind, 0)
    elif loops.kind == Kind.REDUCE and not _rows_pay(loops, loops.reduced):
        return None
    seen = _source_view(loops.space, loops.reduced, node, view)
    if seen is None or loops.reductions >= _MOST_REDUCTIONS:
        return None
    loops.reductions += 1
    loops.nested = loops.nested or inner
    return seen


def _open(loops: Loops, node: Node, view: View) -> bool:
    """Give a map the loops of its first reduction."""
    if is_in_order(view):
        source = node.sources[0]
        _, axes, *_ = node.detail
        tail = tuple(source.shape[a] for a in axes)
        space = (*loops.outer, *tail)
        reduced = tuple(range(len(loops.outer), len(space)))
        seen = View(space, view.strides + (0,) * len(tail), 0)
        if _source_view(space, reduced, node, seen) is None:  # its axes were split
            return False
        loops.kind, loops.inner, loops.reduced = Kind.REDUCE, space, reduced
        return True
    broadcast = tuple(
        a
        for a, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        if stride == 0 and extent != 1
    )
    if not broadcast or not _rows_pay(loops, broadcast):
        return False
    if _source_view(loops.outer, broadcast, node, view) is None:
        return False
    loops.kind, loops.reduced = Kind.ROWS, broadcast
    return True


def _rows_pay(loops: Loops, reduced: tuple[int, ...]) -> bool:
    """Whether it pays to have a whole row done by one block: with few long rows most of a CPU's
    cores would have nothing to do, unless rows are so long that they are done in parts."""
    if not loops.rows:
        return False
    space = loops.space
    length = math.prod(space[a] for a in reduced)
    rows = math.prod(space) // max(length, 1)
    in_parts = not loops.device.traits.serial_threads or length >= IN_PARTS
    return in_parts or length <= _LONG_ROW or rows >= _FEW_ROWS


def _source_view(
    space: tuple[int, ...], reduced: tuple[int, ...], node: Node, view: View
) -> View | None:
    """The view of a reduction's source over the loop axes, if its result, seen through `view`, has
    one element for all of the reduced axes and its other axes are the kept ones, in order."""
    _, axes, *_ = node.detail
    source = node.sources[0].shape
    steps = packed_strides(source)
    strides = [0] * len(space)
    mine = [(source[a], steps[a]) for a in axes if source[a] != 1]
    loops = [a for a in reduced if space[a] != 1]
    if [extent for extent, _ in mine] != [space[a] for a in loops] or view.offset:
        return None
    for loop, (_, step) in zip(loops, mine, strict=True):
        if view.strides[loop] != 0:
            return None
        strides[loop] = step
    kept = [(source[a], steps[a]) for a in range(len(source)) if a not in axes and source[a] != 1]
    loops = [a for a in range(len(space)) if a not in reduced and space[a] != 1]
    if [extent for extent, _ in kept] != [space[a] for a in loops]:
        return None
    packed = 1
    for loop, (extent, step) in zip(reversed(loops), reversed(kept), strict=True):
        if view.strides[loop] != packed:
            return None
        strides[loop] = step
        packed *= extent
    return View(space, tuple(strides), 0)
