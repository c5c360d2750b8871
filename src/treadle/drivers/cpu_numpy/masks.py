"""Masks: which threads of a chunk run a statement. True is all of them, False is none; else an
array of booleans of which some are true and some are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.drivers.cpu_numpy.chunks import Affine, Array, Value

Mask = Any


def _normal(mask: Array) -> Mask:
    count = np.count_nonzero(mask)
    if count == 0:
        return False
    return True if count == mask.size else mask


def both(mask: Mask, condition: Value) -> Mask:
    """The threads of a mask for which a condition holds."""
    if isinstance(condition, np.ndarray):
        if mask is False:
            return False
        return _normal(condition if mask is True else mask & condition)
    return mask if condition else False


def without(mask: Mask, condition: Value) -> Mask:
    """The threads of a mask for which a condition does not hold."""
    if isinstance(condition, np.ndarray):
        if mask is False:
            return False
        return _normal(~condition if mask is True else mask & ~condition)
    return False if condition else mask


def minus(mask: Mask, gone: Mask) -> Mask:
    """The threads of a mask that are not in another one."""
    if gone is False or mask is False:
        return mask
    if gone is True:
        return False
    return _normal(~gone if mask is True else mask & ~gone)


def either(left: Mask, right: Mask) -> Mask:
    """The threads of two masks."""
    if left is True or right is True:
        return True
    if left is False:
        return right
    return left if right is False else _normal(left | right)


def all_of(left: Mask, right: Mask) -> Mask:
    """The threads of both masks."""
    return both(left, right)


def merge(mask: Mask, new: Value, old: Value) -> Value:
    """A variable after an assignment by the threads of a mask."""
    if mask is True:
        return new
    return old if mask is False else np.where(mask, new, old)


def select(condition: Value, if_true: Value, if_false: Value) -> Value:
    """One of two values, for each thread."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, if_true, if_false)
    return if_true if condition else if_false


def inside(index: Value, bound: Value) -> Mask:
    """Whether an index lies in 0 <= index < bound, as a mask."""
    if isinstance(index, Affine) and not isinstance(bound, (np.ndarray, Affine)):
        if index.low >= 0 and index.high < bound:
            return True
        if index.high < 0 or index.low >= bound:
            return False
    if isinstance(index, Affine):
        index = index.array
    if isinstance(bound, Affine):
        bound = bound.array
    found = (index >= 0) & (index < bound)
    return _normal(found) if isinstance(found, np.ndarray) else bool(found)


class Trips:
    """The iterations of a loop: how many each thread makes, and its variable in each."""

    __slots__ = ("_certain", "_count", "_dtype", "_start", "_step", "steps")

    def __init__(self, start: Value, stop: Value, step: int, mask: Mask, dtype: Any) -> None:
        self._start, self._step, self._dtype = start, step, dtype
        least, most, count = (0, 0, 0) if mask is False else _trips(start, stop, step, mask)
        self._count: Value = count
        self._certain = least  # iterations that all threads make
        self.steps = range(most)

    def mask(self, step: int, inside: Mask) -> Mask:
        """The threads among these that make an iteration."""
        return inside if step < self._certain else both(inside, self._count > step)

    def value(self, step: int) -> Value:
        """The loop's variable in an iteration."""
        start = self._start
        if isinstance(start, (np.ndarray, Affine)):
            return start + self._dtype(step * self._step) if step else start
        return self._dtype(int(start) + step * self._step)


def _trips(start: Value, stop: Value, step: int, mask: Mask) -> tuple[int, int, Any]:
    """The least and the most iterations of a thread, and those of each."""
    if isinstance(start, Affine) and not isinstance(stop, np.ndarray):
        difference = stop - start
        if isinstance(difference, Affine):
            least, most = -(-difference.low // step), -(-difference.high // step)
            if step < 0:
                least, most = most, least
            least, most = max(least, 0), max(most, 0)
            if least == most:
                return least, most, least
    difference = _wide(stop) - _wide(start)
    count = -(-difference // step)
    if not isinstance(count, np.ndarray):
        one = max(int(count), 0)
        return one, one, one
    chosen = count if mask is True else count[mask]
    return max(int(chosen.min()), 0), max(int(chosen.max()), 0), count


def _wide(value: Value) -> Value:
    if isinstance(value, Affine):
        value = value.array
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)
