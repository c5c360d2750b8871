"""Transforms along one axis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.graph import history
from treadle.graph.calls import call
from treadle.graph.node import Node, constant
from treadle.graph.placeholders import record_composite
from treadle.kernels import fourier
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import takes_dim
from treadle.tensor.fft import arguments
from treadle.tensor.fft.arguments import axis_of, complex_of, length, operand, real_of, resized
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


@takes_dim
def fft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The sums over j of x[j] exp(-2 pi i j k / n), for k from 0 to n - 1, along an axis, which is
    cut or filled up with zeros to n elements. The result is complex. `norm` says where 1 / n is
    multiplied by: by the inverse ("backward"), here ("forward"), or by its root in both ("ortho").

    >>> import treadle as td
    >>> td.fft.fft(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return _complex("fft", x, n, axis, norm, False)


@takes_dim
def ifft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `fft`: sums over k of x[k] exp(2 pi i j k / n), over n.

    >>> import treadle as td
    >>> td.real(td.fft.ifft(td.asarray([4.0, 0.0, 0.0, 0.0], device="cpu"))).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _complex("ifft", x, n, axis, norm, True)


@takes_dim
def rfft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The first n // 2 + 1 elements of the `fft` of real numbers; the others are conjugates of
    these.

    >>> import treadle as td
    >>> td.fft.rfft(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    node = operand("rfft", x, "real")
    at = axis_of("rfft", axis, node)
    count = length("rfft", n, node.shape[at])
    return from_node(
        real_forward("rfft", node, at, count, arguments.scale("rfft", norm, count, False), False)
    )


@takes_dim
def irfft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `rfft`: n real numbers, of n // 2 + 1 elements of their transform. The
    transform does not tell n: without it that is 2 (m - 1), an even number, for m elements.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")
    >>> td.fft.irfft(td.fft.rfft(x), n=4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return _to_real("irfft", x, n, axis, norm, True)


@takes_dim
def hfft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The `fft` of n elements whose second half is conjugate to the first, and which therefore is
    real: x has the first n // 2 + 1 of them. Without n it is 2 (m - 1) for m elements.

    >>> import treadle as td
    >>> td.fft.hfft(td.asarray([1 + 0j, 2 + 1j, 5 + 0j], device="cpu")).tolist()
    [10.0, -2.0, 2.0, -6.0]
    """
    return _to_real("hfft", x, n, axis, norm, False)


@takes_dim
def ihfft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 elements of the `ifft` of real numbers.

    >>> import treadle as td
    >>> td.real(td.fft.ihfft(td.asarray([10.0, -2.0, 2.0, -6.0], device="cpu"))).tolist()
    [1.0, 2.0, 5.0]
    """
    node = operand("ihfft", x, "real")
    at = axis_of("ihfft", axis, node)
    count = length("ihfft", n, node.shape[at])
    scale = arguments.scale("ihfft", norm, count, True)
    return from_node(real_forward("ihfft", node, at, count, scale, True))


def _complex(name: str, x: Any, n: int | None, axis: int, norm: Any, inverse: bool) -> Tensor:
    node = operand(name, x)
    at = axis_of(name, axis, node)
    count = length(name, n, node.shape[at])
    scale = arguments.scale(name, norm, count, inverse)
    return from_node(complex_along(name, node, at, count, inverse, scale))


def _to_real(name: str, x: Any, n: int | None, axis: int, norm: Any, inverse: bool) -> Tensor:
    node = operand(name, x, "complex")
    at = axis_of(name, axis, node)
    count = length(name, n, 2 * (node.shape[at] - 1))
    scale = arguments.scale(name, norm, count, inverse)
    return from_node(real_backward(name, node, at, count, inverse, scale))


# --- as nodes ------------------------------------------------------------------------------------


def _composite(function: Callable[..., Node]) -> Callable[..., Node]:
    """Record a transform of a node as one operation, whose derivative has the function's name and
    is told all that follows the node."""

    @functools.wraps(function)
    def one(name: str, node: Node, *options: Any) -> Node:
        if node.history is None or not history.recording.get():
            return function(name, node, *options)
        with history.recorded(False):
            made = function(name, node, *options)
        derivative = history.derivatives[function.__name__]
        record_composite(derivative, [made], [node], options)
        return made

    return one


@_composite
def complex_along(name: str, node: Node, axis: int, n: int, inverse: bool, scale: float) -> Node:
    """`fft` or `ifft` along an axis, times a number."""
    shape, dtype = resized(name, node, axis, n), complex_of(node.dtype)
    if not node.size:
        return constant(0j, shape, dtype, node.device)
    return call(fourier.transform, (node,), shape, dtype, (axis, n, inverse, scale))


@_composite
def real_forward(name: str, node: Node, axis: int, n: int, scale: float, conjugate: bool) -> Node:
    """`rfft` along an axis, times a number; or its conjugate."""
    resized(name, node, axis, n)
    shape, dtype = resized(name, node, axis, n // 2 + 1), complex_of(node.dtype)
    if not node.size:
        return constant(0j, shape, dtype, node.device)
    return call(fourier.transform_real, (node,), shape, dtype, (axis, n, conjugate, scale))


@_composite
def real_backward(name: str, node: Node, axis: int, n: int, inverse: bool, scale: float) -> Node:
    """`irfft` or `hfft` along an axis, times a number."""
    shape, dtype = resized(name, node, axis, n), real_of(node.dtype)
    if not node.size:
        return constant(0.0, shape, dtype, node.device)
    return call(fourier.transform_to_real, (node,), shape, dtype, (axis, n, inverse, scale))
