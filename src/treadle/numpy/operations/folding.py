"""Reductions and running values by any function of two operands: `ufunc.reduce`, `accumulate`."""

from __future__ import annotations

from collections.abc import Callable

import treadle as td
from treadle.tensor.tensor import Tensor as Inner

Pair = Callable[[Inner, Inner], Inner]


def _part(x: Inner, axis: int, part: slice) -> Inner:
    return x[(*(slice(None),) * axis, part)]


def fold(function: Pair, x: Inner, axis: int, is_associative: bool) -> Inner:
    """The function between all elements along an axis, which keeps the extent 1. Associative ones
    halve the axis in each step, others go along it."""
    if not is_associative:
        found = _part(x, axis, slice(0, 1))
        for at in range(1, x.shape[axis]):
            found = function(found, _part(x, axis, slice(at, at + 1)))
        return found
    while (extent := x.shape[axis]) > 1:
        half = extent // 2
        # Neighbours, so that their order is kept.
        pairs = function(
            _part(x, axis, slice(0, 2 * half, 2)), _part(x, axis, slice(1, 2 * half, 2))
        )
        rest = _part(x, axis, slice(2 * half, extent))
        x = td.concat([pairs, rest], axis=axis) if extent % 2 else pairs
    return x


def running(function: Pair, x: Inner, axis: int, is_associative: bool) -> Inner:
    """The function between the elements up to each, along an axis."""
    extent = x.shape[axis]
    if not is_associative:
        found = [_part(x, axis, slice(0, 1))] if extent else []
        for at in range(1, extent):
            found.append(function(found[-1], _part(x, axis, slice(at, at + 1))))
        return td.concat(found, axis=axis) if found else x
    step = 1
    while step < extent:
        later = function(
            _part(x, axis, slice(0, extent - step)), _part(x, axis, slice(step, extent))
        )
        x = td.concat([_part(x, axis, slice(0, step)), later], axis=axis)
        step *= 2
    return x
