"""The frequencies of the elements of a transform, and their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, float32
from treadle.core.errors import DtypeError
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.assembly import roll
from treadle.tensor.axes import some_axes
from treadle.tensor.conversions import device_of
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import named_dtype
from treadle.tensor.fft.arguments import length
from treadle.tensor.operands import node_of
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def fftfreq(
    n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """The frequencies of the elements of `fft` for samples with spacing d: 0, 1, … and then the
    negative ones up to -1, divided by n * d.

    >>> import treadle as td
    >>> td.fft.fftfreq(4, d=0.25, device="cpu").tolist()
    [0.0, 1.0, -2.0, -1.0]
    """
    count, spacing = length("fftfreq", n, 0), _spacing("fftfreq", d)
    kind = _kind("fftfreq", dtype)
    return asarray(np.fft.fftfreq(count, spacing), dtype=kind, device=device)


def rfftfreq(
    n: int, /, d: float = 1.0, *, dtype: DTypeLike | None = None, device: str | Device | None = None
) -> Tensor:
    """The frequencies of the n // 2 + 1 elements of `rfft`.

    >>> import treadle as td
    >>> td.fft.rfftfreq(4, d=0.25, device="cpu").tolist()
    [0.0, 1.0, 2.0]
    """
    count, spacing = length("rfftfreq", n, 0), _spacing("rfftfreq", d)
    kind = _kind("rfftfreq", dtype)
    return asarray(np.fft.rfftfreq(count, spacing), dtype=kind, device=device)


def fftshift(x: ArrayLike, /, axes: Any = None) -> Tensor:
    """The elements of a transform reordered along axes (all by default), with frequency 0 in the
    middle.

    >>> import treadle as td
    >>> td.fft.fftshift(td.fft.fftfreq(4, device="cpu")).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, /, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`: frequency 0 first.

    >>> import treadle as td
    >>> td.fft.ifftshift(td.asarray([-1, 0, 1], device="cpu")).tolist()
    [0, 1, -1]
    """
    return _shifted("ifftshift", x, axes, -1)


def _shifted(name: str, x: Any, axes: Any, sign: int) -> Tensor:
    tensor = x if type(x) is Tensor else from_node(node_of(name, x, device_of(name, (x,))))
    found = some_axes(name, axes, tensor.ndim)
    if not found:
        return tensor.copied()
    by = tuple(sign * (tensor.shape[axis] // 2) for axis in found)
    return roll(tensor, by, axis=found)


def _spacing(name: str, d: Any) -> float:
    if isinstance(d, bool) or not isinstance(d, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}: d is a number, not {type(d).__name__}")
    if d == 0:
        raise ValueError(f"{name}: d must not be 0: it is the spacing of samples")
    return float(d)


def _kind(name: str, dtype: Any) -> DType:
    kind = float32 if dtype is None else named_dtype(dtype)
    if kind.kind != "float":
        raise DtypeError(f"{name}: frequencies are real numbers, not {kind}: use dtype=td.float32")
    return kind
