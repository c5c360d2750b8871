"""Maxima and means of windows of images, and the inverse of max pooling."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from treadle.core.dtypes import DType
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.kernels import scatter
from treadle.kernels.device_code import pooling
from treadle.kernels.device_code.pooling import Axes, Pooling
from treadle.kernels.launching import flat, for_any_sizes, new, packed, zeros
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed

Three = tuple[int, int, int]
_MOST_COLUMNS = 8  # of a window that has a kernel for their number
_MOST_SHARED = 65535  # windows along an axis that share it evenly: their numbers' products fit


class Windows(NamedTuple):
    """Windows over images, which are the last `axes` axes of an array and have these extents: how
    many there are along each axis and, unless they share it evenly (adaptive), their sizes and
    distances, how far they begin before an image, and the distance of their elements. Images of
    fewer axes than three have 1 in front."""

    axes: int
    extents: Three
    counts: Three
    kernel: Three = (0, 0, 0)
    stride: Three = (0, 0, 0)
    padding: Three = (0, 0, 0)
    dilation: Three = (1, 1, 1)

    @property
    def adaptive(self) -> bool:
        """Whether the windows share an image evenly."""
        return self.kernel == (0, 0, 0)

    def shape(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for an array of a shape."""
        return (*given[: len(given) - self.axes], *self.counts[3 - self.axes :])


@functools.lru_cache(1024)
def passed(windows: Windows) -> Packed:
    """The three axes of windows as a kernel takes them. The fields have the order of `Along`."""
    return packed(Axes, *zip(*windows[1:], strict=True))


@for_any_sizes
def max_pool(x: DeviceArray, windows: Windows) -> DeviceArray:
    """The greatest element of each window, NaN if there is one.

    >>> import treadle as td
    >>> x = td.asarray([[3.0, 1.0, 2.0, 5.0]], device="cpu")._array
    >>> pairs = Windows(1, (1, 1, 4), (1, 1, 2), (1, 1, 2), (1, 1, 2))
    >>> max_pool(x, pairs).to_host().tolist()
    [[3.0, 5.0]]
    """
    out = _result(x, windows)
    if out.size:
        kernel = pooling.greatest(Pooling(_dtype(x), windows.adaptive, None, *_columns(windows)))
        rows, columns = _threads(windows, out)
        kernel.launch((rows, columns), flat(x), flat(out), 0, rows, passed(windows))
    return out


@for_any_sizes
def max_pool_with_places(
    x: DeviceArray, windows: Windows, place: DType
) -> tuple[DeviceArray, DeviceArray]:
    """The greatest element of each window and where it is in its image, counted in row-major
    order; of equals the first one, of several NaN the last."""
    out = _result(x, windows)
    places = new(x, place, *out.shape)
    if out.size:
        kernel = pooling.greatest(Pooling(_dtype(x), windows.adaptive, place, *_columns(windows)))
        rows, columns = _threads(windows, out)
        kernel.launch((rows, columns), flat(x), flat(out), flat(places), rows, passed(windows))
    return out, places


@for_any_sizes
def mean_pool(
    x: DeviceArray, windows: Windows, include_padding: bool = True, divisor: int = 0
) -> DeviceArray:
    """The mean of each window of floats: the sum of what is in the image, divided by `divisor` or,
    if that is 0, by the number of elements, with those in the padding if they are included."""
    out = _result(x, windows)
    if out.size:
        what = Pooling(_dtype(x), windows.adaptive, None, *_columns(windows), include_padding)
        rows, columns = _threads(windows, out)
        kernel = pooling.mean(what)
        kernel.launch((rows, columns), flat(x), flat(out), divisor, rows, passed(windows))
    return out


@for_any_sizes
def spread(values: DeviceArray, index: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """Zeros of a shape, but the values at their flat indices, the last of those for one place."""
    out = zeros(values, _dtype(values), *shape)
    scatter.put(out, index, values)
    return out


def _dtype(x: DeviceArray) -> DType:
    assert isinstance(x.dtype, DType)
    return x.dtype


def _result(x: DeviceArray, windows: Windows) -> DeviceArray:
    shape = windows.shape(x.shape)
    if max(x.size, math.prod(shape)) >= MOST_NARROW:
        raise ShapeError(
            f"pooling from shape {x.shape} to {shape}: {MOST_NARROW} elements or more are too many "
            "at once; pool parts of the batch"
        )
    if windows.adaptive and max(windows.counts) > _MOST_SHARED:
        raise ShapeError(
            f"adaptive pooling makes at most {_MOST_SHARED} elements along an axis, not "
            f"{max(windows.counts)}"
        )
    return new(x, _dtype(x), *shape)


def _columns(windows: Windows) -> tuple[int, int]:
    """The columns of a window and their stride, if both are so small that they are unrolled."""
    columns, stride = windows.kernel[2], windows.stride[2]
    return (columns, stride) if max(columns, stride) <= _MOST_COLUMNS else (0, 0)


def _threads(windows: Windows, out: DeviceArray) -> tuple[int, int]:
    return out.size // windows.counts[2], windows.counts[2]
