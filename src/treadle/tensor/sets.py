"""The distinct elements of a tensor, sorted. Their number is read, since it decides the shapes.

Every NaN is an element of its own, and both zeros are one element.
"""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType, int32
from treadle.core.errors import DtypeError
from treadle.graph.history import Unknown
from treadle.graph.placeholders import record_composite
from treadle.kernels import unique as kernels
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.creation import asarray, full
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import apply
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
