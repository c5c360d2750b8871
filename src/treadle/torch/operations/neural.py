"""Functions of `torch.nn.functional` whose arguments are not those of treadle's, or that treadle has
not: on treadle's tensors."""

from __future__ import annotations

import warnings
from typing import Any

from treadle.core.dtypes import DType
from treadle.tensor import functional as inner
from treadle.tensor.tensor import Tensor

__all__ = [
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d_with_indices", "glu", "gumbel_softmax", "log_softmax",
    "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices", "normalize",
    "softmax", "softmin",
]  # fmt: skip


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
