"""The gradients of pooling with respect to the images.

A thread computes one element of an image's gradient from the windows that contain the element. A
table has the range of these along each axis. So no atomics are needed, sums always have the same
order, and windows may overlap. Images of fewer than three axes have extents of 1 in front.
"""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.pooling import Axes
from treadle.lang.decorators import Kernel


@functools.cache
def giver(dtype: DType, by_places: bool) -> Kernel:
    """A kernel that adds up what is given back to each element: by windows whose `places` name it,
    or by all windows that have it.

    `table` has for each index along the three axes the first of these windows and the one behind
    the last."""
    form = wide(dtype)

    @td.kernel(checked=False)
    def pool_back(given, places, table: td.Array[td.i32], out, rows: td.i32, axes: Axes):
        row, column = td.grid(2)
        depth, height, width = axes.z.size, axes.y.size, axes.x.size
        deep, high, wide = axes.z.windows, axes.y.windows, axes.x.windows
        if row < rows and column < width:
            image = row // (depth * height)
            within = row - image * (depth * height)
            z = within // height
            y = within - z * height
            place = within * width + column
            base = image * (deep * high * wide)
            in_z, in_y, in_x = 2 * z, 2 * (depth + y), 2 * (depth + height + column)
            first, end = table[in_x], table[in_x + 1]
            total = form(0)
            for i in range(table[in_z], table[in_z + 1]):
                for j in range(table[in_y], table[in_y + 1]):
                    line = base + (i * high + j) * wide
                    for k in range(first, end):
                        value = form(given[line + k])
                        if by_places:
                            value = value if td.i32(places[line + k]) == place else form(0)
                        total += value
            out[row * width + column] = dtype(total)

    return pool_back


@functools.cache
def divider(dtype: DType) -> Kernel:
    """A kernel that divides what each window is given by its number of elements (`divisor`, if not
    0). `table` has, behind what `giver` reads, for each window along each axis how many of its
    elements count."""
    form = wide(dtype)

    @td.kernel(checked=False)
    def pool_divide(given, table: td.Array[td.i32], out, rows: td.i32, axes: Axes, divisor: td.i32):
        row, column = td.grid(2)
        deep, high, wide = axes.z.windows, axes.y.windows, axes.x.windows
        if row < rows and column < wide:
            number = divisor
            if divisor == 0:
                start = 2 * (axes.z.size + axes.y.size + axes.x.size)
                within = row % (deep * high)
                number = table[start + within // high]
                number *= table[start + deep + within % high]
                number *= table[start + deep + high + column]
            out[row * wide + column] = form(given[row * wide + column]) / form(number)

    return pool_divide


@td.kernel(checked=False)
def scatter_images(given, places, out, images: td.i32, size: td.i32, count: td.i32, each: td.i32):
    """For the CPU: a thread computes some images, of so many elements, from so many windows."""
    first = td.grid(1) * each
    for image in range(first, td.minimum(first + each, images)):
        for i in range(size):
            out[image * size + i] = out.dtype(0)
        for i in range(count):
            place = td.i32(places[image * count + i])
            if place >= 0:
                out[image * size + place] += given[image * count + i]
