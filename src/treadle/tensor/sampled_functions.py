"""Functions that are given by samples: `interp`, `gradient`, `trapezoid`, `convolve`, and the bins
that numbers fall into: `digitize`, `bucketize`."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat, diff
from treadle.tensor.axes import one_axis, some_axes, takes_dim
from treadle.tensor.conversions import as_python, cast, is_number
from treadle.tensor.dtypes import promote
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.functional.convolution import conv1d
from treadle.tensor.manipulation import flip
from treadle.tensor.operands import operand, prepare
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import searchsorted
from treadle.tensor.sorting import argsort
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["bucketize", "convolve", "digitize", "gradient", "interp", "trapezoid"]

_where = FUNCTIONS["where"]


# --- interpolation ----------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: float | None = None,
    right: float | None = None,
    period: float | None = None,
) -> Tensor:
    """The values at x of the function that is fp at the ascending points xp and linear between
    them; below and above these `left` and `right`, or the first and the last of fp. The result has
    x's shape; NaN where x is NaN.

    With a `period` both x and xp are taken modulo it, and xp need not ascend. Otherwise that xp
    ascends is not checked. xp and fp have one axis and as many elements, one at least, else
    ShapeError; x and xp are real. Integers become float32. There are gradients by all three.

    >>> import treadle as td
    >>> points, values = td.asarray([0.0, 1.0, 3.0], device="cpu"), [0.0, 10.0, 30.0]
    >>> td.interp(td.asarray([-1.0, 0.5, 2.0, 9.0], device="cpu"), points, values).tolist()
    [0.0, 5.0, 20.0, 30.0]
    """
    is_one = is_number(x)
    device, dtype, (points, knots) = prepare("interp", ([as_python(x)] if is_one else x, xp))
    if dtype.kind == "complex":
        raise DtypeError("interp: x and xp are real numbers, not complex ones")
    dtype = dtype if dtype.kind == "float" else float32
    _, kind, (levels,) = prepare("interp", (fp,), device)
    kind = kind if kind.kind in ("float", "complex") else float32
    if len(knots.shape) != 1 or knots.shape != levels.shape or not knots.size:
        raise ShapeError(
            f"interp: xp and fp have one axis and as many elements, not the shapes {knots.shape} "
            f"and {levels.shape}"
        )
    work = float32 if dtype in (float16, bfloat16) else dtype
    result = promote(kind, dtype)
    at, places = from_node(cast(points, work)), from_node(cast(knots, work))
    heights = from_node(cast(levels, float32 if kind in (float16, bfloat16) else kind))
    if period is not None:
        if not period:
            raise ValueError("interp: a period is not 0")
        at, places, heights = _unrolled(at, places, heights, abs(period))
        left = right = None
    found = _interpolated(at, places, heights, left, right).to(result)
    return found.reshape(()) if is_one else found


def _unrolled(
    x: Tensor, knots: Tensor, heights: Tensor, period: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The points within one period, with a neighbour from the next period on either side."""
    x, knots = apply("remainder", x, period), apply("remainder", knots, period)
    order = argsort(knots)
    knots, heights = knots[order], heights[order]
    return (
        x,
        concat([knots[-1:] - period, knots, knots[:1] + period]),
        concat([heights[-1:], heights, heights[:1]]),
    )


def _interpolated(x: Tensor, knots: Tensor, heights: Tensor, left: Any, right: Any) -> Tensor:
    first, last = heights[0], heights[-1]
    below = first if left is None else left
    above = last if right is None else right
    count = knots.shape[0]
    found: Tensor = last
    if count > 1:
        index = FUNCTIONS["clip"](searchsorted(knots, x, side="right") - 1, 0, count - 2)
        start, low = knots[index], heights[index]
        width = knots[index + 1] - start
        width = _where(apply("equal", width, 0), 1, width)  # of equal knots: not what is taken
        found = low + (x - start) * ((heights[index + 1] - low) / width)
        found = _where(apply("equal", x, start), low, found)
        found = _where(apply("equal", x, knots[-1]), last, found)
    found = _where(apply("greater", x, knots[-1]), above, found)
    found = _where(apply("less", x, knots[0]), below, found)
    return _where(apply("isnan", x), x, found)


# --- derivatives and integrals ----------------------------------------------------------


@takes_dim
def gradient(
    f: ArrayLike, /, *spacing: ArrayLike, axis: Any = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """The derivatives of a sampled function along its axes, of second order within and of order
    `edge_order` (1 or 2) at both ends: a tensor of f's shape for each axis, or one tensor if there
    is one axis, or `axis` is a number.

    `spacing` is nothing (1), one number, or for each of the axes a number or the coordinates of its
    samples. Integers become float32. ShapeError for an axis of fewer than edge_order + 1 samples.

    >>> import treadle as td
    >>> td.gradient(td.asarray([0.0, 1.0, 4.0, 9.0], device="cpu")).tolist()
    [1.0, 2.0, 4.0, 5.0]
    >>> squares = td.asarray([0.0, 1.0, 9.0], device="cpu")
    >>> td.gradient(squares, [0.0, 1.0, 3.0], edge_order=2).tolist()
    [0.0, 2.0, 6.0]
    """
    f = operand("gradient", f)
    if not isinstance(f.dtype, DType) or f.dtype.kind == "bool":
        raise DtypeError(f"gradient takes numbers, not {f.dtype}: cast with f.to(td.float32)")
    if f.dtype.kind not in ("float", "complex"):
        f = f.to(float32)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is 1 or 2, not {edge_order}")
    if not f.shape:
        raise ShapeError("gradient takes arrays that have axes")
    axes = some_axes("gradient", axis, len(f.shape))
    if len(spacing) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient: there is one spacing for all axes or one for each of {len(axes)}, not "
            f"{len(spacing)}"
        )
    steps = spacing or (1.0,)
    if len(steps) < len(axes):
        if not is_number(steps[0]) and operand("gradient", steps[0]).shape:
            raise TypeError(
                f"gradient: coordinates belong to one axis: give them for each of {len(axes)}"
            )
        steps = steps * len(axes)
    found = tuple([_slope(f, at, step, edge_order) for at, step in zip(axes, steps, strict=True)])
    return found[0] if len(found) == 1 and not isinstance(axis, (tuple, list)) else found


def _slope(f: Tensor, axis: int, spacing: Any, order: int) -> Tensor:
    extent = f.shape[axis]
    if extent < order + 1:
        raise ShapeError(
            f"gradient: axis {axis} of shape {f.shape} has {extent} samples, and edge_order="
            f"{order} takes at least {order + 1}"
        )

    def part(start: int, stop: int | None) -> Any:
        return f[(slice(None),) * axis + (slice(start, stop),)]

    widths = _widths(f, axis, spacing)
    if widths is None:
        step = spacing if not is_number(spacing) else as_python(spacing)
        inside = (part(2, None) - part(0, -2)) / (2 * step)
        before, after = step, step
        ends: Any = (step, step, step, step)
    else:
        before, after = _cut(widths, axis, 0, -1), _cut(widths, axis, 1, None)
        inside = (
            -(after) / (before * (before + after)) * part(0, -2)
            + (after - before) / (before * after) * part(1, -1)
            + before / (after * (before + after)) * part(2, None)
        )
        ends = tuple(_cut(widths, axis, *each) for each in ((0, 1), (1, 2), (-1, None), (-2, -1)))
    if order == 1:
        first = (part(1, 2) - part(0, 1)) / ends[0]
        last = (part(-1, None) - part(-2, -1)) / ends[2]
    else:
        first = _end(part(0, 1), part(1, 2), part(2, 3), ends[0], ends[1])
        last = -_end(part(-1, None), part(-2, -1), part(-3, -2), ends[2], ends[3])
    parts = [first, inside, last] if extent > 2 else [first, last]
    return concat([each.to(f.dtype) for each in parts], axis=axis)


def _end(one: Any, two: Any, three: Any, near: Any, far: Any) -> Any:
    """The slope at the first of three samples, towards the second, by a parabola."""
    return (
        -(2 * near + far) / (near * (near + far)) * one
        + (near + far) / (near * far) * two
        - near / (far * (near + far)) * three
    )


def _widths(f: Tensor, axis: int, spacing: Any) -> Any:
    """The distances of samples along an axis, in a shape that broadcasts; None for a number."""
    if is_number(spacing):
        return None
    _, dtype, (node,) = prepare("gradient", (spacing,), f.device)
    if not node.shape:
        return None
    if node.shape != (f.shape[axis],):
        raise ShapeError(
            f"gradient: the coordinates along axis {axis} are {f.shape[axis]} numbers, not of "
            f"shape {node.shape}"
        )
    wide = dtype if dtype.kind == "float" else f.dtype.component
    shape = [1] * len(f.shape)
    shape[axis] = f.shape[axis] - 1
    return diff(from_node(cast(node, wide))).reshape(tuple(shape))


def _cut(x: Any, axis: int, start: int, stop: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(start, stop),)]


@takes_dim
def trapezoid(
    y: ArrayLike, /, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1
) -> Tensor:
    """The integral of samples y along an axis, by straight lines between them: at the coordinates x
    (along that axis, or of y's shape), or `dx` apart. Integers become float32.

    >>> import treadle as td
    >>> y = td.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> td.trapezoid(y).item(), td.trapezoid(y, x=[0.0, 1.0, 3.0]).item()
    (4.0, 6.5)
    """
    y = operand("trapezoid", y)
    if not isinstance(y.dtype, DType):
        raise DtypeError(f"trapezoid takes numbers, not structs ({y.dtype})")
    if y.dtype.kind not in ("float", "complex"):
        y = y.to(float32)
    at = one_axis("trapezoid", axis, len(y.shape))
    widths: Any = dx
    if x is not None:
        places = from_node(prepare("trapezoid", (x,), y.device)[2][0])
        if len(places.shape) == 1:
            if places.shape[0] != y.shape[at]:
                raise ShapeError(
                    f"trapezoid: x has {places.shape[0]} coordinates, and y {y.shape[at]} samples "
                    f"along axis {at}"
                )
            shape = [1] * len(y.shape)
            shape[at] = y.shape[at] - 1 if y.shape[at] else 0
            widths = diff(places).reshape(tuple(shape))
        else:
            widths = diff(places, axis=at)
    both = _cut(y, at, 1, None) + _cut(y, at, 0, -1)
    return total(widths * both / 2.0, axis=at)


# --- convolution ------------------------------------------------------------------------


def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Tensor:
    """The convolution of two arrays of one axis: the sums over j of x1[j] x2[i - j].

    By `mode` these are all that are not empty ("full", of n1 + n2 - 1 elements), as many as the
    longer array has, from the middle ("same"), or those in which the shorter one lies within the
    longer one ("valid"). Dtypes are promoted. ShapeError for empty arrays, or other axes.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0, 3.0], device="cpu")
    >>> td.convolve(x, [0.0, 1.0, 0.5]).tolist()
    [0.0, 1.0, 2.5, 4.0, 1.5]
    """
    _, dtype, found = prepare("convolve", (x1, x2))
    for node in found:
        if len(getattr(node, "shape", ())) != 1 or not node.size:
            raise ShapeError(
                "convolve takes arrays of one axis with elements, not of shape "
                f"{getattr(node, 'shape', ())}"
            )
    long, short = sorted((from_node(cast(node, dtype)) for node in found),
                         key=lambda each: -each.shape[0])  # fmt: skip
    n, k = long.shape[0], short.shape[0]
    if mode not in ("full", "same", "valid"):
        raise ValueError(f'convolve: mode is "full", "same" or "valid", not {mode!r}')
    made = conv1d(
        long.reshape(1, 1, n), flip(short).reshape(1, 1, k), padding=0 if mode == "valid" else k - 1
    ).reshape(-1)
    if mode == "same":
        made = made[(k - 1) // 2 : (k - 1) // 2 + n].copied()
    return made


# --- bins -------------------------------------------------------------------------------


def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Tensor:
    """The bin that each element falls into, as NumPy's: i where bins[i - 1] <= x < bins[i] of
    ascending bins, or with `right` bins[i - 1] < x <= bins[i]; where bins descend,
    bins[i - 1] > x >= bins[i], or bins[i - 1] >= x > bins[i]. 0 and len(bins) are outside; NaN is
    greater than all numbers.

    ValueError if bins are not monotonic; those of a tensor are not read, and taken to be.

    >>> import treadle as td
    >>> td.digitize(td.asarray([0.5, 1.0, 9.0], device="cpu"), [0.0, 1.0, 2.0]).tolist()
    [1, 2, 3]
    """
    if not isinstance(bins, Tensor):
        steps = np.diff(np.asarray(bins))
        if not ((steps >= 0).all() or (steps <= 0).all()):
            raise ValueError("digitize: bins ascend or descend, and these do neither")
    x = operand("digitize", x)
    edges = from_node(prepare("digitize", (bins,), x.device)[2][0])
    if len(edges.shape) != 1:
        raise ShapeError(f"digitize: bins have one axis, not shape {edges.shape}")
    up = searchsorted(edges, x, side="left" if right else "right")
    if edges.shape[0] < 2:
        return up
    down = edges.shape[0] - searchsorted(flip(edges), x, side="left" if right else "right")
    return _where(apply("greater", edges[0], edges[-1]), down, up)


def bucketize(x: ArrayLike, boundaries: ArrayLike, /, *, right: bool = False) -> Tensor:
    """The bin that each element falls into, as PyTorch's: i where boundaries[i - 1] < x <=
    boundaries[i], or with `right` boundaries[i - 1] <= x < boundaries[i] (which `td.digitize` means
    without it). Boundaries ascend along one axis, which is not checked.

    >>> import treadle as td
    >>> td.bucketize(td.asarray([0.5, 1.0, 9.0], device="cpu"), [0.0, 1.0, 2.0]).tolist()
    [1, 1, 3]
    """
    x = operand("bucketize", x)
    edges = from_node(prepare("bucketize", (boundaries,), x.device)[2][0])
    return searchsorted(edges, x, side="right" if right else "left")
