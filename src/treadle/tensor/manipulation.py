"""Views with other axes.

These functions return views wherever strides can express the result: writing through one writes the
tensor itself. `assembly.py` has the functions that make new tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from treadle.core.errors import ShapeError
from treadle.graph import views
from treadle.tensor.axes import integer, one_axis, some_axes, takes_dim
from treadle.tensor.conversions import common_shape
from treadle.tensor.creation import Shape, extents_of
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor

# --- broadcasting --------------------------------------------------------------------------------


def broadcast_to(x: Tensor, /, shape: Shape) -> Tensor:
    """The tensor broadcast to a shape: axes of extent 1 are repeated, and new ones added in front.

    A view that cannot be written, since elements appear several times. ShapeError if the shapes do
    not fit.

    >>> import treadle as td
    >>> td.broadcast_to(td.asarray([1, 2], device="cpu"), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x = operand("broadcast_to", x)
    return x._seen_through(views.expand(x._where, extents_of(shape)))


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Views of the tensors, all broadcast to one shape.

    >>> import treadle as td
    >>> a, b = td.asarray([1, 2], device="cpu"), td.asarray([[3], [4]], device="cpu")
    >>> [x.tolist() for x in td.broadcast_arrays(a, b)]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    tensors = [operand("broadcast_arrays", array) for array in arrays]
    if not tensors:
        return []
    shape = common_shape("broadcast_arrays", [tensor.shape for tensor in tensors])
    return [broadcast_to(tensor, shape) for tensor in tensors]


# --- axes of extent 1 ----------------------------------------------------------------------------


@takes_dim
def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """A view with a new axis of extent 1 at this place of the result (or with several).

    IndexError if there is no such place.

    >>> import treadle as td
    >>> td.expand_dims(td.asarray([1, 2], device="cpu"), axis=-1).shape
    (2, 1)
    """
    x = operand("expand_dims", x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = some_axes("expand_dims", axis, len(x.shape) + count)
    view = x._where
    for place in sorted(places):
        view = views.unsqueeze(view, place)
    return x._seen_through(view)


@takes_dim
def squeeze(x: Tensor, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """A view without these axes, which must have extent 1; None removes all axes of extent 1.

    ShapeError for an axis of another extent.

    >>> import treadle as td
    >>> td.squeeze(td.asarray([[[1], [2]]], device="cpu"), axis=(0, 2)).tolist()
    [1, 2]
    """
    x = operand("squeeze", x)
    if axis is None:
        gone = tuple([a for a, extent in enumerate(x.shape) if extent == 1])
    else:
        gone = some_axes("squeeze", axis, len(x.shape))
    return x._seen_through(views.squeeze(x._where, gone))


# --- the order of axes and elements --------------------------------------------------------------


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """A view with the axes in another order: axis i of the result is axis axes[i].

    >>> import treadle as td
    >>> td.permute_dims(td.asarray([[1, 2], [3, 4]], device="cpu"), (1, 0)).tolist()
    [[1, 3], [2, 4]]
    """
    x = operand("permute_dims", x)
    ndim = len(x.shape)
    order = some_axes("permute_dims", tuple(axes), ndim)
    if len(order) != ndim:
        raise ValueError(
            f"permute_dims: the axes {tuple(axes)} must name each of the {ndim} axes once; to "
            "exchange two of them use swapaxes"
        )
    return x._seen_through(views.permute(x._where, order))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged.

    >>> import treadle as td
    >>> td.matrix_transpose(td.asarray([[1, 2, 3]], device="cpu")).tolist()
    [[1], [2], [3]]
    """
    x = operand("matrix_transpose", x)
    if len(x.shape) < 2:
        raise ShapeError(
            f"matrix_transpose takes tensors of at least two axes, not of shape {x.shape}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(x: Tensor, axis1: int, axis2: int, /) -> Tensor:
    """A view with two axes exchanged.

    >>> import treadle as td
    >>> x = td.zeros((2, 3, 4), device="cpu")
    >>> td.swapaxes(x, 0, 2).shape
    (4, 3, 2)
    """
    x = operand("swapaxes", x)
    order = list(range(len(x.shape)))
    one, other = (one_axis("swapaxes", axis, len(order) or 1) for axis in (axis1, axis2))
    if one == other:
        return x._seen_through(x._where)
    order[one], order[other] = other, one
    return x._seen_through(views.permute(x._where, order))


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """A view with some axes moved to other places; the others keep their order.

    >>> import treadle as td
    >>> td.moveaxis(td.zeros((2, 3, 4), device="cpu"), 0, -1).shape
    (3, 4, 2)
    """
    x = operand("moveaxis", x)
    ndim = len(x.shape)
    moved = some_axes("moveaxis", source, ndim)
    places = some_axes("moveaxis", destination, ndim)
    if len(moved) != len(places):
        raise ValueError(f"moveaxis: {len(moved)} axes cannot go to {len(places)} places")
    order = [axis for axis in range(ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return x._seen_through(views.permute(x._where, order))


@takes_dim
def flip(x: Tensor, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """A view with the elements in reverse order along some axes or (None) all.

    >>> import treadle as td
    >>> td.flip(td.asarray([1, 2, 3], device="cpu")).tolist()
    [3, 2, 1]
    """
    x = operand("flip", x)
    return x._seen_through(views.flip(x._where, some_axes("flip", axis, len(x.shape))))


def rot90(x: Tensor, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """A view that is turned by k times 90 degrees in the plane of two axes, from the first towards
    the second. ValueError if they are one axis.

    >>> import treadle as td
    >>> td.rot90(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[2, 4], [1, 3]]
    """
    x = operand("rot90", x)
    if len(axes) != 2:
        raise ValueError(f"rot90: axes are two, not {len(axes)}")
    one, other = (one_axis("rot90", axis, len(x.shape)) for axis in axes)
    if one == other:
        raise ValueError(f"rot90: both axes are axis {one}: a plane needs two")
    quarters = integer("rot90", k, "k") % 4
    if quarters == 0:
        return x._seen_through(x._where)
    if quarters == 2:
        return flip(x, axis=(one, other))
    if quarters == 1:
        return swapaxes(flip(x, axis=other), one, other)
    return flip(swapaxes(x, one, other), axis=other)


def diagonal(x: Tensor, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A view of the diagonal, the elements whose index along axis2 is that along axis1 plus an
    offset; it replaces the two axes as the last axis of the result.

    >>> import treadle as td
    >>> td.diagonal(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [1, 4]
    """
    x = operand("diagonal", x)
    one, other = (one_axis("diagonal", axis, len(x.shape)) for axis in (axis1, axis2))
    if one == other:
        raise ValueError(f"diagonal: axis1 and axis2 are both axis {one}: a diagonal needs two")
    return x._seen_through(
        views.diagonal(x._where, integer("diagonal", offset, "offset"), one, other)
    )


# --- other shapes --------------------------------------------------------------------------------


def reshape(x: Tensor, /, shape: Shape, *, copy: bool | None = None) -> Tensor:
    """The same elements, in row-major order, with another shape; one extent may be -1.

    A view where strides can express it, else a copy; always a copy with `copy=True`, and ValueError
    with `copy=False` where a copy is needed. ShapeError if the number of elements differs.

    >>> import treadle as td
    >>> td.reshape(td.asarray([1, 2, 3, 4], device="cpu"), (2, -1)).tolist()
    [[1, 2], [3, 4]]
    """
    return operand("reshape", x).reshape(shape, copy=copy)


def ravel(x: Tensor, /) -> Tensor:
    """All elements along one axis: a view where strides can express it, else a copy.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.ravel().tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return reshape(x, -1)


@takes_dim
def flatten(x: Tensor, /, start_axis: int = 0, end_axis: int = -1) -> Tensor:
    """A copy with the axes from start_axis to end_axis merged into one.

    >>> import treadle as td
    >>> td.zeros((2, 3, 4), device="cpu").flatten(1).shape
    (2, 12)
    """
    x = operand("flatten", x)
    shape = x.shape or (1,)
    first, last = (one_axis("flatten", axis, len(shape)) for axis in (start_axis, end_axis))
    if first > last:
        raise ValueError(f"flatten: start_axis {first} comes after end_axis {last}")
    size = 1
    for extent in shape[first : last + 1]:
        size *= extent
    return reshape(x, (*shape[:first], size, *shape[last + 1 :]), copy=True)


# --- parts ---------------------------------------------------------------------------------------


@takes_dim
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the tensor's parts along an axis, without that axis.

    >>> import treadle as td
    >>> [part.tolist() for part in td.unstack(td.asarray([[1, 2], [3, 4]], device="cpu"), axis=1)]
    [[1, 3], [2, 4]]
    """
    x = operand("unstack", x)
    at = one_axis("unstack", axis, len(x.shape))
    where = x._where
    return tuple(
        [
            x._seen_through(views.squeeze(views.slice_axis(where, at, i, 1, 1), (at,)))
            for i in range(x.shape[at])
        ]
    )


@takes_dim
def split(x: Tensor, indices_or_sections: int | Sequence[int], /, *, axis: int = 0) -> list[Tensor]:
    """Views of consecutive parts along an axis: a number of equal parts, or parts that end before
    the given indices. ShapeError if the axis cannot be split equally.

    As NumPy's. PyTorch's `split(x, 2)` and `split(x, [1, 2])` take the lengths of the parts: they
    are `td.split(x, range(2, n, 2))` for an axis of extent n, and `td.split(x, [1])`.

    >>> import treadle as td
    >>> [part.tolist() for part in td.split(td.asarray([1, 2, 3, 4], device="cpu"), [1, 3])]
    [[1], [2, 3], [4]]
    """
    x = operand("split", x)
    at = one_axis("split", axis, len(x.shape))
    extent = x.shape[at]
    if hasattr(indices_or_sections, "__index__"):
        count = indices_or_sections.__index__()
        if count < 1 or extent % count:
            raise ShapeError(
                f"split: axis {at} of extent {extent} has no {count} equal parts; give the indices "
                "where parts begin, as in [2, 5]"
            )
        bounds = [extent // count * i for i in range(count + 1)]
    else:
        bounds = [0, *indices_or_sections, extent]
    where = x._where
    parts = []
    for first, last in pairwise(bounds):
        start, stop, _ = slice(first, last).indices(extent)
        parts.append(x._seen_through(views.slice_axis(where, at, start, 1, max(stop - start, 0))))
    return parts
