"""Derivatives of writing, adding and folding at indices: the gradient is gathered there."""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule, tensor_of
from treadle.autograd.rules.reductions import of_others, parts_of_factors
from treadle.graph.history import RESULT, History
from treadle.graph.node import INDEX, Node, constant
from treadle.tensor.advanced_indexing import gathered, index_dtype, scattered_at
from treadle.tensor.conversions import number_as
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.tensor import Tensor, from_node

_where = FUNCTIONS["where"]
Both = tuple[Any, None, Any]  # gradients of an array and of values; places have none


def _at(x: Tensor, places: Tensor) -> Tensor:
    """The elements at linear places, 0 for those outside."""
    return from_node(gathered(x._node, places._node))


def _folded(x: Any, places: Tensor, values: Any, how: str) -> Any:
    return from_node(scattered_at(x._node, places._node, values._node, how))


def _of_sum(g: Tensor, made: History) -> Both:
    values = made.edges[2]
    return g, None, None if values is None else _at(g, tensor_of(made, 1))


def _of_put(g: Tensor, made: History) -> Both:
    places, is_distinct = tensor_of(made, 1), made.options
    old = new = None
    if made.edges[0] is not None:
        zero = constant(number_as(0, g.dtype), (1,), g.dtype, g.device)
        old = from_node(scattered_at(g._node, places._node, zero))
    if made.edges[2] is not None:
        new = _at(g, places)
        if not is_distinct and places.size > 1:
            new = _where(_stays(places, g), new, 0)
    return old, None, new


def _stays(places: Tensor, x: Tensor) -> Any:
    """Whether a value is the last one that is written to its place."""
    dtype = index_dtype(places.size)
    numbers = from_node(Node(INDEX, (), places.shape, dtype, places.device))
    none = from_node(constant(-1, x.shape, dtype, x.device))
    return _at(_folded(none, places, numbers, "put"), places) == numbers


def _of_extreme(g: Any, made: History) -> Both:
    """Elements equal to the maximum have equal parts of its gradient."""
    places, x, out = (tensor_of(made, position) for position in (1, 0, RESULT))
    values = broadcast_to(tensor_of(made, 2), places.shape)
    mine: Any = x == out
    theirs: Any = values == _at(out, places)
    share = g / _folded(mine.to(g.dtype), places, theirs.to(g.dtype), "sum")
    return _where(mine, share, 0), None, _where(theirs, _at(share, places), 0)


def _of_product(g: Any, made: History) -> Both:
    x, places = tensor_of(made, 0), tensor_of(made, 1)
    values = broadcast_to(tensor_of(made, 2), places.shape)
    groups = [
        _folded(mine, places, theirs, how)
        for how, mine, theirs in zip(
            ("prod", "sum", "sum"), parts_of_factors(x), parts_of_factors(values), strict=True
        )
    ]
    theirs = of_others(values, *[_at(group, places) for group in groups])
    return g * of_others(x, *groups), None, _at(g, places) * theirs


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {
    "scattered max": (_of_extreme, (0, 1, 2, RESULT)),
    "scattered min": (_of_extreme, (0, 1, 2, RESULT)),
    "scattered prod": (_of_product, (0, 1, 2)),
    "scattered put": (_of_put, (1,)),
    "scattered sum": (_of_sum, (1,)),
}
