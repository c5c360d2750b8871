"""Loads and stores of all threads of a chunk. Memory is a flat array of one type."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.drivers.cpu_numpy.chunks import Affine, Array, Value
from treadle.drivers.cpu_numpy.masks import Mask, both

_INDEX_BYTES = np.dtype(np.intp).itemsize


def view(memory: Array, dtype: Any) -> Array:
    """Bytes as an array of a type, without those that are left over."""
    size = np.dtype(dtype).itemsize
    return memory[: memory.size // size * size].view(dtype)


def own(value: Value) -> Value:
    """A value that does not change when memory does."""
    if isinstance(value, np.ndarray) and value.base is not None:
        return value.copy()
    return value


def positions(index: Array) -> Array:
    """An index that NumPy takes: not one of 64 bits where its own have 32, as in a browser."""
    return index if index.itemsize <= _INDEX_BYTES else index.astype(np.intp)


def _part(memory: Array, index: Affine) -> Array:
    """The elements of an array that an index names, as a view with the axes of the chunk."""
    size = memory.itemsize
    strides = tuple(step * size for step in index.steps)
    return np.ndarray(index.chunk.dims, memory.dtype, memory, index.start * size, strides)


def _fits(memory: Array, index: Affine) -> bool:
    return index.low >= 0 and index.high < memory.size


def load(memory: Array, index: Value, ok: Mask = True) -> Value:
    """The elements that an index names: 0 where it is not `ok`. What lies outside of the memory is
    asked for only by threads that do not use it."""
    if ok is False or not memory.size:
        return memory.dtype.type(0)
    if isinstance(index, Affine):
        if _fits(memory, index):
            found: Value = _part(memory, index).reshape(-1)
        else:
            found = memory.take(positions(index.array), mode="clip")
    elif isinstance(index, np.ndarray):
        found = memory.take(positions(index), mode="clip")
    else:
        at = int(index)
        found = memory[at] if 0 <= at < memory.size else memory.dtype.type(0)
    return found if ok is True else np.where(ok, found, memory.dtype.type(0))


def store(memory: Array, index: Value, value: Value, mask: Mask, ok: Mask = True) -> None:
    """Put a value of each thread of a mask, where it is `ok`, into memory."""
    if ok is not True:
        mask = both(mask, ok) if isinstance(ok, np.ndarray) else ok and mask
    if mask is False:
        return
    if isinstance(value, Affine):
        value = value.array
    if mask is True:
        if isinstance(index, Affine):
            if isinstance(value, np.ndarray):
                value = value.reshape(index.chunk.dims)
            _part(memory, index)[...] = value
        elif isinstance(index, np.ndarray):
            memory[positions(index)] = value
        else:
            memory[int(index)] = value[-1] if isinstance(value, np.ndarray) else value
        return
    lanes = np.flatnonzero(mask)
    if isinstance(value, np.ndarray):
        value = value.take(lanes)
    if isinstance(index, (Affine, np.ndarray)):
        chosen = (index.array if isinstance(index, Affine) else index).take(lanes)
        memory[positions(chosen)] = value
    else:
        memory[int(index)] = value[-1] if isinstance(value, np.ndarray) else value
