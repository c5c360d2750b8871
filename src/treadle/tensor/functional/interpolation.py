"""Interpolation: images of another size, with pixels computed from those around their position in
the input.

Along each axis a pixel has a few indices in the input (taps) with weights. They are computed from
its index by PyTorch's formulas, in the kernel that reads the pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import composite
from treadle.tensor.elementwise_functions import FUNCTIONS, clip
from treadle.tensor.functional.compute_dtype import compute_dtypes
from treadle.tensor.functional.gathers import AxisIndices, gather_axes, index_range
from treadle.tensor.functional.pooling import adaptive_avg_pool
from treadle.tensor.functional.resizing import Axis, averaged
from treadle.tensor.functional.windows import check_positive, numbers_of
from treadle.tensor.operands import operand
from treadle.tensor.ranges import eye
from treadle.tensor.tensor import Tensor

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_floor, _maximum, _minimum = (FUNCTIONS[name] for name in ("floor", "maximum", "minimum"))


_EXACT = ("nearest", "nearest-exact")  # modes that copy pixels
_LARGEST_MATRIX = 2048  # rows and columns


class Tap(NamedTuple):
    """Indices along an axis, and the weight of the elements there; None is 1."""

    places: AxisIndices
    weight: Tensor | None = None  # it broadcasts to the result


def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """An input of shape (N, C, …) with one to three spatial axes, resized to `size`, or to
    `scale_factor` times its size (rounded down).

    `mode` is "nearest" (as in OpenCV), "nearest-exact", "linear" (N, C, L), "bilinear" or "bicubic"
    (N, C, H, W), "trilinear" (N, C, D, H, W), or "area", which is an adaptive average.
    `align_corners` aligns the centers of the first and last pixels of both images, else their edges
    are aligned. scale_factor is used as given, though the size is rounded, unless
    `recompute_scale_factor` computes it from both sizes; but an axis that keeps its extent keeps
    its pixels, except for "bicubic". Integers become float32, except with "nearest". With
    `antialias`, for "bilinear", "bicubic" and "lanczos", pixels of a smaller image are means of all
    that they cover.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0, 4.0]]], device="cpu")
    >>> td.nn.functional.interpolate(x, 5, mode="linear", align_corners=True).tolist()
    [[[1.0, 1.5, 2.0, 3.0, 4.0]]]
    """
    x = operand("interpolate", input)
    count = x.ndim - 2
    _check_mode(x, mode, align_corners, antialias)
    sizes, factors = _sizes(x, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("interpolate: recompute_scale_factor is for scale_factor only")
        factors = (None,) * count
    check_positive("interpolate", "the new size", sizes)
    if 0 in x.shape[1:]:
        raise ShapeError(f"interpolate: an input of shape {x.shape} has no pixels")
    if mode == "area":
        return adaptive_avg_pool("interpolate", x, count, sizes)
    if mode not in _EXACT and compute_dtypes(x.dtype)[0].kind != "float":
        raise DtypeError(f"interpolate: mode {mode!r} takes real numbers, not {x.dtype}")
    axes = [
        Axis(extent, wanted, factor, bool(align_corners))
        for extent, wanted, factor in zip(x.shape[2:], sizes, factors, strict=True)
    ]
    # With a matrix for each axis the gradient is a product, without atomics.
    function = resized if max((0, *x.shape[2:], *sizes)) <= _LARGEST_MATRIX else _resized
    return function(x, mode, tuple(axes), antialias)


@composite
def resized(x: Tensor, mode: str, axes: tuple[Axis, ...], antialias: bool) -> Tensor:
    """The images of x, which are its last axes, resized."""
    return _resized(x, mode, axes, antialias)


def matrix_of(mode: str, axis: Axis, antialias: bool, x: Tensor, dtype: DType) -> Tensor:
    """The matrix of an axis: the weight of each input pixel (a row) in each pixel of the result (a
    column)."""
    pixels = eye(axis.extent, dtype=dtype, device=x.device).reshape(1, axis.extent, axis.extent)
    matrix = _resized(pixels, mode, (axis,), antialias)
    return matrix.reshape(axis.extent, axis.wanted)


def _resized(x: Tensor, mode: str, axes: tuple[Axis, ...], antialias: bool) -> Tensor:
    count = len(axes)
    exact = mode in _EXACT
    work, dtype = (float32, x.dtype) if exact else compute_dtypes(x.dtype)
    if antialias:
        for number, axis in reversed([*enumerate(axes, 2)]):
            if axis.wanted != axis.extent:
                x = averaged(x, number, axis, mode, work)
        return x.to(dtype)
    taps = [
        [
            Tap(
                AxisIndices(2 + number, places, (2 + number,)),
                None if weight is None else weight.reshape((-1,) + (1,) * (count - 1 - number)),
            )
            for places, weight in _TAPS[mode](x, axis, work)
        ]
        for number, axis in enumerate(axes)
    ]
    shape = (*x.shape[:2], *[axis.wanted for axis in axes])
    return blended(x, shape, {0: 0, 1: 1}, taps, x.dtype if exact else work).to(dtype)


def _check_mode(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in (*_TAPS, "area", "lanczos"):
        raise ValueError(
            f"interpolate: mode is one of {', '.join(_TAPS)}, area and lanczos, not {mode!r}"
        )
    counts = _MODE_AXES.get(mode, (1, 2, 3))
    if x.ndim - 2 not in counts:
        raise ShapeError(
            f"interpolate: mode {mode!r} takes an input of shape (N, C, …) with "
            f"{' or '.join(map(str, counts))} axes behind, not {x.shape}"
        )
    if (align_corners is not None and mode not in _MODE_AXES) or (
        align_corners and mode == "lanczos"
    ):
        aligned = ", ".join(name for name in _MODE_AXES if name != "lanczos")
        raise ValueError(f"interpolate: align_corners is for {aligned}, not for {mode!r}")
    if antialias and mode not in ("bilinear", "bicubic", "lanczos"):
        raise ValueError(
            f"interpolate: antialias is for bilinear, bicubic and lanczos, not for {mode!r}"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("interpolate: mode 'lanczos' is for antialias=True alone")


def upsample(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` with mode="nearest"."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` with mode="bilinear" and align_corners=True."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def blended(
    x: Tensor,
    shape: tuple[int, ...],
    kept: dict[int, int],
    taps: Sequence[Sequence[Tap]],
    dtype: DType,
) -> Tensor:
    """The weighted sum of the elements at each combination of taps, one of each axis; `shape` and
    `kept` as for `gathers.gather_axes`."""

    def part(axis: int, places: list[AxisIndices]) -> Tensor:
        if axis == len(taps):
            return gather_axes(x, shape, kept, places).to(dtype)
        total: Tensor | None = None
        for tap in taps[axis]:
            value = part(axis + 1, [*places, tap.places])
            if tap.weight is not None:
                value = value * tap.weight
            total = value if total is None else total + value
        assert total is not None
        return total

    return part(0, [])


def _sizes(
    x: Tensor, size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The new size, and the scale factor of each axis, if it is given."""
    count = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    if size is not None:
        return numbers_of("interpolate", "size", size, count), (None,) * count
    given = scale_factor if isinstance(scale_factor, Sequence) else (scale_factor,) * count
    if len(given) != count:
        raise ShapeError(
            f"interpolate: scale_factor={tuple(given)} has {len(given)} numbers, and an input of "
            f"shape {x.shape} takes {count}"
        )
    factors = tuple([float(factor) for factor in given])
    sizes = [int(extent * factor) for extent, factor in zip(x.shape[2:], factors, strict=True)]
    return tuple(sizes), factors


# --- indices and weights along an axis
# -------------------------------------------------------------

Found = list[tuple[Tensor, Tensor | None]]


def _nearest(x: Tensor, axis: Axis, dtype: DType, shift: float = 0.0) -> Found:
    """The input pixel into which a pixel's left edge falls (with a shift of a half, its center)."""
    index = index_range(x, axis.wanted)
    if axis.wanted == axis.extent:
        return [(index, None)]
    at = _floor((index.to(dtype) + shift) * axis.step).to(index.dtype)
    return [(clip(at, 0, axis.extent - 1), None)]


def _nearest_exact(x: Tensor, axis: Axis, dtype: DType) -> Found:
    return _nearest(x, axis, dtype, 0.5)


def _linear(x: Tensor, axis: Axis, dtype: DType) -> Found:
    """The two pixels around a position, with the weights of linear interpolation."""
    index = index_range(x, axis.wanted)
    if axis.wanted == axis.extent:
        return [(index, None)]
    at = _maximum(_source(index, axis, dtype), 0)
    floor = _minimum(_floor(at), axis.extent - 1)  # rounding may exceed it
    left = floor.to(index.dtype)
    part = at - floor
    return [(left, 1 - part), (_minimum(left + 1, axis.extent - 1), part)]


def _cubic(x: Tensor, axis: Axis, dtype: DType) -> Found:
    """The four pixels around a position, with the weights of Keys' cubic convolution."""
    index = index_range(x, axis.wanted)
    at = _source(index, axis, dtype)
    floor = _floor(at)
    left = floor.to(index.dtype)
    places = [clip(left + shift, 0, axis.extent - 1) for shift in (-1, 0, 1, 2)]
    return list(zip(places, cubic_weights(at - floor), strict=True))


def cubic_weights(part: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weights of four neighbouring pixels for a position between the second and the third
    (Keys, 1981, with the parameter -3/4)."""
    rest = 1 - part

    def near(d: Tensor) -> Tensor:  # at a distance up to 1
        return (d * 1.25 - 2.25) * d * d + 1

    def far(d: Tensor) -> Tensor:  # at a distance d + 1
        d = d + 1
        return ((d * -0.75 + 3.75) * d - 6) * d + 3

    return far(part), near(part), near(rest), far(rest)


def _source(index: Tensor, axis: Axis, dtype: DType) -> Tensor:
    """The position of a pixel's center in the input, in pixels."""
    if axis.aligned:
        return index.to(dtype) * axis.step
    return (index.to(dtype) + 0.5) * axis.step - 0.5


_TAPS: dict[str, Callable[[Tensor, Axis, DType], Found]] = {
    "nearest": _nearest,
    "nearest-exact": _nearest_exact,
    "linear": _linear,
    "bilinear": _linear,
    "bicubic": _cubic,
    "trilinear": _linear,
}
# The number of spatial axes of modes that interpolate between pixels.
_MODE_AXES = {
    "linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,), "lanczos": (2,),
}  # fmt: skip
