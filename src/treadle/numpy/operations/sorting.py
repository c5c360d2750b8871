"""Sorting, searching, counting and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations.calling import call
from treadle.numpy.operations.operands import array, axis_of, common, converted, floats, host
from treadle.tensor.computed_views import complex_of
from treadle.tensor.tensor import Tensor as Inner


def _axis(x: Inner, axis: Any) -> tuple[Inner, int]:
    if axis is None:
        return x.reshape(-1), 0
    return x, axis_of(axis, len(x.shape))


def _check_kind(kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind not in (None, "quicksort", "heapsort", "mergesort", "stable"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Inner:
    """A sorted copy along an axis; NaN is last."""
    _check_kind(kind, order)
    x, at = _axis(array(a), axis)
    if x.dtype.kind == "complex":
        return td.take_along_axis(x, argsort(x, at), axis=at)
    if x.dtype.kind == "bool":
        return td.sort(x.to(td.uint8), axis=at).to(td.bool)
    return td.sort(x, axis=at)


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Inner:
    """The places of the elements in sorted order along an axis; of equals in their order."""
    _check_kind(kind, order)
    x = array(a)
    if not x.shape and axis is not None:
        x, axis = x.reshape(1), axis_of(axis, 1)
    x, at = _axis(x, axis)
    index = promotion.default_integer(x.device)
    if x.dtype.kind == "complex":
        # By the imaginary parts, then by the real ones, which keeps the order of equals.
        bad = td.isnan(td.real(x)) | td.isnan(td.imag(x))
        first = td.argsort(td.where(bad, np.inf, td.imag(x)), axis=at)
        for keys in (td.real(x), bad.to(td.uint8)):
            second = td.argsort(td.take_along_axis(keys, first, axis=at), axis=at)
            first = td.take_along_axis(first, second, axis=at)
        return first.to(index)
    if x.dtype.kind == "bool":
        x = x.to(td.uint8)
    return td.argsort(x, axis=at).to(index)


def sort_complex(a: Any) -> Inner:
    """The elements as complex numbers, sorted by their real, then their imaginary parts."""
    x = array(a)
    if x.dtype.kind != "complex":
        is_small = x.dtype.is_integer and x.dtype.itemsize < 4
        x = x.to(td.complex64 if is_small else promotion.held("complex128", x.device))
    return sort(x, -1)


def lexsort(keys: Any, axis: int = -1) -> Inner:
    """The places that sort by the last key, then by the one before it, …"""
    if type(keys) is Inner:
        given = [keys[at] for at in range(keys.shape[0])]
    else:
        given = [array(each) for each in keys]
    if not given:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({each.shape for each in given}) > 1:
        raise ValueError("all keys need to be the same shape")
    if not given[0].shape:
        return td.zeros(
            (), dtype=promotion.default_integer(given[0].device), device=given[0].device
        )
    order = argsort(given[0], axis)
    at = axis_of(axis, len(given[0].shape))
    for key in given[1:]:
        step = argsort(td.take_along_axis(key, order, axis=at), at)
        order = td.take_along_axis(order, step, axis=at)
    return order


def _check_kth(kth: Any, x: Inner, at: int) -> None:
    extent = x.shape[at]
    for each in host(kth).reshape(-1).tolist():
        if x.size and not -extent <= each < extent:
            raise ValueError(f"kth(={each}) out of bounds ({extent})")


def partition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Inner:
    """A copy in which element `kth` of an axis is where it is in sorted order: it is sorted."""
    x, at = _axis(array(a), axis)
    _check_kth(kth, x, at)
    return sort(x, at)


def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None
) -> Inner:
    """The places of the elements in `partition`'s order."""
    x = array(a)
    x, at = _axis(x if x.shape or axis is None else x.reshape(1), axis)
    _check_kth(kth, x, at)
    return argsort(x, at)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Inner:
    """The places in a sorted array before which (side="right": behind which) values belong."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be one of 'left' or 'right' (got {side!r})")
    one, other = common(a, v)
    if len(one.shape) != 1:
        raise ValueError(
            "object too deep for desired array"
            if one.shape
            else "object of too small depth for desired array"
        )
    if sorter is not None:
        order = array(sorter, like=one)
        if order.shape != one.shape:
            raise ValueError(
                "sorter.size must equal a.size"
                if order.size != one.size
                else "object too deep for desired array"
            )
        one = one[order]
    index = promotion.default_integer(one.device)
    if one.dtype.kind == "bool":
        one, other = one.to(td.uint8), other.to(td.uint8)
    if not one.size:
        return td.zeros(other.shape, dtype=index, device=one.device)
    if one.dtype.kind == "complex":
        one, other = _ranks(one, other)
    found = td.searchsorted(one, other.reshape(-1), side=side)  # type: ignore[arg-type]
    return found.reshape(other.shape).to(index)


def _ranks(one: Inner, other: Inner) -> tuple[Inner, Inner]:
    """Integers in the order of the complex numbers of two arrays: equal ones for equal numbers."""
    both = td.concat([one, other.reshape(-1)])
    order = argsort(both)
    ordered = both[order]
    # A number with NaN in one part is equal to those alike.
    parts = [td.real(ordered), td.imag(ordered)]
    same = [(each[1:] == each[:-1]) | (td.isnan(each[1:]) & td.isnan(each[:-1])) for each in parts]
    steps = (~(same[0] & same[1])).to(order.dtype)
    ranks = td.zeros(both.shape, dtype=order.dtype, device=both.device)
    ranks[order[1:]] = td.cumulative_sum(steps, axis=0)
    return ranks[: one.size], ranks[one.size :].reshape(other.shape)


def digitize(x: Any, bins: Any, right: bool = False) -> Inner:
    """The number of the bin of each value. ValueError for bins that are not monotonic."""
    edges = array(bins)
    values = array(x, like=edges)
    if len(edges.shape) != 1:
        raise ValueError("object too deep for desired array")
    if values.dtype.kind == "complex":
        raise TypeError("x may not be complex")
    steps = host(edges)
    rising, falling = bool((steps[1:] >= steps[:-1]).all()), bool((steps[1:] <= steps[:-1]).all())
    if not rising and not falling:
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    if rising:
        return searchsorted(edges, values, side)
    return edges.size - searchsorted(td.flip(edges), values, side)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Inner:
    """How often each number from 0 on comes up; the sums of weights where they are given."""
    given = array(x)
    if len(given.shape) != 1:
        raise ValueError(
            "object too deep for desired array"
            if len(given.shape) > 1
            else "object of too small depth for desired array"
        )
    if not given.size and isinstance(x, (list, tuple)):
        given = given.to(td.int32)
    if given.dtype.kind not in ("int", "uint", "bool"):
        raise TypeError(
            "Cannot cast array data from dtype('float64') to dtype('int64') according to the "
            "rule 'safe'"
        )
    if minlength is None or minlength < 0:
        raise (TypeError if minlength is None else ValueError)("'minlength' must not be negative")
    if given.size and bool(td.any(given < 0)):
        raise ValueError("'list' argument must have no negative elements")
    given = given.to(td.uint8) if given.dtype.kind == "bool" else given
    index = promotion.default_integer(given.device)
    if weights is None:
        return td.bincount(given, minlength=minlength).to(index)
    w = floats(weights)
    if w.shape != given.shape:
        raise ValueError("The weights and list don't have the same length.")
    wanted = promotion.default_float(given.device)
    return td.bincount(given, w.to(wanted), minlength).to(wanted)


# --- sets -----------------------------------------------------------------------------------------


def _flat_unique(x: Inner) -> Inner:
    found = td.unique(x.reshape(-1))
    assert type(found) is Inner
    return found


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The different elements, sorted; their first places, the number of each element among them,
    and how often each comes up."""
    x = array(ar)
    is_bool = x.dtype.kind == "bool"
    given = x.to(td.uint8) if is_bool else x
    if axis is not None:
        axis = axis_of(axis, len(x.shape))
    has_parts = axis is not None and x.dtype.kind == "complex"
    if has_parts:  # whose order is that of the complex numbers: real parts first
        given = td.stack([td.real(x), td.imag(x)], axis=-1)
    found = td.unique(
        given, return_index=return_index, return_inverse=return_inverse,
        return_counts=return_counts, axis=axis, equal_nan=equal_nan,
    )  # fmt: skip
    parts = list(found) if isinstance(found, tuple) else [found]
    if is_bool:
        parts[0] = parts[0].to(td.bool)
    if has_parts:
        parts[0] = complex_of(parts[0][..., 0], parts[0][..., 1])
    index = promotion.default_integer(x.device)
    parts[1:] = [each.to(index) for each in parts[1:]]
    if return_inverse and axis is None:
        at = 1 + return_index
        parts[at] = parts[at].reshape(x.shape)
    return tuple(parts) if len(parts) > 1 else parts[0]


class UniqueAllResult(NamedTuple):
    """The results of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """The results of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """The results of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique_all(x: Any) -> UniqueAllResult:
    """The different elements, their first places, the number of each element, and counts."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any) -> UniqueCountsResult:
    """The different elements and how often each comes up."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverseResult:
    """The different elements and the number of each element among them."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any) -> Inner:
    """The different elements."""
    found: Inner = unique(x, equal_nan=False)
    return found


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
    kind: Any = None,
) -> Inner:  # fmt: skip
    """Whether each element is one of the test elements."""
    one, other = common(element, test_elements)
    if one.dtype.kind == "bool":
        one, other = one.to(td.uint8), other.to(td.uint8)
    flat = other.reshape(-1)
    if not flat.size or not one.size:
        found = td.zeros(one.shape, dtype=td.bool, device=one.device)
    elif one.dtype.kind == "complex":
        found = td.any(td.expand_dims(one, axis=-1) == flat, axis=-1)
    else:
        known = td.sort(flat)
        places = td.searchsorted(known, one.reshape(-1))
        found = (known[td.clip(places, max=flat.size - 1)] == one.reshape(-1)).reshape(one.shape)
    return ~found if invert else found


def _two_sets(ar1: Any, ar2: Any, assume_unique: bool) -> tuple[Inner, Inner]:
    one, other = common(ar1, ar2)
    if assume_unique:
        return one.reshape(-1), other.reshape(-1)
    return unique(one), unique(other)


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The elements of both, sorted."""
    one, other = common(ar1, ar2)
    one, other = one.reshape(-1), other.reshape(-1)
    places_one = places_other = None
    if not assume_unique:
        if return_indices:
            one, places_one = unique(one, return_index=True)
            other, places_other = unique(other, return_index=True)
        else:
            one, other = unique(one), unique(other)
    found = sort(one[isin(one, other)])
    if not return_indices:
        return found
    results = []
    for values, places in ((one, places_one), (other, places_other)):
        order = argsort(values)
        at = order[searchsorted(values[order], found)] if found.size else order[:0]
        results.append(at if places is None else places[at])
    return found, results[0], results[1]


def union1d(ar1: Any, ar2: Any) -> Inner:
    """The elements of either, sorted."""
    one, other = common(array(ar1).reshape(-1), array(ar2).reshape(-1))
    found: Inner = unique(td.concat([one, other]))
    return found


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Inner:
    """The elements of the first that are not in the second."""
    one = array(ar1)
    one = one.reshape(-1) if assume_unique else unique(one)
    other = array(ar2, like=one)
    return one[isin(one, other, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Inner:
    """The elements of one of both alone, sorted."""
    one, other = _two_sets(ar1, ar2, assume_unique)
    return sort(
        td.concat([one[isin(one, other, invert=True)], other[isin(other, one, invert=True)]])
    )


# --- comparisons of whole arrays ------------------------------------------------------------------


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and the same elements."""
    try:
        one, other = array(a1), array(a2)
    except (TypeError, ValueError):
        return False
    if one.shape != other.shape:
        return False
    same = call("equal", one, other)
    if equal_nan:
        same = same | (call("isnan", one) & call("isnan", other))
    return bool(td.all(same))


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays are equal when they are broadcast."""
    one, other = array(a1), array(a2)
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return False
    return bool(td.all(call("equal", one, other)))


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Inner:
    """Whether |a - b| <= atol + rtol * |b|."""
    one, other = common(a, b)
    other = floats(other)
    one = converted(one, other.dtype)
    return td.isclose(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as `isclose` says."""
    return bool(td.all(isclose(a, b, rtol, atol, equal_nan)))
