"""Searching in sorted arrays."""

from __future__ import annotations

from typing import Literal

from treadle.core.dtypes import DType, i32
from treadle.kernels.device_code.binary_search import searcher
from treadle.kernels.launching import flat, new
from treadle.runtime.arrays import DeviceArray


def searchsorted(
    elements: DeviceArray,
    values: DeviceArray,
    side: Literal["left", "right"] = "left",
    sorter: DeviceArray | None = None,
    dtype: DType = i32,
) -> DeviceArray:
    """Where in a sorted array each value belongs: before elements that equal it, or after them.

    Elements and values have one dtype. With a `sorter`, the elements are sorted by it:
    `elements[sorter[i]]` rises with `i`.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0, 2.0, 5.0], device="cpu")._array
    >>> v = td.asarray([2.0, float("nan")], device="cpu")._array
    >>> searchsorted(x, v).to_host().tolist(), searchsorted(x, v, "right").to_host().tolist()
    ([1, 4], [3, 4])
    """
    assert isinstance(elements.dtype, DType)
    places = new(values, dtype, *values.shape)
    if values.size:
        kernel = searcher(elements.dtype, dtype, side == "right", sorter is not None)
        order = 0 if sorter is None else sorter
        kernel.launch(values.size, elements, order, flat(values), flat(places), elements.size)
    return places
