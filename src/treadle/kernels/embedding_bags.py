"""Sums, means and maxima of the rows of a table that are in a bag."""

from __future__ import annotations

from treadle.core.dtypes import DType, i32
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import embedding_bags
from treadle.kernels.launching import flat, new
from treadle.runtime.arrays import DeviceArray


def add_bags(
    table: DeviceArray,
    index: DeviceArray,
    starts: DeviceArray,
    *options: DeviceArray | int | bool,
) -> DeviceArray:
    """The sum of the rows of each bag, times weights if there are any, or their mean.

    `index` names the rows, as int32, one bag after the other; `starts` says where the bags begin,
    the first `bags` of its elements; the last bag ends where another element says, or at the end.
    `options` are weights, if there are any, `bags`, and whether means are wanted. An index of -1
    stands for a row of zeros, one of -2 is skipped.

    >>> import treadle as td
    >>> table = td.asarray([[1.0, 2.0], [10.0, 20.0]], device="cpu")._array
    >>> index = td.asarray([0, 1, 1, -1], dtype=td.int32, device="cpu")._array
    >>> starts = td.asarray([0, 2], dtype=td.int32, device="cpu")._array
    >>> add_bags(table, index, starts, 2, True).to_host().tolist()
    [[5.5, 11.0], [5.0, 10.0]]
    """
    *arrays, bags, averaged = options
    weights = arrays[0] if arrays else 0
    out = _result(table, int(bags))  # type: ignore[arg-type]
    if out.size:
        kernel = embedding_bags.adder(_dtype(table), bool(arrays), bool(averaged))
        sizes = (*out.shape, index.size)
        kernel.launch(out.shape, flat(table), index, starts, weights, flat(out), *sizes)
    return out


def greatest_of_bags(
    table: DeviceArray, index: DeviceArray, starts: DeviceArray, bags: int
) -> tuple[DeviceArray, DeviceArray]:
    """The greatest element of each column of the rows of each bag, and the row that it is of; 0 and
    -1 for a bag without rows. Arguments are those of `add_bags`."""
    out = _result(table, bags)
    rows = new(table, i32, *out.shape)
    if out.size:
        sizes = (*out.shape, index.size)
        kernel = embedding_bags.greatest(_dtype(table))
        kernel.launch(out.shape, flat(table), index, starts, flat(out), flat(rows), *sizes)
    return out, rows


def _dtype(table: DeviceArray) -> DType:
    assert isinstance(table.dtype, DType)
    return table.dtype


def _result(table: DeviceArray, bags: int) -> DeviceArray:
    columns = table.shape[1]
    if max(table.size, bags * columns) >= MOST_NARROW:
        raise ShapeError(
            f"{bags} bags of rows of a table of shape {table.shape}: {MOST_NARROW} elements or "
            "more are too many at once"
        )
    return new(table, _dtype(table), bags, columns)
