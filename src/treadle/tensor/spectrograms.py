"""Windows, and the Fourier transforms of a signal's windowed frames: `stft`, `hann_window` and
others. (`functional.windows` has the arguments of pooling, `device_windows` ranges of memory.)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.axes import integer
from treadle.tensor.creation import asarray, ones
from treadle.tensor.fft.one_axis import fft, rfft
from treadle.tensor.manipulation import swapaxes
from treadle.tensor.operands import operand
from treadle.tensor.padding import pad
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor, as_device_dtype

__all__ = [
    "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "stft",
]  # fmt: skip


def hann_window(
    n: int,
    /,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A Hann window of n elements, (1 - cos(2 pi i / n)) / 2; with `periodic=False` symmetric, as
    NumPy's `hanning`: n - 1 is in the place of n. float32 unless a floating dtype is given.

    >>> import treadle as td
    >>> td.hann_window(4, device="cpu").tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _window("hann_window", np.hanning, n, periodic, dtype, device)


def hamming_window(
    n: int,
    /,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A Hamming window of n elements, 0.54 - 0.46 cos(2 pi i / n); symmetric with
    `periodic=False`.

    >>> import treadle as td
    >>> print(*[f"{x:.2f}" for x in td.hamming_window(4, device="cpu").tolist()])
    0.08 0.54 1.00 0.54
    """
    return _window("hamming_window", np.hamming, n, periodic, dtype, device)


def blackman_window(
    n: int,
    /,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A Blackman window of n elements, 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n); symmetric
    with `periodic=False`.

    >>> import treadle as td
    >>> print(*[f"{abs(x):.2f}" for x in td.blackman_window(4, device="cpu").tolist()])
    0.00 0.34 1.00 0.34
    """
    return _window("blackman_window", np.blackman, n, periodic, dtype, device)


def bartlett_window(
    n: int,
    /,
    periodic: bool = True,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A triangular window of n elements, from 0 up to 1 and down; symmetric with `periodic=False`.

    >>> import treadle as td
    >>> td.bartlett_window(4, device="cpu").tolist()
    [0.0, 0.5, 1.0, 0.5]
    """
    return _window("bartlett_window", np.bartlett, n, periodic, dtype, device)


def kaiser_window(
    n: int,
    /,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """A Kaiser window of n elements, of the shape `beta`; symmetric with `periodic=False`.

    >>> import treadle as td
    >>> print(*[f"{x:.3f}" for x in td.kaiser_window(4, beta=2.0, device="cpu").tolist()])
    0.439 0.835 1.000 0.835
    """
    return _window("kaiser_window", lambda m: np.kaiser(m, beta), n, periodic, dtype, device)


def _window(name: str, make: Any, n: Any, periodic: bool, dtype: Any, device: Any) -> Tensor:
    """A window, computed on the host in float64. A periodic one lacks the last element of a
    symmetric one that is longer by one."""
    count = integer(name, n, "n")
    if count < 0:
        raise ShapeError(f"{name}: a window has no negative number of elements, as {count} is")
    wanted = float32 if dtype is None else as_device_dtype(dtype)
    if not isinstance(wanted, DType) or wanted.kind != "float":
        raise DtypeError(f"{name} makes floating dtypes, not {wanted}")
    found = make(count + 1)[:count] if periodic and count > 1 else make(count)
    return asarray(np.asarray(found, np.float64).astype(np.float32) if wanted is float32 else found,
                   dtype=wanted, device=device)  # fmt: skip


def stft(
    x: ArrayLike,
    /,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: ArrayLike | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform of signals along the last axis, with PyTorch's arguments:
    the transforms of frames of n_fft elements that begin `hop_length` (n_fft // 4) apart, times a
    window. The result is complex, of shape (…, frequencies, frames), with n_fft // 2 + 1
    frequencies of real signals (all n_fft with `onesided=False`, or of complex ones).

    The `window` has `win_length` (n_fft) elements, is 1 if there is none, and stands in the middle
    of the frame. With `center` the signal is padded by n_fft // 2 on both sides, as `td.pad` does
    it with `pad_mode`, so that frame t is around element t * hop_length. `normalized` multiplies by
    n_fft**-0.5. ShapeError for a signal that is shorter than a frame.

    >>> import treadle as td
    >>> x = td.asarray([1.0, -1.0] * 4, device="cpu")
    >>> found = td.stft(x, 4, window=td.hann_window(4, device="cpu"), center=False)
    >>> found.shape, abs(found[:, 0]).tolist()
    ((3, 5), [0.0, 1.0, 2.0])
    """
    x = operand("stft", x)
    if not isinstance(x.dtype, DType):
        raise DtypeError(f"stft takes numbers, not structs ({x.dtype})")
    if x.dtype.kind not in ("float", "complex"):
        x = x.to(float32)
    size = integer("stft", n_fft, "n_fft")
    hop = size // 4 if hop_length is None else integer("stft", hop_length, "hop_length")
    length = size if win_length is None else integer("stft", win_length, "win_length")
    if size < 1 or hop < 1 or not 1 <= length <= size:
        raise ValueError(
            "stft: n_fft and hop_length are at least 1, and win_length is from 1 to n_fft, not "
            f"{size}, {hop} and {length}"
        )
    is_complex = x.dtype.kind == "complex"
    if is_complex and onesided:
        raise ValueError("stft: transforms of complex signals are not one-sided: onesided=False")
    if not x.shape:
        raise ShapeError("stft takes signals along an axis")
    if center:
        sides = [(0, 0)] * (len(x.shape) - 1) + [(size // 2, size // 2)]
        x = pad(x, sides, pad_mode)
    if x.shape[-1] < size:
        raise ShapeError(f"stft: a signal of {x.shape[-1]} elements has no frame of {size}")
    frames = np.arange(0, x.shape[-1] - size + 1, hop)[:, None] + np.arange(size)
    found: Any = take(x, frames, axis=-1)
    if window is not None or length < size:
        found = found * _framed(x, window, length, size)
    one_sided = not is_complex if onesided is None else onesided
    made: Any = rfft(found) if one_sided else fft(found)
    if normalized:
        made = made * (1 / math.sqrt(size))
    return swapaxes(made, -1, -2).copied()


def _framed(x: Tensor, window: Any, length: int, size: int) -> Tensor:
    """A window in the middle of a frame, and zeros around it."""
    shown = ones(length, dtype=x.dtype.component, device=x.device)
    if window is not None:
        shown = window if isinstance(window, Tensor) else asarray(window, device=x.device)
        if shown.shape != (length,):
            raise ShapeError(
                f"stft: the window has win_length elements, {length}, and not the shape "
                f"{shown.shape}"
            )
        if shown.dtype.kind != "complex":
            shown = shown.to(x.dtype.component)
    before = (size - length) // 2
    return pad(shown, (before, size - length - before)) if length < size else shown
