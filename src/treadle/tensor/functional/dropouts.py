"""Elements or whole channels left out at random, while a network is trained.

What is left out is drawn from td.random's default generator, or from `generator`: the same on every
device for a seed. What is kept is scaled, so that means stay what they were.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.as_one import as_one
from treadle.tensor.functional.wide import wide, written
from treadle.tensor.generator import Generator
from treadle.tensor.manipulation import operand
from treadle.tensor.random import bernoulli
from treadle.tensor.tensor import Tensor

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip

# What `selu` tends to far below 0: -scale * alpha.
_SELU_LEAST = -1.7580993408473766


def dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Each element divided by 1 - p, or 0, which has probability p; x itself unless in training.

    >>> import treadle as td
    >>> x = td.ones(1000, device="cpu")
    >>> y = td.nn.functional.dropout(x, 0.5, generator=td.Generator(1)).numpy()
    >>> bool(0.4 < (y == 0).mean() < 0.6), float(y.max())
    (True, 2.0)
    """
    x = operand("dropout", input)
    return _dropped("dropout", input, p, training, inplace, x.shape, generator)


def dropout1d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, L) or (C, L)."""
    shape = _channels("dropout1d", input, (3, 2), 2)
    return _dropped("dropout1d", input, p, training, inplace, shape, generator)


def dropout2d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, H, W). One of three axes has shape
    (N, C, L), as in PyTorch."""
    shape = _channels("dropout2d", input, (4, 3), None)
    return _dropped("dropout2d", input, p, training, inplace, shape, generator)


def dropout3d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, D, H, W) or (C, D, H, W)."""
    shape = _channels("dropout3d", input, (5, 4), 4)
    return _dropped("dropout3d", input, p, training, inplace, shape, generator)


def alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Dropout for what `selu` gave: elements are set to its least value with probability p, then
    all are moved and scaled so that mean 0 and variance 1 stay."""
    x = operand("alpha_dropout", input)
    return _alpha_dropped("alpha_dropout", input, p, training, inplace, x.shape, generator)


def feature_alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`alpha_dropout` of whole channels of an input of shape (N, C, …)."""
    name = "feature_alpha_dropout"
    x = operand(name, input)
    if x.ndim < 2:
        raise ShapeError(f"{name} takes an input of shape (N, C, …), not {x.shape}")
    shape = x.shape[:2] + (1,) * (x.ndim - 2)
    return _alpha_dropped(name, input, p, training, inplace, shape, generator)


# --- what all are made of -------------------------------------------------------------------------


def _channels(
    name: str, input: Any, axes: tuple[int, int], unbatched: int | None
) -> tuple[int, ...]:
    """The shape with one element for each channel."""
    x = operand(name, input)
    if x.ndim not in axes:
        raise ShapeError(
            f"{name} takes an input of {axes[0]} or {axes[1]} axes, and one of shape {x.shape} has "
            f"{x.ndim}"
        )
    front = 1 if x.ndim == unbatched else 2
    return x.shape[:front] + (1,) * (x.ndim - front)


def _check_probability(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: p is a probability, from 0 to 1, not {p}")


def _dropped(
    name: str, input: Any, p: float, training: bool, inplace: bool, shape: tuple[int, ...],
    generator: Generator | None,
) -> Tensor:  # fmt: skip
    _check_probability(name, p)
    if not training or p == 0:
        return operand(name, input)
    x, dtype = wide(input)
    kept = bernoulli(shape, 1 - p, device=x.device, generator=generator)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return written(name, input, kept_scaled(x, kept, scale).to(dtype), inplace)


@as_one
def kept_scaled(x: Tensor, kept: Tensor, scale: float) -> Tensor:
    """What is kept of x, times a number; else 0. (Gradients need a truth value each.)"""
    return x * (kept.to(x.dtype) * scale)


def _alpha_dropped(
    name: str, input: Any, p: float, training: bool, inplace: bool, shape: tuple[int, ...],
    generator: Generator | None,
) -> Tensor:  # fmt: skip
    _check_probability(name, p)
    if not training or p == 0:
        return operand(name, input)
    x, dtype = wide(input)
    kept = bernoulli(shape, 1 - p, device=x.device, generator=generator)
    scale = 1 / math.sqrt((_SELU_LEAST**2 * p + 1) * (1 - p)) if p < 1 else 0.0
    least = _SELU_LEAST * scale
    moved = kept_scaled(x, kept, scale) + ((1 - kept.to(x.dtype)) * least - least * p)
    return written(name, input, moved.to(dtype), inplace)
