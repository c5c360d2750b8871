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
    """The discrete Fourier transform along an axis: the sums over j of x[j] exp(-2 pi i j k / n)
    for k from 0 to n - 1. The axis is truncated or padded with zeros to n elements, and the result
    is complex. `norm` says which transform is multiplied by 1 / n: the inverse ("backward"), this
    one ("forward"), or both by its root ("ortho").

    >>> import treadle as td
    >>> td.fft.fft(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return _complex("fft", x, n, axis, norm, False)


@takes_dim
def ifft(
    x: ArrayLike, /, n: int | None = None, axis: int = -1, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `fft`: the sums over k of x[k] exp(2 pi i j k / n), divided by n.

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
    """The inverse of `rfft`: n real numbers from the n // 2 + 1 elements of their transform. By
    default n is 2 (m - 1), an even number, for m elements.

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
    """The `fft` of n Hermitian-symmetric elements, of which x has the first n // 2 + 1; the result
    is real. By default n is 2 (m - 1) for m elements.

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
    """Record a transform of a node as one operation. Its derivative has the function's name, and
    takes the arguments after the node."""

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
    """`fft` or `ifft` along an axis, times a factor."""
    shape, dtype = resized(name, node, axis, n), complex_of(node.dtype)
    if not node.size:
        return constant(0j, shape, dtype, node.device)
    return call(fourier.transform, (node,), shape, dtype, (axis, n, inverse, scale))


@_composite
def real_forward(name: str, node: Node, axis: int, n: int, scale: float, conjugate: bool) -> Node:
    """`rfft` along an axis, times a factor, or the conjugate of that."""
    resized(name, node, axis, n)
    shape, dtype = resized(name, node, axis, n // 2 + 1), complex_of(node.dtype)
    if not node.size:
        return constant(0j, shape, dtype, node.device)
    return call(fourier.transform_real, (node,), shape, dtype, (axis, n, conjugate, scale))


@_composite
def real_backward(name: str, node: Node, axis: int, n: int, inverse: bool, scale: float) -> Node:
    """`irfft` or `hfft` along an axis, times a factor."""
    shape, dtype = resized(name, node, axis, n), real_of(node.dtype)
    if not node.size:
        return constant(0.0, shape, dtype, node.device)
    return call(fourier.transform_to_real, (node,), shape, dtype, (axis, n, inverse, scale))
