"""Dropout: elements or whole channels set to 0 at random while a network is trained.

The draws are from td.random's default generator, or from `generator`, with the same result on every
device for a seed. The kept elements are scaled so that the mean is preserved.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.functional.compute_dtype import result_or_input, widened
from treadle.tensor.generator import Generator
from treadle.tensor.operands import operand
from treadle.tensor.random import bernoulli
from treadle.tensor.tensor import Tensor

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
]  # fmt: skip

# The limit of `selu` far below 0: -scale * alpha.
_SELU_LEAST = -1.7580993408473766


def dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Each element set to 0 with probability p, or divided by 1 - p; x itself unless in training.

    >>> import treadle as td
    >>> x = td.ones(1000, device="cpu")
    >>> y = td.nn.functional.dropout(x, 0.5, generator=td.Generator(1)).numpy()
    >>> bool(0.4 < (y == 0).mean() < 0.6), float(y.max())
    (True, 2.0)
    """
    return _dropped("dropout", input, _Drop(p, training, inplace, generator))


def dropout1d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, L) or (C, L)."""
    return _dropped("dropout1d", input, _Drop(p, training, inplace, generator))


def dropout2d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, H, W). An input of three axes is
    taken as (N, C, L), and one of two as (N, C), as in PyTorch."""
    return _dropped("dropout2d", input, _Drop(p, training, inplace, generator))


def dropout3d(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`dropout` of whole channels of an input of shape (N, C, D, H, W) or (C, D, H, W)."""
    return _dropped("dropout3d", input, _Drop(p, training, inplace, generator))


def alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Dropout for results of `selu`: elements are set to its least value with probability p, then
    all are shifted and scaled so that mean 0 and variance 1 are preserved."""
    return _dropped("alpha_dropout", input, _Drop(p, training, inplace, generator))


def feature_alpha_dropout(
    input: ArrayLike,
    p: float = 0.5,
    training: bool = False,
    inplace: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """`alpha_dropout` of whole channels of an input of shape (N, C, …)."""
    return _dropped("feature_alpha_dropout", input, _Drop(p, training, inplace, generator))


# --- shared parts -------------------------------------------------------------------------


class _Drop(NamedTuple):
    """The arguments of a dropout."""

    p: float
    training: bool
    inplace: bool
    generator: Generator | None


# For functions that drop whole channels: how many axes an input may have, and from how many on its
# first one is a batch. `dropout2d` takes inputs of fewer axes as batches, too, as PyTorch does.
_CHANNELS = {"dropout1d": ((3, 2), 3), "dropout2d": ((4, 3, 2), 2), "dropout3d": ((5, 4), 5)}


def _dropped(name: str, input: Any, drop: _Drop) -> Tensor:
    given, p = operand(name, input), drop.p
    shape = _drawn(name, given.shape)
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: p is a probability, from 0 to 1, not {p}")
    if not drop.training or p == 0:
        return given
    x, dtype = widened(input)
    kept = bernoulli(shape, 1 - p, device=x.device, generator=drop.generator)
    made = _SCALED.get(name, _scaled)(x, kept, p)
    return result_or_input(name, input, made.to(dtype), drop.inplace)


def _drawn(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the draw: one for each element, or one for each channel."""
    count = len(shape)
    if name in _CHANNELS:
        accepted, batched = _CHANNELS[name]
        if count not in accepted:
            axes = " or ".join(map(str, accepted))
            raise ShapeError(
                f"{name} takes an input of {axes} axes, and one of shape {shape} has {count}"
            )
        front = 2 if count >= batched else 1
    elif name == "feature_alpha_dropout":
        if count < 2:
            raise ShapeError(f"{name} takes an input of shape (N, C, …), not {shape}")
        front = 2
    else:
        front = count
    return shape[:front] + (1,) * (count - front)


@composite
@as_one_node
def kept_scaled(x: Tensor, kept: Tensor, scale: float) -> Tensor:
    """The kept elements times a number, and 0 for the others. (Gradients need only the mask.)"""
    return x * (kept.to(x.dtype) * scale)


def _scaled(x: Tensor, kept: Tensor, p: float) -> Tensor:
    return kept_scaled(x, kept, 1 / (1 - p) if p < 1 else 0.0)


def _selu_scaled(x: Tensor, kept: Tensor, p: float) -> Tensor:
    """Dropped elements become `selu`'s least value; all are then shifted and scaled."""
    scale = 1 / math.sqrt((_SELU_LEAST**2 * p + 1) * (1 - p)) if p < 1 else 0.0
    least = _SELU_LEAST * scale
    return kept_scaled(x, kept, scale) + ((1 - kept.to(x.dtype)) * least - least * p)


_SCALED = {"alpha_dropout": _selu_scaled, "feature_alpha_dropout": _selu_scaled}
