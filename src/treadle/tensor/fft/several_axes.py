"""Transforms along several axes, computed along one after the other, from the last one."""

from __future__ import annotations

from typing import Any

from treadle.graph.node import COPY, Node
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import cast
from treadle.tensor.fft import arguments
from treadle.tensor.fft.arguments import axes_of, operand
from treadle.tensor.fft.one_axis import complex_along, real_backward, real_forward
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn"]

_LAST_TWO = (-2, -1)


def fftn(x: ArrayLike, /, s: Any = None, axes: Any = None, norm: str | None = "backward") -> Tensor:
    """`fft` along several axes: along `axes`, by default along the last len(s) axes, or along all.
    A length of -1 in `s` is the tensor's extent.

    >>> import treadle as td
    >>> td.fft.fftn(td.ones((2, 2), device="cpu")).tolist()
    [[(4+0j), 0j], [0j, 0j]]
    """
    return _complex("fftn", x, s, axes, norm, False)


def ifftn(
    x: ArrayLike, /, s: Any = None, axes: Any = None, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `fftn`."""
    return _complex("ifftn", x, s, axes, norm, True)


def rfftn(
    x: ArrayLike, /, s: Any = None, axes: Any = None, norm: str | None = "backward"
) -> Tensor:
    """`rfft` along the last of the axes, `fft` along the others.

    >>> import treadle as td
    >>> td.fft.rfftn(td.ones((2, 4), device="cpu")).shape
    (2, 3)
    """
    return _from_real("rfftn", x, s, axes, norm)


def irfftn(
    x: ArrayLike, /, s: Any = None, axes: Any = None, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `rfftn`: `ifft` along all axes but the last, and `irfft` along that."""
    return _to_real("irfftn", x, s, axes, norm)


def fft2(
    x: ArrayLike, /, s: Any = None, axes: Any = _LAST_TWO, norm: str | None = "backward"
) -> Tensor:
    """`fftn` along two axes, by default the last two."""
    return _complex("fft2", x, s, axes, norm, False)


def ifft2(
    x: ArrayLike, /, s: Any = None, axes: Any = _LAST_TWO, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `fft2`."""
    return _complex("ifft2", x, s, axes, norm, True)


def rfft2(
    x: ArrayLike, /, s: Any = None, axes: Any = _LAST_TWO, norm: str | None = "backward"
) -> Tensor:
    """`rfftn` along two axes, by default the last two."""
    return _from_real("rfft2", x, s, axes, norm)


def irfft2(
    x: ArrayLike, /, s: Any = None, axes: Any = _LAST_TWO, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `rfft2`."""
    return _to_real("irfft2", x, s, axes, norm)


def _complex(name: str, x: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor:
    node = operand(name, x)
    found, lengths = axes_of(name, s, axes, node)
    scales = [arguments.scale(name, norm, n, inverse) for n in lengths]
    for axis, n, scale in reversed(list(zip(found, lengths, scales, strict=True))):
        node = complex_along(name, node, axis, n, inverse, scale)
    if not found:
        node = cast(node, arguments.complex_of(node.dtype))
        node = Node(COPY, (node,), node.shape, node.dtype, node.device)
    return from_node(node)


def _from_real(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Tensor:
    node = operand(name, x, "real")
    found, lengths = axes_of(name, s, axes, node)
    if not found:
        raise ValueError(f"{name}: axes is empty, and real numbers are transformed along one")
    scales = [arguments.scale(name, norm, n, False) for n in lengths]
    node = real_forward(name, node, found[-1], lengths[-1], scales[-1], False)
    others = list(zip(found, lengths, scales, strict=True))[:-1]
    for axis, n, scale in reversed(others):
        node = complex_along(name, node, axis, n, False, scale)
    return from_node(node)


def _to_real(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Tensor:
    node = operand(name, x, "complex")
    found, lengths = axes_of(name, s, axes, node, half=True)
    scales = [arguments.scale(name, norm, n, True) for n in lengths]
    for axis, n, scale in list(zip(found, lengths, scales, strict=True))[:-1]:
        node = complex_along(name, node, axis, n, True, scale)
    return from_node(real_backward(name, node, found[-1], lengths[-1], True, scales[-1]))
