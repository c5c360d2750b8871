"""Derivatives of cross-entropy: one kernel that reads the scores and writes their gradient.

Nothing but the scores and the targets is kept: the softmax is computed again, row by row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Container
from typing import Any, NamedTuple

from treadle.autograd.derivative import Rule
from treadle.core.errors import AutogradError
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.loss_reduction import reduction_of
from treadle.tensor.functional.losses import (
    along_classes,
    class_axis,
    classes_of,
    on_same_device,
    weights_of,
)
from treadle.tensor.functional.normalization import log_softmax, softmax
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import sum as total

_where = FUNCTIONS["where"]


class _Rows(NamedTuple):
    """What flows back to the losses of rows, with the axis of classes: as it is, and times the
    weight of the wanted class; 0 where a row is ignored. `wanted` is where that class is."""

    plain: Any
    weighted: Any
    wanted: Any


def _nll_loss(
    g: Any, input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int,
    reduce: Any, reduction: str,
) -> Any:  # fmt: skip
    reduction = reduction_of("nll_loss", reduction, size_average, reduce)
    x, _ = widened(input)
    rows = _rows("nll_loss", widened(g)[0], x, target, weight, ignore_index, reduction)
    return _where(rows.wanted, -rows.weighted, 0)


def _cross_entropy(
    g: Any, input: Any, target: Any, weight: Any, size_average: Any, ignore_index: int,
    reduce: Any, reduction: str, label_smoothing: float,
) -> Any:  # fmt: skip
    reduction = reduction_of("cross_entropy", reduction, size_average, reduce)
    (g, _), (x, _) = widened(g), widened(input)
    goal = on_same_device("cross_entropy", target, x)
    if goal.shape == x.shape:
        return _of_probabilities(g, x, goal, weight, reduction, label_smoothing)
    rows = _rows("cross_entropy", g, x, goal, weight, ignore_index, reduction)
    axis = class_axis("cross_entropy", x)
    shares = softmax(x, axis)
    found = rows.weighted * (shares - rows.wanted.to(x.dtype))
    if label_smoothing:
        along = along_classes(weight, x, axis)
        # All classes are wanted, each as much as it counts.
        both = (x.shape[axis], 1.0) if along is None else (total(along), along)
        smooth = rows.plain * (shares * both[0] - both[1]) * (label_smoothing / x.shape[axis])
        found = found * (1.0 - label_smoothing) + smooth
    return found


def _rows(
    name: str, g: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str
) -> _Rows:
    axis = class_axis(name, x)
    classes = classes_of(name, x, axis, target, weight, ignore_index)
    if reduction == "mean":
        g = g / total(weights_of(classes, x.dtype))
    plain = _where(classes.ignored, 0.0, _where(classes.outside, math.nan, g))
    weighted = plain if classes.weight is None else plain * classes.weight
    places = arange(x.shape[axis], device=x.device, dtype=classes.places.dtype)
    places = places.reshape((-1,) + (1,) * (x.ndim - axis - 1))
    wanted = places == expand_dims(classes.places, axis)
    return _Rows(expand_dims(plain, axis), expand_dims(weighted, axis), wanted)


def _of_probabilities(
    g: Any, x: Any, given: Any, weight: Any, reduction: str, smoothing: float
) -> dict[str, Any]:
    axis = class_axis("cross_entropy", x)
    goal = given.to(x.dtype)
    if smoothing:
        goal = goal * (1.0 - smoothing) + smoothing / x.shape[axis]
    along = along_classes(weight, x, axis)
    if along is not None:
        goal = goal * along
    if reduction == "mean":
        g = g / max(math.prod(x.shape[:axis] + x.shape[axis + 1 :]), 1)
    elif reduction == "none":
        g = expand_dims(g, axis)
    found = g * (softmax(x, axis) * total(goal, axis=axis, keepdims=True) - goal)
    of_goal = log_softmax(x, axis) * (g * (smoothing - 1.0))
    return {"input": found, "target": of_goal if along is None else of_goal * along}


def _refuse(name: str, tracked: Container[str]) -> None:
    if "weight" in tracked:
        raise AutogradError(
            f"{name}: the weights of classes have no gradient: pass weight.detach(), or weight the "
            'losses of reduction="none" yourself'
        )


RULES: dict[str, Rule] = {"cross_entropy": _cross_entropy, "nll_loss": _nll_loss}
CHECKS = {name: functools.partial(_refuse, name) for name in RULES}
