"""The greatest element or the mean of windows of images, of one to three axes.

A thread makes one element of the result; neighbouring threads have neighbouring windows. Images of
fewer axes have extents of 1 in front. Windows have a place and a size, or (adaptive) share an image
evenly: window o of n begins at floor(o * extent / n) and ends at ceil((o + 1) * extent / n).

Loops over windows of one size visit all of their elements and skip those in the padding one by one,
so that all threads have the same trip count and a CPU can run them as lanes. (Values of a single
iteration have names of their own: a variable that several loops share costs a vector of its own.)
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Kernel


@td.struct
class Along:
    """One axis of images: its elements, the windows along it, and of a window its elements, how far
    apart windows are, how far the first one begins before the image, and how far apart a window's
    elements are."""

    size: td.i32
    windows: td.i32
    kernel: td.i32
    stride: td.i32
    padding: td.i32
    dilation: td.i32


@td.struct
class Axes:
    """The three axes; of images with fewer axes the first ones have one place."""

    z: Along
    y: Along
    x: Along


class Pooling(NamedTuple):
    """What a kernel reads and writes. `place`: the dtype of places, None if they are not wanted."""

    dtype: DType
    adaptive: bool
    place: DType | None = None
    columns: int = 0  # of a window, if they are few: the loop over them is unrolled
    stride: int = 0  # of columns, then
    include_padding: bool = True  # whether the padding counts in a mean


@functools.cache
def greatest(what: Pooling) -> Kernel:
    """A kernel that finds each window's greatest element and its place in the image; NaN is the
    greatest, of several the last."""
    form = wide(what.dtype)
    stored, place_as = what.dtype, what.place or td.i32
    placed, floating = what.place is not None, form.kind == "float"
    after = _after_or_nan if floating else _after
    fixed, columns, stride = not what.adaptive, what.columns, what.stride
    least = -td.inf if floating else _least(form)
    first, count = (_shared_first, _shared_count) if what.adaptive else (_first, _count)

    @td.kernel(checked=False)
    def pool_greatest(x, out, places, rows: td.i32, axes: Axes):
        row, column = td.grid(2)
        depth, height, width = axes.z.size, axes.y.size, axes.x.size
        if row < rows and column < axes.x.windows:
            image = row // (axes.z.windows * axes.y.windows)
            within = row - image * (axes.z.windows * axes.y.windows)
            oz = within // axes.y.windows
            oy = within - oz * axes.y.windows
            base = image * (depth * height * width)
            start_z = first(oz, axes.z)
            start_y = first(oy, axes.y)
            start_x = first(column, axes.x)
            count_x = count(column, axes.x)
            best = form(least)
            found = -1
            for i in range(count(oz, axes.z)):
                z = start_z + i * axes.z.dilation
                for j in range(count(oy, axes.y)):
                    y = start_y + j * axes.y.dilation
                    line = (z * height + y) * width
                    if not fixed or (z >= 0 and z < depth and y >= 0 and y < height):
                        for k in td.static_range(columns):
                            c = column * stride - axes.x.padding + k * axes.x.dilation
                            if c >= 0 and c < width:
                                value = form(x[base + line + c])
                                if after(value, best) or found < 0:
                                    best = value
                                    found = line + c
                        if columns == 0:
                            for k in range(count_x):
                                at = start_x + k * axes.x.dilation
                                if not fixed or (at >= 0 and at < width):
                                    other = form(x[base + line + at])
                                    if after(other, best) or found < 0:
                                        best = other
                                        found = line + at
            out[row * axes.x.windows + column] = stored(best)
            if placed:
                places[row * axes.x.windows + column] = place_as(found)

    return pool_greatest


@functools.cache
def mean(what: Pooling) -> Kernel:
    """A kernel that makes each window's mean; its sum divided by `divisor`, if that is not 0."""
    form, stored = wide(what.dtype), what.dtype
    fixed, columns, stride = not what.adaptive, what.columns, what.stride
    include_padding = what.include_padding
    first, count = (_shared_first, _shared_count) if what.adaptive else (_first, _count)

    @td.kernel(checked=False)
    def pool_mean(x, out, divisor: td.i32, rows: td.i32, axes: Axes):
        row, column = td.grid(2)
        depth, height, width = axes.z.size, axes.y.size, axes.x.size
        if row < rows and column < axes.x.windows:
            image = row // (axes.z.windows * axes.y.windows)
            within = row - image * (axes.z.windows * axes.y.windows)
            oz = within // axes.y.windows
            oy = within - oz * axes.y.windows
            base = image * (depth * height * width)
            start_z = first(oz, axes.z)
            start_y = first(oy, axes.y)
            start_x = first(column, axes.x)
            count_z = count(oz, axes.z)
            count_y = count(oy, axes.y)
            count_x = count(column, axes.x)
            total = form(0)
            for i in range(count_z):
                z = start_z + i
                for j in range(count_y):
                    y = start_y + j
                    if not fixed or (z >= 0 and z < depth and y >= 0 and y < height):
                        line = base + (z * height + y) * width
                        for k in td.static_range(columns):
                            c = column * stride - axes.x.padding + k
                            if c >= 0 and c < width:
                                total += form(x[line + c])
                        if columns == 0:
                            for k in range(count_x):
                                at = start_x + k
                                if not fixed or (at >= 0 and at < width):
                                    total += form(x[line + at])
            number = divisor
            if divisor == 0:
                if include_padding and fixed:  # of the last window a part may be beyond it
                    number = td.minimum(count_z, depth + axes.z.padding - start_z)
                    number *= td.minimum(count_y, height + axes.y.padding - start_y)
                    number *= td.minimum(count_x, width + axes.x.padding - start_x)
                else:
                    number = inside(start_z, count_z, depth) * inside(start_y, count_y, height)
                    number *= inside(start_x, count_x, width)
                number = td.maximum(number, 1)
            out[row * axes.x.windows + column] = stored(total / form(number))

    return pool_mean


# --- where windows begin along an axis, and how long they are -------------------------------------


@td.func
def _after(value, best):
    return value > best


@td.func
def _after_or_nan(value, best):
    return value > best or td.isnan(value)


@td.func
def inside(start: td.i32, count: td.i32, extent: td.i32):
    """How many elements of a window are in the image."""
    return td.maximum(td.minimum(start + count, extent) - td.maximum(start, 0), 0)


@td.func
def _first(o: td.i32, along: Along):
    return o * along.stride - along.padding


@td.func
def _count(o: td.i32, along: Along):
    return along.kernel


@td.func
def _shared_first(o: td.i32, along: Along):
    """floor(o * size / windows), where the product may not fit."""
    whole = along.size // along.windows
    remaining = td.u32(along.size - whole * along.windows)
    return o * whole + td.i32(td.u32(o) * remaining // td.u32(along.windows))


@td.func
def _shared_count(o: td.i32, along: Along):
    """ceil((o + 1) * size / windows), less where the window begins."""
    whole = along.size // along.windows
    remaining = td.u32(along.size - whole * along.windows)
    end = (td.u32(o + 1) * remaining + td.u32(along.windows - 1)) // td.u32(along.windows)
    return whole + td.i32(end) - td.i32(td.u32(o) * remaining // td.u32(along.windows))


def _least(form: DType) -> int:
    return -(1 << form.bits - 1) if form.kind == "int" else 0
