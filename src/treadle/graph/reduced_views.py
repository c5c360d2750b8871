"""Where a reduction's source is seen from, in the loops of the kernel that has the reduction."""

from __future__ import annotations

from treadle.graph.node import Node
from treadle.graph.views import View
from treadle.runtime.arrays import packed_strides


def source_view(
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
    rest = [(source[a], steps[a]) for a in range(len(source)) if a not in axes and source[a] != 1]
    loops = [a for a in range(len(space)) if a not in reduced and space[a] != 1]
    if [extent for extent, _ in rest] != [space[a] for a in loops]:
        return None
    packed = 1
    for loop, (extent, step) in zip(reversed(loops), reversed(rest), strict=True):
        if view.strides[loop] != packed:
            return None
        strides[loop] = step
        packed *= extent
    return View(space, tuple(strides), 0)
