"""New tensors assembled from the elements of others.

A joined array is not made: the kernel that uses it reads the parts in place. Where the array has to
be in memory, each part is computed directly into its place, fused with its producer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import bool_
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.node import GATHER, INDEX, Node, view_of
from treadle.graph.views import View
from treadle.tensor.axes import integer, one_axis, takes_dim
from treadle.tensor.composites import composite
from treadle.tensor.conversions import device_of, is_number
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.joining import Part, assembled, common, joined_along, stacked
from treadle.tensor.manipulation import broadcast_to, ravel
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor, from_node, from_numpy

# --- joining -------------------------------------------------------------------------------------


@takes_dim
def concat(arrays: Sequence[Tensor], /, axis: int | None = 0) -> Tensor:
    """Tensors joined along an existing axis; with None, the flattened tensors joined.

    Their dtypes are promoted. ShapeError if they differ in another axis.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.concat([x, x * 10.0]).tolist()
    [1.0, 2.0, 10.0, 20.0]
    """
    tensors = _tensors("concat", arrays)
    dtype, device = common("concat", tensors)
    if axis is None:
        tensors, axis = [ravel(tensor) for tensor in tensors], 0
    shapes = [tensor.shape for tensor in tensors]
    first = shapes[0]
    if not first:
        raise ShapeError("concat: tensors without axes have none to go along: use stack")
    at = one_axis("concat", axis, len(first))
    for shape in shapes:
        if len(shape) != len(first) or (*shape[:at], *shape[at + 1 :]) != (
            *first[:at], *first[at + 1 :],
        ):  # fmt: skip
            raise ShapeError(
                f"concat: shapes {first} and {shape} differ in another axis "
                f"than {at}, the one that is joined"
            )
    total = (*first[:at], sum(shape[at] for shape in shapes), *first[at + 1 :])
    return joined_along(total, at, dtype, device, tensors)


@takes_dim
def stack(arrays: Sequence[Tensor], /, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis, at this place of the result. Dtypes are promoted.

    >>> import treadle as td
    >>> x = td.asarray([1, 2], device="cpu")
    >>> td.stack([x, -x], axis=1).tolist()
    [[1, -1], [2, -2]]
    """
    tensors = _tensors("stack", arrays)
    return stacked(tensors, one_axis("stack", axis, len(tensors[0].shape) + 1))


def _tensors(name: str, arrays: Sequence[Any]) -> list[Tensor]:
    """Arrays to join as tensors on one device."""
    given = list(arrays)
    if not given:
        raise ValueError(f"{name} takes at least one tensor")
    if all(type(x) is Tensor for x in given):
        return given
    device = device_of(name, given)
    return [x if type(x) is Tensor else asarray(x, device=device) for x in given]


# --- repeating -----------------------------------------------------------------------------------


@takes_dim
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated along an axis; with None, of the flattened tensor. `repeats` is one
    number, or an array with a number for each element of the axis.

    As NumPy's, and PyTorch's `repeat_interleave`. PyTorch's method `x.repeat(2, 3)`, which puts
    copies of the whole side by side, is `td.tile(x, (2, 3))`.

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 3], device="cpu")
    >>> td.repeat(x, 2).tolist(), td.repeat(x, td.asarray([2, 0, 1], device="cpu")).tolist()
    ([1, 1, 2, 2, 3, 3], [1, 1, 3])
    """
    x = operand("repeat", x)
    if axis is None:
        x, axis = ravel(x), 0
    at = one_axis("repeat", axis, len(x.shape))
    extent = x.shape[at]
    counts = _counts(repeats)
    if any(count < 0 for count in counts):
        raise ValueError(f"repeat: repeats must not be negative, as {min(counts)} is")
    if len(counts) not in (1, extent):
        raise ShapeError(
            f"repeat: {len(counts)} repeats do not fit axis {at} of extent {extent}: give one, or "
            "one for each"
        )
    if len(counts) == 1:
        return _interleaved(x, at, counts[0])
    where = np.repeat(np.arange(extent), counts)
    return _taken(x, at, from_numpy(where.astype(default_integer(x.device).numpy), x.device))


def _counts(repeats: Any) -> list[int]:
    """How often each element is repeated, or all are; on the host, since the shape depends on
    it."""
    given = repeats.numpy() if isinstance(repeats, Tensor) else np.asarray(repeats)
    if given.ndim > 1 or (given.dtype.kind not in "iu" and given.size):
        raise DtypeError(
            f"repeat: repeats are an integer or integers along one axis, not {given.dtype} of "
            f"shape {given.shape}"
        )
    return [int(count) for count in given.reshape(-1)]


def _interleaved(x: Tensor, axis: int, count: int) -> Tensor:
    shape = x.shape
    view = views.unsqueeze(x._where, axis + 1)
    view = views.expand(view, (*shape[: axis + 1], count, *shape[axis + 1 :]))
    return x._seen_through(view).copied().reshape(_longer(shape, axis, count * shape[axis]))


def _longer(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _taken(x: Tensor, axis: int, where: Tensor) -> Tensor:
    """The elements at these indices along an axis, which are all inside."""
    shape = _longer(x.shape, axis, where.size)
    if 0 in shape:
        return assembled(shape, x.dtype, x.device, ())
    rest = views.slice_axis(views.whole(x.shape), axis, 0, 1, 1)
    index = Node(INDEX, (), x.shape, where.dtype, x.device)
    start = from_node(view_of(index, views.expand(rest, shape)))
    step = views.whole(x.shape).strides[axis]
    column = apply("multiply", where, step).reshape((where.size,) + (1,) * (len(shape) - axis - 1))
    flat = apply("add", start, column)._node
    return from_node(Node(GATHER, (x._node, flat), shape, x.dtype, x.device))


def tile(x: Tensor, repetitions: int | tuple[int, ...], /) -> Tensor:
    """The tensor repeated along each axis; missing axes and numbers are 1, in front.

    >>> import treadle as td
    >>> td.tile(td.asarray([1, 2], device="cpu"), (2, 2)).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    x = operand("tile", x)
    given = repetitions if isinstance(repetitions, (tuple, list)) else (repetitions,)
    times = tuple([integer("tile", count, "a number of repetitions") for count in given])
    if any(count < 0 for count in times):
        raise ValueError(f"tile: repetitions must not be negative, as {min(times)} is")
    ndim = max(len(times), len(x.shape))
    times = (1,) * (ndim - len(times)) + times
    shape = (1,) * (ndim - len(x.shape)) + x.shape
    pairs = [extent for pair in zip(times, shape, strict=True) for extent in pair]
    whole = x.reshape(shape)
    repeated = _in_pairs(whole._where, tuple(pairs))
    tiled = tuple(count * extent for count, extent in zip(times, shape, strict=True))
    return whole._seen_through(repeated).copied().reshape(tiled)


def _in_pairs(view: View, shape: tuple[int, ...]) -> View:
    """A view with each axis as two, of which the first repeats the second."""
    strides = tuple([stride for each in view.strides for stride in (0, each)])
    return View(shape, strides, view.offset)


# --- shifting ------------------------------------------------------------------------------------


@takes_dim
def roll(
    x: Tensor,
    /,
    shift: int | tuple[int, ...],
    axis: int | tuple[int, ...] | None = None,
) -> Tensor:
    """The elements shifted along axes; those shifted beyond the end re-enter at the beginning.
    Without an axis the flattened tensor is shifted.

    >>> import treadle as td
    >>> td.roll(td.asarray([1, 2, 3, 4], device="cpu"), 1).tolist()
    [4, 1, 2, 3]
    """
    x = operand("roll", x)
    shape = x.shape
    if axis is None:
        flat = ravel(x)
        by = sum(_integers("a shift", shift))
        return roll(flat, by, axis=0).reshape(shape)
    axes, shifts = _integers("an axis", axis), _integers("a shift", shift)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: {len(shifts)} shifts do not go along {len(axes)} axes")
    total = [0] * len(shape)
    for place, by in zip(axes, shifts, strict=True):
        total[one_axis("roll", place, len(shape))] += by
    return rolled(x, tuple(total))


@composite
def rolled(x: Tensor, shifts: tuple[int, ...]) -> Tensor:
    """A tensor shifted by `shifts` along its axes."""
    return assembled(x.shape, x.dtype, x.device, _rolled(x, shifts))


def _integers(what: str, values: Any) -> tuple[int, ...]:
    given = values if hasattr(values, "__iter__") else (values,)
    return tuple([integer("roll", value, what) for value in given])


def _rolled(x: Tensor, shifts: Sequence[int]) -> Iterable[Part]:
    """The contiguous parts of the result: two along each shifted axis."""
    along: list[list[tuple[int, int, int]]] = []  # for each axis: from, to, how many
    for extent, shift in zip(x.shape, shifts, strict=True):
        by = shift % extent if extent else 0
        along.append([(0, by, extent - by), (extent - by, 0, by)] if by else [(0, 0, extent)])
    for moves in itertools.product(*along):
        source, target = x._where, views.whole(x.shape)
        for axis, (old, new, count) in enumerate(moves):
            source = views.slice_axis(source, axis, old, 1, count)
            target = views.slice_axis(target, axis, new, 1, count)
        yield target, x._seen_through(source)._node


# --- differences ---------------------------------------------------------------------------------


@takes_dim
def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, n times over. `prepend` and `append` are joined
    to the tensor first.

    >>> import treadle as td
    >>> td.diff(td.asarray([1, 4, 9, 16], device="cpu")).tolist()
    [3, 5, 7]
    """
    x = operand("diff", x)
    if n < 0:
        raise ValueError(f"diff: n must not be negative, as {n} is")
    at = one_axis("diff", axis, len(x.shape))
    if n == 0:
        return x
    ends = [_end(end, x, at) for end in (prepend, append)]
    if ends != [None, None]:
        x = concat([part for part in (ends[0], x, ends[1]) if part is not None], axis=at)
    for _ in range(n):
        where, count = x._where, max(x.shape[at] - 1, 0)
        if count:
            low = x._seen_through(views.slice_axis(where, at, 0, 1, count))
            high = x._seen_through(views.slice_axis(where, at, 1, 1, count))
        else:
            low = high = x._seen_through(views.slice_axis(where, at, 0, 1, 0))
        x = apply("not_equal" if x.dtype is bool_ else "subtract", high, low)
    return x


def _end(end: Any, x: Tensor, axis: int) -> Tensor | None:
    if end is None:
        return None
    if not isinstance(end, Tensor):
        end = asarray(end, dtype=x.dtype if is_number(end) else None, device=x.device)
    return end if end.shape else broadcast_to(end, _longer(x.shape, axis, 1))
