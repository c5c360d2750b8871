"""Which arguments of a stencil share elements: a thread must not read what another one writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.runtime.arrays import DeviceArray

_FIRST_ADDRESS = 1 << 40


def same_elements(one: Any, two: Any) -> bool:
    """Whether two arrays are the same elements of the same memory, in the same order."""
    mine, other = getattr(one, "storage", None), getattr(two, "storage", None)
    if mine is None and other is None:
        return one is two
    return (
        mine is other
        and one.offset == two.offset
        and one.shape == two.shape
        and one.strides == two.strides
    )


def share(one: Any, first: Any, two: Any, second: Any) -> bool:
    """Whether two arguments share elements. `first` and `second` are their descriptions."""
    if isinstance(first, DeviceArray) and isinstance(second, DeviceArray):
        if first.storage is not second.storage:
            return False
        return bool(np.shares_memory(_imitation(first), _imitation(second)))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return bool(np.shares_memory(first, second))
    if isinstance(one, np.ndarray) and isinstance(two, np.ndarray):
        return bool(np.may_share_memory(one, two))
    return one is two


def _imitation(array: DeviceArray) -> np.ndarray[Any, Any]:
    """A NumPy array with the same offset and strides, whose memory is never touched."""
    item = array.dtype.itemsize
    strides = tuple(stride * item for stride in array.strides)
    kind = {"shape": array.shape, "strides": strides, "typestr": f"|V{item}", "version": 3}
    return np.asarray(_Placed({**kind, "data": (_FIRST_ADDRESS + array.offset * item, True)}))


@dataclass(frozen=True)
class _Placed:
    """An array by its description."""

    __array_interface__: dict[str, Any]
