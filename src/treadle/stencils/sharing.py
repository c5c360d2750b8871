"""Which arguments of a stencil share elements: a thread must not read what another one writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.runtime.arrays import DeviceArray
from treadle.runtime.foreign import kind_of, read

_FIRST_ADDRESS = 1 << 12  # of a memory: any but 0, small as web pages have 32 bits for addresses
_MOST_WORK = 10_000


@dataclass(frozen=True, slots=True)
class Extent:
    """Where the elements of an array are: in a memory, None for addresses of the process or of
    another library, at the places of a NumPy array whose elements are never read."""

    memory: Any
    array: np.ndarray[Any, Any]

    def is_same(self, other: Extent) -> bool:
        """Whether two arrays are the same elements in the same order."""
        one, two = self.array, other.array
        return (
            self.memory is other.memory
            and one.__array_interface__["data"][0] == two.__array_interface__["data"][0]
            and one.shape == two.shape
            and one.strides == two.strides
        )

    def shares(self, other: Extent) -> bool:
        """Whether two arrays have an element in common, or it takes long to find out."""
        if self.memory is not other.memory:
            return False
        try:
            return bool(np.shares_memory(self.array, other.array, _MOST_WORK))  # type: ignore[arg-type]
        except np.exceptions.TooHardError:
            return True


def repeats_elements(array: Any) -> bool:
    """Whether an array has an axis along which all elements are the same one."""
    return any(
        stride == 0 and extent > 1
        for stride, extent in zip(array.strides, array.shape, strict=True)
    )


def extent_of(argument: Any, description: Any) -> Extent:
    """Where an argument's elements are. `description` is what `convert.describe` says of it."""
    if isinstance(description, DeviceArray):
        return Extent(description.storage, _imitation(description, _FIRST_ADDRESS))
    if isinstance(argument, np.ndarray):
        return Extent(None, argument)
    assert kind_of(argument) is not None
    foreign = read(argument, "an argument")
    return Extent(None, _imitation(foreign, foreign.address))


def _imitation(array: Any, address: int) -> np.ndarray[Any, Any]:
    """A NumPy array with the same strides at an address, whose memory is never touched."""
    item = array.dtype.itemsize
    strides = tuple(stride * item for stride in array.strides)
    place = address + getattr(array, "offset", 0) * item
    kind = {"shape": tuple(array.shape), "strides": strides, "typestr": f"|V{item}", "version": 3}
    return np.asarray(_Placed({**kind, "data": (place, True)}))


@dataclass(frozen=True)
class _Placed:
    """An array by its description."""

    __array_interface__: dict[str, Any]
