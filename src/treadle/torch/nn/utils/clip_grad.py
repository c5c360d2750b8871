"""Gradients limited by their norm, or by their values."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from treadle.nn.utils import clipping as inner
from treadle.torch.tensors import Tensor, wrap

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "get_total_norm",
]  # fmt: skip

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Any]:
    return [each._inner for each in ([tensors] if isinstance(tensors, Tensor) else tensors)]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together."""
    return wrap(inner.get_total_norm(_listed(tensors), norm_type, error_if_nonfinite))


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply the parameters' gradients by max_norm / total_norm, where that is less than 1."""
    inner.clip_grads_with_norm_(_listed(parameters), max_norm, total_norm._inner)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the parameters' gradients so that the norm of all of them is `max_norm` at most; the
    norm that they had.

    >>> import treadle.torch as torch
    >>> x = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> (x * x / 2).sum().backward()
    >>> torch.nn.utils.clip_grad_norm_(x, 1.0).item()
    5.0
    """
    listed = _listed(parameters)
    return wrap(inner.clip_grad_norm_(listed, max_norm, norm_type, error_if_nonfinite))


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """`clip_grad_norm_` under its old name."""
    warnings.warn("clip_grad_norm is deprecated: use clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Bring the elements of the parameters' gradients within -clip_value and clip_value."""
    inner.clip_grad_value_(_listed(parameters), clip_value)
