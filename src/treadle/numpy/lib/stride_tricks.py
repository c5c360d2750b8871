"""`numpy.lib.stride_tricks`: views whose elements may lie in several places at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.graph import views
from treadle.graph.views import View
from treadle.numpy.arrays import ndarray, wrap
from treadle.numpy.functions import asarray, broadcast_arrays, broadcast_to
from treadle.numpy.operations.operands import locked

__all__ = ["as_strided", "broadcast_arrays", "broadcast_to", "sliding_window_view"]


def as_strided(
    x: Any,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> ndarray:
    """A view by a shape and by distances in bytes. ValueError where it leaves the array's memory,
    or goes backwards.

    >>> import treadle.numpy as np
    >>> x = np.arange(5)
    >>> np.lib.stride_tricks.as_strided(x, (3, 3), (8, 8)).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    inner = asarray(x)._inner
    where, size = inner._where, inner.dtype.itemsize
    extents = inner.shape if shape is None else tuple(map(int, shape))
    steps = where.strides if strides is None else tuple(int(each) // size for each in strides)
    if len(extents) != len(steps):
        raise ValueError("mismatch in length of strides and shape")
    if strides is not None and any(int(each) % size for each in strides):
        raise ValueError(f"strides are multiples of an element's {size} bytes, not {strides}")
    seen = View(extents, steps, where.offset)
    low, high = views.reach(seen)
    if min(steps, default=0) < 0 or low < 0 or high > inner._cell.value.size:
        raise ValueError(
            f"as_strided: shape {extents} with strides {strides} leaves the array's memory of "
            f"{inner._cell.value.size} elements, or goes backwards"
        )
    made = inner._seen_through(seen)
    return wrap(made if writeable else locked(made))


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """All windows of an array as a view: their places along the given axes, then the windows' own
    axes. ValueError for windows larger than the array.

    >>> import treadle.numpy as np
    >>> np.lib.stride_tricks.sliding_window_view(np.arange(4), 3).tolist()
    [[0, 1, 2], [1, 2, 3]]
    """
    inner = asarray(x)._inner
    window = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    if any(each < 0 for each in window):
        raise ValueError("`window_shape` cannot contain negative values")
    if axis is None:
        if len(window) != inner.ndim:
            raise ValueError(
                "Since axis is None, must provide window_shape for all dimensions of `x`; got "
                f"{len(window)} window_shape elements and `x.ndim` is {inner.ndim}."
            )
        axes: tuple[int, ...] = tuple(range(inner.ndim))
    else:
        axes = (axis,) if isinstance(axis, int) else tuple(axis)
        if any(not -inner.ndim <= each < inner.ndim for each in axes):
            raise ValueError(f"axis {axis} is none of an array of {inner.ndim} dimensions")
        if len(axes) != len(window):
            raise ValueError(
                "Must provide matching length window_shape and axis; got "
                f"{len(window)} window_shape elements and {len(axes)} axes elements."
            )
    extents, where = list(inner.shape), inner._where
    for at, length in zip(axes, window, strict=True):
        if extents[at] < length:
            raise ValueError("window shape cannot be larger than input array shape")
        extents[at] -= length - 1
    steps = (*where.strides, *(where.strides[each] for each in axes))
    made = inner._seen_through(View((*extents, *window), steps, where.offset))
    return wrap(made if writeable else locked(made))
