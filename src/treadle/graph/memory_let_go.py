"""Values whose memory is let go of while they are in use, and made again before they are read."""

from __future__ import annotations

from treadle.graph.node import COMPUTED, FAILED, Node
from treadle.graph.realize import finish_readers, realize


def let_go(node: Node, reason: str) -> None:
    """Release the memory of a node. What was to read it is computed first. Until `bring_back`, what
    reads it gets an error with the reason."""
    realize((node,))
    storage = node.whole_array.storage
    finish_readers(storage)
    # Views of it that are in use, as a history's: they read the memory that comes back.
    waiting = [one for one in storage.readers or () if one() is not None]
    node.array = None
    node.op = FAILED
    node.detail = reason
    node.readers = waiting or None


def bring_back(node: Node, values: Node) -> None:
    """Give a node whose memory was let go of that of another, which has equal elements."""
    assert node.op == FAILED
    realize((values,))
    node.op = COMPUTED
    node.become(values.whole_array)
