"""Sorting along an axis. Equal elements always keep their order, and NaN is last."""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.calls import Function, call, call_of_several
from treadle.graph.node import Node, view_of
from treadle.kernels import sort as kernels
from treadle.kernels.topk import topk as top_k
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import one_axis, scalar_as_row, takes_dim
from treadle.tensor.conversions import device_of
from treadle.tensor.dtypes import default_integer
from treadle.tensor.operands import node_of, operand
from treadle.tensor.searching import take_along_axis
from treadle.tensor.tensor import Tensor, from_node


@takes_dim
@scalar_as_row
def sort(
    x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """The elements in order along an axis. NaN is last, in either order.

    >>> import treadle as td
    >>> td.sort(td.asarray([3.0, float("nan"), 1.0], device="cpu"), descending=True).tolist()
    [3.0, 1.0, nan]
    """
    if type(x) is Tensor and x._is_recorded:  # by a gather, which has a derivative
        return take_along_axis(x, argsort(x, axis=axis, descending=descending), axis=axis)
    return _along("sort", x, axis, None, kernels.sort, (descending,))


@takes_dim
@scalar_as_row
def argsort(
    x: ArrayLike, /, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Tensor:
    """The indices along the axis that sort x.

    >>> import treadle as td
    >>> td.argsort(td.asarray([2.0, 1.0, 2.0], device="cpu"), descending=True).tolist()
    [0, 2, 1]
    """
    dtype = default_integer(device_of("argsort", (x,)))
    return _along("argsort", x, axis, dtype, kernels.argsort, (descending, dtype))


class TopK(NamedTuple):
    """The result of `topk`."""

    values: Tensor
    indices: Tensor


@takes_dim
def topk(x: ArrayLike, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
    """The k greatest elements along an axis (the least, without `largest`), sorted, and their
    indices. NaN counts as greatest. Of equal elements any may be chosen. (They are sorted with
    `sorted=False` as well.)

    >>> import treadle as td
    >>> found = td.topk(td.asarray([3.0, 9.0, 1.0, 7.0], device="cpu"), 2)
    >>> found.values.tolist(), found.indices.tolist()
    ([9.0, 7.0], [1, 3])
    """
    device = device_of("topk", (x,))
    node = node_of("topk", x, device)
    if node.dtype.kind == "complex":
        raise DtypeError("topk: complex numbers have no order; take their absolute values")
    if not node.shape:
        one_axis("topk", axis, 1)
        values, indices = topk(operand("topk", x).reshape(1), k, 0, largest, sorted)
        return TopK(values.reshape(()), indices.reshape(())) if k else TopK(values, indices)
    at = one_axis("topk", axis, len(node.shape))
    if not 0 <= k <= node.shape[at]:
        raise ShapeError(f"topk: k is 0 to {node.shape[at]}, the elements of axis {at} of shape "
                         f"{node.shape}, not {k}")  # fmt: skip
    node = _with_last(node, at)
    places = default_integer(device)
    shape = (*node.shape[:-1], k)
    made = call_of_several(
        top_k, (node,), [(shape, node.dtype), (shape, places)], (k, largest, places)
    )
    values, indices = (_back(from_node(each), at) for each in made)
    if type(x) is Tensor and x._is_recorded:  # by a gather, which has a derivative
        values = take_along_axis(x, indices, axis=at)
    return TopK(values, indices)


def _along(
    name: str, x: Any, axis: int, dtype: DType | None, sorter: Function, options: tuple[Any, ...]
) -> Tensor:
    """Apply a sorter to the rows along an axis. The result has this dtype, or x's."""
    device = device_of(name, (x,))
    node = node_of(name, x, device)
    if node.dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order; sort their absolute values")
    at = one_axis(name, axis, len(node.shape))
    node = _with_last(node, at)
    return _back(from_node(call(sorter, (node,), node.shape, dtype or node.dtype, options)), at)


def _with_last(node: Node, at: int) -> Node:
    """An array with an axis moved to the end."""
    last = len(node.shape) - 1
    if at == last:
        return node
    order = (*range(at), *range(at + 1, last + 1), at)
    return view_of(node, views.permute(views.whole(node.shape), order))


def _back(made: Tensor, at: int) -> Tensor:
    """A new array with the last axis of a result moved back."""
    last = len(made.shape) - 1
    if at == last:
        return made
    moved = views.permute(made._where, (*range(at), last, *range(at, last)))
    return made._seen_through(moved).copied()
