"""Functions of `torch.nn.functional` whose arguments are not those of treadle's, or that treadle
lacks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from treadle.core.dtypes import DType, float32, float64
from treadle.nn.attention import MultiheadAttention
from treadle.nn.linear import Linear
from treadle.nn.module import Module
from treadle.tensor import functional as inner
from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import finfo, supports
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.manipulation import expand_dims, permute_dims
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import min as least
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor
from treadle.torch.dtypes import integers
from treadle.torch.operations.bounds import check, looking

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "binary_cross_entropy", "conv_tbc", "cross_entropy", "ctc_loss", "feature_alpha_dropout",
    "glu", "gumbel_softmax",
    "linear_cross_entropy", "local_response_norm", "log_softmax", "max_pool1d_with_indices",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "nll_loss", "normalize",
    "one_hot", "rms_norm", "softmax", "softmin",
]  # fmt: skip


# --- classes -------------------------------------------------------------------------------------


def check_classes(input: Tensor, target: Tensor, ignore_index: int = -100) -> None:
    """IndexError for a target that is not a class, if it is in the host's memory."""
    if target.dtype.kind not in ("int", "uint") or not target.size or not input.shape:
        return
    count = input.shape[min(1, len(input.shape) - 1)]
    with in_host_memory():
        if not looked_at(target.device):
            return
    values = target.numpy()
    wrong = values[((values < 0) | (values >= count)) & (values != ignore_index)]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each integer a row of zeros with a 1 at its index. RuntimeError for integers outside,
    which are looked at on the CPU."""
    if tensor.dtype.kind not in ("int", "uint"):
        raise RuntimeError("one_hot is only applicable to index tensor: x.long() makes one")
    if tensor.size:
        with in_host_memory():
            looks = looked_at(tensor.device) or num_classes == -1
        low, high = (int(least(tensor)), int(largest(tensor))) if looks else (0, 0)
        if low < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes >= 0 and high >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
        num_classes = high + 1 if num_classes == -1 else num_classes
    elif num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    classes = arange(num_classes, dtype=tensor.dtype, device=tensor.device)
    return (expand_dims(tensor, axis=-1) == classes).to(integers(tensor.device))


def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the logarithms of probabilities at the target classes. IndexError, on the CPU, for a
    target that is not a class."""
    check_classes(input, target, ignore_index)
    return inner.nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction)


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """`nll_loss` of `log_softmax`. IndexError, on the CPU, for a target that is not a class."""
    check_classes(input, target, ignore_index)
    return inner.cross_entropy(
        input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing
    )


def check_probabilities(input: Tensor) -> None:
    """RuntimeError for numbers outside 0 to 1, if they are in the host's memory."""
    with in_host_memory():
        if not input.size or not looked_at(input.device):
            return
    values = input.detach().numpy()
    if values.dtype.kind == "f" and not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The loss of probabilities. RuntimeError, on the CPU, for numbers outside 0 to 1."""
    check_probabilities(input)
    return inner.binary_cross_entropy(input, target, weight, size_average, reduce, reduction)


# --- along one axis ------------------------------------------------------------------------------


def _axis(name: str, input: Tensor, dim: int | None) -> int:
    """The axis, which PyTorch once chose itself by the number of axes."""
    if dim is not None:
        return dim
    warnings.warn(
        f"{name} without dim= takes the axis that PyTorch once chose: name the axis", stacklevel=4
    )
    return 0 if len(input.shape) in (0, 1, 3) else 1


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """exp(x), divided by its sum along an axis."""
    return inner.softmax(input, _axis("softmax", input, dim), dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """The logarithm of `softmax`."""
    return inner.log_softmax(input, _axis("log_softmax", input, dim), dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None
) -> Tensor:
    """`softmax` of -x."""
    return inner.softmin(input, _axis("softmin", input, dim), dtype=dtype)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Draws of classes, as `softmax` of the scores plus noise of the Gumbel distribution."""
    return inner.gumbel_softmax(logits, tau, hard, eps, dim)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of an axis, times the sigmoid of the second."""
    return inner.glu(input, dim)


def normalize(
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: None = None
) -> Tensor:
    """x, divided by its norm of order p along an axis."""
    return inner.normalize(input, p, dim, eps)


# --- the greatest of windows, and their places ---------------------------------------------------


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`max_pool1d` and the places."""
    return inner.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`max_pool2d` and the places."""
    return inner.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """`max_pool3d` and the places."""
    return inner.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool1d` and the places."""
    return inner.adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool2d` and the places."""
    return inner.adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> Any:
    """`adaptive_max_pool3d` and the places."""
    return inner.adaptive_max_pool3d(input, output_size, True)


# --- means of windows ----------------------------------------------------------------------------


def _mean_of_windows(pool: Callable[..., Tensor], input: Tensor, *settings: Any) -> Tensor:
    """Means; those of integers are integers, cut towards 0."""
    if input.dtype.kind not in ("int", "uint"):
        return pool(input, *settings)
    working = float64 if supports(input.device, float64) else float32
    found: Tensor = FUNCTIONS["trunc"](pool(input.to(working), *settings)).to(input.dtype)
    return found


def avg_pool1d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, L) or (C, L)."""
    settings = kernel_size, stride, padding, ceil_mode, count_include_pad
    return _mean_of_windows(inner.avg_pool1d, input, *settings)


def avg_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, H, W) or (C, H, W)."""
    settings = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _mean_of_windows(inner.avg_pool2d, input, *settings)


def avg_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Tensor:  # fmt: skip
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W)."""
    settings = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _mean_of_windows(inner.avg_pool3d, input, *settings)


# --- places without a batch or elements ----------------------------------------------------------


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel normalized over the batch."""
    if len(input.shape) == 1 and not input.size:
        return input.copied()
    moves = running_mean, running_var, weight, bias, training, momentum, eps
    return inner.batch_norm(input, *moves)


def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """X divided by the root of the mean of its squares over the last axes, times `weight`. Complex
    numbers are squared, as PyTorch does: the root is complex."""
    if not input.dtype.is_complex:
        return inner.rms_norm(input, normalized_shape, weight, eps)
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    added = finfo(input.dtype.component).eps if eps is None else eps
    squares = mean(input * input, axis=tuple(range(-count, 0)), keepdims=True)
    scaled = input / FUNCTIONS["sqrt"](squares + added)
    return scaled if weight is None else scaled * weight


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Each element divided by a power of the mean square of neighbouring channels."""
    return inner.local_response_norm(input, size, alpha, beta, k) if input.size else input


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Channels, a part of which is replaced by the least value of SELU."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return inner.feature_alpha_dropout(input, p, training, inplace) if training else input


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """A hinge loss of scores of classes; a tensor without axes is the score of one class."""
    if not input.shape:
        input, target = input.reshape(1), target.reshape(1)
    _check_targets(input, target, 0)
    options = p, margin, weight, size_average, reduce, reduction
    return inner.multi_margin_loss(input, target, *options)


def _check_targets(input: Tensor, target: Tensor, low: int) -> None:
    """RuntimeError for targets that are not classes, if they are in the host's memory."""
    if target.dtype.kind in ("int", "uint") and input.shape:
        looking(check)(target, input.shape[-1], RuntimeError, low, "target out of range: {wrong}")


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """Elements written back to where `max_pool1d` found them. RuntimeError for indices outside the
    result, which are looked at on the CPU; elsewhere such elements are dropped."""
    made = inner.max_unpool1d(input, indices, kernel_size, stride, padding, output_size)
    return _looked_at(made, indices, 1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """`max_unpool1d` for two axes."""
    made = inner.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)
    return _looked_at(made, indices, 2)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
    output_size: Any = None,
) -> Tensor:  # fmt: skip
    """`max_unpool1d` for three axes."""
    made = inner.max_unpool3d(input, indices, kernel_size, stride, padding, output_size)
    return _looked_at(made, indices, 3)


def _looked_at(made: Tensor, indices: Tensor, axes: int) -> Tensor:
    volume = made.shape[-axes:]
    message = f"Found an invalid max index: {{wrong}} (output volumes are of size {volume})"
    looking(check)(indices, math.prod(volume), RuntimeError, 0, message)
    return made


def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """A hinge loss of scores of several classes; a tensor without axes is the score of one."""
    if not input.shape:
        input, target = input.reshape(1), target.reshape(1)
    _check_targets(input, target, -1)
    return inner.multilabel_margin_loss(input, target, size_average, reduce, reduction)


# --- losses --------------------------------------------------------------------------------------


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Connectionist temporal classification, with PyTorch's gradient: that of probabilities that
    add up to 1, whatever `log_probs` is."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    plain = inner.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, "none", zero_infinity
    )
    device = log_probs.device
    lengths = asarray(input_lengths, device=device)
    # Sums of exp(x) - exp(x): nothing but a gradient.
    powers = FUNCTIONS["exp"](log_probs)
    times = arange(log_probs.shape[0], dtype=lengths.dtype, device=device)
    is_in = times[:, None] < lengths if lengths.shape else times < lengths
    nothing = where(is_in[..., None], powers - powers.detach(), 0.0)
    added = total(nothing, axis=(0, -1))
    if zero_infinity:
        raw = inner.ctc_loss(
            log_probs.detach(), targets, input_lengths, target_lengths, blank, "none", False
        )
        added = where(FUNCTIONS["isfinite"](raw), added, 0.0)
    losses: Tensor = plain + added
    if reduction == "none":
        return losses
    if reduction == "sum":
        return total(losses)
    counts = FUNCTIONS["maximum"](asarray(target_lengths, device=device), 1).to(losses.dtype)
    return mean(losses / counts)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """The cross-entropy of a product of an input, (N, in) or (in,), and the weights of classes,
    (C, d1, …, in). `options`, which says how PyTorch cuts the product, changes nothing."""
    if len(input.shape) not in (1, 2) or len(linear_weight.shape) < 2:
        raise RuntimeError(
            "linear_cross_entropy takes an input of 1 or 2 axes and a weight of 2 or more, not of "
            f"{len(input.shape)} and {len(linear_weight.shape)}"
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions, got {input.shape[-1]} and "
            f"{linear_weight.shape[-1]}"
        )
    scores_of = linear_weight.shape[:-1]
    if linear_bias is not None and linear_bias.shape != scores_of:
        raise RuntimeError(f"expected linear_bias shape {scores_of}, got {linear_bias.shape}")
    flat = linear_weight.reshape((-1, linear_weight.shape[-1]))
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = inner.linear(input, flat, bias).reshape((*input.shape[:-1], *scores_of))
    if target.shape == scores.shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    return inner.cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction,
        label_smoothing=label_smoothing,
    )  # fmt: skip


# --- others --------------------------------------------------------------------------------------


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first axis of (L, N, C), with a weight (kernel, in, out)."""
    images = permute_dims(input, (1, 2, 0))
    found = inner.conv1d(images, permute_dims(weight, (2, 1, 0)), bias, 1, pad)
    return permute_dims(found, (2, 0, 1))


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """What `nn.MultiheadAttention` computes, of its parameters."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError(
            "multi_head_attention_forward: static_k and static_v are not here; call "
            "scaled_dot_product_attention with projected keys and values"
        )
    e = query.shape[-1]
    if e != embed_dim_to_check:
        raise RuntimeError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {e}"
        )
    layer: Any = object.__new__(MultiheadAttention)
    projection: Any = object.__new__(Linear)
    for module in (layer, projection):
        Module.__init__(module)
    projection.__dict__["_parameters"] = {"weight": out_proj_weight, "bias": out_proj_bias}
    separate = use_separate_proj_weight
    layer.__dict__.update(
        training=training, embed_dim=e, kdim=key.shape[-1], vdim=value.shape[-1],
        num_heads=num_heads, dropout=dropout_p, batch_first=False, head_dim=e // num_heads,
        add_zero_attn=add_zero_attn, out_proj=projection,
        _parameters={
            "in_proj_weight": None if separate else in_proj_weight, "in_proj_bias": in_proj_bias,
            "q_proj_weight": q_proj_weight, "k_proj_weight": k_proj_weight,
            "v_proj_weight": v_proj_weight, "bias_k": bias_k, "bias_v": bias_v,
        },
    )  # fmt: skip
    found: tuple[Tensor, Tensor | None] = layer.forward(
        query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights,
        is_causal,
    )  # fmt: skip
    return found
