"""Other shapes and axes for the same elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.graph import views
from treadle.numpy.operations.operands import (
    array,
    arrays,
    axes_of,
    axis_of,
    check_order,
    host,
    locked,
    shape_of,
)
from treadle.tensor.computed_views import owner
from treadle.tensor.tensor import Tensor as Inner


def _extents(shape: Any, x: Inner) -> tuple[int, ...]:
    is_plain = type(shape) is tuple and all(type(each) is int and each >= 0 for each in shape)
    if is_plain and math.prod(shape) == x.size:
        return shape  # type: ignore[no-any-return]
    if isinstance(shape, Inner):
        shape = host(shape).tolist()
    given = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else (shape,)
    try:
        found = [int(each.__index__()) for each in given]
    except AttributeError:
        raise TypeError(f"a shape is of integers, not {shape!r}") from None
    if found.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = 1
    for each in found:
        known *= each if each != -1 else 1
    if any(each < -1 for each in found):
        raise ValueError("negative dimensions not allowed")
    if -1 in found:
        if known == 0 or x.size % known:
            raise ValueError(f"cannot reshape array of size {x.size} into shape {tuple(found)}")
        found[found.index(-1)] = x.size // known
    elif known != x.size:
        raise ValueError(f"cannot reshape array of size {x.size} into shape {tuple(found)}")
    return tuple(found)


def reshape(
    a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> Inner:
    """The same elements in another shape: a view where that is possible."""
    shape = newshape if shape is None else shape
    if shape is None:
        raise TypeError("reshape() missing 1 required positional argument: 'shape'")
    x = array(a)
    if order == "F":
        turned = td.permute_dims(x, range(len(x.shape))[::-1]).reshape(-1)
        extents = _extents(shape, x)
        return td.permute_dims(turned.reshape(extents[::-1]), range(len(extents))[::-1])
    check_order(order, "CA")
    if copy is False:
        return x.reshape(_extents(shape, x), copy=False)
    return x.reshape(_extents(shape, x), copy=copy)


def reshape_method(a: Inner, *shape: Any, order: Any = "C", copy: Any = None) -> Inner:
    """The same, with the extents as arguments."""
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(a, wanted, order, copy=copy)


def ravel(a: Any, order: Any = "C") -> Inner:
    """The flattened array: a view where that is possible."""
    x = array(a)
    if order == "F":
        return td.permute_dims(x, range(len(x.shape))[::-1]).reshape(-1)
    check_order(order, "CAK")
    return x.reshape(-1)


def transpose(a: Any, axes: Any = None) -> Inner:
    """The axes in another order, in reverse order without `axes`: a view."""
    x = array(a)
    count = len(x.shape)
    if axes is None:
        return td.permute_dims(x, range(count)[::-1])
    given = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    if len(given) != count:
        raise ValueError("axes don't match array")
    order = [axis_of(each, count) for each in given]
    if len(set(order)) != count:
        raise ValueError("repeated axis in transpose")
    return td.permute_dims(x, order)


def transpose_method(a: Inner, *axes: Any) -> Inner:
    """The same, with the axes as arguments."""
    if not axes or axes == (None,):
        return transpose(a)
    return transpose(a, axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Inner:
    """The last two axes exchanged: a view."""
    made = array(x)
    if len(made.shape) < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {len(made.shape)}")
    return td.matrix_transpose(made)


def swapaxes(a: Any, axis1: int, axis2: int) -> Inner:
    """Two axes exchanged: a view."""
    x = array(a)
    count = len(x.shape)
    return td.swapaxes(x, axis_of(axis1, count), axis_of(axis2, count))


def moveaxis(a: Any, source: Any, destination: Any) -> Inner:
    """Axes moved to other places: a view."""
    x = array(a)
    count = len(x.shape)
    one, other = (
        [axis_of(each, count) for each in (given if isinstance(given, (tuple, list)) else (given,))]
        for given in (source, destination)
    )
    if len(set(one)) != len(one) or len(set(other)) != len(other):
        raise ValueError("repeated axis in `source` or `destination` argument")
    if len(one) != len(other):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [each for each in range(count) if each not in one]
    for place, each in sorted(zip(other, one, strict=True)):
        order.insert(place, each)
    return td.permute_dims(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Inner:
    """An axis moved back until it is before another one: a view."""
    x = array(a)
    count = len(x.shape)
    at = axis_of(axis, count)
    if not -count <= start <= count:
        raise np.exceptions.AxisError(start, count + 1)
    start = start + count if start < 0 else start
    start = start - 1 if at < start else start
    return moveaxis(x, at, start) if at != start else x


def expand_dims(a: Any, axis: Any) -> Inner:
    """New axes of extent 1: a view."""
    x = array(a)
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    count = len(x.shape) + len(given)
    places = axes_of(tuple(given), count)
    extents = iter(x.shape)
    return x.reshape(tuple(1 if at in places else next(extents) for at in range(count)))


def squeeze(a: Any, axis: Any = None) -> Inner:
    """Without axes of extent 1: a view."""
    x = array(a)
    if axis is None:
        dropped = tuple(at for at, extent in enumerate(x.shape) if extent == 1)
    else:
        dropped = axes_of(axis, len(x.shape))
        if any(x.shape[at] != 1 for at in dropped):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return x.reshape(tuple(e for at, e in enumerate(x.shape) if at not in dropped))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Inner:
    """The array repeated to a shape: a view that cannot be written."""
    x = _array(array)
    wanted = shape_of(shape)
    if len(wanted) < len(x.shape):
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    return locked(td.broadcast_to(x, wanted))


_array = array


def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Inner, ...]:
    """Arrays broadcast to one shape: views that are read only."""
    given = arrays(*args)
    shape = np.broadcast_shapes(*[each.shape for each in given])
    return tuple(td.broadcast_to(each, shape) for each in given)


def atleast_1d(*arys: Any) -> Any:
    """Arrays with one axis at least."""
    found = tuple(x if x.shape else x.reshape(1) for x in map(array, arys))
    return found[0] if len(found) == 1 else found


def atleast_2d(*arys: Any) -> Any:
    """Arrays with two axes at least, new ones in front."""
    found = tuple(x if len(x.shape) > 1 else x.reshape((1, x.size)) for x in map(array, arys))
    return found[0] if len(found) == 1 else found


def atleast_3d(*arys: Any) -> Any:
    """Arrays with three axes at least."""
    found = []
    for x in map(array, arys):
        shape = x.shape
        found.append(
            x.reshape((1, x.size, 1)) if len(shape) < 2 else x.reshape((*shape, 1))
            if len(shape) == 2 else x
        )  # fmt: skip
    return found[0] if len(found) == 1 else tuple(found)


# --- other orders of the elements -----------------------------------------------------------------


def flip(m: Any, axis: Any = None) -> Inner:
    """The elements along axes in reverse order: a view."""
    x = array(m)
    axes = axes_of(axis, len(x.shape))
    return x[
        tuple(slice(None, None, -1) if at in axes else slice(None) for at in range(len(x.shape)))
    ]


def flipud(m: Any) -> Inner:
    """The rows in reverse order: a view."""
    x = array(m)
    if not x.shape:
        raise ValueError("Input must be >= 1-d.")
    return flip(x, 0)


def fliplr(m: Any) -> Inner:
    """The columns in reverse order: a view."""
    x = array(m)
    if len(x.shape) < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(x, 1)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Inner:
    """Two axes turned by k quarters: a view."""
    x = array(m)
    count = len(x.shape)
    if len(tuple(axes)) != 2:
        raise ValueError("len(axes) must be 2.")
    one, other = axes
    if one == other or abs(one - other) == count:
        raise ValueError("Axes must be different.")
    if not (-count <= one < count and -count <= other < count):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={count}.")
    return td.rot90(x, k, (one, other))


def roll(a: Any, shift: Any, axis: Any = None) -> Inner:
    """The elements moved along axes; what leaves at one end comes back at the other."""
    x = array(a)
    if isinstance(shift, (Inner, np.ndarray)):
        shift = host(shift).tolist()
    if axis is None:
        shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
        return td.roll(x, sum(int(each) for each in shifts))
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    count = max(len(shifts), len(axes))
    if len(shifts) not in (1, count) or len(axes) not in (1, count):
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
    for by, at in zip(
        shifts * (count if len(shifts) == 1 else 1),
        axes * (count if len(axes) == 1 else 1),
        strict=True,
    ):
        x = td.roll(x, int(by), axis=axis_of(at, len(x.shape)))
    return x


def repeat(a: Any, repeats: Any, axis: Any = None) -> Inner:
    """Each element so many times."""
    x = array(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, len(x.shape))
    counts = host(repeats).reshape(-1)
    if counts.dtype.kind not in "iub" and counts.size:
        raise TypeError(
            f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the "
            "rule 'safe'"
        )
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if counts.size not in (1, x.shape[at]):
        raise ValueError(
            f"operands could not be broadcast together with shape ({x.shape[at]},) ({counts.size},)"
        )
    places = np.repeat(np.arange(x.shape[at]), counts)
    return x[(*(slice(None),) * at, places)]


def tile(A: Any, reps: Any) -> Inner:
    """The array so many times along each axis."""
    x = array(A)
    wanted = shape_of(reps)
    if not x.shape and not wanted:
        return x.copied()
    found: Inner = td.tile(x, wanted)
    return found.copied() if found is x else found


def resize(a: Any, new_shape: Any) -> Inner:
    """An array of another shape with the elements in order, again and again."""
    x = array(a).reshape(-1)
    extents = shape_of(new_shape)
    count = int(np.prod(extents, dtype=object)) if extents else 1
    if not x.size or not count:
        return td.zeros(extents, dtype=x.dtype, device=x.device)
    return td.tile(x, -(-count // x.size))[:count].reshape(extents)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Without the zeros at the ends."""
    if isinstance(filt, (list, tuple, bool, int, float, complex, np.generic)):
        return np.trim_zeros(filt, trim)  # type: ignore[arg-type]
    x = array(filt)
    used = host(x) != 0
    axes = axes_of(axis, len(x.shape))
    index: list[Any] = [slice(None)] * len(x.shape)
    trim = trim.lower()
    for at in axes:
        found = np.nonzero(used.any(axis=tuple(n for n in range(used.ndim) if n != at)))[0]
        begin, end = (found[0], found[-1] + 1) if found.size else (0, 0)
        if not found.size:
            index[at] = slice(0, 0)
            continue
        index[at] = slice(begin if "f" in trim else None, end if "b" in trim else None)
    return x[tuple(index)]


# --- diagonals ------------------------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Inner:
    """The diagonals of two axes: a view that cannot be written."""
    x = array(a)
    count = len(x.shape)
    if count < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, other = axis_of(axis1, count), axis_of(axis2, count)
    if one == other:
        raise ValueError("axis1 and axis2 cannot be the same")
    return locked(x._seen_through(views.diagonal(x._where, offset, one, other)))


def diag(v: Any, k: int = 0) -> Inner:
    """The diagonal of a matrix, or a matrix with a diagonal."""
    x = array(v)
    if len(x.shape) == 2:
        return diagonal(x, k)
    if len(x.shape) != 1:
        raise ValueError("Input must be 1- or 2-d.")
    side = x.size + abs(k)
    made = td.zeros((side, side), dtype=x.dtype, device=x.device)
    places = np.arange(x.size)
    made[places + max(-k, 0), places + max(k, 0)] = x
    return made


def diagflat(v: Any, k: int = 0) -> Inner:
    """A matrix with the flattened array as a diagonal."""
    return diag(array(v).reshape(-1), k)


def tril(m: Any, k: int = 0) -> Inner:
    """What is on and below a diagonal; the rest is 0."""
    x = array(m)
    if len(x.shape) == 1:
        x = td.broadcast_to(x, (x.size, x.size))
    return td.tril(x, k=k)


def triu(m: Any, k: int = 0) -> Inner:
    """What is on and above a diagonal; the rest is 0."""
    x = array(m)
    if len(x.shape) == 1:
        x = td.broadcast_to(x, (x.size, x.size))
    return td.triu(x, k=k)


# --- what is said of arrays -----------------------------------------------------------------------


def shape(a: Any) -> tuple[int, ...]:
    """The extents of an array."""
    return array(a).shape


def ndim(a: Any) -> int:
    """The number of axes of an array."""
    return len(array(a).shape)


def size(a: Any, axis: Any = None) -> int:
    """The number of elements of an array, or along axes."""
    x = array(a)
    if axis is None:
        return x.size
    count = 1
    for at in axes_of(axis, len(x.shape)):
        count *= x.shape[at]
    return count


def isfortran(a: Any) -> bool:
    """Whether the array is in Fortran's order alone."""
    x = array(a)
    steps = x.strides
    return (
        len(x.shape) > 1
        and x.size > 0
        and list(steps) == sorted(steps)
        and steps[0] == 1 < steps[-1]
    )


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether elements of two arrays are the same memory."""
    found = _places_of_both(a, b)
    return found is not None and bool(np.intersect1d(found[0], found[1]).size)


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether elements of two arrays may be the same memory."""
    found = _places_of_both(a, b)
    if found is None:
        return False
    one, other = found
    return bool(one.size and other.size and one.min() <= other.max() and other.min() <= one.max())


def _places_of_both(a: Any, b: Any) -> list[np.ndarray[Any, Any]] | None:
    """The places of two arrays' elements in the memory that they share; None if they share none."""
    if not isinstance(a, Inner) or not isinstance(b, Inner):
        return None
    if a._cell is b._cell:
        return [_places(a), _places(b)]
    is_shared = owner(a)._cell is owner(b)._cell
    return [_components(each).reshape(-1) for each in (a, b)] if is_shared else None


def _components(x: Inner) -> np.ndarray[Any, Any]:
    """The places of the elements, which may be parts of complex numbers, with a last axis for their
    parts."""
    count = 2 if x.dtype.kind == "complex" else 1
    cell: Any = x._cell
    if cell.base is None:
        return _places(x)[:, None] * count + np.arange(count)
    whole = _components(cell.base)
    if cell.name in ("real", "imag"):
        whole = whole[:, :1] if cell.name == "real" else whole[:, 1:]
    return whole.reshape(-1, count)[_places(x)]


def _places(x: Inner) -> np.ndarray[Any, Any]:
    extents, steps, offset = x._where
    places = np.full(extents, offset)
    for axis, (extent, step) in enumerate(zip(extents, steps, strict=True)):
        line = np.arange(extent) * step
        places = places + line.reshape((-1, *(1,) * (len(extents) - axis - 1)))
    return places.reshape(-1)
