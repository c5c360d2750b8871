"""NumPy's float64 arrays for pointers to doubles that are floats (`double="float"`).

The launch gets a float32 copy. Elements that the kernel changed go back, and the others keep all of
their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.errors import LaunchError
from treadle.cuda_cpp.program import KernelInstance

_NARROWED = {
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}


@dataclass(frozen=True, slots=True)
class NarrowedArray:
    """A float64 array, the copy that a launch gets, and what the copy held before."""

    host: np.ndarray[Any, Any]
    copy: np.ndarray[Any, Any]
    before: np.ndarray[Any, Any]

    def copy_back(self) -> None:
        """Write the elements that the kernel changed to the array."""
        bits = np.dtype("u4" if self.copy.itemsize == 4 else "u8")
        changed = self.copy.view(bits) != self.before.view(bits)
        if changed.any():
            np.copyto(self.host, self.copy, where=changed)


def narrowed_arguments(
    instance: KernelInstance, arguments: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[NarrowedArray, ...]]:
    """The arguments with a float32 copy of each float64 array of NumPy's that a pointer to doubles
    gets. LaunchError for such an array that overlaps another argument."""
    made: dict[int, NarrowedArray] = {}
    result = list(arguments)
    for position in instance.narrowed:
        value = arguments[position] if position < len(arguments) else None
        if not isinstance(value, np.ndarray) or value.dtype not in _NARROWED:
            continue
        if id(value) not in made:
            _check_no_overlap(instance, position, value, arguments)
            copy = value.astype(_NARROWED[value.dtype], order="K")
            before = copy.copy(order="K")
            copy.flags.writeable = value.flags.writeable
            made[id(value)] = NarrowedArray(value, copy, before)
        result[position] = made[id(value)].copy
    return tuple(result), tuple(made.values())


def _check_no_overlap(
    instance: KernelInstance, position: int, value: np.ndarray[Any, Any], others: Sequence[Any]
) -> None:
    for other in others:
        if isinstance(other, np.ndarray) and other is not value and _overlap(value, other):
            name = instance.parameters[position].name
            raise LaunchError(
                f"argument {position + 1} ({name}) of kernel {instance.name} is a float64 array "
                "that is copied as float32, and it overlaps another argument: pass float32 arrays"
            )


def _overlap(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return bool(np.may_share_memory(one, other))
