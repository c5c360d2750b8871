"""Derivatives of what moves elements without changing them: views, copies of parts, GATHER."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.partial_gradients import Placed
from treadle.graph import views
from treadle.graph.calls import call
from treadle.graph.history import History
from treadle.graph.node import COPY, GATHER, INDEX, VIEW, WRITE, Node, constant, view_of
from treadle.graph.views import View
from treadle.kernels.scatter import scattered
from treadle.tensor.advanced_indexing import gathered, index_dtype
from treadle.tensor.assembly import rolled
from treadle.tensor.composites import composite
from treadle.tensor.conversions import number_as
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node


def of_view(g: Tensor, made: History) -> tuple[Any]:
    """The gradient of a view's base."""
    edge = made.edges[0]
    assert edge is not None
    return (of_seen(g, made.options, edge.shape),)


def of_seen(g: Tensor, view: View, shape: tuple[int, ...]) -> Tensor | Placed:
    """From the gradient of the elements that a view sees in an array of a shape to the array's."""
    repeated = [
        axis
        for axis, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        if stride == 0 or extent == 1
    ]
    if repeated:
        if all(view.shape[axis] == 1 for axis in repeated):
            g = g.reshape(tuple([e for axis, e in enumerate(view.shape) if axis not in repeated]))
        else:
            g = total(g, axis=tuple(repeated))
        view = View(
            tuple([e for axis, e in enumerate(view.shape) if axis not in repeated]),
            tuple([s for axis, s in enumerate(view.strides) if axis not in repeated]),
            view.offset,
        )
    if views.overlaps(view):
        return _added_up(g, view, shape)
    if math.prod(view.shape) != math.prod(shape):
        return Placed(view, g)
    # Every element is seen once: the same axes in the array's order.
    order = sorted(range(len(view.shape)), key=lambda axis: -abs(view.strides[axis]))
    turned = [axis for axis in order if view.strides[axis] < 0]
    seen = views.permute(views.flip(g._where, turned), order)
    return g._seen_through(seen).reshape(shape)


def _added_up(g: Tensor, view: View, shape: tuple[int, ...]) -> Tensor:
    """Elements that are seen more than once get the sum."""
    size, device = math.prod(shape), g.device
    counted = Node(INDEX, (), (size,), index_dtype(size), device)
    places = from_node(Node(COPY, (view_of(counted, view),), view.shape, counted.dtype, device))
    return added_at(places, g, shape)


@composite
def added_at(places: Tensor, g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of a shape, with gradients added at linear places; those outside are dropped."""
    size = math.prod(shape)
    zeros = constant(number_as(0, g.dtype), (size,), g.dtype, g.device)
    flat = [each.reshape(-1)._node for each in (places, g)]
    return from_node(call(scattered, (zeros, *flat), (size,), g.dtype, ("sum",))).reshape(shape)


def _added_at(g: Tensor, places: Tensor) -> Any:
    return {"g": from_node(gathered(g.copied()._node, places._node))}


def _of_gather(g: Tensor, made: History) -> tuple[Any, None]:
    edge = made.edges[0]
    assert edge is not None
    return added_at(from_node(made.value(1)), g, edge.shape), None


def _of_write(g: Tensor, made: History) -> tuple[Any, Any]:
    """For an array, and for the values that replace a part of it."""
    view: View = made.options
    old = None
    if made.edges[0] is not None:
        node = g._node
        zero = constant(number_as(0, node.dtype), view.shape, node.dtype, node.device)
        copy = Node(COPY, (node,), node.shape, node.dtype, node.device)
        old = from_node(Node(WRITE, (copy, zero), node.shape, node.dtype, node.device, view))
    return old, g.reshape(-1)._seen_through(_behind(g, view)) if made.edges[1] is not None else None


def _of_assembled(g: Tensor, made: History) -> list[Any]:
    """For parts: each is a view of the gradient, at the place where it was put."""
    flat = g.reshape(-1)
    return [
        None if edge is None else flat._seen_through(_behind(g, view))
        for edge, view in zip(made.edges, made.options, strict=True)
    ]


def _behind(g: Tensor, view: View) -> View:
    flat = g.reshape(-1)
    seen = views.compose(view, flat._where)
    assert seen is not None  # one axis with one stride reaches all elements
    return seen


def _of_moved(g: Tensor, made: History) -> tuple[Any]:
    edge = made.edges[0]
    assert edge is not None
    return (g.to(edge.device),)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {
    GATHER: (_of_gather, (1,)),
    VIEW: (of_view, ()),
    WRITE: (_of_write, ()),
    "assembled": (_of_assembled, ()),
    "moved": (_of_moved, ()),
}


def _rolled(g: Tensor, shifts: tuple[int, ...]) -> Any:
    return {"x": rolled(g, tuple([-shift for shift in shifts]))}


RULES: dict[str, Rule] = {"added_at": _added_at, "rolled": _rolled}
