# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.signal.windows`: weights of the elements of a stretch of a signal."""

import builtins
from typing import Any

from treadle.core.dtypes import DType
from treadle.torch.tensors import Tensor

def bartlett(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def blackman(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def cosine(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def exponential(
    M: builtins.int,
    *,
    center: builtins.float | None = ...,
    tau: builtins.float = ...,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def gaussian(
    M: builtins.int,
    *,
    std: builtins.float = ...,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def general_cosine(
    M: builtins.int,
    *,
    a: Any,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def general_hamming(
    M: builtins.int,
    *,
    alpha: builtins.float = ...,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def hamming(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def hann(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def kaiser(
    M: builtins.int,
    *,
    beta: builtins.float = ...,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...
def nuttall(
    M: builtins.int,
    *,
    sym: builtins.bool = ...,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
) -> Tensor: ...

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]
