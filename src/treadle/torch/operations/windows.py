"""`torch.signal.windows`, and the older functions `torch.hann_window` and its like.

A window is symmetric, or periodic: then it is a symmetric one of one element more without the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import get_default_dtype

_Floats = np.ndarray[Any, Any]


def _made(
    name: str, values: Any, M: int, sym: bool, dtype: DType | None, device: Any, tracked: bool
) -> Inner:
    """A window from a function of the places and of their number."""
    dtype = get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if dtype.kind != "float":
        raise ValueError(f"{name} expects floating-point dtypes, got: {dtype}")
    if M <= 1:
        found = np.ones(M)
    else:
        count = M if sym else M + 1
        found = np.asarray(values(np.arange(count, dtype=np.float64), count))[:M]
    made = td.asarray(found, dtype=dtype, device=place(device))
    return made.requires_grad_() if tracked else made


def _cosines(weights: Sequence[float]) -> Any:
    def values(at: _Floats, count: int) -> Any:
        angle = 2 * math.pi * at / (count - 1)
        return sum((-1) ** k * weight * np.cos(k * angle) for k, weight in enumerate(weights))

    return values


def _of_cosines(name: str, weights: Sequence[float]) -> Any:
    def function(
        M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False,
    ) -> Inner:  # fmt: skip
        return _made(name, _cosines(weights), M, sym, dtype, device, requires_grad)

    function.__name__ = name
    function.__doc__ = f"The window that is a sum of {len(weights)} cosines, {tuple(weights)}."
    return function


blackman = _of_cosines("blackman", (0.42, 0.5, 0.08))
hann = _of_cosines("hann", (0.5, 0.5))
nuttall = _of_cosines("nuttall", (0.3635819, 0.4891775, 0.1365995, 0.0106411))


def general_cosine(
    M: int, *, a: Sequence[float], sym: bool = True, dtype: DType | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window that is a sum of cosines with these weights."""
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _made("general_cosine", _cosines(tuple(a)), M, sym, dtype, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window alpha - (1 - alpha) cos."""
    weights = (alpha, 1.0 - alpha)
    return _made("general_hamming", _cosines(weights), M, sym, dtype, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window 0.54 - 0.46 cos."""
    return _made("hamming", _cosines((0.54, 0.46)), M, sym, dtype, device, requires_grad)


def bartlett(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The triangular window."""

    def values(at: _Floats, count: int) -> Any:
        return 1 - np.abs(2 * at / (count - 1) - 1)

    return _made("bartlett", values, M, sym, dtype, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: DType | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """Half a period of a sine."""

    def values(at: _Floats, count: int) -> Any:
        return np.sin(math.pi / count * (at + 0.5))

    return _made("cosine", values, M, sym, dtype, device, requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True,
    dtype: DType | None = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def values(at: _Floats, count: int) -> Any:
        middle = (count - 1) / 2 if center is None else center
        return np.exp(-np.abs(at - middle) / tau)

    return _made("exponential", values, M, sym, dtype, device, requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window exp(-(n / std)**2 / 2) around its middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def values(at: _Floats, count: int) -> Any:
        return np.exp(-0.5 * ((at - (count - 1) / 2) / std) ** 2)

    return _made("gaussian", values, M, sym, dtype, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Inner:  # fmt: skip
    """The window I0(beta sqrt(1 - x**2)) / I0(beta)."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def values(at: _Floats, count: int) -> Any:
        x = 2 * at / (count - 1) - 1
        return np.i0(beta * np.sqrt(np.clip(1 - x * x, 0, None))) / np.i0(beta)

    return _made("kaiser", values, M, sym, dtype, device, requires_grad)


def _older(name: str, make: Any, *options: str) -> Any:
    def function(
        window_length: int, periodic: bool = True, *more: float, dtype: DType | None = None,
        layout: Any = None, device: Any = None, pin_memory: bool = False,
        requires_grad: bool = False, **named: float,
    ) -> Inner:  # fmt: skip
        chosen = {**dict(zip(options, more, strict=False)), **named}
        where = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
        return make(window_length, sym=not periodic, **where, **chosen)

    function.__name__ = name
    function.__doc__ = f"`torch.signal.windows.{make.__name__}`, periodic by default."
    return function


def _hamming(M: int, *, alpha: float = 0.54, beta: float = 0.46, **where: Any) -> Inner:
    """The window alpha - beta cos."""
    sym, dtype, device = where["sym"], where["dtype"], where["device"]
    tracked = where["requires_grad"]
    return _made("hamming_window", _cosines((alpha, beta)), M, sym, dtype, device, tracked)


FUNCTIONS = {
    "bartlett_window": _older("bartlett_window", bartlett),
    "blackman_window": _older("blackman_window", blackman),
    "hamming_window": _older("hamming_window", _hamming, "alpha", "beta"),
    "hann_window": _older("hann_window", hann),
    "kaiser_window": _older("kaiser_window", kaiser, "beta"),
}
