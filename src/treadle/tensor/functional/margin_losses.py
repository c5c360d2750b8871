"""Margin losses: hinge, ranking, multi-class and triplet losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime import settings
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, where
from treadle.tensor.functional.activations import logsigmoid
from treadle.tensor.functional.compute_dtype import widened_real
from treadle.tensor.functional.distances import pairwise_distance
from treadle.tensor.functional.loss_reduction import (
    check_same_shape,
    operands,
    reduced,
    reduction_of,
    weighted,
)
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.operands import operand
from treadle.tensor.precision import cast_by_name
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import any as any_of
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.searching import take, take_along_axis
from treadle.tensor.tensor import Tensor

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_minimum = FUNCTIONS["minimum"]
_rsqrt, _square = FUNCTIONS["rsqrt"], FUNCTIONS["square"]
_COSINE_EPS = 1e-12  # of squared lengths

# Where a margin is met exactly, `clip` has the whole slope and `_positive` none: PyTorch's choices,
# which are different ones for losses of classes.


def _positive(x: Tensor) -> Tensor:
    return where(x <= 0, 0, x)


# --- pairs, with targets 1 and -1 ------------------------------------------------------------


@cast_by_name
def hinge_embedding_loss(
    input: ArrayLike,
    target: ArrayLike,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance x where the target is 1, else max(0, margin - x)."""
    name = "hinge_embedding_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (x, t), dtype = operands(name, input, target)
    losses = where(t != -1, x, 0) + where(t != 1, clip(margin - x, 0), 0)
    return reduced(losses, reduction, dtype)


@cast_by_name
def margin_ranking_loss(
    input1: ArrayLike,
    input2: ArrayLike,
    target: ArrayLike,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (x1 - x2)): x1 should be greater than x2 by the margin where the
    target is 1, and less where it is -1.

    >>> import treadle as td
    >>> a, b = td.asarray([1.0, 2.0], device="cpu"), td.asarray([3.0, 1.0], device="cpu")
    >>> td.nn.functional.margin_ranking_loss(a, b, [1, 1], reduction="none").tolist()
    [2.0, 0.0]
    """
    name = "margin_ranking_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (a, b, t), dtype = operands(name, input1, input2, target)
    return reduced(clip(t * (b - a) + margin, 0), reduction, dtype)


@cast_by_name
def soft_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-t * x)) for targets 1 and -1, without overflow."""
    reduction = reduction_of("soft_margin_loss", reduction, size_average, reduce)
    (x, t), dtype = operands("soft_margin_loss", input, target)
    check_same_shape("soft_margin_loss", input=x, target=t)
    return reduced(-logsigmoid(t * x), reduction, dtype)


@cast_by_name
def cosine_embedding_loss(
    input1: ArrayLike,
    input2: ArrayLike,
    target: ArrayLike,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos of the angle between vectors along the last axis where the target is 1, and max(0,
    cos - margin) where it is -1. Inputs have shape (N, D) and targets (N,), or (D,) and ()."""
    name = "cosine_embedding_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (a, b, t), dtype = operands(name, input1, input2, target)
    if a.ndim not in (1, 2) or b.ndim != a.ndim or t.ndim != a.ndim - 1:
        raise ShapeError(
            f"{name} takes inputs of shape (N, D) and targets of (N,), or (D,) and (), not "
            f"{a.shape}, {b.shape} and {t.shape}"
        )
    lengths = [total(_square(x), axis=-1) + _COSINE_EPS for x in (a, b)]
    cosine = total(a * b, axis=-1) * _rsqrt(lengths[0] * lengths[1])
    losses = where(t == 1, 1 - cosine, where(t == -1, clip(cosine - margin, 0), 0))
    return reduced(losses, reduction, dtype)


# --- classes -----------------------------------------------------------------------------------


@cast_by_name
def multi_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    p: int = 1,
    margin: float = 1.0,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum over the other classes of max(0, margin - x[class] + x)**p, divided by the number of
    classes, for scores (N, C) and classes (N,), or (C,) and () or (1,); times `weight[class]`. NaN
    where a target is not a class (IndexError under TREADLE_CHECK=1).

    >>> import treadle as td
    >>> x = td.asarray([[0.1, 0.2, 0.4, 0.8]], device="cpu")
    >>> round(td.nn.functional.multi_margin_loss(x, td.asarray([3], device="cpu")).item(), 4)
    0.325
    """
    name = "multi_margin_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"{name}: p is 1 or 2, not {p}")
    x, dtype = widened_real(name, input)
    goal = _classes(name, target)
    if x.ndim == 1 and goal.shape == (1,):
        x = expand_dims(x, 0)
    if x.ndim not in (1, 2) or goal.shape != x.shape[:-1]:
        raise ShapeError(
            f"{name} takes scores of shape (N, C) and classes of (N,), or (C,) and () or (1,), not "
            f"{x.shape} and {goal.shape}"
        )
    count = x.shape[-1]
    outside = (goal < 0) | (goal >= count)
    _check_classes(name, outside, count)
    places = expand_dims(where(outside, 0, goal), -1)
    losses = _positive(margin - take_along_axis(x, places, axis=-1) + x)
    if p == 2:
        losses = _square(losses)
    others = arange(count, dtype=places.dtype, device=x.device) != places
    losses = total(where(others, losses, 0), axis=-1) / count
    if weight is not None:
        weights, _ = widened_real(name, weight)
        if weights.shape != (count,):
            raise ShapeError(f"{name}: weight has shape {weights.shape}, not {(count,)}")
        losses = losses * take(weights, where(outside, 0, goal), axis=0)
    return reduced(where(outside, math.nan, losses), reduction, dtype)


@cast_by_name
def multilabel_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum of max(0, 1 - x[class] + x[other]) over all pairs of a target class and another
    class, divided by the number of classes, for scores (N, C) or (C,). Targets have that shape: a
    row begins with its classes, and a negative number ends them. Classes from C on are left out
    (IndexError under TREADLE_CHECK=1)."""
    name = "multilabel_margin_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    x, dtype = widened_real(name, input)
    goal = _classes(name, target)
    if x.ndim not in (1, 2) or goal.shape != x.shape:
        raise ShapeError(
            f"{name} takes scores of shape (N, C) or (C,) and targets of that shape, not {x.shape} "
            f"and {goal.shape}"
        )
    count = x.shape[-1]
    _check_classes(name, goal >= count, count)
    named = (cumulative_sum((goal < 0).to(goal.dtype), axis=-1) == 0) & (goal < count)
    classes = arange(count, dtype=goal.dtype, device=x.device)
    mine = expand_dims(goal, -1)  # a row of all classes for each target class
    wanted = any_of((mine == classes) & expand_dims(named, -1), axis=-2)
    scores = take_along_axis(x, clip(goal, 0, max(count - 1, 0)), axis=-1)
    losses = _positive(1 - expand_dims(scores, -1) + expand_dims(x, -2))
    index_range = expand_dims(named, -1) & expand_dims(~wanted, -2)
    losses = total(where(index_range, losses, 0), axis=(-2, -1)) / count
    return reduced(losses, reduction, dtype)


def multilabel_soft_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the last axis of -(t * log(sigmoid(x)) + (1 - t) * log(sigmoid(-x))), times
    `weight`, which broadcasts."""
    name = "multilabel_soft_margin_loss"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (x, t), dtype = operands(name, input, target)
    check_same_shape(name, input=x, target=t)
    losses = -(t * logsigmoid(x) + (1 - t) * logsigmoid(-x))
    losses = mean(weighted(name, losses, weight), axis=-1)
    return reduced(losses, reduction, dtype)


def _classes(name: str, target: Any) -> Tensor:
    goal = operand(name, target)
    if goal.dtype.kind != "int":
        raise DtypeError(f"{name}: targets are signed integers, not {goal.dtype}: cast them")
    return goal


def _check_classes(name: str, outside: Tensor, count: int) -> None:
    """IndexError for targets that are not classes, if TREADLE_CHECK=1 is set."""
    if settings.check and outside.size and bool(any_of(outside)):
        raise IndexError(f"{name}: a target is not a class from 0 to {count - 1}")


# --- triplets -------------------------------------------------------------------------------------


@cast_by_name
def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is `pairwise_distance`
    along the last axis; with `swap` the distance of the negative to the positive is used if it is
    less.

    >>> import treadle as td
    >>> a, b = td.zeros((1, 2), device="cpu"), td.asarray([[3.0, 4.0]], device="cpu")
    >>> td.nn.functional.triplet_margin_loss(a, b, a, eps=0.0).item()
    6.0
    """
    reduction = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    given = (anchor, positive, negative)
    three, dtype = operands("triplet_margin_loss", *given, may_be_complex=True)

    def distance(x1: Tensor, x2: Tensor) -> Tensor:
        return pairwise_distance(x1, x2, p, eps)

    return reduced(_triplet(three, distance, margin, swap), reduction, dtype.component)


def triplet_margin_with_distance_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a function of two tensors that returns their distances."""
    name = "triplet_margin_with_distance_loss"
    reduction = reduction_of(name, reduction)
    three, dtype = operands(name, anchor, positive, negative, may_be_complex=True)
    distance = distance_function or pairwise_distance
    return reduced(_triplet(three, distance, margin, swap), reduction, dtype.component)


def _triplet(
    three: list[Tensor], distance: Callable[[Tensor, Tensor], Tensor], margin: float, swap: bool
) -> Tensor:
    anchor, positive, negative = three
    if margin <= 0:
        raise ValueError(f"a triplet's margin must be positive, not {margin}")
    away = distance(anchor, negative)
    if swap:
        away = _minimum(away, distance(positive, negative))
    return clip(distance(anchor, positive) - away + margin, 0)
