"""A batch norm in evaluation mode, put into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from treadle.graph.history import recorded
from treadle.tensor.creation import ones, zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.torch.nn.parameter import Parameter
from treadle.torch.tensors import Tensor, unwrapped, wrap

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip


def _factors(mean: Any, variance: Any, eps: float, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    """What the outputs are multiplied with, the mean, and the bias after it."""
    options = {"dtype": variance.dtype, "device": variance.device}
    gain = ones(variance.shape, **options) if weight is None else weight
    shift = zeros(variance.shape, **options) if bias is None else bias
    return gain / FUNCTIONS["sqrt"](variance + eps), mean, shift


def _fused(
    weight: Tensor, bias: Tensor | None, norm: tuple[Any, Any, Any], axis: int
) -> tuple[Tensor, Tensor]:
    factor, mean, shift = norm
    x = weight._inner
    with recorded(False):
        start = zeros(mean.shape, dtype=x.dtype, device=x.device) if bias is None else bias._inner
        shape = tuple(-1 if at == axis else 1 for at in range(len(x.shape)))
        made = (x * factor.reshape(shape)).to(x.dtype)
        moved = ((start - mean) * factor + shift).to(x.dtype)
    return (
        Parameter(wrap(made), weight._inner.requires_grad),
        Parameter(wrap(moved), weight._inner.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Tensor, Tensor]:
    """The weight and bias of a convolution and the batch norm after it."""
    norm = _factors(bn_rm._inner, bn_rv._inner, bn_eps, unwrapped(bn_w), unwrapped(bn_b))
    return _fused(conv_w, conv_b, norm, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Tensor, Tensor]:
    """The weight and bias of a linear layer and the batch norm after it."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _evaluated(layer: Any, bn: Any, transpose: bool) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse_conv_bn_weights(
        made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes what `conv` and `bn` do in evaluation mode.

    >>> import treadle.torch as torch
    >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
    >>> torch.nn.utils.fuse_conv_bn_eval(conv, bn).weight.shape
    torch.Size([2, 1, 3, 3])
    """
    return _evaluated(conv, bn, transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that computes what `linear` and `bn` do in evaluation mode."""
    return _evaluated(linear, bn, False)
