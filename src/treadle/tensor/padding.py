"""`pad`, with NumPy's arguments. (`td.nn.functional.pad` has PyTorch's.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat
from treadle.tensor.operands import operand, values_of
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["pad"]

_Places = Callable[["np.ndarray[Any, Any]", int], "np.ndarray[Any, Any]"]


def _reflected(at: Any, extent: int) -> Any:
    period = max(2 * (extent - 1), 1)
    within = at % period
    return np.minimum(within, period - within) if extent > 1 else np.zeros_like(at)


def _symmetric(at: Any, extent: int) -> Any:
    within = at % (2 * extent)
    return np.minimum(within, 2 * extent - 1 - within)


# The elements of an axis that stand at places before, within and behind it.
_MODES: dict[str, _Places] = {
    "edge": lambda at, extent: np.clip(at, 0, extent - 1),
    "reflect": _reflected,
    "symmetric": _symmetric,
    "wrap": lambda at, extent: at % extent,
}


def pad(
    x: ArrayLike, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0
) -> Tensor:
    """X with elements added before and after it along its axes, with NumPy's arguments: `pad_width`
    is one number for all, (before, after) for all axes, such a pair for each axis, or a dictionary
    of pairs by axes.

    By `mode` they are: "constant", `constant_values` (one number, or pairs as for pad_width);
    "edge", the first and the last element; "reflect", x mirrored at these; "symmetric", x mirrored
    beyond them; "wrap", those of the other end. They may be more than x has. The dtype is x's.
    ValueError for a negative number or another mode, ShapeError for an axis without elements in
    modes that repeat some. (`td.nn.functional.pad` has PyTorch's arguments.)

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 3], device="cpu")
    >>> td.pad(x, (1, 2), constant_values=9).tolist(), td.pad(x, 2, "reflect").tolist()
    ([9, 1, 2, 3, 9, 9], [3, 2, 1, 2, 3, 2, 1])
    """
    x = operand("pad", x)
    if not isinstance(x.dtype, DType):
        raise DtypeError(f"pad takes numbers, not structs ({x.dtype})")
    if mode != "constant" and mode not in _MODES:
        raise ValueError(f"pad: mode is one of constant, {', '.join(_MODES)}, not {mode!r}")
    widths = _pairs("pad_width", pad_width, len(x.shape))
    if widths.dtype.kind not in "iu" and widths.size:
        raise TypeError(f"pad: pad_width has integers, not {pad_width!r}")
    if (widths < 0).any():
        raise ValueError(f"pad: a width is 0 or more, not {widths.min()}: x[1:-1] removes elements")
    values = _pairs("constant_values", constant_values, len(x.shape))
    found = x
    for axis, (before, after) in enumerate(widths.tolist()):
        if not (before or after):
            continue
        extent = found.shape[axis]
        if mode == "constant":
            sides = [
                from_node(
                    values_of(
                        number, (*found.shape[:axis], count, *found.shape[axis + 1 :]), x.dtype,
                        x.device,
                    )
                )
                for number, count in zip(values[axis].tolist(), (before, after), strict=True)
            ]  # fmt: skip
            found = concat([sides[0], found, sides[1]], axis=axis)
            continue
        if not extent:
            raise ShapeError(
                f"pad: axis {axis} of shape {x.shape} has no elements that mode {mode!r} could "
                "repeat"
            )
        found = take(found, _MODES[mode](np.arange(-before, extent + after), extent), axis=axis)
    return found if found is not x else x.copied()


def _pairs(what: str, given: Any, ndim: int) -> np.ndarray[Any, Any]:
    """A pair for each axis."""
    if isinstance(given, dict):
        pairs = [(0, 0)] * ndim
        for axis, pair in given.items():
            pairs[axis] = (pair, pair) if np.ndim(pair) == 0 else pair
        given = pairs
    try:
        return np.broadcast_to(np.asarray(given), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: {what} is a number, a pair, or a pair for each of {ndim} axes, not {given!r}"
        ) from None
