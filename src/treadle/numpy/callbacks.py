"""Functions that call a function of the program's: with arrays, so that it is computed on the
device. A function of single lines or pieces is called once for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy.arrays import Values, ndarray, unwrapped, value_of, wrap
from treadle.numpy.operations import indexing, operands
from treadle.tensor.tensor import Tensor as Inner


def _inner(value: Any, like: Inner | None = None) -> Inner:
    return operands.array(unwrapped(value), like=like)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """The function of the indices along each axis, called once, with arrays of them.

    >>> import treadle.numpy as np
    >>> np.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    grid = indexing.indices(shape, dtype)
    return function(*[wrap(grid[at]) for at in range(grid.shape[0])], **kwargs)


def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0) -> tuple[ndarray, ...]:
    """The places where `mask_func(ones((n, n)), k)` is not zero.

    >>> import treadle.numpy as np
    >>> [each.tolist() for each in np.mask_indices(2, np.triu)]
    [[0, 0, 1], [0, 1, 1]]
    """
    ones = wrap(td.ones((n, n), dtype=td.int32))
    return tuple(wrap(each) for each in indexing.nonzero(_inner(mask_func(ones, k) != 0)))


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> ndarray:
    """A function of each line along an axis, called once a line: what it returns stands along the
    axis. (A function of whole arrays, with `axis=`, is much faster.)

    >>> import treadle.numpy as np
    >>> np.apply_along_axis(lambda line: line[-1] - line[0], 1, [[1, 4], [2, 7]]).tolist()
    [3, 5]
    """
    x = _inner(arr)
    if not x.shape:
        raise ValueError("apply_along_axis needs an axis")
    at = operands.axis_of(axis, len(x.shape))
    turned = td.moveaxis(x, at, len(x.shape) - 1)
    lines = turned.reshape((-1, turned.shape[-1]))
    if not lines.shape[0]:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    found = [_inner(func1d(wrap(lines[n]), *args, **kwargs)) for n in range(lines.shape[0])]
    made = td.stack(found).reshape((*turned.shape[:-1], *found[0].shape))
    count, own = len(turned.shape) - 1, len(found[0].shape)
    order = [*range(at), *range(count, count + own), *range(at, count)]
    return wrap(td.permute_dims(made, order))


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> ndarray:
    """A function of an array and an axis, for one axis after the other.

    >>> import treadle.numpy as np
    >>> np.apply_over_axes(np.sum, [[1, 2], [3, 4]], [0, 1]).tolist()
    [[10]]
    """
    x: Any = wrap(_inner(a))
    count = x.ndim
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    for axis in given:
        at = operands.axis_of(axis, count)
        found = func(x, at)
        if found.ndim != x.ndim:
            found = wrap(td.expand_dims(found._inner, axis=at))
            if found.ndim != x.ndim:
                raise ValueError("function is not returning an array of the correct shape")
        x = found
    return wrap(x._inner)


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> ndarray:
    """For each condition a function or a number, where it holds; one more for the rest.

    >>> import treadle.numpy as np
    >>> x = np.array([-2.0, 3.0])
    >>> np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, 1]).tolist()
    [2.0, 1.0]
    """
    given = _inner(x)
    conditions = condlist
    if (
        isinstance(conditions, Values) and conditions._inner.shape == given.shape
    ) or not isinstance(conditions, (list, tuple, Values, np.ndarray)):
        conditions = [conditions]
    masks = [_inner(each, given).to(td.bool) for each in conditions]
    functions = list(funclist)
    if len(functions) == len(masks) + 1:
        rest = ~masks[0]
        for mask in masks[1:]:
            rest = rest & ~mask
        masks.append(rest)
    elif len(functions) != len(masks):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions "
            "are "
            "expected"
        )
    made = td.zeros(given.shape, dtype=given.dtype, device=given.device)
    for mask, function in zip(masks, functions, strict=True):
        if not callable(function):
            value = operands.converted(_inner(function, given), given.dtype)
            made = td.where(mask, value, made)
            continue
        places = td.nonzero(mask) if mask.shape else None
        part = given[mask] if places is None else given[places]
        if part.size:
            found = operands.converted(_inner(function(wrap(part), *args, **kw), part), given.dtype)
            made[mask if places is None else places] = found
    return wrap(made)


def ndenumerate(arr: Any) -> Any:
    """The index and the element, for all elements in order.

    >>> import treadle.numpy as np
    >>> [(index, int(value)) for index, value in np.ndenumerate([[5, 6]])]
    [((0, 0), 5), ((0, 1), 6)]
    """
    x = _inner(arr)
    return ((index, value_of(x[index].copied())) for index in np.ndindex(*x.shape))
