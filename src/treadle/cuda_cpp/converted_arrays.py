"""NumPy's float64 arrays for pointers to doubles that are floats, or pairs of floats.

The launch gets a copy of float32. Elements that the kernel changed go back, and the others keep all
of their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.errors import LaunchError
from treadle.cuda_cpp.pair_values import as_pairs, from_pairs, has_doubles
from treadle.cuda_cpp.program import KernelInstance
from treadle.ir.signature import DeclaredPointer
from treadle.ir.types import Struct
from treadle.lang.types import numpy_dtype

Array = np.ndarray[Any, Any]
_NARROWED = {
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}


@dataclass(frozen=True, slots=True)
class ConvertedArray:
    """An array of the caller's, the copy that a launch gets, and what the copy held before."""

    host: Array
    copy: Array
    before: bytes

    def copy_back(self) -> None:
        """Write the numbers that the kernel changed to the array."""
        if self.copy.tobytes() == self.before:
            return
        pairs = self.copy.nbytes == self.host.nbytes
        dtype = self.host.dtype if pairs else self.copy.dtype
        before = np.frombuffer(self.before, dtype).reshape(self.host.shape)
        now = self.copy.reshape(-1).view(dtype).reshape(self.host.shape)
        _write_changes(self.host, now, before, pairs)


def _write_changes(host: Array, now: Array, before: Array, pairs: bool) -> None:
    if host.dtype.names is not None:
        for name in host.dtype.names:
            _write_changes(host[name], now[name], before[name], pairs)
        return
    found = from_pairs(now) if pairs and has_doubles(host.dtype) else now
    shape = (*now.shape, now.dtype.itemsize)
    bits, old = (np.ascontiguousarray(one).view(np.uint8).reshape(shape) for one in (now, before))
    np.copyto(host, found, where=(bits != old).any(axis=-1))


def converted_arguments(
    instance: KernelInstance, arguments: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[ConvertedArray, ...]]:
    """The arguments with a copy for each array of NumPy's with doubles that a pointer gets.
    LaunchError for such an array that overlaps another argument."""
    made: dict[int, ConvertedArray] = {}
    result = list(arguments)
    for position in (*instance.narrowed, *instance.paired):
        value = arguments[position] if position < len(arguments) else None
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
            continue
        pairs = position in instance.paired
        declared = instance.parameters[position].declared
        if not isinstance(declared, DeclaredPointer) or position in instance.uploaded:
            continue
        if not has_doubles(value.dtype) if pairs else value.dtype not in _NARROWED:
            continue
        if id(value) not in made:
            _check_no_overlap(instance, position, value, arguments)
            copy = _pairs_of(value, declared) if pairs else value.astype(_NARROWED[value.dtype])
            before = copy.tobytes()
            copy.flags.writeable = value.flags.writeable
            made[id(value)] = ConvertedArray(value, copy, before)
        result[position] = made[id(value)].copy
    return tuple(result), tuple(made.values())


def _pairs_of(value: Array, declared: DeclaredPointer) -> Array:
    """An array with pairs, in a dtype that says so."""
    copy = as_pairs(value)
    if value.dtype.names is None:
        return copy.view(np.float32) if value.ndim else copy.reshape(1).view(np.float32)
    if isinstance(declared.element, Struct) and declared.element.name:
        return copy.view(numpy_dtype(declared.element))
    return copy


def _check_no_overlap(
    instance: KernelInstance, position: int, value: Array, others: Sequence[Any]
) -> None:
    for other in others:
        if isinstance(other, np.ndarray) and other is not value and _overlap(value, other):
            name = instance.parameters[position].name
            raise LaunchError(
                f"argument {position + 1} ({name}) of kernel {instance.name} is a float64 array "
                "that is copied as float32, and it overlaps another argument: pass float32 arrays"
            )


def _overlap(one: Array, other: Array) -> bool:
    return bool(np.may_share_memory(one, other))
