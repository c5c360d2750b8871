"""Classification losses: cross-entropy, fused with its softmax, and negative log-likelihood.

The logarithm of a softmax is x - max - log(sum(exp(x - max))), of which a loss needs one element of
each row, or a weighted sum. So no array as large as the scores is made: they are read for the
maximum and for the sum, and once more at the class.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime import settings
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.functional.compute_dtype import widened_real
from treadle.tensor.functional.loss_reduction import reduction_of
from treadle.tensor.manipulation import broadcast_to, expand_dims, squeeze
from treadle.tensor.reductions import any as any_of
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import take, take_along_axis
from treadle.tensor.tensor import Tensor

__all__ = ["cross_entropy", "nll_loss"]

_exp, _log = FUNCTIONS["exp"], FUNCTIONS["log"]


class _Classes(NamedTuple):
    """The target classes. `places` are valid indices even where a target is `ignored` or `outside`;
    `weight` are the weights of the classes, None for 1."""

    places: Tensor
    ignored: Tensor
    outside: Tensor
    weight: Tensor | None


@composite
@as_one_node
def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-x at the target class, times `weight[class]`: x are log-probabilities of shape (N, C), (N,
    C, d1, ...) or (C,), and `target` are classes, integers of that shape without the axis C.

    "mean" divides the sum by that of the weights; targets equal to `ignore_index` are left out.
    Where a target is not a class, the loss is NaN (under TREADLE_CHECK=1 an IndexError).

    >>> import treadle as td
    >>> x = td.log(td.asarray([[0.5, 0.5], [0.25, 0.75]], device="cpu"))
    >>> round(td.nn.functional.nll_loss(x, td.asarray([0, 1], device="cpu")).item(), 4)
    0.4904
    """
    reduction = reduction_of("nll_loss", reduction, size_average, reduce)
    x, dtype = widened_real("nll_loss", input)
    axis = class_axis("nll_loss", x)
    classes = classes_of("nll_loss", x, axis, target, weight, ignore_index)
    losses = _of_classes(-_picked(input, x, axis, classes), classes)
    return _reduced(losses, classes, reduction).to(dtype)


@composite
@as_one_node
def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of the `log_softmax` of scores (N, C), (N, C, d1, ...) or (C,), which is never in
    memory.

    `target` are classes, of any integer dtype and the shape without the axis C, or probabilities of
    the shape of `input`. `label_smoothing` is the share of a uniform distribution that is mixed
    into them. "mean" divides by the sum of the target classes' weights, or by the number of rows if
    the target is probabilities.

    >>> import treadle as td
    >>> x = td.asarray([[0.0, 0.0], [5.0, -5.0]], device="cpu")
    >>> losses = td.nn.functional.cross_entropy(
    ...     x, td.asarray([0, 0], device="cpu"), reduction="none"
    ... )
    >>> [round(loss, 4) for loss in losses.tolist()]
    [0.6931, 0.0]
    """
    reduction = reduction_of("cross_entropy", reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing is {label_smoothing}, not from 0 to 1")
    x, dtype = widened_real("cross_entropy", input)
    axis = class_axis("cross_entropy", x)
    goal = on_same_device("cross_entropy", target, x)
    if goal.shape == x.shape:
        losses = _of_probabilities(x, axis, goal, weight, ignore_index, label_smoothing)
        rows = mean if reduction == "mean" else total
        return (losses if reduction == "none" else rows(losses)).to(dtype)
    classes = classes_of("cross_entropy", x, axis, goal, weight, ignore_index)
    greatest, log_sum = _greatest_and_log_sum(x, axis)
    losses = _of_classes(log_sum - (_picked(input, x, axis, classes) - greatest), classes)
    if not label_smoothing:
        return _reduced(losses, classes, reduction).to(dtype)
    smooth = _against_all(x, axis, greatest, log_sum, along_classes(weight, x, axis))
    smooth = where(classes.ignored, 0.0, smooth) * (label_smoothing / x.shape[axis])
    both = losses * (1.0 - label_smoothing) + smooth
    return _reduced(both, classes, reduction).to(dtype)


# --- scores --------------------------------------------------------------------------------------


def _greatest_and_log_sum(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """The greatest score of each row, and log(sum(exp(x - greatest)))."""
    if x.shape[axis] == 0:
        nothing = total(x, axis=axis) + math.nan
        return nothing, nothing
    greatest = largest(x, axis=axis, keepdims=True)
    return squeeze(greatest, axis), _log(total(_exp(x - greatest), axis=axis))


def _against_all(
    x: Tensor, axis: int, greatest: Tensor, log_sum: Tensor, weight: Tensor | None
) -> Tensor:
    """The sum over classes of -log_softmax(x), each times its weight."""
    below = x - expand_dims(greatest, axis)
    if weight is None:
        return log_sum * x.shape[axis] - total(below, axis=axis)
    shared = broadcast_to(weight, x.shape)
    return log_sum * total(shared, axis=axis) - total(below * shared, axis=axis)


def _picked(input: Any, x: Tensor, axis: int, classes: _Classes) -> Tensor:
    """The scores of the target classes, gathered from the input in memory, not from its cast x."""
    if x.shape[axis] == 0:
        return total(x, axis=axis) + math.nan
    source = input if type(input) is Tensor else x
    found = take_along_axis(source, expand_dims(classes.places, axis), axis=axis)
    return squeeze(found, axis).to(x.dtype)


def _of_probabilities(
    x: Tensor, axis: int, goal: Tensor, weight: Any, ignore_index: int, smoothing: float
) -> Tensor:
    if goal.dtype.kind != "float":
        raise DtypeError(
            f"cross_entropy: a target of the shape of the scores, {x.shape}, is probabilities, "
            f"which are floats, not {goal.dtype}; classes have that shape without axis {axis}"
        )
    if ignore_index >= 0:
        raise ValueError(
            f"cross_entropy: ignore_index is {ignore_index}, but the target is probabilities, "
            "for which ignore_index has no meaning"
        )
    goal = goal.to(x.dtype)
    if smoothing:
        goal = goal * (1.0 - smoothing) + smoothing / x.shape[axis]
    along = along_classes(weight, x, axis)
    greatest, log_sum = _greatest_and_log_sum(x, axis)
    return _against_all(x, axis, greatest, log_sum, goal if along is None else goal * along)


# --- classes -------------------------------------------------------------------------------------


def class_axis(name: str, x: Tensor) -> int:
    """The axis of classes of scores."""
    if x.ndim == 0:
        raise ShapeError(f"{name}: the input has shape (): it needs an axis of classes")
    return 0 if x.ndim == 1 else 1


def on_same_device(name: str, target: ArrayLike, x: Tensor) -> Tensor:
    """The target as a tensor on the device of the scores."""
    found = target if type(target) is Tensor else asarray(target, device=x.device)
    if found.device is not x.device:
        raise ValueError(
            f"{name}: the input is on {x.device.id}, the target on {found.device.id}: move one, "
            f'as in target.to("{x.device.id}")'
        )
    return found


def classes_of(
    name: str, x: Tensor, axis: int, target: ArrayLike, weight: ArrayLike | None, ignore_index: int
) -> _Classes:
    """The target classes of integer targets."""
    goal = on_same_device(name, target, x)
    count = x.shape[axis]
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if goal.shape != shape:
        raise ShapeError(
            f"{name}: for an input of shape {x.shape} classes have shape {shape}, which is that "
            f"without axis {axis}; the target has {goal.shape}"
        )
    if goal.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"{name}: classes are integers, not {goal.dtype}")
    own = goal.to(default_integer(x.device))  # wide enough for ignore_index
    ignored = own == ignore_index
    outside = ((own < 0) | (own >= count)) & ~ignored
    if settings.check and bool(any_of(outside)):
        raise IndexError(f"{name}: a target is not a class from 0 to {count - 1}")
    places = where(ignored | outside, 0, own)
    along = along_classes(weight, x, axis)
    each = None if along is None or not count else take(along.reshape(-1), places.reshape(-1))
    return _Classes(places, ignored, outside, None if each is None else each.reshape(shape))


def along_classes(weight: ArrayLike | None, x: Tensor, axis: int) -> Tensor | None:
    """The classes' weights, broadcast along the axis of classes."""
    if weight is None:
        return None
    found = on_same_device("weight", weight, x)
    if found.shape != (x.shape[axis],):
        raise ShapeError(
            f"weight has shape {found.shape}: it has one for each of {x.shape[axis]} classes "
            f"(axis {axis} of shape {x.shape})"
        )
    return found.to(x.dtype).reshape((-1, *(1,) * (x.ndim - axis - 1)))


def _of_classes(losses: Tensor, classes: _Classes) -> Tensor:
    """The losses of the target classes, weighted: 0 where they are ignored, NaN where they are
    outside."""
    if classes.weight is not None:
        losses = losses * classes.weight
    return where(classes.ignored, 0.0, where(classes.outside, math.nan, losses))


# --- reduction ---------------------------------------------------------------------------


def _reduced(losses: Tensor, classes: _Classes, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return total(losses)
    return total(losses) / total(weights_of(classes, losses.dtype))


def weights_of(classes: _Classes, dtype: DType) -> Tensor:
    """The weight of each row."""
    index_range = where(classes.ignored, 0.0, 1.0 if classes.weight is None else classes.weight)
    return index_range.to(dtype)
