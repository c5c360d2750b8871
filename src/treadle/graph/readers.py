"""Who still has to read an array."""

from __future__ import annotations

from treadle.graph import kinds
from treadle.graph.node import Node


def pending_readers(node: Node) -> list[Node]:
    """The nodes that still have to read an array, through views of it or directly."""
    found: list[Node] = []
    todo = [node]
    while todo:
        one = todo.pop()
        readers = one.array.storage.readers if one.array is not None else one.readers
        for reference in readers or ():
            reader = reference()
            if reader is None or reader.array is not None:
                continue
            if reader.op == kinds.VIEW:
                todo.append(reader)
            else:
                found.append(reader)
    return found
