"""Variables of a transform: what a function is differentiated by, with a history of its own.

A variable sees the elements of an argument. If the argument has a history itself, that of an
outer transform or of a tensor that requires gradients, the variable is a view of it, so that the
gradients that a transform gives can be differentiated again; else its history begins with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treadle.graph import views
from treadle.graph.history import History, Leaf, recording
from treadle.graph.node import view_of
from treadle.tensor.tensor import Tensor, from_node


def variable(tensor: Tensor) -> Tensor:
    """A tensor with the elements of another one and a history of its own. Writing to it writes
    to a copy."""
    node = view_of(tensor._node, views.whole(tensor.shape))
    if node.history is None or not recording.get():
        node.history = Leaf(node)
    return from_node(node)


def histories_of(tensors: Iterable[Tensor]) -> list[History]:
    """The histories that tensors have, each once."""
    nodes = (tensor._node for tensor in tensors)
    return list(dict.fromkeys(node.history for node in nodes if node.history is not None))


def has_others(outputs: Sequence[Tensor], variables: Sequence[History]) -> bool:
    """Whether outputs come from anything that has a history, other than variables: their history
    begins with them. Then their gradients have one, too."""
    if not all(isinstance(each, Leaf) for each in variables):
        return True
    first = min((each.serial for each in variables), default=0)
    found = set(variables)
    todo = [each for each in histories_of(outputs) if each not in found]
    found.update(todo)
    while todo:
        made = todo.pop()
        if made.serial < first or isinstance(made, Leaf):
            return True
        for edge in made.edges:
            if edge is not None and edge not in found:
                found.add(edge)
                todo.append(edge)
    return False
