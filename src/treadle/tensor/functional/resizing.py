"""Antialiased resizing: pixels as weighted means of the input pixels that they cover.

When an image becomes smaller, interpolation between neighbouring pixels skips others. With
antialiasing each pixel is a weighted mean of all that it covers, with a filter of that width (as in
Pillow's `resize`): one axis after the other, each in one kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, where
from treadle.tensor.functional.gathers import AxisIndices, gather_axes, index_range
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_abs, _floor, _maximum = FUNCTIONS["abs"], FUNCTIONS["floor"], FUNCTIONS["maximum"]
_sin = FUNCTIONS["sin"]


class Axis(NamedTuple):
    """An axis of the input: its extent, that of the result, and the scale factor if the user gave
    one. `aligned`: whether the centers of the first and last pixels of both are aligned."""

    extent: int
    wanted: int
    factor: float | None
    aligned: bool

    @property
    def step(self) -> float:
        """The distance in the input between neighbouring pixels of the result."""
        if self.aligned:
            return (self.extent - 1) / (self.wanted - 1) if self.wanted > 1 else 0.0
        return 1 / self.factor if self.factor else self.extent / self.wanted


def averaged(x: Tensor, number: int, axis: Axis, mode: str, dtype: DType) -> Tensor:
    """The weighted means along an axis, computed in a dtype."""
    reach, weigh = _FILTERS[mode]
    wide = max(axis.step, 1.0)
    half = reach * wide
    center = ((index_range(x, axis.wanted).to(dtype) + 0.5) * axis.step).reshape(-1, 1)
    first = _maximum(_floor(center - half + 0.5), 0)
    end = clip(_floor(center + half + 0.5), 0, axis.extent)
    at = first + index_range(x, 2 * math.ceil(half) + 1).to(dtype)
    weights = where(at < end, weigh((at - center + 0.5) * (1 / wide)), 0)
    weights = weights / total(weights, axis=1, keepdims=True)
    along = (number, x.ndim)
    places = AxisIndices(number, at.to(index_range(x, 0).dtype), along, at < axis.extent)
    shape = (*x.shape[:number], axis.wanted, *x.shape[number + 1 :], at.shape[1])
    kept = {each: each for each in range(x.ndim) if each != number}
    factors = weights.reshape(axis.wanted, *(1,) * (x.ndim - number - 1), at.shape[1])
    return total(gather_axes(x, shape, kept, [places]).to(dtype) * factors, axis=-1)


# --- filters: their support, and the weight at a distance -----------------------------------


def _triangle(d: Tensor) -> Tensor:
    return _maximum(1 - _abs(d), 0)


def _keys(d: Tensor) -> Tensor:
    """Keys' cubic convolution, with the parameter -1/2."""
    d = _abs(d)
    near = (d * 1.5 - 2.5) * d * d + 1
    far = ((d * -0.5 + 2.5) * d - 4) * d + 2
    return where(d < 1, near, where(d < 2, far, 0))


def _lanczos(d: Tensor) -> Tensor:
    """The Lanczos kernel: a sinc, windowed by one three times as wide."""
    angle = d * math.pi
    product = _sin(angle) * _sin(angle / 3) * 3 / (angle * angle)
    return where(d == 0, 1, where(_abs(d) < 3, product, 0))


_FILTERS: dict[str, tuple[int, Callable[[Tensor], Tensor]]] = {
    "bilinear": (1, _triangle),
    "bicubic": (2, _keys),
    "lanczos": (3, _lanczos),
}
