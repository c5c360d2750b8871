"""Elements around a tensor: a number, or what reflections or repetitions of it have there.

The padded tensor is not made in memory: its elements are taken from the input by the kernel that
reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.node import Node
from treadle.tensor.as_one import as_one
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, where
from treadle.tensor.functional.places import Places, counted, inside_all, taken
from treadle.tensor.manipulation import operand
from treadle.tensor.operands import values_of
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["pad"]

_abs = FUNCTIONS["abs"]
Pairs = dict[int, tuple[int, int]]  # by axis, the numbers of elements before and after


def pad(input: Any, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """The input with elements added along its last axes, or, where a number is negative, removed.

    `pad` has two numbers for each axis, of what comes before and after, the last axis first.
    Added elements are, by `mode`: "constant", `value` (0); "reflect", those of the input mirrored
    at its first and last one; "replicate", its first and last one; "circular", those of the other
    end. Any number of axes may be padded in each mode. ShapeError for more reflected elements than
    there are beside the last one, or more circular ones than there are.

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
    if mode not in _PLACES:
        raise ValueError(f"pad: mode is one of {', '.join(_PLACES)}, not {mode!r}")
    if mode != "constant" and value is not None:
        raise ValueError(f"pad: mode {mode!r} takes no value: its elements are the input's")
    pairs = _pairs(pad, x.shape)
    x, pairs = _cut(x, pairs, mode)
    for axis, (before, after) in pairs.items():
        if before or after:
            _check_room(mode, x.shape, axis, max(before, after))
    return padded(x, mode, value, pairs) if any(map(any, pairs.values())) else x.copied()


@as_one
def padded(x: Tensor, mode: str, value: Any, pairs: Pairs) -> Tensor:
    """A tensor with elements before and after it along axes, at least one of them."""
    places = []
    for axis, (before, after) in pairs.items():
        if before or after:
            extent = x.shape[axis]
            found, inside = _PLACES[mode](counted(x, before + extent + after, -before), extent)
            places.append(Places(axis, found, (axis,), inside))
    wider = {each.axis: each.values.size for each in places}
    shape = tuple([wider.get(axis, extent) for axis, extent in enumerate(x.shape)])
    kept = {axis: axis for axis in range(x.ndim) if axis not in wider}
    result = taken(x, shape, kept, places)
    if value is None or (value == 0 and x.dtype.kind != "bool"):
        return result
    outer = values_of(value, shape, x.dtype, x.device)
    test = inside_all(shape, places)
    assert test is not None
    return from_node(Node("where", (test, result._node, outer), shape, x.dtype, x.device))


def _pairs(pad: Sequence[int], shape: tuple[int, ...]) -> Pairs:
    """The numbers of elements before and after, by axis."""
    try:
        numbers = [number.__index__() for number in pad]
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
    """A view without what negative numbers remove, and what is left to add. Reflected and
    replicated elements on one side may be what is removed on the other, as in PyTorch, so there
    nothing is cut."""
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


# --- places in the input, of indices that begin before it and end behind it -----------------------

Found = tuple[Tensor, Tensor | None]


def _constant(at: Tensor, extent: int) -> Found:
    return at, (at >= 0) & (at < extent)


def _reflect(at: Tensor, extent: int) -> Found:
    return (extent - 1) - _abs((extent - 1) - _abs(at)), None


def _replicate(at: Tensor, extent: int) -> Found:
    return clip(at, 0, extent - 1), None


def _circular(at: Tensor, extent: int) -> Found:
    return where(at < 0, at + extent, where(at >= extent, at - extent, at)), None


_PLACES: dict[str, Callable[[Tensor, int], Found]] = {
    "constant": _constant,
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _circular,
}
