"""Functions of layers as `torch.name`, where these exist beside `torch.nn.functional`: some have
other arguments there."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType
from treadle.tensor import functional as inner
from treadle.tensor.tensor import Tensor
from treadle.torch.operations import neural
from treadle.torch.operations.bounds import looking

_SAME = (
    "adaptive_avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity pairwise_distance pdist pixel_shuffle "
    "pixel_unshuffle prelu threshold max_pool1d max_pool2d max_pool3d"
)
_OF_NEURAL = "avg_pool1d conv_tbc max_pool1d_with_indices rms_norm"
# Those whose arguments are those of `torch.nn.functional`.
FUNCTIONS = {
    **{name: getattr(inner, name) for name in _SAME.split()},
    **{name: getattr(neural, name) for name in _OF_NEURAL.split()},
    "native_channel_shuffle": inner.channel_shuffle,
}


def relu(input: Tensor) -> Tensor:
    """The larger of x and 0."""
    return inner.relu(input)


def selu(input: Tensor) -> Tensor:
    """`torch.nn.functional.selu`."""
    return inner.selu(input)


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`torch.nn.functional.celu`."""
    return inner.celu(input, alpha)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
    generator: Any = None,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.rrelu`, with a generator."""
    return inner.rrelu(input, lower, upper, training, generator=generator)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`torch.nn.functional.hardshrink`."""
    return inner.hardshrink(input, lambd)


def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(x), divided by its sum along an axis."""
    return inner.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return inner.log_softmax(input, dim, dtype=dtype)


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Each element is 0 with probability p, the others are scaled; nothing unless `train`."""
    return inner.dropout(input, p, train)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 after `selu`."""
    return inner.alpha_dropout(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels."""
    return inner.dropout2d(input, p, train) if train else input


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return neural.feature_alpha_dropout(input, p, train)


@looking
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table: the table comes first, unlike in `torch.nn.functional`."""
    padding = None if padding_idx < 0 else padding_idx
    return inner.embedding(
        indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse
    )


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn_enable: bool = True,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.layer_norm`."""
    return inner.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5, cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.group_norm`."""
    return inner.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.batch_norm`, with weight and bias first."""
    moves = running_mean, running_var, weight, bias, training, momentum, eps
    return neural.batch_norm(input, *moves)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.instance_norm`, with weight and bias first."""
    moves = running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    return inner.instance_norm(input, *moves)


def adaptive_max_pool1d(input: Tensor, output_size: Any) -> Any:
    """The greatest elements of windows that divide an axis evenly, and their places."""
    return inner.adaptive_max_pool1d(input, output_size, True)


# --- losses, whose reduction is a number: 0 none, 1 mean, 2 sum ----------------------------------

_REDUCTIONS = ("none", "mean", "sum")


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False
) -> Tensor:
    """`torch.nn.functional.kl_div`."""
    return inner.kl_div(input, target, reduction=_REDUCTIONS[reduction], log_target=log_target)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.binary_cross_entropy_with_logits`."""
    return inner.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`torch.nn.functional.cosine_embedding_loss`."""
    how = _REDUCTIONS[reduction]
    return inner.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1
) -> Tensor:
    """`torch.nn.functional.hinge_embedding_loss`."""
    return inner.hinge_embedding_loss(input, target, margin, reduction=_REDUCTIONS[reduction])


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """`torch.nn.functional.margin_ranking_loss`."""
    how = _REDUCTIONS[reduction]
    return inner.margin_ranking_loss(input1, input2, target, margin, reduction=how)


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """`torch.nn.functional.ctc_loss`."""
    how = _REDUCTIONS[reduction]
    return neural.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity
    )
