"""`np.r_`, `c_`, `mgrid`, `ogrid`: arrays written as slices."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.arrays import Values, ndarray, unwrapped, wrap
from treadle.numpy.operations import creation, joining, operands
from treadle.numpy.operations.operands import converted
from treadle.tensor.tensor import Tensor as Inner

s_, index_exp = np.s_, np.index_exp


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, (Values, np.generic, Inner)) else value


def _line(part: slice) -> Inner:
    start, stop = _number(part.start), _number(part.stop)
    step = _number(part.step)
    start = 0 if start is None else start
    step = 1 if step is None else step
    if isinstance(step, complex):
        line: Inner = creation.linspace(start, stop, int(abs(step)))
        return line
    return creation.arange(start, stop, step)


class _Grid:
    """`mgrid` and `ogrid`."""

    def __init__(self, is_sparse: bool) -> None:
        self._is_sparse = is_sparse

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return wrap(_line(key))
        lines = [_line(each) for each in key]
        if not lines:
            return wrap(td.zeros((0,)))
        kind = promotion.held(promotion.result_type(*lines), lines[0].device)
        lines = [each.to(kind) for each in lines]
        found = joining.meshgrid(*lines, sparse=self._is_sparse, indexing="ij")
        if self._is_sparse:
            return tuple(wrap(each) for each in found)
        return wrap(td.stack(list(found)))


class _Joined:
    """`r_` and `c_`: slices, numbers and arrays one after the other."""

    def __init__(self, axis: int, least: int, first: int) -> None:
        self._axis, self._least, self._first = axis, least, first

    def __getitem__(self, key: Any) -> ndarray:
        parts = key if isinstance(key, tuple) else (key,)
        axis, least, first = self._axis, self._least, self._first
        found: list[Inner] = []
        weak = []
        for part in parts:
            if isinstance(part, str):
                if part in ("r", "c"):
                    raise NotImplementedError(
                        f"np.r_[{part!r}, …] makes a matrix: use np.concatenate"
                    )
                numbers = [int(each) for each in part.split(",")]
                axis, least, first = (numbers + [least, first][len(numbers) - 1 :])[:3]
                continue
            if isinstance(part, slice):
                made = _line(part)
                if least > 1:
                    made = made.reshape((*(1,) * (least - 1), -1))
                    made = _turned(made, first, 1, least)
            elif isinstance(part, (bool, int, float, complex)):
                weak.append((len(found), part))
                made = operands.array(part).reshape((1,) * max(least, 1))
            else:
                given = operands.array(unwrapped(part))
                made = given.reshape((*(1,) * (least - len(given.shape)), *given.shape))
                if least > len(given.shape):
                    made = _turned(made, first, len(given.shape), least)
            found.append(made)
        places = {at for at, _ in weak}
        kinds = [
            next(value for place, value in weak if place == at) if at in places else each
            for at, each in enumerate(found)
        ]
        if found and len(places) < len(found):
            wanted = promotion.held(promotion.result_type(*kinds), found[0].device)
            found = [converted(each, wanted) for each in found]
        return wrap(joining.concatenate(found, axis))


def _turned(made: Inner, first: int, own: int, least: int) -> Inner:
    """The axes of an array moved to where they begin, by `first`."""
    if first == -1:
        return made
    begin = first if first >= 0 else first + least - own + 1
    rest = iter(range(least - own))
    mine = iter(range(least - own, least))
    order = [next(mine) if begin <= at < begin + own else next(rest) for at in range(least)]
    return td.permute_dims(made, order)


mgrid, ogrid = _Grid(False), _Grid(True)
r_, c_ = _Joined(0, 1, -1), _Joined(-1, 2, 0)
