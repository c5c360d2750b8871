"""Which arguments of a stencil share elements: a thread must not read what another one writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.errors import LaunchError
from treadle.runtime.arrays import ArrayClass, DeviceArray
from treadle.runtime.foreign import kind_of, read
from treadle.stencils.analysis import Analysis
from treadle.stencils.body import Body

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


def check_sharing(
    body: Body,
    analysis: Analysis,
    arguments: Sequence[Any],
    described: Sequence[tuple[Any, Any]],
) -> None:
    """Refuse an array that is read at other cells and shares memory with one that is
    written, and one that is written of which several cells are one element."""
    names = body.names
    for at in analysis.written:
        if not described[at][0].contiguous and repeats_elements(described[at][1]):
            raise LaunchError(
                f"{body.name} writes {names[at]}, which has the same element for several "
                f"cells, as of td.broadcast_to: give it an array of its own "
                f"(td.empty({tuple(described[at][1].shape)}))"
            )
    if _are_apart(described):
        return
    read = dict.fromkeys((*analysis.cells, *analysis.indexed))
    places = {at: extent_of(arguments[at], described[at][1]) for at in (*read, *analysis.written)}
    for at in analysis.written:
        for other in read:
            if other == at or not places[at].shares(places[other]):
                continue
            own = {at, other} <= analysis.fixed and other not in analysis.indexed
            if own and places[at].is_same(places[other]):
                continue  # each thread reads what it writes itself
            raise LaunchError(
                f"{body.name} writes {names[at]}, which shares memory with "
                f"{names[other]}, of which it reads or writes other cells: give it another array "
                f"(td.empty_like({names[other]}))"
            )


def _are_apart(described: Sequence[tuple[Any, Any]]) -> bool:
    """Whether all arrays are treadle's and lie in memories of their own."""
    arrays = [one for key, one in described if isinstance(key, ArrayClass)]
    memories = {id(one.storage) for one in arrays if isinstance(one, DeviceArray)}
    return len(memories) == len(arrays)


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
