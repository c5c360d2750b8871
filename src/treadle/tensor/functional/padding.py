"""Padding: elements around a tensor, constant or by reflection or repetition of it.

The padded tensor is a join of the input and the added parts, and is not materialized: the kernel
that uses it reads the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.sizes import index
from treadle.graph import views
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat
from treadle.tensor.composites import composite
from treadle.tensor.conversions import number_as
from treadle.tensor.manipulation import broadcast_to
from treadle.tensor.operands import operand, values_of
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["pad"]

Pairs = dict[int, tuple[int, int]]  # by axis, the numbers of elements before and after


def pad(
    input: ArrayLike, pad: Sequence[int], mode: str = "constant", value: ArrayLike | None = None
) -> Tensor:
    """The input with elements added along its last axes, or removed where a number is negative.

    `pad` has two numbers for each axis, the elements before and after, the last axis first. By
    `mode` the added elements are: "constant", `value` (0); "reflect", the input mirrored at its
    first and last element; "replicate", its first and last element; "circular", those of the other
    end. Any number of axes may be padded in each mode. ShapeError for more reflected elements than
    the axis has besides its end, or more circular ones than it has.

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 3], device="cpu")
    >>> td.nn.functional.pad(x, (1, 2), value=9).tolist()
    [9, 1, 2, 3, 9, 9]
    >>> td.nn.functional.pad(x, (2, -1), mode="reflect").tolist()
    [3, 2, 1, 2]
    """
    x = operand("pad", input)
    if not isinstance(x.dtype, DType):
        raise DtypeError(f"pad takes numbers, not structs ({x.dtype})")
    if mode not in _SIDES:
        raise ValueError(f"pad: mode is one of {', '.join(_SIDES)}, not {mode!r}")
    if mode != "constant" and value is not None:
        raise ValueError(f"pad: mode {mode!r} takes no value: its elements are the input's")
    pairs = _pairs(pad, x.shape)
    x, pairs = _cut(x, pairs, mode)
    for axis, (before, after) in pairs.items():
        if before or after:
            _check_room(mode, x.shape, axis, max(before, after))
    return padded(x, mode, value, pairs) if any(map(any, pairs.values())) else x.copied()


@composite
def padded(x: Tensor, mode: str, value: Any, pairs: Pairs) -> Tensor:
    """A tensor padded along at least one axis."""
    for axis, (before, after) in pairs.items():
        if not (before or after):
            continue
        extent = x.shape[axis]
        sides = [
            _SIDES[mode](x, axis, max(count, 0), bool(is_after), value)
            for is_after, count in enumerate((before, after))
        ]
        wide = concat([sides[0], x, sides[1]], axis=axis) if max(before, after) > 0 else x
        x = _part(wide, axis, max(-before, 0), before + extent + after)
    return x


def _pairs(pad: Sequence[int], shape: tuple[int, ...]) -> Pairs:
    """The numbers of elements before and after, by axis."""
    try:
        numbers = [index(number) for number in pad]
    except (TypeError, AttributeError):
        raise TypeError(
            f"pad: pad is a sequence of integers, two for each axis, not {pad!r}"
        ) from None
    if len(numbers) % 2 or len(numbers) > 2 * len(shape):
        raise ShapeError(
            f"pad: pad has {len(numbers)} numbers, and a tensor of shape {shape} takes two for "
            f"each axis that is padded, so an even number up to {2 * len(shape)}"
        )
    last = len(shape) - 1
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {last - number: pair for number, pair in enumerate(pairs)}


def _cut(x: Tensor, pairs: Pairs, mode: str) -> tuple[Tensor, Pairs]:
    """A view without the elements that negative numbers remove, and the remaining padding. For
    "reflect" and "replicate" an axis with padding on the other side is not cut, since that may use
    the removed elements, as in PyTorch."""
    view = x._where
    left: Pairs = {}
    for axis, (before, after) in pairs.items():
        extent = x.shape[axis]
        whole = mode in ("reflect", "replicate") and max(before, after) > 0
        count = extent + sum((before, after) if whole else (min(before, 0), min(after, 0)))
        if count < 0:
            raise ShapeError(
                f"pad: {(before, after)} removes {extent - count} elements along axis {axis} of "
                f"shape {x.shape}, which has {extent}"
            )
        if whole:
            left[axis] = before, after
            continue
        left[axis] = max(before, 0), max(after, 0)
        if count != extent:
            view = views.slice_axis(view, axis, max(-before, 0) if count else 0, 1, count)
    return x._seen_through(view), left


def _check_room(mode: str, shape: tuple[int, ...], axis: int, most: int) -> None:
    extent = shape[axis]
    room = {"constant": most, "reflect": extent - 1, "replicate": most if extent else 0}
    if most > room.get(mode, extent):
        raise ShapeError(
            f"pad: mode {mode!r} adds at most {max(room.get(mode, extent), 0)} elements on a side "
            f"of axis {axis} of shape {shape}, not {most}"
        )


# --- the parts added along an axis ------------------------------------------------------


def _part(x: Tensor, axis: int, start: int, count: int, step: int = 1) -> Tensor:
    return x._seen_through(views.slice_axis(x._where, axis, start, step, count))


def _constant(x: Tensor, axis: int, count: int, is_after: bool, value: Any) -> Tensor:
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    number = number_as(0, x.dtype) if value is None else value
    return from_node(values_of(number, shape, x.dtype, x.device))


def _reflect(x: Tensor, axis: int, count: int, is_after: bool, value: Any) -> Tensor:
    first = x.shape[axis] - 2 if is_after else count
    return _part(x, axis, max(first, 0), count, -1)


def _replicate(x: Tensor, axis: int, count: int, is_after: bool, value: Any) -> Tensor:
    edge = _part(x, axis, x.shape[axis] - 1 if is_after and count else 0, min(count, 1))
    return broadcast_to(edge, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def _circular(x: Tensor, axis: int, count: int, is_after: bool, value: Any) -> Tensor:
    return _part(x, axis, 0 if is_after else x.shape[axis] - count, count)


_SIDES: dict[str, Callable[[Tensor, int, int, bool, Any], Tensor]] = {
    "constant": _constant,
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _circular,
}
