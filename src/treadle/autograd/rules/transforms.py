"""Derivatives of Fourier transforms: transforms the other way.

A transform is linear, so that the gradient of what is transformed is its adjoint of the gradient.
Of real numbers there is half a spectrum, of which all elements but those without a conjugate (the
first, and for an even length the last) stand for two.
"""

from __future__ import annotations

from typing import Any

from treadle.autograd.derivative import Rule
from treadle.autograd.partial_gradients import Placed
from treadle.graph.history import History
from treadle.graph.views import slice_axis, whole
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.fft.one_axis import complex_along, real_backward, real_forward
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor, from_node


def _of_complex(g: Tensor, made: History) -> tuple[Any]:
    axis, n, inverse, scale = made.options
    return (_fitted(complex_along("fft", g._node, axis, n, not inverse, scale), axis, made),)


def _of_real_forward(g: Tensor, made: History) -> tuple[Any]:
    axis, n, scale, conjugate = made.options
    halves = g * _shares(g, axis, n, 0.5)
    return (_fitted(real_backward("fft", halves._node, axis, n, not conjugate, scale), axis, made),)


def _of_real_backward(g: Tensor, made: History) -> tuple[Any]:
    axis, n, inverse, scale = made.options
    found = from_node(real_forward("fft", g._node, axis, n, scale, not inverse))
    return (_fitted((found * _shares(found, axis, n, 2.0))._node, axis, made),)


def _shares(x: Tensor, axis: int, n: int, share: float) -> Tensor:
    """A number for each element of half a spectrum along an axis: 1 for what has no conjugate."""
    places = arange(n // 2 + 1, dtype="int32", device=x.device)
    self_conjugate = (places == 0) | (places * 2 == n)
    found: Tensor = FUNCTIONS["where"](self_conjugate, 1.0, share).to(x.dtype.component)
    return found.reshape((-1, *[1] * (x.ndim - axis - 1)))


def _fitted(node: Any, axis: int, made: History) -> Any:
    """The gradient of what was cut, or filled up with zeros, before it was transformed."""
    edge, found = made.edges[0], from_node(node)
    assert edge is not None
    if found.dtype.kind == "complex" and edge.dtype.kind != "complex":
        found = FUNCTIONS["real"](found)
    given, extent = edge.shape[axis], found.shape[axis]
    if given < extent:
        return found[(slice(None),) * axis + (slice(given),)]
    if given == extent:
        return found
    return Placed(slice_axis(whole(edge.shape), axis, 0, 1, extent), found)


NODES: dict[str, tuple[Rule, tuple[int, ...]]] = {
    "complex_along": (_of_complex, ()),
    "real_backward": (_of_real_backward, ()),
    "real_forward": (_of_real_forward, ()),
}
