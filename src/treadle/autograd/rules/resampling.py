"""Derivatives of what takes elements from computed places: folding, padding, dropout, images at
another size. Where the inverse is known, gradients are gathered; otherwise scattered.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.tensor.contraction import contracted
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.dropouts import kept_scaled
from treadle.tensor.functional.folding import fold, unfold
from treadle.tensor.functional.interpolation import matrix_of
from treadle.tensor.functional.padding import pad
from treadle.tensor.functional.resizing import Axis
from treadle.tensor.manipulation import flip
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

# --- dropout --------------------------------------------------------------------------------------


def _kept_scaled(g: Tensor, kept: Tensor, scale: float) -> Any:
    return kept_scaled(g, kept, scale)


# --- windows --------------------------------------------------------------------------------------


def _unfold(
    g: Tensor, input: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    return fold(g, input.shape[-2:], kernel_size, dilation, padding, stride)


def _fold(g: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return unfold(g, kernel_size, dilation, padding, stride)


# --- padding --------------------------------------------------------------------------------------


def _padded(g: Tensor, x: Tensor, mode: str, value: Any, pairs: Any) -> Any:
    """What was added goes back to the elements that it was copied from, axis by axis."""
    everywhere = g
    for axis, (before, after) in pairs.items():
        if before or after:
            g = _axis_back(g, axis, x.shape[axis], before, mode)
    if type(value) is not Tensor:
        return {"x": g}
    return {"x": g, "value": total(everywhere) - total(g)}


def _axis_back(g: Tensor, axis: int, extent: int, before: int, mode: str) -> Tensor:
    count = g.shape[axis]
    first, end = max(before, 0), min(before + extent, count)
    parts = []
    if first < end:
        parts.append(_placed(_cut(g, axis, first, end), axis, first - before, extent))
    front, back = _cut(g, axis, 0, min(first, count)), _cut(g, axis, max(end, 0), count)
    if mode == "replicate":
        if front.shape[axis]:
            parts.append(_placed(total(front, axis=axis, keepdims=True), axis, 0, extent))
        if back.shape[axis]:
            parts.append(_placed(total(back, axis=axis, keepdims=True), axis, extent - 1, extent))
    elif mode == "reflect":
        if front.shape[axis]:
            start = before - front.shape[axis] + 1
            parts.append(_placed(flip(front, axis=axis), axis, start, extent))
        if back.shape[axis]:
            start = 2 * extent - 1 - (count - before)
            parts.append(_placed(flip(back, axis=axis), axis, start, extent))
    elif mode == "circular":
        if front.shape[axis]:
            parts.append(_placed(front, axis, extent - before, extent))
        if back.shape[axis]:
            parts.append(_placed(back, axis, 0, extent))
    if not parts:
        return _placed(_cut(g, axis, 0, 0), axis, 0, extent)
    return functools.reduce(operator.add, parts)


def _cut(g: Tensor, axis: int, first: int, end: int) -> Tensor:
    return g[(*[slice(None)] * axis, slice(first, max(first, end)))]


def _placed(g: Tensor, axis: int, start: int, extent: int) -> Tensor:
    """A part among zeros, at a place along an axis."""
    behind = extent - start - g.shape[axis]
    return pad(g, (*[0] * (2 * (g.ndim - 1 - axis)), start, behind))


# --- images at another size -----------------------------------------------------------------------


def _resized(g: Tensor, x: Tensor, mode: str, axes: tuple[Axis, ...], antialias: bool) -> Any:
    """Each axis is multiplied by a matrix, which the gradient is, too."""
    found, _ = widened(g)
    names: list[Any] = list(range(found.ndim))
    for number, axis in enumerate(axes, 2):
        times = axis.wanted // axis.extent
        if axis.wanted == axis.extent and mode != "bicubic":
            continue
        if mode.startswith("nearest") and _is_exact(axis):
            shape = (*found.shape[:number], axis.extent, times, *found.shape[number + 1 :])
            found = total(found.reshape(shape), axis=number + 1)
            continue
        matrix = matrix_of(mode, axis, antialias, x, found.dtype)
        kept = [*names[:number], "pixel", *names[number + 1 :]]
        factors = [(matrix._node, ("pixel", number)), (found._node, names)]
        if number == found.ndim - 1:
            factors.reverse()  # so that the result has the wanted order of axes
        found = contracted(factors[0], factors[1], kept)
    return found


def _is_exact(axis: Axis) -> bool:
    """Whether each pixel is there a power of two times, so that places are computed exactly."""
    times = axis.wanted // axis.extent
    if axis.wanted % axis.extent or times & (times - 1):
        return False
    return axis.factor is None or axis.factor == times


RULES: dict[str, Rule] = {
    "fold": _fold,
    "kept_scaled": _kept_scaled,
    "padded": _padded,
    "resized": _resized,
    "unfold": _unfold,
}
