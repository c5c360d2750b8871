"""The distinct elements of a tensor, sorted. Their number is read, since it decides the shapes.

Every NaN is an element of its own, and both zeros are one element.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from treadle.core.dtypes import DType, bool_, int32
from treadle.core.errors import DtypeError
from treadle.graph.history import Unknown
from treadle.graph.placeholders import record_composite
from treadle.kernels import unique as kernels
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat
from treadle.tensor.axes import one_axis
from treadle.tensor.creation import asarray, full, ones, zeros
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import any as any_of
from treadle.tensor.reductions import count_nonzero
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.searching import nonzero
from treadle.tensor.sorting import argsort
from treadle.tensor.tensor import Tensor


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The distinct elements, the index of the first occurrence of each in `x.reshape(-1)`, for
    every element of x its index among them (in x's shape), and the counts.

    >>> import treadle as td
    >>> found = td.unique_all(td.asarray([[3, 1], [3, 3]], device="cpu"))
    >>> found.values.tolist(), found.indices.tolist(), found.counts.tolist()
    ([1, 3], [1, 0], [1, 3])
    >>> found.inverse_indices.tolist()
    [[1, 0], [1, 1]]
    """
    tensor = x if type(x) is Tensor else asarray(x)
    dtype = tensor.dtype
    if type(dtype) is not DType:
        raise DtypeError(f"structs ({dtype}) have no order, by which equal ones would be found")
    array = tensor._array
    if not array.contiguous:
        array = tensor.copied()._array
    places = default_integer(tensor.device)
    found = _of_complex if dtype.kind == "complex" else kernels.unique
    values, first, inverse, counts = (Tensor(part) for part in found(array, places))
    if tensor._is_recorded:
        record_composite(Unknown("unique_all"), [values._cell.value], [tensor._node])
    return UniqueAll(values, first, inverse.reshape(tensor.shape), counts)


def unique(
    x: ArrayLike,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements in ascending order, with NumPy's arguments; or a tuple of these and of
    what is asked for, in this order: the index of the first occurrence of each in x.reshape(-1),
    for every element of x its index among them (in x's shape), and how often each occurs.

    With an `axis` the distinct parts along it, in the order of their first elements that differ;
    indices are then along the axis. (One sort is done for each element of a part.) NaN is one
    element, or with `equal_nan=False` each NaN is its own, as in `td.unique_all`; parts with NaN
    and complex NaN are always their own. The number of elements is read.

    >>> import treadle as td
    >>> x = td.asarray([3, 1, 3], device="cpu")
    >>> td.unique(x).tolist()
    [1, 3]
    >>> [each.tolist() for each in td.unique(x, return_inverse=True, return_counts=True)]
    [[1, 3], [1, 0, 1], [1, 2]]
    """
    tensor = x if type(x) is Tensor else asarray(x)
    if axis is None:
        found = unique_all(tensor)
        if equal_nan and tensor.dtype.kind == "float":
            found = _one_nan(found)
    else:
        found = _unique_parts(tensor, one_axis("unique", axis, len(tensor.shape)))
    asked = (True, return_index, return_inverse, return_counts)
    results = tuple([each for each, is_asked in zip(found, asked, strict=True) if is_asked])
    return results[0] if len(results) == 1 else results


def _one_nan(found: UniqueAll) -> UniqueAll:
    """All NaN, which are sorted last, as one element."""
    many = int(count_nonzero(apply("isnan", found.values)).item())
    if many < 2:
        return found
    kept = found.values.shape[0] - many + 1
    counts = found.counts[:kept].copied()
    counts[-1] = many
    return UniqueAll(
        found.values[:kept].copied(), found.indices[:kept].copied(),
        apply("minimum", found.inverse_indices, kept - 1), counts,
    )  # fmt: skip


def _unique_parts(x: Tensor, axis: int) -> UniqueAll:
    """The distinct parts along an axis: sorted by their last elements first, equal ones of which
    keep their order."""
    if not isinstance(x.dtype, DType) or x.dtype.kind == "complex":
        raise DtypeError(f"unique: parts of {x.dtype} have no order: take those of real numbers")
    moved = moveaxis(x, axis, 0)
    count = moved.shape[0]
    places = default_integer(x.device)
    rows = moved.reshape(count, math.prod(moved.shape[1:]))
    order = arange(count, dtype=places, device=x.device)
    for column in range(rows.shape[1] - 1, -1, -1):
        order = order[argsort(rows[order, column])]
    if not count:
        return UniqueAll(x.copied(), order, order, order)
    ordered = rows[order]
    differ = any_of(apply("not_equal", ordered[1:], ordered[:-1]), axis=1)
    heads = concat([ones(1, dtype=bool_, device=x.device), differ])
    starts = nonzero(heads)[0].to(places)
    group = (cumulative_sum(heads.to(places)) - 1).to(places)
    inverse = zeros(count, dtype=places, device=x.device)
    inverse[order] = group
    ends = concat([starts[1:], full(1, count, dtype=places, device=x.device)])
    values = moveaxis(ordered[starts].reshape((starts.shape[0], *moved.shape[1:])), 0, axis)
    return UniqueAll(values.copied(), order[starts], inverse, ends - starts)


def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The distinct elements, and their counts.

    >>> import treadle as td
    >>> td.unique_counts(td.asarray([3, 1, 3], device="cpu")).counts.tolist()
    [1, 2]
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The distinct elements, and for every element of x its index among them, in x's shape.

    >>> import treadle as td
    >>> td.unique_inverse(td.asarray([3, 1, 3], device="cpu")).inverse_indices.tolist()
    [1, 0, 1]
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: ArrayLike, /) -> Tensor:
    """The distinct elements.

    >>> import treadle as td
    >>> td.unique_values(td.asarray([3, 1, 3], device="cpu")).tolist()
    [1, 3]
    """
    return unique_all(x).values


def _of_complex(array: DeviceArray, places: DType) -> kernels.Unique:
    """Complex numbers sorted by their real parts, and equal ones by their imaginary parts."""
    assert isinstance(array.dtype, DType)
    if not array.size:
        return kernels.unique(array, places)
    pairs = Tensor(
        DeviceArray(
            array.device, array.storage, array.dtype.component, (array.size, 2), None,
            array.offset * 2,
        )
    )  # fmt: skip
    order = argsort(pairs[:, 1])
    order = order[argsort(pairs[order, 0])]
    ordered = pairs[order]
    heads = full(array.size, 1, dtype=int32, device=array.device)
    differ = apply("not_equal", ordered[1:], ordered[:-1])
    heads[1:] = apply("logical_or", differ[:, 0], differ[:, 1])
    elements = ordered._array
    elements = DeviceArray(
        array.device, elements.storage, array.dtype, (array.size,), None, elements.offset // 2
    )
    return kernels.grouped(elements, order.to(int32)._array, heads._array, places)
