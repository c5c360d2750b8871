"""`x[index]` with NumPy's errors, and functions that read and write at places."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.core.sizes import Size
from treadle.graph.placeholders import within
from treadle.numpy import promotion
from treadle.numpy.operations.operands import (
    array,
    arrays,
    axis_of,
    check_order,
    common,
    converted,
    host,
    shape_of,
)
from treadle.tensor.tensor import Tensor as Inner

_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
    "arrays are valid indices"
)


def _part(part: Any, extents: tuple[int, ...] | None) -> Any:
    """A part of an index, checked; `extents` are those of the axis that a tensor indexes, if they
    are known."""
    kind = type(part)
    if kind is int or kind is slice or part is None or part is Ellipsis or kind is Size:
        return part
    if isinstance(part, (bool, np.bool_)):
        return bool(part)
    if kind is Inner:
        if part.dtype.kind not in ("bool", "int", "uint"):
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if extents and part.dtype.kind != "bool" and part.size and within.get() is None:
            _check(part, extents[0])
        return part
    if isinstance(part, (list, tuple, np.ndarray, range)):
        if isinstance(part, (list, tuple)) and any(type(each) is Inner for each in part):
            return _part(array(list(part)), extents)
        data = np.asarray(part)
        if not data.size and not isinstance(part, np.ndarray):
            data = data.astype(np.int64)
        if data.dtype.kind not in "biu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        return data
    if isinstance(part, np.generic) or hasattr(part, "__index__"):
        try:
            return operator.index(part)
        except TypeError:
            raise IndexError(_INDEX) from None
    raise IndexError(_INDEX)


def _check(part: Inner, extent: int) -> None:
    """IndexError for an index on the device that is outside the axis: two numbers are read."""
    low, high = td.stack([td.min(part), td.max(part)]).tolist()
    if low < -extent or high >= extent:
        bad = low if low < -extent else high
        raise IndexError(f"index {bad} is out of bounds for axis with size {extent}")


def checked(index: Any, shape: tuple[int, ...]) -> tuple[Any, bool]:
    """An index as treadle takes it, and whether it is of integers alone, one for each axis."""
    kind = type(index)
    if kind is int:
        return index, len(shape) == 1
    if kind is not tuple:
        return _part(index, shape[:1]), len(shape) == 1 and _is_integer(index)
    at, taken, parts = 0, _taken(index), []
    for part in index:
        if part is Ellipsis:
            at += len(shape) - taken
            parts.append(part)
            continue
        parts.append(_part(part, shape[at : at + 1]))
        if part is None or isinstance(part, (bool, np.bool_)):
            continue
        at += _axes(part)
    whole = len(parts) == len(shape) and all(map(_is_integer, index))
    return tuple(parts), whole


def _is_integer(part: Any) -> bool:
    if type(part) is int:
        return True
    if type(part) is Inner:
        return not part.shape and part.dtype.kind != "bool"
    return isinstance(part, np.integer) or (
        hasattr(part, "__index__") and not isinstance(part, (bool, np.bool_, np.ndarray))
    )


def _axes(part: Any) -> int:
    """The axes that a part of an index takes."""
    dtype = getattr(part, "dtype", None)
    if dtype is not None and str(dtype) == "bool":
        return len(part.shape)
    if isinstance(part, list) and part:
        data = np.asarray(part) if not any(type(each) is Inner for each in part) else None
        return data.ndim if data is not None and data.dtype.kind == "b" else 1
    return 1


def _taken(index: tuple[Any, ...]) -> int:
    return sum(
        _axes(part)
        for part in index
        if part is not None and part is not Ellipsis and not isinstance(part, (bool, np.bool_))
    )


def part(x: Inner, index: Any) -> tuple[Inner, bool]:
    """What `x[index]` is, and whether NumPy has a scalar for it."""
    found, is_element = checked(index, x.shape)
    if type(index) is tuple and not index:
        return x._seen_again(), not x.shape
    return x[found], is_element


def write(x: Inner, index: Any, value: Any) -> None:
    """`x[index] = value`."""
    if (
        type(value) is Inner
        and value.dtype.kind == "complex"
        and x.dtype.kind not in ("complex", "bool")
    ):
        value = td.real(value)
    found, _ = checked(index, x.shape)
    if type(value) is float and x.dtype.kind == "float":
        pass
    elif type(value) is int and x.dtype.is_integer:
        limits = td.iinfo(x.dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python integer {value} out of bounds for {x.dtype.name}")
    elif isinstance(value, _SCALARS) or value is None:
        _ = x[found]  # errors of the index come first
        value = _as_written(value, x.dtype)
    elif type(value) is not Inner:
        value = converted(array(_without_text(value, x.dtype), device=x.device), x.dtype)
    elif type(value) is Inner and value.device is not x.device and not value.shape:
        value = value.to(x.device)
    if type(value) is Inner and len(value.shape) > len(x.shape):
        # Axes of extent 1 in front are dropped.
        while value.shape and value.shape[0] == 1:
            value = value[0]
    x[found] = value


_SCALARS = (bool, int, float, complex, str, bytes, np.generic)


def _as_written(value: Any, dtype: DType) -> Any:
    """A number, a text or None as the number that NumPy writes into an array of a dtype, with its
    errors."""
    place = np.empty((), dtype.host)
    place[()] = value
    return place.item()


def _without_text(value: Any, dtype: DType) -> Any:
    """Lists of texts as the numbers that NumPy writes; others as they are."""
    if not isinstance(value, (list, tuple)) or not has_text(value):
        return value
    data = np.asarray(value)
    place = np.empty(data.shape, dtype.host)
    place[...] = data
    return place


def has_text(value: Any) -> bool:
    """Whether there is text in nested lists."""
    return any(
        isinstance(each, (str, bytes)) or (isinstance(each, (list, tuple)) and has_text(each))
        for each in value
    )


# --- functions ------------------------------------------------------------------------------------


def _in_mode(places: Inner, extent: int, mode: str) -> Inner:
    """Indices as numbers from 0 on. IndexError for those outside with mode="raise"."""
    if mode == "clip":
        return td.clip(places, 0, max(extent - 1, 0))
    if mode == "wrap":
        return places % extent
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got '{mode}')")
    if places.size and within.get() is None:
        _check(places, extent)
    return td.where(places < 0, places + extent, places)


def _integers(value: Any, like: Inner, casting: str = "safe") -> Inner:
    """Indices on the array's device. TypeError for other numbers, but for an empty list."""
    made = array(value, like=like)
    is_empty = not made.size and isinstance(value, (list, tuple))
    if not is_empty and not np.can_cast(made.dtype.numpy, np.int64, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from dtype('{made.dtype}') to dtype('int64') according "
            f"to the rule '{casting}'"
        )
    return made.to(promotion.default_integer(like.device))


def take(a: Any, indices: Any, axis: Any = None, *, mode: str = "raise") -> Inner:
    """The elements at indices of the flattened array, or along an axis."""
    x = array(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    elif not x.shape:
        x = x.reshape(1)
    at = axis_of(axis, len(x.shape))
    places = _integers(indices, x, "same_kind")
    if not x.shape[at] and places.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    places = _in_mode(places, x.shape[at], mode)
    return x[(*(slice(None),) * at, places)] if places.shape else td.take(
        x, places.reshape(1), axis=at
    ).reshape((*x.shape[:at], *x.shape[at + 1 :]))  # fmt: skip


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Inner:
    """For each line along an axis the elements at that line's indices."""
    x = array(arr)
    places = array(indices, like=x)
    if places.dtype.kind not in ("int", "uint"):
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, len(x.shape))
    if len(places.shape) != len(x.shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    places = _in_mode(places, x.shape[at], "raise")
    shape = np.broadcast_shapes(
        (*x.shape[:at], 1, *x.shape[at + 1 :]), (*places.shape[:at], 1, *places.shape[at + 1 :])
    )
    places = td.broadcast_to(places, (*shape[:at], places.shape[at], *shape[at + 1 :]))
    x = td.broadcast_to(x, (*shape[:at], x.shape[at], *shape[at + 1 :]))
    return td.take_along_axis(x, places, axis=at)


def put_along_axis(arr: Inner, indices: Any, values: Any, axis: Any) -> None:
    """Write to the elements that `take_along_axis` reads."""
    if type(arr) is not Inner:
        raise TypeError("put_along_axis writes into an array of treadle.numpy")
    x = arr.reshape(-1) if axis is None else arr
    at = axis_of(0 if axis is None else axis, len(x.shape))
    if array(indices, like=x).dtype.kind not in ("int", "uint"):
        raise IndexError("`indices` must be an integer array")
    places = _in_mode(_integers(indices, x, "same_kind"), x.shape[at], "raise")
    steps = [td.arange(e, device=x.device).reshape((-1, *(1,) * (len(x.shape) - n - 1)))
             for n, e in enumerate(x.shape)]  # fmt: skip
    index = tuple(places if n == at else each for n, each in enumerate(steps))
    x[index] = converted(array(values, like=x), x.dtype)
    if x._cell is not arr._cell:
        arr[...] = x.reshape(arr.shape)


def compress(condition: Any, a: Any, axis: Any = None) -> Inner:
    """The elements along an axis where a condition of one axis holds."""
    x = array(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, len(x.shape))
    mask = host(condition)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    (places,) = np.nonzero(mask)
    return x[(*(slice(None),) * at, places)]


def compress_method(a: Inner, condition: Any, axis: Any = None) -> Inner:
    """The method: `x.compress(condition, axis)`."""
    return compress(condition, a, axis)


def extract(condition: Any, arr: Any) -> Inner:
    """The elements of the flattened array where a condition holds."""
    x = array(arr).reshape(-1)
    mask = array(condition, like=x).reshape(-1).to(td.bool)
    return x[td.nonzero(mask)[0]]


def place(arr: Inner, mask: Any, vals: Any) -> None:
    """Write values, one after the other and again, where a mask holds."""
    x = _target("place", arr)
    chosen = array(mask, like=x).to(td.bool)
    values = converted(array(vals, like=x).reshape(-1), x.dtype)
    if chosen.size != x.size:
        raise ValueError("place: mask and data must be the same size")
    if not values.size:
        if bool(td.any(chosen)):
            raise ValueError("Cannot insert from an empty array!")
        return
    number = td.cumulative_sum(chosen.reshape(-1).to(td.int32), axis=0) - 1
    spread = values[td.clip(number % values.size, 0)]
    x[...] = td.where(chosen.reshape(x.shape), spread.reshape(x.shape), x)


def putmask(a: Inner, mask: Any, values: Any) -> None:
    """Write the value of the same place in `values`, repeated to the array's size, where a mask
    holds."""
    x = _target("putmask", a)
    chosen = array(mask, like=x).to(td.bool)
    if chosen.size != x.size:
        raise ValueError("putmask: mask and data must be the same size")
    given = converted(array(values, like=x).reshape(-1), x.dtype)
    if not given.size:
        return
    spread = td.tile(given, -(-x.size // given.size))[: x.size] if given.size != x.size else given
    x[...] = td.where(chosen.reshape(x.shape), spread.reshape(x.shape), x)


def put(a: Inner, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array."""
    x = _target("put", a)
    places = _in_mode(_integers(ind, x).reshape(-1), x.size, mode)
    given = converted(array(v, like=x).reshape(-1), x.dtype)
    if not places.size or not given.size:
        return
    if given.size < places.size:
        given = td.tile(given, -(-places.size // given.size))
    flat = x.reshape(-1)
    flat[places] = given[: places.size]
    if flat._cell is not x._cell:
        x[...] = flat.reshape(x.shape)


def copyto(dst: Inner, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write an array, broadcast, into another one; only where a mask holds."""
    x = _target("copyto", dst)
    if type(src) in (bool, int, float, complex):
        kind = promotion.result_type(x, src)
        if not np.can_cast(kind, x.dtype.numpy, casting):  # type: ignore[arg-type]
            raise promotion.np_casting_error(
                "scalar", promotion.inner_dtype(kind), x.dtype, casting
            )
        given = array(src, x.dtype, like=x) if x.dtype.kind != "uint" or src >= 0 else array(src)
    else:
        given = array(src, like=x)
        promotion.check_cast(given.dtype, x.dtype, casting, "array data")
    given = td.broadcast_to(converted(given, x.dtype), x.shape)
    if where is True:
        x[...] = given
    else:
        x[...] = td.where(array(where, like=x).to(td.bool), given, x)


def _target(name: str, value: Any) -> Inner:
    if type(value) is not Inner:
        raise TypeError(f"{name}: argument 1 must be an array of treadle.numpy")
    return value


def fill_diagonal(a: Inner, val: Any, wrap: bool = False) -> None:
    """Write to the diagonal, in place."""
    x = _target("fill_diagonal", a)
    if len(x.shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(x.shape) > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    count = min(x.shape)
    values = converted(array(val, like=x).reshape(-1), x.dtype)
    places = np.arange(count)
    if len(x.shape) == 2 and wrap:
        rows, columns = x.shape
        flat_places = np.arange(0, rows * columns, columns + 1)
        index: tuple[Any, ...] = (flat_places // columns, flat_places % columns)
        count = len(flat_places)
    else:
        index = (places,) * len(x.shape)
    if not count:
        return
    if values.size < count:
        values = td.tile(values, -(-count // values.size))
    x[index] = values[:count]


def choose(a: Any, choices: Any, *, mode: str = "raise") -> Inner:
    """Of several arrays the element of the one whose number `a` has there."""
    given = (
        list(choices)
        if type(choices) is not Inner
        else [choices[at] for at in range(choices.shape[0])]
    )
    if not given:
        raise ValueError("0-length sequence.")
    options = common(*given)
    places = _integers(array(a, like=options[0]), options[0])
    if mode == "raise" and places.size:
        low, high = td.stack([td.min(places), td.max(places)]).tolist()
        if low < 0 or high >= len(options):
            raise ValueError("invalid entry in choice array")
    places = _in_mode(places, len(options), mode)
    shape = np.broadcast_shapes(places.shape, *[each.shape for each in options])
    made = td.broadcast_to(options[0], shape)
    for number, option in enumerate(options[1:], 1):
        made = td.where(places == number, option, made)
    return made.copied() if len(options) == 1 else made


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Inner:
    """The element of the first choice whose condition holds, else the default."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    *choices, made = common(*choicelist, default)
    for condition, choice in list(zip(condlist, choices, strict=True))[::-1]:
        mask = array(condition, like=made)
        if mask.dtype.kind != "bool":
            raise TypeError("invalid entry 0 in condlist: should be boolean ndarray")
        made = td.where(mask, choice, made)
    return made


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """X where a condition holds, else y; the places where it holds if both are left out."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    is_alike = type(x) is Inner and type(y) is Inner and x.dtype is y.dtype
    one, other = (x, y) if is_alike or _takes(x, y) or _takes(y, x) else common(x, y)
    mask = array(condition, like=one if type(one) is Inner else other)
    return td.where(mask if mask.dtype is td.bool else mask.to(td.bool), one, other)


def _takes(x: Any, number: Any) -> bool:
    """Whether a number takes the dtype of an array of floating numbers."""
    return type(x) is Inner and x.dtype.kind == "float" and type(number) in (int, float)


def nonzero(a: Any) -> tuple[Inner, ...]:
    """The places of the elements that are not zero, an array for each axis."""
    x = array(a)
    if not x.shape:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() "
            "instead."
        )
    index = promotion.default_integer(x.device)
    return tuple(each.to(index) for each in td.nonzero(x))


def flatnonzero(a: Any) -> Inner:
    """The places of the elements of the flattened array that are not zero."""
    return nonzero(array(a).reshape(-1))[0]


def argwhere(a: Any) -> Inner:
    """The places of the elements that are not zero, a row each."""
    x = array(a)
    if not x.shape:
        count = int(bool(x.item()))
        return td.zeros((count, 0), dtype=promotion.default_integer(x.device), device=x.device)
    return td.stack(list(nonzero(x)), axis=1)


def diag_indices(n: int, ndim: int = 2) -> tuple[Inner, ...]:
    """The indices of the diagonal of an array."""
    places = _counted(n)
    return (places,) * ndim


def diag_indices_from(arr: Any) -> tuple[Inner, ...]:
    """The indices of an array's diagonal."""
    x = array(arr)
    if len(x.shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(x.shape[0], len(x.shape))


def _counted(n: int, like: Inner | None = None) -> Inner:
    where = promotion.place() if like is None else like.device
    return td.arange(n, dtype=promotion.default_integer(where), device=where)


def _triangle(kind: str, n: int, k: int, m: int | None) -> tuple[Inner, ...]:
    from_td = td.tril_indices if kind == "tril" else td.triu_indices
    where = promotion.place()
    index = promotion.default_integer(where)
    return tuple(each.to(index) for each in from_td(n, k, m, device=where))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Inner, ...]:
    """The indices of the elements on and below a diagonal."""
    return _triangle("tril", n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Inner, ...]:
    """The indices of the elements on and above a diagonal."""
    return _triangle("triu", n, k, m)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Inner, ...]:
    """The same for an array of two axes."""
    x = array(arr)
    if len(x.shape) != 2:
        raise ValueError("input array must be 2-d")
    return tril_indices(x.shape[0], k, x.shape[1])


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Inner, ...]:
    """The same for an array of two axes."""
    x = array(arr)
    if len(x.shape) != 2:
        raise ValueError("input array must be 2-d")
    return triu_indices(x.shape[0], k, x.shape[1])


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """For each axis the index along it, of all places of a grid."""
    extents = shape_of(dimensions)
    where = promotion.place()
    wanted = promotion.named(dtype, where)
    found = []
    for axis, extent in enumerate(extents):
        line = td.arange(extent, device=where).to(wanted)
        line = line.reshape(tuple(extent if at == axis else 1 for at in range(len(extents))))
        found.append(line if sparse else td.broadcast_to(line, extents))
    if sparse:
        return tuple(found)
    if not found:
        return td.zeros((0,), dtype=wanted, device=where)
    return td.stack(found)


def ix_(*args: Any) -> tuple[Inner, ...]:
    """Sequences as index arrays whose grid they select."""
    found = []
    for number, each in enumerate(args):
        x = array(each)
        if len(x.shape) != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if not x.size:
            x = x.to(promotion.default_integer(x.device))
        if x.dtype.kind == "bool":
            (x,) = nonzero(x)
        found.append(x.reshape(tuple(-1 if at == number else 1 for at in range(len(args)))))
    return tuple(found)


def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Inner, ...]:
    """The index along each axis of places in the flattened array. ValueError for those outside."""
    check_order(order, "C")
    extents = shape_of(shape)
    rest = array(indices)
    if rest.dtype.kind not in ("int", "uint"):
        raise TypeError("only int indices permitted")
    count = int(np.prod(extents, dtype=object)) if extents else 1
    if rest.size:
        low, high = td.stack([td.min(rest), td.max(rest)]).tolist()
        if low < 0 or high >= count:
            raise ValueError(
                f"index {high if high >= count else low} is out of bounds for array with size "
                f"{count}"
            )
    rest = rest.to(promotion.default_integer(rest.device))
    found = []
    for extent in extents[::-1]:
        found.append(rest % extent if extent else rest)
        rest = rest // extent if extent else rest
    return tuple(found[::-1])


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Inner:
    """The places in the flattened array of indices along each axis. ValueError for those
    outside."""
    check_order(order, "C")
    extents = shape_of(dims)
    given = arrays(*multi_index) if type(multi_index) is not Inner else [
        multi_index[at] for at in range(multi_index.shape[0])
    ]  # fmt: skip
    if len(given) != len(extents):
        raise ValueError("parameter multi_index must be a sequence of length " + str(len(extents)))
    modes = mode if isinstance(mode, (tuple, list)) else (mode,) * len(extents)
    made: Any = 0
    for each, extent, how in zip(given, extents, modes, strict=True):
        if each.dtype.kind not in ("int", "uint"):
            raise TypeError("only int indices permitted")
        each = each.to(promotion.default_integer(each.device))
        if how == "raise":
            if each.size:
                low, high = td.stack([td.min(each), td.max(each)]).tolist()
                if low < 0 or high >= extent:
                    raise ValueError("invalid entry in coordinates array")
        else:
            each = _in_mode(each, extent, how)
        made = each + made * extent
    found: Inner = made
    return found


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return np.broadcast_shapes(*args)
