"""Parts of arrays: rows, elements, slices, of which programs see one after another.

Where a part begins is a number that its kernel is given, at 0 too; so a loop over rows has one
kernel and one plan, not one for each row. What plans may depend on is which parts of an array begin
at the same element, and how that element is aligned.
"""

from __future__ import annotations

from treadle.graph.node import CALL, CONSTANT, WRITE, Node, pending_readers

_MOST_INDEX = 1 << 31
# A write of a few elements, made by as few operations, is done at once: it is a kernel of its own
# anyway, and all that are alike share a plan, which those of longer programs would not.
_FEW_ELEMENTS = 1 << 12
_FEW_OPERATIONS = 8


def is_part(node: Node) -> bool:
    """Whether a view, or a write, is of a part of what lies in memory."""
    source = node.sources[0]
    array = source.array
    if array is None:
        if node.op != WRITE and source.op not in (WRITE, CALL):
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


def is_short(write: Node) -> bool:
    """Whether a write of a part should be done at once: what it writes to is in memory, or nearly,
    and nothing else still has to read that."""
    old, values = write.sources
    if write.depth > _FEW_OPERATIONS or values.size > _FEW_ELEMENTS:
        return False
    if old.array is None and (old.op != WRITE or old.sources[0].op != CONSTANT):
        return False
    return is_part(write) and not _is_read_elsewhere(write, old)


def _is_read_elsewhere(write: Node, old: Node) -> bool:
    """Whether what is written has pending readers that are not part of the values."""
    readers = pending_readers(old)
    if len(readers) < 2:
        return False
    inside = {write}
    todo = [write.sources[1]]
    while todo:
        node = todo.pop()
        if node.array is None and node not in inside:
            inside.add(node)
            todo += node.sources
    return not inside.issuperset(readers)
