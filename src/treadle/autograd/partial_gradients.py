"""Gradients of parts: gradients of disjoint slices are written to one array, not added up."""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.graph import views
from treadle.graph.node import COMPUTED, COPY, VIEW, WRITE, Node, constant, view_of
from treadle.graph.views import View
from treadle.runtime.devices import Device
from treadle.tensor.conversions import number_as
from treadle.tensor.tensor import Tensor, from_node


class Placed(NamedTuple):
    """The gradient of those elements that a view sees, each once; that of others is 0."""

    view: View
    gradient: Tensor


class Gradients:
    """The gradients that have reached one result so far."""

    __slots__ = ("_dense", "_placed")

    def __init__(self) -> None:
        self._dense: Tensor | None = None
        self._placed: list[Placed] = []

    def add(self, gradient: Tensor | Placed) -> None:
        """Add a gradient."""
        if isinstance(gradient, Placed):
            self._placed.append(gradient)
        else:
            self._dense = gradient if self._dense is None else self._dense + gradient

    def nodes(self) -> list[Node]:
        """The pending values."""
        dense = [] if self._dense is None else [self._dense]
        return [each._node for each in (*dense, *(one.gradient for one in self._placed))]

    def total(self, shape: tuple[int, ...], dtype: DType, device: Device) -> Tensor | None:
        """The sum of all of them."""
        if not self._placed:
            return self._dense
        placed = [
            (view, gradient if gradient.dtype is dtype else gradient.to(dtype))
            for view, gradient in self._placed
        ]
        found = constant(number_as(0, dtype), shape, dtype, device)
        taken: list[tuple[int, int]] = []
        start = end = views.reach(placed[0][0])[0]  # the range of all of them so far
        for view, gradient in placed:
            low, high = views.reach(view)
            value = gradient._node
            follows = high <= start or end <= low  # as consecutive rows do
            crosses = not follows and any(low < to and since < high for since, to in taken)
            start, end = min(start, low), max(end, high)
            if crosses and not _is_disjoint(view, [one for one, _ in placed[: len(taken)]]):
                value = Node("add", (view_of(found, view), value), view.shape, dtype, device)
            elif value.op in (VIEW, COMPUTED):
                value = Node(COPY, (value,), view.shape, dtype, device)
            taken.append((low, high))
            found = Node(WRITE, (found, value), shape, dtype, device, view)
        made = from_node(found)
        return made if self._dense is None else self._dense + made


def _is_disjoint(view: View, others: list[View]) -> bool:
    """Whether a view provably shares no element with others: columns of a matrix interleave."""
    for other in others:
        if sorted(map(abs, view.strides)) != sorted(map(abs, other.strides)):
            return False
        if not _disjoint_columns(view, other):
            return False
    return True


def _disjoint_columns(one: View, other: View) -> bool:
    """Whether two views with positive strides are disjoint along one axis of a row-major base."""
    pair = (one, other)
    if any(stride < 0 for view in pair for stride in view.strides):
        return False
    steps = sorted({stride for view in pair for stride in view.strides if stride > 0}, reverse=True)
    for step in steps:
        if any(stride > step and stride % step for view in pair for stride in view.strides):
            continue
        # The range within one step that each of them is limited to.
        inside = []
        for view in pair:
            width = sum(
                (extent - 1) * stride
                for extent, stride in zip(view.shape, view.strides, strict=True)
                if stride < step
            )
            start = view.offset % step
            inside.append((start, start + width + 1))
        (low, high), (start, end) = inside
        if high <= step and end <= step and (high <= start or end <= low):
            return True
    return math.prod(one.shape) == 0 or math.prod(other.shape) == 0
