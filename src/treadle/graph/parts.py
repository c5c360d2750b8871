"""Parts of arrays: rows, elements, slices, of which programs see one after another.

Where a part begins is a number that its kernel is given, at 0 too; so a loop over rows has one
kernel and one plan, not one for each row. What plans may depend on is which parts of an array begin
at the same element, and how that element is aligned.
"""

from __future__ import annotations

from typing import Any

from treadle.graph import kinds
from treadle.graph.node import Node

_MOST_INDEX = 1 << 31
_ALIGNED = 4  # elements that GPUs load at once


def is_part(node: Node) -> bool:
    """Whether a view, or a write, is of a part of what lies in memory."""
    source = node.sources[0]
    array = source.array
    if array is None:
        if node.op != kinds.WRITE and source.op not in (kinds.WRITE, kinds.CALL):
            return False  # it may be computed where it is read
    elif array.offset + source.size >= _MOST_INDEX:
        return False
    if source.size >= _MOST_INDEX:
        return False
    shape, strides, _ = node.detail
    seen = 1
    for extent, stride in zip(shape, strides, strict=True):
        if stride:
            seen *= extent
    return 0 < seen < source.size


def key_of(node: Node, source: int, found: dict[tuple[int, int], int]) -> Any:
    """The detail of a view or a write in a graph's key. `source` is the number of what it is of,
    and `found` the parts of the graph so far."""
    if not is_part(node):
        return node.detail
    shape, strides, offset = node.detail
    number = found.setdefault((source, offset), len(found))
    return shape, strides, number, offset % _ALIGNED if node.device.backend != "cpu" else 0
