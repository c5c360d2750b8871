"""Arrays put together and taken apart."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations.operands import array, arrays, axis_of, converted, host
from treadle.numpy.operations.reductions import amax, amin
from treadle.numpy.operations.shapes import atleast_1d, atleast_2d, atleast_3d
from treadle.numpy.operations.statistics import median
from treadle.tensor.tensor import Tensor as Inner


def _several(values: Any) -> list[Any]:
    if type(values) is Inner:
        return [values[at] for at in range(values.shape[0])]
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise TypeError(
            'arrays to stack must be passed as a "sequence" type such as list or tuple.'
        )
    return list(values)


def _in_dtype(given: list[Inner], dtype: Any, casting: str) -> list[Inner]:
    where, own = given[0].device, given[0].dtype
    if dtype is None and all(each.dtype is own for each in given):
        return given
    wanted = (
        promotion.held(promotion.result_type(*given), where)
        if dtype is None
        else promotion.named(dtype, where)
    )
    for each in given:
        promotion.check_cast(each.dtype, wanted, casting, "array data")
    return [converted(each, wanted) for each in given]


def _are_alike(values: Any, axis: Any) -> bool:
    """Whether a list has several tensors of one dtype and as many axes, of which `axis` is one."""
    if type(values) is not list or len(values) < 2 or type(values[0]) is not Inner:
        return False
    dtype, count = values[0].dtype, len(values[0].shape)
    for each in values:
        if type(each) is not Inner or each.dtype is not dtype or len(each.shape) != count:
            return False
    return type(axis) is int and -count <= axis < count


def concatenate(
    arrays: Any, axis: Any = 0, *, dtype: Any = None, casting: str = "same_kind"
) -> Inner:
    """Arrays one after the other along an axis; flattened with axis=None."""
    if dtype is None and _are_alike(arrays, axis):
        return td.concat(arrays, axis=axis)
    given = _arrays(*_several(arrays))
    if not given:
        raise ValueError("need at least one array to concatenate")
    given = _in_dtype(given, dtype, casting)
    if axis is None:
        return td.concat([each.reshape(-1) for each in given])
    if not all(each.shape for each in given):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    count = len(given[0].shape)
    at = axis_of(axis, count)
    if not all(len(each.shape) == count for each in given):
        raise ValueError("all the input array dimensions must match: the numbers of axes differ")
    made = td.concat(given, axis=at)
    return made.copied() if len(given) == 1 else made


_arrays = arrays
concat = concatenate


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Inner:
    """Arrays of one shape along a new axis."""
    if (
        dtype is None
        and _are_alike(arrays, axis)
        and all(e.shape == arrays[0].shape for e in arrays)
    ):
        return td.stack(arrays, axis=axis)
    given = _arrays(*_several(arrays))
    if not given:
        raise ValueError("need at least one array to stack")
    if not all(each.shape == given[0].shape for each in given):
        raise ValueError("all input arrays must have the same shape")
    given = _in_dtype(given, dtype, casting)
    return td.stack(given, axis=axis_of(axis, len(given[0].shape) + 1))


def _listed(found: Any) -> list[Inner]:
    return list(found) if isinstance(found, tuple) else [found]


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Inner:
    """Rows, one below the other."""
    return concatenate(_listed(atleast_2d(*_several(tup))), 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Inner:
    """Columns, one beside the other."""
    given = _listed(atleast_1d(*_several(tup)))
    if not given:
        raise ValueError("need at least one array to concatenate")
    at = 0 if len(given[0].shape) == 1 else 1
    return concatenate(given, at, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Inner:
    """Arrays along the third axis."""
    return concatenate(_listed(atleast_3d(*_several(tup))), 2)


def column_stack(tup: Any) -> Inner:
    """Arrays of one axis as columns."""
    given = [
        each if len(each.shape) > 1 else each.reshape((-1, 1)) for each in map(array, _several(tup))
    ]
    return concatenate(given, 1)


def block(arrays: Any) -> Inner:
    """An array from nested lists of blocks."""

    def depth(value: Any) -> int:
        if not isinstance(value, list):
            return 0
        if not value:
            raise ValueError("List at arrays[0] cannot be empty")
        found = {depth(each) for each in value}
        if len(found) > 1:
            raise ValueError("List depths are mismatched.")
        return 1 + found.pop()

    if isinstance(arrays, tuple):
        raise TypeError("arrays is a tuple: np.block takes lists of blocks")
    levels = depth(arrays)

    def leaves(value: Any) -> list[Any]:
        return [x for each in value for x in leaves(each)] if isinstance(value, list) else [value]

    count = max([levels, *[len(array(each).shape) for each in leaves(arrays)]])

    def made(value: Any, level: int) -> Inner:
        if isinstance(value, list):
            parts = [made(each, level + 1) for each in value]
            return concatenate(parts, count - levels + level)
        x = array(value)
        return x.reshape((*(1,) * (count - len(x.shape)), *x.shape))

    return made(arrays, 0) if levels else made(arrays, 0).copied()


def append(arr: Any, values: Any, axis: Any = None) -> Inner:
    """Values behind an array."""
    one, other = arrays(arr, values)
    if axis is None:
        one, other, axis = one.reshape(-1), other.reshape(-1), 0
    return concatenate([one, other], axis)


# --- parts ----------------------------------------------------------------------------------------


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Inner]:
    """Parts of an axis: so many, as equal as possible, or those between indices."""
    x = array(ary)
    at = axis_of(axis, len(x.shape))
    extent = x.shape[at]
    try:
        cuts = [
            0,
            *[
                int(each)
                for each in (
                    host(indices_or_sections)
                    if type(indices_or_sections) is Inner
                    else indices_or_sections
                )
            ],
            extent,
        ]
    except TypeError:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, more = divmod(extent, count)
        sizes = [each + 1] * more + [each] * (count - more)
        cuts = [0]
        for size in sizes:
            cuts.append(cuts[-1] + size)
    front = (slice(None),) * at
    return [x[(*front, slice(begin, end))] for begin, end in pairwise(cuts)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Inner]:
    """Equal parts of an axis, or those between indices."""
    x = array(ary)
    at = axis_of(axis, len(x.shape))
    if (
        not hasattr(indices_or_sections, "__len__")
        or (type(indices_or_sections) is Inner and not indices_or_sections.shape)
    ) and x.shape[at] % operator.index(indices_or_sections):
        raise ValueError("array split does not result in an equal division")
    return array_split(x, indices_or_sections, at)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Inner]:
    """Parts of the second axis (of the first, if there is only one)."""
    x = array(ary)
    if not x.shape:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(x, indices_or_sections, 1 if len(x.shape) > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Inner]:
    """Parts of the first axis."""
    x = array(ary)
    if len(x.shape) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(x, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Inner]:
    """Parts of the third axis."""
    x = array(ary)
    if len(x.shape) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(x, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Inner, ...]:
    """The parts along an axis, without it."""
    made = array(x)
    if not made.shape:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(td.unstack(made, axis=axis_of(axis, len(made.shape))))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Inner:
    """Values before indices along an axis."""
    x = array(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, len(x.shape))
    extent = x.shape[at]
    given = converted(array(values, like=x), x.dtype)
    if isinstance(obj, slice):
        places = np.arange(*obj.indices(extent))
    else:
        places = host(obj)
        if places.dtype.kind == "b":
            places = np.flatnonzero(places)
    is_single = places.ndim == 0 or places.size == 1
    is_number = places.ndim == 0
    places = places.reshape(-1).astype(np.int64) if places.size else np.zeros(0, np.int64)
    for each in places.tolist():
        if not -extent <= each <= extent:
            raise IndexError(
                f"index {obj if is_number else each} is out of bounds for axis {at} with size "
                f"{extent}"
            )
    places = np.where(places < 0, places + extent, places)
    if is_single:
        if is_number:  # values along the axis are all inserted there
            if len(given.shape) == 0:
                given = given.reshape(1)
            given = td.moveaxis(
                given.reshape((*(1,) * (len(x.shape) - len(given.shape)), *given.shape)), 0, at
            )
        else:
            given = given.reshape((*(1,) * (len(x.shape) - len(given.shape)), *given.shape))
        count = given.shape[at]
        shape = (*x.shape[:at], count, *x.shape[at + 1 :])
        front = (slice(None),) * at
        begin = int(places[0])
        return td.concat(
            [
                x[(*front, slice(0, begin))],
                td.broadcast_to(given, shape),
                x[(*front, slice(begin, None))],
            ],
            axis=at,
        )
    order = places.argsort(kind="mergesort")
    places = places.copy()
    places[order] += np.arange(len(places))
    total = extent + len(places)
    kept = np.ones(total, bool)
    kept[places] = False
    made = td.zeros((*x.shape[:at], total, *x.shape[at + 1 :]), dtype=x.dtype, device=x.device)
    front = (slice(None),) * at
    made[(*front, np.flatnonzero(kept))] = x
    made[(*front, places)] = given
    return made


def delete(arr: Any, obj: Any, axis: Any = None) -> Inner:
    """Without the elements at indices along an axis."""
    x = array(arr)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(axis, len(x.shape))
    extent = x.shape[at]
    kept = np.ones(extent, bool)
    if isinstance(obj, slice):
        kept[obj] = False
    else:
        places = host(obj)
        if places.size == 0:
            return x.copied()
        if places.dtype.kind not in "biu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
        if places.dtype.kind == "b" and places.shape != (extent,):
            raise ValueError(
                "boolean array argument `obj` to delete must be one-dimensional and match the axis "
                f"length of {extent}"
            )
        for each in places.reshape(-1).tolist() if places.dtype.kind != "b" else ():
            if not -extent <= each < extent:
                raise IndexError(f"index {each} is out of bounds for axis {at} with size {extent}")
        kept[places] = False
    return x[(*(slice(None),) * at, np.flatnonzero(kept))]


# --- borders --------------------------------------------------------------------------------------


def _widths(value: Any, count: int) -> list[tuple[int, int]]:
    """Two numbers for each axis."""
    if isinstance(value, dict):
        found: list[Any] = [(0, 0)] * count
        for axis, each in value.items():
            found[axis] = (each, each) if isinstance(each, int) else tuple(each)
        return found
    given = np.asarray(value)
    if given.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    if given.size and given.min() < 0:
        raise ValueError("index can't contain negative values")
    return [tuple(each) for each in np.broadcast_to(given, (count, 2)).tolist()]


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Inner:
    """The array with borders: of a constant, of edge elements, ramps, statistics, or the array
    mirrored or repeated."""
    x = _array(array)
    widths = _widths(pad_width, len(x.shape))
    if callable(mode):
        raise NotImplementedError("np.pad with a function: borders are computed on the device")
    allowed = {
        "empty": (), "edge": (), "wrap": (), "constant": ("constant_values",),
        "linear_ramp": ("end_values",), "maximum": ("stat_length",), "mean": ("stat_length",),
        "median": ("stat_length",), "minimum": ("stat_length",), "reflect": ("reflect_type",),
        "symmetric": ("reflect_type",),
    }  # fmt: skip
    if mode not in allowed:
        raise ValueError(f"mode '{mode}' is not supported")
    wrong = set(kwargs) - set(allowed[mode])
    if wrong:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {wrong}")
    values = kwargs.get("constant_values", kwargs.get("end_values", 0))
    ends = (
        np.broadcast_to(host(values), (len(x.shape), 2))
        if mode in ("constant", "linear_ramp")
        else None
    )
    if mode not in ("constant", "empty", "linear_ramp") and any(
        extent == 0 and max(each) > 0 for extent, each in zip(x.shape, widths, strict=True)
    ):
        raise ValueError("can't extend empty axis using modes other than 'constant' or 'empty'")
    stats = kwargs.get("stat_length")
    lengths = [(None, None)] * len(x.shape) if stats is None else [
        tuple(each) for each in np.broadcast_to(np.asarray(stats), (len(x.shape), 2)).tolist()
    ]  # fmt: skip
    for axis, (before, behind) in enumerate(widths):
        if not before and not behind:
            continue
        if mode in _PLACES:
            if kwargs.get("reflect_type", "even") == "odd":
                x = _odd(x, axis, before, behind, mode)
            else:
                places = _PLACES[mode](x.shape[axis], before, behind)
                x = x[(*(slice(None),) * axis, places)]
            continue
        low, high = (
            _border(
                x,
                axis,
                number,
                width,
                mode,
                None if ends is None else ends[axis][number],
                lengths[axis][number],
            )
            for number, width in enumerate((before, behind))
        )
        x = td.concat([low, x, high], axis=axis)
    return x.copied() if all(each == (0, 0) for each in widths) else x


_array = array


def _reflected(extent: int, before: int, behind: int) -> np.ndarray[Any, Any]:
    at = np.arange(-before, extent + behind)
    period = 2 * (extent - 1)
    if not period:
        return np.zeros_like(at)
    at = at % period
    return np.where(at < extent, at, period - at)


def _mirrored(extent: int, before: int, behind: int) -> np.ndarray[Any, Any]:
    at = np.arange(-before, extent + behind) % (2 * extent)
    return np.where(at < extent, at, 2 * extent - 1 - at)


_PLACES: dict[str, Callable[[int, int, int], np.ndarray[Any, Any]]] = {
    "edge": lambda extent, before, behind: np.clip(
        np.arange(-before, extent + behind), 0, extent - 1
    ),
    "reflect": _reflected,
    "symmetric": _mirrored,
    "wrap": lambda extent, before, behind: np.arange(-before, extent + behind) % extent,
}


def _odd(x: Inner, axis: int, before: int, behind: int, mode: str) -> Inner:
    """Mirrored also in height: twice the edge less the mirrored element."""
    front = (slice(None),) * axis
    edge = 1 if mode == "reflect" else 0
    while before or behind:
        extent = x.shape[axis]
        most = max(extent - edge, 1)
        low, high = min(before, most), min(behind, most)
        places = _PLACES[mode](extent, low, high)
        plain = x[(*front, places)]
        first, last = x[(*front, slice(0, 1))], x[(*front, slice(extent - 1, extent))]
        parts = [
            2 * first - plain[(*front, slice(0, low))],
            x,
            2 * last - plain[(*front, slice(low + extent, None))],
        ]
        x = td.concat(parts, axis=axis).to(x.dtype)
        before, behind = before - low, behind - high
    return x


def _border(x: Inner, axis: int, side: int, width: int, mode: str, end: Any, length: Any) -> Inner:
    shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
    front = (slice(None),) * axis
    extent = x.shape[axis]
    if mode in ("constant", "empty"):
        return (
            converted(td.full(shape, 0 if end is None else end.item(), device=x.device), x.dtype)
            if width
            else x[(*front, slice(0, 0))]
        )
    edge = x[(*front, slice(0, 1) if side == 0 else slice(extent - 1, extent))]
    if mode == "linear_ramp":
        work = promotion.default_float(x.device) if x.dtype.is_integer else x.dtype
        steps = td.arange(width, device=x.device).to(work) / max(width, 1)
        steps = (
            steps
            if side == 0
            else (width - 1 - td.arange(width, device=x.device)).to(work) / max(width, 1)
        )
        steps = steps.reshape((-1, *(1,) * (len(x.shape) - axis - 1)))
        ramp = (
            edge.to(work) * steps + float(end) * (1 - steps)
            if work.kind == "float"
            else edge * steps
        )
        return (td.trunc(ramp) if x.dtype.is_integer else ramp).to(x.dtype)
    count = extent if length is None else min(int(length), extent)
    if count == 0 and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    part = x[(*front, slice(0, count) if side == 0 else slice(extent - count, extent))]
    if x.dtype.is_integer and mode in ("mean", "median"):
        part = part.to(promotion.default_float(x.device))
    function: Any = {"maximum": amax, "minimum": amin, "mean": td.mean, "median": median}[mode]
    made: Inner = function(part, axis=axis, keepdims=True)
    if x.dtype.is_integer and mode in ("mean", "median"):
        made = td.round(made)
    return td.broadcast_to(made.to(x.dtype), shape)


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Inner, ...]:
    """The coordinates of a grid, from those along each axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    given = [each.reshape(-1) for each in arrays(*xi)]
    count = len(given)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    extents = [0] * count
    for number, each in enumerate(given):
        extents[order[number]] = each.size
    found = []
    for number, each in enumerate(given):
        shape = tuple(each.size if at == order[number] else 1 for at in range(count))
        line = each.reshape(shape)
        made = line if sparse else td.broadcast_to(line, tuple(extents))
        found.append(made.copied() if copy else made)
    return tuple(found)
