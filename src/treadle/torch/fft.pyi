# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.fft`: Fourier transforms."""

import builtins
from typing import Any

from treadle.core.dtypes import DType
from treadle.torch.tensors import Tensor

def fft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def fft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def fftfreq(
    n: builtins.int,
    d: builtins.float = ...,
    *,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
    out: Any = ...,
) -> Tensor: ...
def fftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def fftshift(input: Tensor, dim: Any = ...) -> Tensor: ...
def hfft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def hfft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def hfftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def ifft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ifft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def ifftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def ifftshift(input: Tensor, dim: Any = ...) -> Tensor: ...
def ihfft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def ihfft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def ihfftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def irfft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def irfft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def irfftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def rfft(
    input: Tensor,
    n: builtins.int | None = ...,
    dim: builtins.int = ...,
    norm: builtins.str | None = ...,
    *,
    out: Any = ...,
) -> Tensor: ...
def rfft2(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...
def rfftfreq(
    n: builtins.int,
    d: builtins.float = ...,
    *,
    dtype: DType | None = ...,
    layout: Any = ...,
    device: Any = ...,
    requires_grad: builtins.bool = ...,
    out: Any = ...,
) -> Tensor: ...
def rfftn(
    input: Tensor, s: Any = ..., dim: Any = ..., norm: builtins.str | None = ..., *, out: Any = ...
) -> Tensor: ...

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
