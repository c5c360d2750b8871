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
    def pool_greatest(
        x, out, places, rows: td.i32, depth: td.i32, height: td.i32, width: td.i32,
        deep: td.i32, high: td.i32, wide: td.i32, kernel_z: td.i32, kernel_y: td.i32,
        kernel_x: td.i32, stride_z: td.i32, stride_y: td.i32, stride_x: td.i32, pad_z: td.i32,
        pad_y: td.i32, pad_x: td.i32, step_z: td.i32, step_y: td.i32, step_x: td.i32,
    ):  # fmt: skip
        row, column = td.grid(2)
        if row < rows and column < wide:
            image = row // (deep * high)
            within = row - image * (deep * high)
            oz = within // high
            oy = within - oz * high
            base = image * (depth * height * width)
            start_z = first(oz, depth, deep, stride_z, pad_z)
            start_y = first(oy, height, high, stride_y, pad_y)
            start_x = first(column, width, wide, stride_x, pad_x)
            count_x = count(column, width, wide, kernel_x)
            best = form(least)
            found = -1
            for i in range(count(oz, depth, deep, kernel_z)):
                z = start_z + i * step_z
                for j in range(count(oy, height, high, kernel_y)):
                    y = start_y + j * step_y
                    line = (z * height + y) * width
                    if not fixed or (z >= 0 and z < depth and y >= 0 and y < height):
                        for k in td.static_range(columns):
                            c = column * stride - pad_x + k * step_x
                            if c >= 0 and c < width:
                                value = form(x[base + line + c])
                                if after(value, best) or found < 0:
                                    best = value
                                    found = line + c
                        if columns == 0:
                            for k in range(count_x):
                                at = start_x + k * step_x
                                if not fixed or (at >= 0 and at < width):
                                    other = form(x[base + line + at])
                                    if after(other, best) or found < 0:
                                        best = other
                                        found = line + at
            out[row * wide + column] = stored(best)
            if placed:
                places[row * wide + column] = place_as(found)

    return pool_greatest


@functools.cache
def mean(what: Pooling) -> Kernel:
    """A kernel that makes each window's mean; its sum divided by `divisor`, if that is not 0."""
    form, stored = wide(what.dtype), what.dtype
    fixed, columns, stride = not what.adaptive, what.columns, what.stride
    include_padding = what.include_padding
    first, count = (_shared_first, _shared_count) if what.adaptive else (_first, _count)

    @td.kernel(checked=False)
    def pool_mean(
        x, out, divisor: td.i32, rows: td.i32, depth: td.i32, height: td.i32, width: td.i32,
        deep: td.i32, high: td.i32, wide: td.i32, kernel_z: td.i32, kernel_y: td.i32,
        kernel_x: td.i32, stride_z: td.i32, stride_y: td.i32, stride_x: td.i32, pad_z: td.i32,
        pad_y: td.i32, pad_x: td.i32,
    ):  # fmt: skip
        row, column = td.grid(2)
        if row < rows and column < wide:
            image = row // (deep * high)
            within = row - image * (deep * high)
            oz = within // high
            oy = within - oz * high
            base = image * (depth * height * width)
            start_z = first(oz, depth, deep, stride_z, pad_z)
            start_y = first(oy, height, high, stride_y, pad_y)
            start_x = first(column, width, wide, stride_x, pad_x)
            count_z = count(oz, depth, deep, kernel_z)
            count_y = count(oy, height, high, kernel_y)
            count_x = count(column, width, wide, kernel_x)
            total = form(0)
            for i in range(count_z):
                z = start_z + i
                for j in range(count_y):
                    y = start_y + j
                    if not fixed or (z >= 0 and z < depth and y >= 0 and y < height):
                        line = base + (z * height + y) * width
                        for k in td.static_range(columns):
                            c = column * stride - pad_x + k
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
                    number = td.minimum(count_z, depth + pad_z - start_z)
                    number *= td.minimum(count_y, height + pad_y - start_y)
                    number *= td.minimum(count_x, width + pad_x - start_x)
                else:
                    number = inside(start_z, count_z, depth) * inside(start_y, count_y, height)
                    number *= inside(start_x, count_x, width)
                number = td.maximum(number, 1)
            out[row * wide + column] = stored(total / form(number))

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
def _first(o: td.i32, extent: td.i32, wanted: td.i32, stride: td.i32, pad: td.i32):
    return o * stride - pad


@td.func
def _count(o: td.i32, extent: td.i32, wanted: td.i32, kernel: td.i32):
    return kernel


@td.func
def _shared_first(o: td.i32, extent: td.i32, wanted: td.i32, stride: td.i32, pad: td.i32):
    """floor(o * extent / wanted), where the product may not fit."""
    whole = extent // wanted
    return o * whole + td.i32(td.u32(o) * td.u32(extent - whole * wanted) // td.u32(wanted))


@td.func
def _shared_count(o: td.i32, extent: td.i32, wanted: td.i32, kernel: td.i32):
    """ceil((o + 1) * extent / wanted), less where the window begins."""
    whole = extent // wanted
    remaining = td.u32(extent - whole * wanted)
    end = (td.u32(o + 1) * remaining + td.u32(wanted - 1)) // td.u32(wanted)
    return whole + td.i32(end) - td.i32(td.u32(o) * remaining // td.u32(wanted))


def _least(form: DType) -> int:
    return -(1 << form.bits - 1) if form.kind == "int" else 0
