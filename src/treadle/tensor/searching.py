"""Finding elements, and taking them by index: `nonzero`, `searchsorted`, `take` and similar
functions.

A result whose shape depends on the data (`nonzero`, `argwhere`) waits until the device has counted.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from treadle.core.dtypes import bool_, int32
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.calls import call
from treadle.graph.node import INDEX, REDUCE, Node, constant, view_of
from treadle.graph.views import View
from treadle.kernels.launching import for_any_sizes
from treadle.kernels.search import searchsorted as search
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.advanced_indexing import (
    Term,
    flat_places,
    gathered,
    gathered_from_empty,
    places_along,
    sum_of,
    unraveled,
)
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import one_axis, takes_dim
from treadle.tensor.conversions import cast, common_shape, device_of
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.indexing import Pick, all_inside
from treadle.tensor.operands import as_nodes, node_of, prepare
from treadle.tensor.tensor import Tensor, from_node


def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """The indices of the elements that are not zero, one tensor for each axis, in row-major order.
    ShapeError for a tensor without axes.

    >>> import treadle as td
    >>> rows, columns = td.nonzero(td.asarray([[0, 5], [6, 0]], device="cpu"))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    return tuple([from_node(each) for each in _nonzero("nonzero", x)])


def argwhere(x: ArrayLike, /) -> Tensor:
    """The indices of the elements that are not zero: a row for each of them.

    >>> import treadle as td
    >>> td.argwhere(td.asarray([[0, 5], [6, 0]], device="cpu")).tolist()
    [[0, 1], [1, 0]]
    """
    tensor = _tensor("argwhere", x)
    found = _nonzero("argwhere", tensor if tensor.shape else tensor.reshape(1))
    first = found[0]
    if not tensor.shape:  # one empty row if the element is not zero
        return from_node(constant(0, (first.shape[0], 0), first.dtype, first.device))
    count, axes = first.shape[0], len(found)
    shape = (count, axes)
    node = constant(0, shape, first.dtype, first.device)
    column = view_of(Node(INDEX, (), (axes,), int32, first.device), View(shape, (0, 1), 0))
    for axis, part in enumerate(found):
        here = Node("equal", (column, constant(axis, shape, int32, first.device)), shape, bool_,
                    first.device)  # fmt: skip
        seen = view_of(part, View(shape, (1, 0), 0))
        node = Node("where", (here, seen, node), shape, first.dtype, first.device)
    return from_node(node)


def _nonzero(name: str, x: Any) -> list[Node]:
    device = device_of(name, (x,))
    node = node_of(name, x, device)
    if not node.shape:
        raise ShapeError(f"{name} takes a tensor that has axes: reshape this one to (1,) before")
    dtype = default_integer(device)
    return unraveled(flat_places(cast(node, bool_), dtype), node.shape)


def searchsorted(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
) -> Tensor:
    """The indices at which the values of x2 would be inserted into the sorted x1, which has one
    axis, to keep it sorted: before equal elements, or after them with `side="right"`. NaN is larger
    than all numbers.

    `sorter` are the indices that sort x1, as returned by `td.argsort(x1)`.

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 2, 5], device="cpu")
    >>> td.searchsorted(x, td.asarray([2, 9], device="cpu")).tolist()
    [1, 4]
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side is "left" or "right", not {side!r}')
    device, dtype, (sorted_, values) = prepare("searchsorted", (x1, x2))
    if dtype.kind == "complex":
        raise DtypeError("searchsorted: complex numbers have no order")
    if type(sorted_) is not Node or len(sorted_.shape) != 1:
        raise ShapeError("searchsorted: x1 has one axis: x1.reshape(-1) makes one of many")
    shape = values.shape if type(values) is Node else ()
    result = default_integer(device)
    if not sorted_.size or 0 in shape:
        return from_node(constant(0, shape, result, device))
    sources = (cast(sorted_, dtype), *as_nodes((values,), dtype, shape, device))
    if sorter is not None:
        order = node_of("searchsorted", sorter, device)
        if order.shape != sorted_.shape or order.dtype.kind not in ("int", "uint"):
            raise ShapeError(
                f"searchsorted: a sorter is an integer for each of {sorted_.size} elements, not "
                f"{order.dtype} of shape {order.shape}"
            )
        sources = (*sources, cast(order, int32))

    return from_node(call(_searched, sources, shape, result, (side, result)))


@for_any_sizes
def _searched(elements: DeviceArray, wanted: DeviceArray, *rest: Any) -> DeviceArray:
    *order, side, result = rest
    return search(elements, wanted, side, order[0] if order else None, result)


@takes_dim
def take(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """The elements at some indices along an axis, which may be left out if it is the only one.
    Indices may be negative; an index in a tensor that is outside gives 0.

    >>> import treadle as td
    >>> td.take(td.asarray([[1, 2, 3], [4, 5, 6]], device="cpu"), [2, -3], axis=1).tolist()
    [[3, 1], [6, 4]]
    """
    tensor = _tensor("take", x)
    if axis is None:
        if len(tensor.shape) != 1:
            raise ShapeError(
                f"take: say which axis of shape {tensor.shape} is meant, as in axis=0 (or take "
                "from x.reshape(-1))"
            )
        axis = 0
    at = one_axis("take", axis, len(tensor.shape))
    return tensor[(slice(None),) * at + (indices_of("take", indices),)]


@takes_dim
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """Along an axis, the elements at `indices`, matched by position along the other axes.

    `indices` has as many axes as x, which broadcast with x's except along `axis`. It may be the
    result of `td.argsort`.

    >>> import treadle as td
    >>> x = td.asarray([[3, 1, 2], [9, 8, 7]], device="cpu")
    >>> td.take_along_axis(x, td.argsort(x)).tolist()
    [[1, 2, 3], [7, 8, 9]]
    """
    tensor = _tensor("take_along_axis", x)
    values = indices_of("take_along_axis", indices)
    at = one_axis("take_along_axis", axis, len(tensor.shape))
    if len(values.shape) != len(tensor.shape):
        raise ShapeError(
            f"take_along_axis: indices of shape {tuple(values.shape)} have not as many axes as x, "
            f"whose shape is {tensor.shape}"
        )
    mine = [*tensor.shape]
    extent, mine[at] = mine[at], 1
    theirs = tuple(values.shape)
    shape = common_shape("take_along_axis", (theirs, tuple(mine)))
    if not tensor.size:
        return from_node(gathered_from_empty(tensor._whole, shape))
    source = tensor._whole
    where = tensor._where
    one = views.slice_axis(where, at, 0, 1, 1)  # the axis has the extent of the indices
    inside = isinstance(values, np.ndarray)
    if inside:
        values = all_inside(values, at, extent)
    places, valid = places_along(Pick((at,), values, inside=inside), extent, source)
    term = Term(places, valid, views.expand(views.whole(theirs), shape), where.strides[at])
    base = views.expand(one, shape)
    return from_node(gathered(source, sum_of(base, [term], source.size, source.device)))


def contains(x: Tensor, value: ArrayLike) -> bool:
    """Whether an element equals a value: `value in x`."""
    same = apply("equal", x, value)._node
    if not same.size:
        return False
    axes = tuple(range(len(same.shape)))
    found = Node(REDUCE, (same,), (1,) * len(axes), bool_, x.device, ("any", axes))
    return bool(from_node(found))


def _tensor(name: str, x: Any) -> Tensor:
    if type(x) is Tensor:
        return x
    return asarray(x, device=device_of(name, (x,)))


def indices_of(name: str, indices: ArrayLike) -> Any:
    """An index array: a tensor, or anything that NumPy converts to an array."""
    found = indices if hasattr(indices, "dtype") else np.asarray(indices)
    if not isinstance(found, np.ndarray) and not isinstance(found, Tensor):
        found = _tensor(name, found)
    if isinstance(found, np.ndarray) and not found.size:
        found = found.astype(np.int64)
    kind = found.dtype.kind
    if kind not in ("i", "u", "int", "uint"):
        raise DtypeError(f"{name}: places are integers, not {found.dtype}: cast them")
    return found
