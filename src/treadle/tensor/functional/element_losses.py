"""Elementwise losses: distances from targets, and negative log-likelihoods of targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.conversions import is_number
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.loss_reduction import (
    REDUCTIONS,
    check_same_shape,
    operands,
    reduced,
    reduction_of,
    warn_of_shapes,
    weighted,
)
from treadle.tensor.manipulation import broadcast_arrays, expand_dims
from treadle.tensor.operands import operand
from treadle.tensor.precision import cast_by_name
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss",
    "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
]  # fmt: skip

_abs, _exp, _log, _log1p = (FUNCTIONS[name] for name in ("abs", "exp", "log", "log1p"))
_maximum, _square = FUNCTIONS["maximum"], FUNCTIONS["square"]
_LEAST_LOG = -100.0  # the least logarithm of a probability


# --- distances ------------------------------------------------------------------------------------


@cast_by_name
def mse_loss(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: ArrayLike | None = None,
) -> Tensor:
    """(input - target)**2, or the mean or sum of that. With a `weight` for each element the mean is
    divided by the sum of the weights.

    >>> import treadle as td
    >>> td.nn.functional.mse_loss(td.asarray([1.0, 4.0], device="cpu"), [1.0, 2.0]).item()
    2.0
    """
    reduction = reduction_of("mse_loss", reduction, size_average, reduce)
    return _distance("mse_loss", input, target, weight, reduction, "square")


@cast_by_name
def l1_loss(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: ArrayLike | None = None,
) -> Tensor:
    """|input - target|, or the mean or sum of that; real for complex numbers. Weighted as in
    `mse_loss`.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> round(td.nn.functional.l1_loss(x, td.zeros_like(x)).item(), 3)
    1.833
    """
    reduction = reduction_of("l1_loss", reduction, size_average, reduce)
    return _distance("l1_loss", input, target, weight, reduction, "size", may_be_complex=True)


@cast_by_name
def smooth_l1_loss(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`l1_loss` minus beta / 2, but d**2 / (2 beta) where the distance d is below beta.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> round(td.nn.functional.smooth_l1_loss(x, td.zeros_like(x)).item(), 3)
    1.375
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta must not be negative, as {beta} is")
    reduction = reduction_of("smooth_l1_loss", reduction, size_average, reduce)

    form = "size" if beta == 0 else "smooth"
    return _distance("smooth_l1_loss", input, target, None, reduction, form, beta)


@cast_by_name
def huber_loss(
    input: ArrayLike,
    target: ArrayLike,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: ArrayLike | None = None,
) -> Tensor:
    """Half of the squared distance where that is up to delta, else delta * (distance - delta / 2).
    With a `weight` for each element the mean is divided by the number of elements, as in PyTorch.

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> round(td.nn.functional.huber_loss(x, td.zeros_like(x)).item(), 3)
    1.375
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta must be positive, not {delta}")

    reduction = reduction_of("huber_loss", reduction)
    return _distance("huber_loss", input, target, weight, reduction, "huber", delta, False)


def _distance(
    name: str, input: Any, target: Any, weight: Any, reduction: str, form: str,
    number: float = 0.0, of_weights: bool = True, may_be_complex: bool = False,
) -> Tensor:  # fmt: skip
    (x, goal), dtype = operands(name, input, target, may_be_complex=may_be_complex)
    warn_of_shapes(name, x, goal)
    weights = None if weight is None else operand(name, weight)
    return distance_loss(x, goal, weights, name, reduction, form, number, of_weights, dtype)


@composite
@as_one_node
def distance_loss(
    x: Tensor, goal: Tensor, weight: Tensor | None, name: str, reduction: str, form: str,
    number: float, of_weights: bool, dtype: DType,
) -> Tensor:  # fmt: skip
    """A loss of the difference of two tensors, of a form of `_OF_DIFFERENCES` with a number."""
    one, other = broadcast_arrays(x, goal)
    losses = _OF_DIFFERENCES[form](one - other, number)
    dtype = dtype.component
    if weight is None:
        return reduced(losses, reduction, dtype)
    ((_, weights), dtype) = operands(name, losses.to(dtype), weight)
    check_same_shape(name, weight=weights, input=x)
    losses = losses * weights
    if reduction == "mean" and of_weights:
        return (total(losses) / total(weights)).to(dtype)
    return reduced(losses, reduction, dtype)


def _smooth(difference: Tensor, beta: float) -> Tensor:
    # The square is not that of the size, whose slope at 0 is 0, and the second derivative with it.
    size = _abs(difference)
    return where(size < beta, _square(difference) * (0.5 / beta), size - 0.5 * beta)


def _huber(difference: Tensor, delta: float) -> Tensor:
    size = _abs(difference)
    return where(size < delta, _square(difference) * 0.5, (size - 0.5 * delta) * delta)


_OF_DIFFERENCES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "square": lambda difference, _: _square(difference),
    "size": lambda difference, _: _abs(difference),
    "smooth": _smooth,
    "huber": _huber,
}


# --- likelihoods ----------------------------------------------------------------------------------


def binary_cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)) for probabilities p and targets t of one shape, where
    logarithms are at least -100; times `weight`, which broadcasts. NaN where p is not a
    probability.

    >>> import treadle as td
    >>> p = td.asarray([0.5, 1.0], device="cpu")
    >>> td.nn.functional.binary_cross_entropy(p, [1.0, 0.0], reduction="none").tolist()
    [0.6931471824645996, 100.0]
    """
    name = "binary_cross_entropy"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (p, t), dtype = operands(name, input, target)
    check_same_shape(name, input=p, target=t)
    return binary_loss(p, t, weight, None, name, reduction, dtype)


@cast_by_name
def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without the rounding of the sigmoid. `pos_weight`,
    which broadcasts, is the weight of the term with log(p).

    >>> import treadle as td
    >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
    >>> round(td.nn.functional.binary_cross_entropy_with_logits(x, td.ones_like(x)).item(), 3)
    0.883
    """
    name = "binary_cross_entropy_with_logits"
    reduction = reduction_of(name, reduction, size_average, reduce)
    (x, t), dtype = operands(name, input, target)
    check_same_shape(name, input=x, target=t)
    positive = None if pos_weight is None else operands(name, pos_weight)[0][0]
    return binary_loss(x, t, weight, positive, name, reduction, dtype)


@composite
@as_one_node
def binary_loss(
    x: Tensor, t: Tensor, weight: Any, positive: Tensor | None, name: str, reduction: str,
    dtype: DType,
) -> Tensor:  # fmt: skip
    """Either of both, of checked operands."""
    losses = binary_nll_of_logits(x, t, positive) if "logits" in name else binary_nll(x, t)
    return reduced(weighted(name, losses, weight), reduction, dtype)


@composite
@as_one_node
def binary_nll(p: Tensor, t: Tensor) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)), with logarithms of -100 at least."""
    yes, no = _maximum(_log(p), _LEAST_LOG), _maximum(_log1p(-p), _LEAST_LOG)
    return (t - 1) * no - t * yes


@composite
@as_one_node
def binary_nll_of_logits(x: Tensor, t: Tensor, positive: Tensor | None) -> Tensor:
    """`binary_nll` of sigmoid(x); `positive` is the weight of the first term."""
    rest = negative_log_sigmoid(x)
    if positive is not None:
        rest = rest * ((positive - 1) * t + 1)
    return (1 - t) * x + rest


def negative_log_sigmoid(x: Tensor) -> Tensor:
    """-log(sigmoid(x)), which is log(1 + exp(-x))."""
    return _log1p(_exp(-_abs(x))) + _maximum(-x, 0)


@composite
@as_one_node
def kl_div(
    input: ArrayLike,
    target: ArrayLike,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """For log-probabilities x and probabilities t (their logarithms, with `log_target`) t * (log(t)
    - x), whose sum is the Kullback-Leibler divergence. "batchmean" divides the sum by the first
    extent, "mean" by the number of elements.

    >>> import treadle as td
    >>> x = td.log(td.asarray([[0.5, 0.5]], device="cpu"))
    >>> round(td.nn.functional.kl_div(x, [[1.0, 0.0]], reduction="batchmean").item(), 4)
    0.6931
    """
    choices = (*REDUCTIONS, "batchmean")
    reduction = reduction_of("kl_div", reduction, size_average, reduce, choices)
    (x, t), dtype = operands("kl_div", input, target)
    if log_target:
        losses = _exp(t) * (t - x)
    else:
        losses = where(t == 0, 0, t * _log(t)) - t * x
    if reduction != "batchmean":
        return reduced(losses, reduction, dtype)
    return (total(losses) / (x.shape[0] if x.shape else 1)).to(dtype)


@composite
@as_one_node
def poisson_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts t, whose expectation is exp(x) (with
    `log_input=False`: x): exp(x) - t * x, or x - t * log(x + eps). `full` adds Stirling's
    approximation of log(t!) where t is above 1."""
    reduction = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    (x, t), dtype = operands("poisson_nll_loss", input, target)
    losses = _exp(x) - t * x if log_input else x - t * _log(x + eps)
    if full:
        stirling = t * _log(t) - t + _log(t * (2 * math.pi)) * 0.5
        losses = losses + where(t > 1, stirling, 0)
    return reduced(losses, reduction, dtype)


@composite
@as_one_node
def gaussian_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of targets that are normal around the input, with a variance
    `var`: (log(var) + (x - t)**2 / var) / 2, where var is at least eps. `full` adds log(2 pi) / 2.

    `var` is a number, or has the input's shape, with 1 for one of its extents, or without the last
    axis. NaN where a variance is negative (ValueError for a number).
    """
    name = "gaussian_nll_loss"
    reduction = reduction_of(name, reduction)
    if is_number(var):
        if var < 0:
            raise ValueError(f"{name}: a variance must not be negative, as {var} is")
        (x, t), dtype = operands(name, input, target)
        variance: Any = max(float(var), eps)
        losses = (_square(x - t) / variance + math.log(variance)) * 0.5
    else:
        (x, t, variance), dtype = operands(name, input, target, var)
        if variance.shape != x.shape:
            if variance.shape == x.shape[:-1]:
                variance = expand_dims(variance, -1)
            elif not _fits(variance.shape, x.shape):
                raise ShapeError(
                    f"{name}: a variance of shape {variance.shape} does not fit an input of shape "
                    f"{x.shape}: it has that shape, or 1 for one of its extents, or lacks the last"
                )
        # Below eps the variance's gradient is that at eps, and not 0, or it could never grow.
        least = (variance - variance.detach()) + eps
        variance = where(variance < 0, math.nan, where(variance < eps, least, variance))
        losses = (_log(variance) + _square(x - t) / variance) * 0.5
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, dtype)


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a shape equals another one except for one extent, which is 1."""
    if len(shape) != len(wanted):
        return False
    return [a for a, b in zip(shape, wanted, strict=True) if a != b] == [1]
