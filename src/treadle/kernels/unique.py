"""The distinct elements of an array. Their number is read: results are as long as that."""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType, i32
from treadle.kernels.device_code import equal_groups
from treadle.kernels.launching import flat, new
from treadle.kernels.scan import exclusive_sum
from treadle.kernels.sort import sort_with_order
from treadle.runtime.arrays import DeviceArray


class Unique(NamedTuple):
    """Distinct values in order, and for each where it is first and how often it is there;
    `inverse` is the place in `values` of every element."""

    values: DeviceArray
    first: DeviceArray
    inverse: DeviceArray
    counts: DeviceArray


def unique(x: DeviceArray, dtype: DType = i32) -> Unique:
    """The distinct elements of a flat array, with places and counts as `dtype`.

    Every NaN is an element of its own; both zeros are one element, the one that is there first.

    >>> import treadle as td
    >>> found = unique(td.asarray([3.0, 1.0, 3.0], device="cpu")._array)
    >>> [part.to_host().tolist() for part in found]
    [[1.0, 3.0], [1, 0], [1, 0, 1], [1, 2]]
    """
    assert isinstance(x.dtype, DType)
    if not x.size:
        return Unique(new(x, x.dtype, 0), new(x, dtype, 0), new(x, dtype, 0), new(x, dtype, 0))
    elements, order = sort_with_order(flat(x))
    heads = new(x, i32, x.size)
    equal_groups.head_marker(x.dtype).launch(x.size, elements, heads)
    return grouped(elements, order, heads, dtype)


def grouped(elements: DeviceArray, order: DeviceArray, heads: DeviceArray, dtype: DType) -> Unique:
    """`unique` of elements that lie in order: `order` (int32) says where they were, `heads` (int32)
    is 1 where a group of equal ones begins, else 0."""
    assert isinstance(elements.dtype, DType)
    size = elements.size
    before, total = exclusive_sum(heads)
    groups = int(total.to_host()[0])
    starts = new(elements, i32, groups)
    found = Unique(
        new(elements, elements.dtype, groups),
        new(elements, dtype, groups),
        new(elements, dtype, size),
        new(elements, dtype, groups),
    )
    writer = equal_groups.group_writer(dtype)
    writer.launch(
        size, elements, order, heads, before, found.values, found.first, found.inverse, starts
    )
    equal_groups.group_counter(dtype).launch(groups, starts, found.counts, size)
    return found
