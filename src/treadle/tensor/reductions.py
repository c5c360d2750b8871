"""Reductions: sums, extremes, means and the like, over all axes or some.

They make "reduce" nodes, which are fused with the operations before and after them. float16 and
bfloat16 are accumulated in float32.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    uint32,
    uint64,
)
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.node import COPY, REDUCE, Node, constant, view_of
from treadle.runtime.arrays import check_cast, numpy_dtype
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike, Axes, DTypeLike
from treadle.tensor.axes import some_axes, takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.conversions import cast, device_of, float_as
from treadle.tensor.dtypes import check_dtype, default_integer, supports
from treadle.tensor.operands import node_of
from treadle.tensor.precision import cast_by_name
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node

_HALVES = (float16, bfloat16)


# --- sums and products ---------------------------------------------------------------------------


@cast_by_name
@takes_dim
def sum(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """The sum of the elements along one axis, several or all; 0 for no elements.

    Small integers are accumulated in the device's default integer, small unsigned integers in the
    unsigned dtype of its size; uint32 in uint64 if the device has that. With `dtype` the elements
    are cast first.

    >>> import treadle as td
    >>> td.sum(td.asarray([[1, 2], [3, 4]], device="cpu"), axis=0).tolist()
    [4, 6]
    """
    return _total("sum", x, axis, dtype, keepdims)


@cast_by_name
@takes_dim
def prod(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """The product of the elements along one axis, several or all, with `sum`'s dtypes; 1 for no
    elements.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.prod(x, axis=1).tolist()
    [2.0, 12.0]
    """
    return _total("prod", x, axis, dtype, keepdims)


def _total(kind: str, x: Any, axis: Any, dtype: Any, keepdims: bool) -> Tensor:
    node = node_for(kind, x)
    axes = some_axes(kind, axis, len(node.shape))
    wanted = total_dtype(kind, node.dtype, dtype, node.device)
    return _as_result(_accumulated(kind, cast(node, wanted), axes), node.shape, axes, keepdims)


def total_dtype(name: str, own: DType, wanted: Any, device: Device) -> DType:
    """The dtype to accumulate elements in, and the result's: `wanted`, or a sufficiently wide
    one."""
    if wanted is None:
        integer = default_integer(device)
        if own.kind == "bool" or (own.kind == "int" and own.itemsize < integer.itemsize):
            return integer
        if own.kind != "uint":
            return own
        if own is uint32:  # a default integer of 32 bits does not hold it
            return uint64 if supports(device, uint64) else own
        return (uint64 if integer.itemsize == 8 else uint32) if own.itemsize < 4 else own
    dtype = as_device_dtype(wanted, device)
    if not isinstance(dtype, DType):
        raise DtypeError(f"{name}: dtype={dtype} is a struct, and there is no arithmetic on them")
    check_dtype(dtype, device)
    check_cast(numpy_dtype(own), dtype)
    return dtype


# --- extremes ------------------------------------------------------------------------------------


@takes_dim
def max(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The greatest element along one axis, several or all; NaN if there is one. ShapeError for no
    elements.

    As NumPy's, with `dim` for `axis` if you like. PyTorch's `max(x, dim=1)` gives the indices, too:
    those are `td.argmax(x, axis=1)`. Its `max(x, y)` of two tensors is `td.maximum(x, y)`.

    >>> import treadle as td
    >>> td.max(td.asarray([[1, 5], [7, 2]], device="cpu"), axis=1).tolist()
    [5, 7]
    """
    return _extreme("max", x, axis, keepdims)


@takes_dim
def min(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The least element along one axis, several or all; NaN if there is one. ShapeError for no
    elements.

    As NumPy's, with `dim` for `axis` if you like. PyTorch's `min(x, dim=1)` gives the indices, too:
    those are `td.argmin(x, axis=1)`. Its `min(x, y)` of two tensors is `td.minimum(x, y)`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.min(x, axis=0).tolist()
    [1.0, 2.0]
    """
    return _extreme("min", x, axis, keepdims)


def _extreme(kind: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    node = _ordered(kind, x)
    axes = some_axes(kind, axis, len(node.shape))
    _check_not_empty(kind, node, axes)
    return _as_result(_accumulated(kind, node, axes), node.shape, axes, keepdims)


@takes_dim
def argmax(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the greatest element along an axis, the first of equals; NaN counts as greatest.
    Without an axis, its index in the flattened tensor.

    >>> import treadle as td
    >>> td.argmax(td.asarray([[1, 5, 5], [7, 2, 0]], device="cpu"), axis=1).tolist()
    [1, 0]
    """
    return _place("argmax", x, axis, keepdims)


@takes_dim
def argmin(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least element along an axis, the first of equals; NaN counts as least.
    Without an axis, its index in the flattened tensor.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.argmin(x, axis=1).tolist()
    [0, 0]
    """
    return _place("argmin", x, axis, keepdims)


def _place(kind: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    node = _ordered(kind, x)
    if isinstance(axis, (tuple, list)):
        raise TypeError(f"{kind}: an axis is an integer, not {axis!r}")
    axes = some_axes(kind, axis, len(node.shape))
    _check_not_empty(kind, node, axes)
    dtype = default_integer(node.device)
    if not axes:
        return from_node(constant(0, (), dtype, node.device))
    return _as_result(reduced(kind, node, axes, dtype), node.shape, axes, keepdims)


def _ordered(name: str, x: Any) -> Node:
    node = node_for(name, x)
    if node.dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order; take abs(x) or the real parts")
    return node


def _check_not_empty(name: str, node: Node, axes: tuple[int, ...]) -> None:
    for axis in axes:
        if node.shape[axis] == 0:
            raise ShapeError(f"{name} of no elements: axis {axis} of shape {node.shape} is empty")


# --- logic ---------------------------------------------------------------------------------------


@takes_dim
def any(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element along one axis, several or all is true (not zero).

    >>> import treadle as td
    >>> td.any(td.asarray([[0, 1], [0, 0]], device="cpu"), axis=1).tolist()
    [True, False]
    """
    return _logical("any", x, axis, keepdims)


@takes_dim
def all(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along one axis, several or all are true (not zero).

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.all(x > 1, axis=1).tolist()
    [False, True]
    """
    return _logical("all", x, axis, keepdims)


def _logical(kind: str, x: Any, axis: Any, keepdims: bool) -> Tensor:
    node = node_for(kind, x)
    axes = some_axes(kind, axis, len(node.shape))
    return _as_result(_accumulated(kind, cast(node, bool_), axes), node.shape, axes, keepdims)


@takes_dim
def count_nonzero(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The number of elements along one axis, several or all that are not zero.

    >>> import treadle as td
    >>> x = td.asarray([0, 3, 0, 5], device="cpu")
    >>> td.count_nonzero(x).item()
    2
    """
    node = node_for("count_nonzero", x)
    axes = some_axes("count_nonzero", axis, len(node.shape))
    ones = cast(cast(node, bool_), default_integer(node.device))
    return _as_result(_accumulated("sum", ones, axes), node.shape, axes, keepdims)


# --- statistics ----------------------------------------------------------------------------------


@takes_dim
def mean(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean of the elements along one axis, several or all: float32 for integers, NaN
    for no elements.

    >>> import treadle as td
    >>> td.mean(td.asarray([[1.0, 2.0], [3.0, 5.0]], device="cpu"), axis=0).tolist()
    [2.0, 3.5]
    """
    values, axes, dtype = _floating("mean", x, axis)
    return _as_result(cast(_mean(values, axes), dtype), values.shape, axes, keepdims)


@takes_dim
@composite
def var(
    x: ArrayLike, /, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance: the sum of the squared differences from the mean, divided by the number of
    elements minus `correction` (1 for a sample's variance).

    The default is NumPy's, whose name for the correction is `ddof`; PyTorch's is `correction=1`.
    Integers are computed in float32 (NumPy: float64, PyTorch: an error).

    >>> import treadle as td
    >>> td.var(td.asarray([1.0, 2.0, 3.0], device="cpu"), correction=1).item()
    1.0
    """
    return _variance_or_root("var", x, axis, correction, keepdims)


@takes_dim
@composite
def std(
    x: ArrayLike, /, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation: the square root of `var`.

    The default is NumPy's, whose name for the correction is `ddof`; PyTorch's is `correction=1`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.std(x, axis=1).tolist()
    [0.5, 0.5]
    """
    return _variance_or_root("std", x, axis, correction, keepdims)


@cast_by_name
@takes_dim
@composite
def logsumexp(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along one axis, several or all, without overflow; -inf for no elements.

    >>> import treadle as td
    >>> x = td.asarray([1000.0, 1000.0], device="cpu")
    >>> round(td.logsumexp(x).item(), 3)
    1000.693
    """
    values, axes, dtype = _floating("logsumexp", x, axis)
    shape = values.shape
    if 0 in [shape[axis] for axis in axes]:
        kept = _kept(shape, axes, keepdims)
        least = complex(-math.inf) if dtype.kind == "complex" else -math.inf
        return from_node(constant(least, kept, dtype, values.device))
    sizes = values
    if dtype.kind == "complex":
        sizes = _elementwise("real", values, dtype=dtype.component)
    greatest = _accumulated("max", sizes, axes)
    known = _elementwise("isfinite", greatest, dtype=bool_)
    zero = constant(0.0, greatest.shape, sizes.dtype, values.device)
    shift = cast(_elementwise("where", known, greatest, zero, dtype=sizes.dtype), values.dtype)
    powers = _elementwise(
        "exp", _elementwise("subtract", values, _broadcast_back(shift, axes, shape))
    )
    result = _elementwise("add", _elementwise("log", _accumulated("sum", powers, axes)), shift)
    return _as_result(cast(result, dtype), shape, axes, keepdims)


def _floating(name: str, x: Any, axis: Any) -> tuple[Node, tuple[int, ...], DType]:
    """The elements as floats that are precise enough to accumulate, the axes, and the dtype of the
    result."""
    node = node_for(name, x)
    axes = some_axes(name, axis, len(node.shape))
    dtype = node.dtype if node.dtype.kind in ("float", "complex") else float32
    return cast(node, float32 if dtype in _HALVES else dtype), axes, dtype


def _mean(values: Node, axes: tuple[int, ...]) -> Node:
    return _quotient(_accumulated("sum", values, axes), _count(values, axes))


def _variance_or_root(name: str, x: Any, axis: Any, correction: float, keepdims: bool) -> Tensor:
    """The variance, for `var` and `std`."""
    values, axes, dtype = _floating(name, x, axis)
    middle = _broadcast_back(_mean(values, axes), axes, values.shape)
    distance = _elementwise("subtract", values, middle)
    if dtype.kind == "complex":
        dtype = dtype.component
        parts = [_elementwise(part, distance, dtype=dtype) for part in ("real", "imag")]
        squares = _elementwise("add", *[_elementwise("multiply", part, part) for part in parts])
    else:
        squares = _elementwise("multiply", distance, distance)
    if correction == int(correction):  # so that a count may be a size
        correction = int(correction)
    result = _quotient(_accumulated("sum", squares, axes), _count(values, axes) - correction)
    if name == "std":
        result = _elementwise("sqrt", result)
    return _as_result(cast(result, dtype), values.shape, axes, keepdims)


def _count(values: Node, axes: tuple[int, ...]) -> int:
    return math.prod(values.shape[axis] for axis in axes)


def _quotient(total: Node, count: float) -> Node:
    """A sum divided by a count; NaN if that is not positive."""
    number: float | complex = math.nan if count <= 0 else float_as(count, total.dtype.itemsize)
    if total.dtype.kind == "complex":
        number = complex(number)
    by = constant(number, total.shape, total.dtype, total.device)
    if count <= 0:
        return by if total.history is None else _elementwise("multiply", total, by)
    # A quotient may be off by 2.5 ULP, too much for a mean.
    careful = total.dtype is float32 and not total.device.traits.exact_division
    return _elementwise("careful_quotient" if careful else "divide", total, by)


# --- nodes ---------------------------------------------------------------------------------------


def node_for(name: str, x: ArrayLike) -> Node:
    """The node of an operand."""
    return node_of(name, x, device_of(name, (x,)))


def reduced(kind: str, node: Node, axes: tuple[int, ...], dtype: DType) -> Node:
    """A reduction as a node, whose shape lacks the axes."""
    axes = tuple(sorted(axes))
    shape = _kept(node.shape, axes, False)
    return Node(REDUCE, (node,), shape, dtype, node.device, (kind, axes))


def _accumulated(kind: str, node: Node, axes: tuple[int, ...]) -> Node:
    """A reduction with the elements' dtype, accumulated in float32 for float16 and bfloat16; a copy
    for no axes."""
    dtype = node.dtype
    if not axes:
        return _elementwise(COPY, node)
    if dtype in _HALVES and kind in ("sum", "prod"):
        return cast(reduced(kind, cast(node, float32), axes, float32), dtype)
    return reduced(kind, node, axes, dtype)


def _broadcast_back(node: Node, axes: tuple[int, ...], shape: tuple[int, ...]) -> Node:
    """A result broadcast along the reduced axes."""
    view = views.whole(node.shape)
    for axis in sorted(axes):
        view = views.unsqueeze(view, axis)
    return view_of(node, views.expand(view, shape))


def _as_result(node: Node, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """A result as a tensor. `keepdims` makes a view, so that both cases share one node."""
    made = from_node(node)
    return made.reshape(_kept(shape, axes, True)) if keepdims else made


def _elementwise(op: str, *nodes: Node, dtype: DType | None = None) -> Node:
    """An operation on nodes of one shape, in the first one's dtype unless one is given."""
    first = nodes[0]
    return Node(op, nodes, first.shape, dtype or first.dtype, first.device)


def _kept(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape without some axes, or with extents of 1 for them."""
    if keepdims:
        return tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
    return tuple([extent for axis, extent in enumerate(shape) if axis not in axes])
