"""`grid_sample`, which samples images at given positions, and `affine_grid`.

A position is a number for each axis of an image, the last axis first: -1 is the beginning of the
axis and 1 its end. As in `interpolation`, each position has a few pixels with weights, gathered by
the kernel that uses the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.advanced_indexing import index_dtype
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import integer
from treadle.tensor.dtypes import promote
from treadle.tensor.elementwise_functions import FUNCTIONS, clip, where
from treadle.tensor.functional.compute_dtype import compute_dtypes, widened_real
from treadle.tensor.functional.gathers import AxisIndices
from treadle.tensor.functional.interpolation import Tap, blended, cubic_weights
from treadle.tensor.functional.windows import check_positive
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.operands import operand
from treadle.tensor.ranges import arange
from treadle.tensor.tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

_abs, _floor, _round = FUNCTIONS["abs"], FUNCTIONS["floor"], FUNCTIONS["round"]
_PADDING = ("zeros", "border", "reflection")


def affine_grid(theta: ArrayLike, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The positions for `grid_sample` that transform images of shape `size` by affine maps: for
    maps (N, 2, 3) and a size (N, C, H, W) a grid (N, H, W, 2), for (N, 3, 4) and (N, C, D, H, W) a
    grid (N, D, H, W, 3).

    With `align_corners` -1 and 1 are the centers of the first and last pixels, else their edges.

    >>> import treadle as td
    >>> theta = td.asarray([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]], device="cpu")
    >>> td.nn.functional.affine_grid(theta, (1, 1, 1, 2))[0, 0].tolist()
    [[-0.5, 0.5], [0.5, 0.5]]
    """
    x, dtype = widened_real("affine_grid", theta)
    sizes = tuple([integer("affine_grid", extent, "an extent") for extent in size])
    axes = len(sizes) - 2
    if axes not in (2, 3) or x.shape != (sizes[0], axes, axes + 1):
        raise ShapeError(
            f"affine_grid: maps of shape {x.shape} do not fit an image of shape {sizes}: they are "
            "(N, 2, 3) for (N, C, H, W), and (N, 3, 4) for (N, C, D, H, W)"
        )
    check_positive("affine_grid", "size", sizes[1:])
    maps = x.reshape(sizes[0], *(1,) * axes, axes, axes + 1)
    grid = maps[..., axes]
    for number, extent in enumerate(reversed(sizes[2:])):  # the last axis first
        steps = arange(extent, device=x.device).to(x.dtype)
        if align_corners:
            places = steps * (2 / (extent - 1)) - 1 if extent > 1 else steps
        else:
            places = (steps * 2 + (1 - extent)) / extent
        grid = grid + maps[..., number] * places.reshape(-1, *(1,) * (number + 1))
    return grid.to(dtype)


def grid_sample(
    input: ArrayLike,
    grid: ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images (N, C, H, W) sampled at the positions of a grid (N, Ho, Wo, 2), or images (N, C, D, H,
    W) at those of a grid (N, Do, Ho, Wo, 3): the result is (N, C, Ho, Wo) or (N, C, Do, Ho, Wo).

    A position is a number for each axis, the last axis first; -1 and 1 are the edges of an image,
    or with `align_corners` the centers of its first and last pixels. `mode` is "bilinear" (for
    three axes, too), "nearest" or "bicubic" (for two axes only). By `padding_mode` the pixels
    outside the image are "zeros", those at its "border", or its "reflection".

    >>> import treadle as td
    >>> image = td.asarray([[[[1.0, 3.0]]]], device="cpu")
    >>> grid = td.asarray([[[[-0.5, 0.0], [0.0, 0.0], [9.0, 0.0]]]], device="cpu")
    >>> td.nn.functional.grid_sample(image, grid).tolist()
    [[[[1.0, 2.0, 0.0]]]]
    """
    name = "grid_sample"
    x, at = operand(name, input), operand(name, grid)
    axes = x.ndim - 2
    if axes not in (2, 3) or at.ndim != x.ndim or (at.shape[0], at.shape[-1]) != (x.shape[0], axes):
        raise ShapeError(
            f"{name}: a grid of shape {at.shape} does not fit an input of shape {x.shape}: it is "
            "(N, Ho, Wo, 2) for (N, C, H, W), and (N, Do, Ho, Wo, 3) for (N, C, D, H, W)"
        )
    if mode not in _TAPS or (mode == "bicubic" and axes != 2):
        raise ValueError(
            f'{name}: mode is "bilinear", "nearest" or, for images of two axes, "bicubic", not '
            f"{mode!r}"
        )
    if padding_mode not in _PADDING:
        raise ValueError(f"{name}: padding_mode is one of {', '.join(_PADDING)}, "
                         f"not {padding_mode!r}")  # fmt: skip
    if x.dtype.kind != "float" or at.dtype.kind != "float":
        raise DtypeError(f"{name} takes floats, not {x.dtype} at places of {at.dtype}")
    if 0 in x.shape[1:]:
        raise ShapeError(f"{name}: an input of shape {x.shape} has no pixels")
    work = compute_dtypes(promote(x.dtype, at.dtype))[0]
    at = at.to(work)
    along = (0, *range(2, x.ndim))
    integers = index_dtype(x.size)
    taps = []
    for axis in range(2, x.ndim):
        extent = x.shape[axis]
        found = _unnormalized(at[..., x.ndim - 1 - axis], extent, bool(align_corners))
        edges = _Edges(extent, padding_mode, bool(align_corners))
        taps.append(
            [
                Tap(
                    AxisIndices(axis, places.to(integers), along, edges.inside(places)),
                    None if weight is None else expand_dims(weight, 1),
                )
                for places, weight in _TAPS[mode](found, edges)
            ]
        )
    shape = (*x.shape[:2], *at.shape[1:-1])
    return blended(x, shape, {0: 0, 1: 1}, taps, work).to(x.dtype)


def _unnormalized(at: Tensor, extent: int, aligned: bool) -> Tensor:
    """Positions from -1 to 1 in pixels."""
    if aligned:
        return (at + 1) * ((extent - 1) / 2)
    return ((at + 1) * extent - 1) / 2


class _Edges:
    """The pixels beyond the edges of an image along an axis."""

    def __init__(self, extent: int, padding: str, aligned: bool) -> None:
        self.extent = extent
        self.padding = padding
        self.first = 0.0 if aligned else -0.5  # the lower edge of reflections
        self.span = extent - 1 if aligned else extent

    def folded(self, at: Tensor) -> Tensor:
        """Positions outside the image mapped into it, unless zeros are there."""
        if self.padding == "zeros":
            return at
        if self.padding == "reflection":
            at = self._reflected(at)
        return clip(at, 0, self.extent - 1)

    def _reflected(self, at: Tensor) -> Tensor:
        if not self.span:
            return at * 0
        away = _abs(at - self.first)
        reflections = _floor(away / self.span)
        rest = away - reflections * self.span
        return where(reflections % 2 == 0, rest, self.span - rest) + self.first

    def inside(self, places: Tensor) -> Tensor:
        """Whether each index is a pixel."""
        return (places >= 0) & (places <= self.extent - 1)


# --- the pixels of a position (indices as floats), with weights ---------------------

Found = list[tuple[Tensor, Tensor | None]]


def _nearest(at: Tensor, edges: _Edges) -> Found:
    return [(_round(edges.folded(at)), None)]


def _linear(at: Tensor, edges: _Edges) -> Found:
    at = edges.folded(at)
    left = _floor(at)
    part = at - left
    return [(left, 1 - part), (left + 1, part)]


def _cubic(at: Tensor, edges: _Edges) -> Found:
    left = _floor(at)
    weights = cubic_weights(at - left)
    return [(edges.folded(left + shift), weight) for shift, weight in enumerate(weights, -1)]


_TAPS: dict[str, Callable[[Tensor, _Edges], Found]] = {
    "bilinear": _linear,
    "nearest": _nearest,
    "bicubic": _cubic,
}
