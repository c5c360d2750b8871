"""Sorting, searching in sorted elements, counting, and distinct elements."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers, result_type
from treadle.torch.operations.axes import long, one
from treadle.torch.operations.operands import ValuesIndices, cast

Histogram = namedtuple("Histogram", "hist bin_edges")


def argsort(
    input: Inner, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Inner:
    """The indices along an axis that sort it. Equal elements keep their order; NaN counts as
    greatest."""
    at = one(dim, len(input.shape))
    if not input.shape:
        return td.zeros((), dtype=integers(input.device), device=input.device)
    if not descending or input.dtype.kind != "float":
        return long(td.argsort(input, axis=at, descending=descending))
    # NaN is first: sorted by whether they are, what is in order already stays in order.
    found = td.argsort(input, axis=at, descending=True)
    known = td.isnan(td.take_along_axis(input, found, axis=at)) == False  # noqa: E712 - a tensor
    order = td.argsort(known.to(td.int32), axis=at)
    return long(td.take_along_axis(found, order, axis=at))


def sort(
    input: Inner, dim: int = -1, descending: bool = False, *, stable: bool | None = False
) -> Any:
    """The elements in order along an axis, and their indices."""
    if not input.shape:
        return ValuesIndices(input.copied(), argsort(input, dim))
    found = argsort(input, dim, descending)
    return ValuesIndices(td.take_along_axis(input, found, axis=one(dim, len(input.shape))), found)


def msort(input: Inner) -> Inner:
    """The elements in order along axis 0."""
    return td.sort(input, axis=0) if input.shape else input.copied()


def topk(input: Inner, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k greatest or least elements along an axis, in order, and their indices."""
    at = one(dim, len(input.shape))
    if not 0 <= k <= (input.shape[at] if input.shape else 1):
        raise RuntimeError("selected index k out of range")
    values, found = td.topk(input, k, at, largest, sorted)
    if not input.shape:
        return ValuesIndices(values.reshape(()), long(found).reshape(()))
    return ValuesIndices(values, long(found))


def searchsorted(
    sorted_sequence: Inner, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Inner | None = None,
) -> Inner:  # fmt: skip
    """Where elements would be inserted into sorted rows, to keep these sorted."""
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    how: Any = side or ("right" if right else "left")
    rows = sorted_sequence
    values = input
    if not isinstance(input, Inner):
        values = td.asarray(input, device=rows.device)
    if sorter is not None:
        rows = td.take_along_axis(rows, sorter, axis=-1)
    dtype = result_type(rows, input)
    rows, values = cast(rows, dtype), cast(values, dtype)
    if dtype.kind == "bool":
        rows, values = rows.to(td.uint8), values.to(td.uint8)
    if len(rows.shape) == 1:
        found = td.searchsorted(rows, values.reshape(values.size), side=how).reshape(values.shape)
    else:
        if rows.shape[:-1] != values.shape[:-1]:
            raise RuntimeError(
                "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
                "dimensions of boundaries tensor and input value tensor must match"
            )
        found = _in_rows(rows, values, how)
    return found.to(td.int32) if out_int32 else long(found)


def _in_rows(rows: Inner, values: Inner, side: str) -> Inner:
    """A binary search in each row, all at once: a step for each binary digit of the extent."""
    extent = rows.shape[-1]
    low = td.zeros(values.shape, dtype=integers(values.device), device=values.device)
    if not extent or not values.size:
        return low
    high = low + extent
    for _ in range(extent.bit_length()):
        middle = td.floor_divide(low + high, 2)
        probe = td.take_along_axis(rows, td.clip(middle, 0, extent - 1), axis=-1)
        before = probe < values if side == "left" else probe <= values
        if values.dtype.kind == "float":  # NaN counts as greatest
            missing = td.isnan(values)
            known = td.isnan(probe) == False  # noqa: E712 - a tensor
            before = before | (missing & known if side == "left" else missing)
        is_open = low < high
        low, high = (
            td.where(is_open & before, middle + 1, low),
            td.where(is_open & (before == False), middle, high),  # noqa: E712 - a tensor
        )
    return low


def bucketize(
    input: Any, boundaries: Inner, *, out_int32: bool = False, right: bool = False
) -> Inner:
    """The bucket of each element between sorted boundaries."""
    if len(boundaries.shape) != 1:
        raise RuntimeError("bucketize: boundaries tensor must be 1 dimension")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Inner:
    """Whether each element is among others."""
    device = (elements if isinstance(elements, Inner) else test_elements).device
    dtype = result_type(elements, test_elements)
    given = [
        cast(x, dtype) if isinstance(x, Inner) else td.asarray(x, dtype=dtype, device=device)
        for x in (elements, test_elements)
    ]
    one_of, others = given[0], given[1].reshape(given[1].size)
    if not others.size:
        found = td.zeros(one_of.shape, dtype=td.bool, device=device)
    elif others.size <= 16 or dtype.kind not in ("int", "uint", "float"):
        found = td.any(td.expand_dims(one_of, axis=-1) == others, axis=-1)
    else:
        ordered = td.sort(others)
        at = td.searchsorted(ordered, one_of.reshape(one_of.size))
        near = ordered[td.clip(at, 0, others.size - 1)].reshape(one_of.shape)
        found = near == one_of
    return td.logical_not(found) if invert else found


# --- counting ------------------------------------------------------------------------------------


def bincount(input: Inner, weights: Inner | None = None, minlength: int = 0) -> Inner:
    """How often each of 0, 1, 2, … occurs, or the sum of its weights."""
    if len(input.shape) != 1 or input.dtype.kind not in ("int", "uint"):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return long(td.bincount(input, minlength=minlength))
    if weights.dtype not in (td.float32, td.float64):
        weights = weights.to(td.float64)
    return td.bincount(input, weights, minlength)


def histc(input: Inner, bins: int = 100, min: Any = 0, max: Any = 0) -> Inner:
    """How many elements lie in each of so many equal bins, in the elements' dtype."""
    return td.histc(input, bins, min, max).to(input.dtype)


def histogram(
    input: Inner, bins: Any, *, range: Any = None, weight: Inner | None = None,
    density: bool = False,
) -> Any:  # fmt: skip
    """How many elements lie in each bin, in the elements' dtype, and the bins' edges."""
    flat = input.reshape(input.size)
    weights = None if weight is None else weight.reshape(weight.size)
    edges: Any = bins
    if not isinstance(bins, Inner):
        low, high = range if range is not None else _range(flat)
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = td.asarray(_edges(low, high, bins, input.dtype), device=input.device)
    found = td.histogram(flat, edges, weights=weights, density=density)
    return Histogram(found[0].to(input.dtype), edges)


def _edges(low: float, high: float, bins: int, dtype: DType) -> Any:
    """The edges of bins, from either end to the middle as PyTorch computes them, so that elements
    at an edge come into the same bin."""
    kind = dtype.numpy.type
    first, last, index = kind(low), kind(high), np.arange(bins + 1)
    step = (last - first) / kind(bins)
    up, down = first + step * index.astype(kind), last - step * (bins - index).astype(kind)
    return np.where(index < (bins + 1) // 2, up, down).astype(kind)


def _range(flat: Inner) -> tuple[float, float]:
    return (td.min(flat).item(), td.max(flat).item()) if flat.size else (0.0, 1.0)


def histogramdd(
    input: Inner, bins: Any, *, range: Sequence[float] | None = None,
    weight: Inner | None = None, density: bool = False,
) -> Any:  # fmt: skip
    """How many rows lie in each of the boxes that the bins of their columns make."""
    columns = input.shape[-1]
    rows = input.reshape(-1, columns)
    count = rows.shape[0]
    several = list(bins) if isinstance(bins, (tuple, list)) else [bins] * columns
    edges: list[Inner] = []
    place = td.zeros(count, dtype=integers(input.device), device=input.device)
    valid = td.ones(count, dtype=td.bool, device=input.device)
    for at, each in enumerate(several):
        column = rows[:, at]
        if isinstance(each, Inner):
            bounds = each
        else:
            low, high = _range(column) if range is None else range[2 * at : 2 * at + 2]
            if low == high:
                low, high = low - 0.5, high + 0.5
            bounds = td.asarray(_edges(low, high, each, input.dtype), device=input.device)
        edges.append(bounds)
        bin_count = bounds.shape[0] - 1
        found = long(td.searchsorted(bounds, column, side="right")) - 1
        found = td.where(column == bounds[-1], bin_count - 1, found)
        valid = valid & (column >= bounds[0]) & (column <= bounds[-1])
        place = place * bin_count + td.clip(found, 0, max(bin_count - 1, 0))
    shape = tuple([each.shape[0] - 1 for each in edges])
    weights = weight.reshape(count) if weight is not None else td.ones_like(rows[:, 0])
    weights = td.where(valid, weights, 0)
    flat = td.zeros(math.prod(shape), dtype=input.dtype, device=input.device)
    hist = td.index_add(flat, 0, place, weights.to(input.dtype)).reshape(shape)
    if density:
        hist = hist / td.sum(hist)
        for at, each in enumerate(edges):
            width = td.diff(each).reshape((-1,) + (1,) * (columns - at - 1))
            hist = hist / width
    return Histogram(hist, tuple(edges))


# --- distinct elements ---------------------------------------------------------------------------


def unique(
    input: Inner, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The distinct elements, or parts along an axis, in order; with it what is asked for."""
    axis = None if dim is None else one(dim, len(input.shape))
    found = td.unique(input, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    values, inverse, counts = found
    results = (
        values, long(inverse) if return_inverse else None,
        long(counts) if return_counts else None,
    )  # fmt: skip
    kept = tuple([each for each in results if each is not None])
    return kept if len(kept) > 1 else values


def unique_consecutive(
    input: Inner, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The elements, or parts along an axis, without those that equal the one before."""
    at = 0 if dim is None else one(dim, len(input.shape))
    moved = input.reshape(input.size) if dim is None else td.moveaxis(input, at, 0)
    count = moved.shape[0]
    rows = moved.reshape(count, math.prod(moved.shape[1:]))
    differs = td.any(rows[1:] != rows[:-1], axis=1)
    head = td.ones(min(count, 1), dtype=td.bool, device=input.device)
    begins = td.concat([head, differs]) if count else head
    starts = long(td.nonzero(begins)[0])
    values = moved[starts]
    values = values if dim is None else td.moveaxis(values, 0, at).copied()
    inverse = td.cumulative_sum(long(begins)) - 1
    inverse = inverse.reshape(input.shape) if dim is None else inverse
    end = td.full(min(count, 1), count, dtype=integers(input.device), device=input.device)
    counts = td.diff(td.concat([starts, end])) if count else starts
    asked = ((values, True), (inverse, return_inverse), (counts, return_counts))
    kept = tuple([each for each, is_asked in asked if is_asked])
    return kept if len(kept) > 1 else values
