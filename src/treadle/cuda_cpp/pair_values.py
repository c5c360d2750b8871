"""Doubles as pairs of float32 on the host: what kernels see under `double="pair"`.

An array keeps its size: the 8 bytes of a double hold a float32 and what it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_DOUBLE = np.dtype("float64")


def has_doubles(dtype: np.dtype[Any]) -> bool:
    """Whether there are doubles in the elements of an array."""
    if dtype.names is not None:
        return any(has_doubles(dtype[name]) for name in dtype.names)
    return dtype.base in (_DOUBLE, np.dtype("complex128"))


def as_pairs(array: Array) -> Array:
    """A copy of an array with a pair in the place of each double. NumPy takes it for an array of
    the same dtype.

    >>> as_pairs(np.array([1 / 3])).view(np.float32)
    array([ 3.3333334e-01, -9.9341078e-09], dtype=float32)
    """
    made = np.array(array, order="C", copy=True)
    for part in _doubles_of(made):
        with np.errstate(over="ignore", invalid="ignore"):
            high = part.astype(np.float32)
            low = np.where(np.isfinite(high), part - high, 0).astype(np.float32)
        part[...] = np.stack([high, low], -1).view(np.float64)[..., 0]
    return made


def from_pairs(array: Array) -> Array:
    """The inverse of `as_pairs`: exact.

    >>> from_pairs(as_pairs(np.array([0.75, np.inf])))
    array([0.75,  inf])
    """
    made = np.array(array, order="C", copy=True)
    for part in _doubles_of(made):
        both = np.ascontiguousarray(part).reshape(*part.shape, 1).view(np.float32)
        with np.errstate(invalid="ignore"):
            high, low = both[..., 0].astype(np.float64), both[..., 1]
            part[...] = np.where(low == 0, high, high + low)  # a zero keeps its sign
    return made


def _doubles_of(array: Array) -> Iterator[Array]:
    """Views of the doubles in an array."""
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            if has_doubles(dtype[name]):
                yield from _doubles_of(array[name])
    elif dtype == _DOUBLE:
        yield array
    else:
        yield array.real
        yield array.imag
