"""The arguments of transforms: dtypes, lengths, axes, scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import DType, bfloat16, complex64, complex128, float16, float32, float64
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.graph.node import Node
from treadle.tensor.axes import integer, one_axis, some_axes
from treadle.tensor.conversions import cast
from treadle.tensor.reductions import node_for

_NORMS = ("backward", "ortho", "forward")


def complex_of(dtype: DType) -> DType:
    """The complex dtype of transforms of a dtype."""
    return complex128 if dtype in (float64, complex128) else complex64


def real_of(dtype: DType) -> DType:
    """The real dtype of transforms of a dtype."""
    return float64 if dtype in (float64, complex128) else float32


def operand(name: str, x: Any, kind: str = "any") -> Node:
    """The operand as a node with a floating dtype: integers become float32. DtypeError for float16
    and bfloat16, and for complex numbers if `kind` is "real"; "complex" converts real numbers to
    complex."""
    node = node_for(name, x)
    dtype = node.dtype
    if dtype in (float16, bfloat16):
        raise DtypeError(f"{name}: there are no transforms of {dtype}: write x.to(td.float32)")
    if dtype.kind == "complex":
        if kind == "real":
            raise DtypeError(
                f"{name} takes real numbers, not {dtype}: take fft, or the real parts (td.real)"
            )
        return node
    if not node.shape:
        raise ShapeError(f"{name}: a tensor that has no axes (ndim is 0) cannot be transformed")
    return cast(node, complex_of(dtype) if kind == "complex" else real_of(dtype))


def length(name: str, n: Any, given: int, what: str = "n") -> int:
    """The number of elements of a transform; `given` if n is None. ValueError if it is less than 1,
    TypeError if it is not an integer."""
    if n is None:
        if given < 1:
            raise ValueError(
                f"{name}: a transform has at least 1 element, and with this axis as it is there "
                f"would be {given}: give {what}"
            )
        return given
    wanted = integer(name, n, what)
    if wanted < 1:
        raise ValueError(f"{name}: {what} is {wanted}, and a transform has at least 1 element")
    return wanted


def scale(name: str, norm: Any, n: int, inverse: bool) -> float:
    """The factor of a transform of n elements. ValueError for an unknown norm."""
    if norm is None:
        norm = "backward"
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm is {norm!r}, not one of {', '.join(map(repr, _NORMS))}")
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if (norm == "backward") == inverse else 1.0


def axis_of(name: str, axis: Any, node: Node) -> int:
    """The axis, counted from the front. IndexError if the tensor lacks it."""
    return one_axis(name, axis, len(node.shape))


def axes_of(
    name: str, s: Any, axes: Any, node: Node, half: bool = False
) -> tuple[list[int], list[int]]:
    """The axes of a transform along several axes, and its length along each: from `s` if given (-1:
    the extent), else the extent; with `half` the last one is 2 (extent - 1)."""
    ndim = len(node.shape)
    sizes = None if s is None else [integer(name, n, "a length in s") for n in _several(name, s)]
    if axes is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise ShapeError(f"{name}: s has {count} lengths, and the tensor's shape {node.shape}")
        found = list(range(ndim - count, ndim))
    else:
        found = list(some_axes(name, tuple(_several(name, axes)), ndim))
    if sizes is None:
        sizes = [-1] * len(found)
    if len(sizes) != len(found):
        raise ShapeError(f"{name}: s has {len(sizes)} lengths for {len(found)} axes")
    if not found and half:
        raise ValueError(f"{name}: axes is empty, and real numbers are transformed along one")
    lengths = []
    for at, (axis, n) in enumerate(zip(found, sizes, strict=True)):
        given = node.shape[axis]
        if half and at == len(found) - 1:
            given = 2 * (given - 1)
        lengths.append(length(name, None if n == -1 else n, given, "s"))
    return found, lengths


def _several(name: str, values: Any) -> Sequence[Any]:
    if isinstance(values, (tuple, list)):
        return values
    return (integer(name, values, "what s and axes take, if not a tuple,"),)


def resized(name: str, node: Node, axis: int, n: int) -> tuple[int, ...]:
    """The shape with another extent along an axis. ShapeError for more elements than a kernel can
    index."""
    shape = (*node.shape[:axis], n, *node.shape[axis + 1 :])
    if math.prod(shape) >= MOST_NARROW:
        raise ShapeError(
            f"{name}: a result of shape {shape} has {math.prod(shape)} elements, and {MOST_NARROW} "
            "are too many at once: transform some of the lines at a time"
        )
    return shape
