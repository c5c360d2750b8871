"""Derivatives of lengths and distances. Where a length is 0 it has no derivative, and the gradient
is 0, as in PyTorch: two equal rows don't push each other away."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_abs, _pow, _sign, _where = (FUNCTIONS[name] for name in ("abs", "pow", "sign", "where"))


def _slope(g: Any, x: Any, out: Any, p: float) -> Any:
    """From the gradient of the p-norms `out` of vectors to that of their elements x; all broadcast.
    Of infinite norms it is the whole gradient for each of the elements that are as great."""
    if p == 0:
        return x * 0
    if p == 1:
        return g * _sign(x)
    if math.isinf(p):
        return _where(_abs(x) == out, g * _sign(x), 0)
    some = out != 0
    length = _where(some, out, 1)
    if p == 2:
        return x * _where(some, g / length, 0)
    moves = some & (x != 0)
    size = _where(moves, _abs(x), 1)
    return _where(moves, g * _sign(x) * _pow(size / length, p - 1), 0)


def _lengths(g: Tensor, x: Tensor, p: float, axis: int, keepdims: bool, out: Tensor) -> Any:
    if not keepdims:
        g, out = expand_dims(g, axis), expand_dims(out, axis)
    if math.isinf(p):
        g = g / total((_abs(x) == out).to(g.dtype), axis=axis, keepdims=True)
    return _slope(g, x, out, p)


def _cdist(g: Tensor, x1: Tensor, x2: Tensor, p: float, out: Tensor) -> Any:
    (one, _), (other, _), (g, _), (away, _) = (widened(each) for each in (x1, x2, g, out))
    difference = expand_dims(one, -2) - expand_dims(other, -3)
    slope = _slope(expand_dims(g, -1), difference, expand_dims(away, -1), p)
    return {"x1": total(slope, axis=-2), "x2": -total(slope, axis=-3)}


RULES: dict[str, Rule] = {"cdist": _cdist, "lengths": _lengths}
