"""A stack of matrices copied with the axes of each exchanged, as fast as memory moves."""

from __future__ import annotations

from typing import NamedTuple

from treadle.core.dtypes import DType, u32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.transposition import (
    BYTES_OF_BLOCK,
    LINES_OF_BLOCK,
    THREADS,
    byte_turner,
    word_turner,
)
from treadle.kernels.launching import new
from treadle.runtime.arrays import DeviceArray

_WORD = 4  # bytes
_LEAST = 32  # extent of a matrix; smaller ones leave most of a block empty
_MOST_BLOCKS = 65535  # along an axis of the grid


class Turning(NamedTuple):
    """Which elements of an array are copied: `matrices` of `lines` whose elements along the inner
    axis are `far` from each other, and which are neighbours in memory."""

    matrices: int
    lines: int
    inner: int
    stack: int
    far: int
    start: int


def turning_of(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], start: int
) -> Turning | None:
    """The copy of a view of two or three axes, the inner one last, whose lines are neighbours; None
    if it is not one, or one that this kernel does not copy: of elements of 8 or 32 bits, and where
    these share words all lines and rows begin at one."""
    if dtype.itemsize not in (1, _WORD) or len(shape) not in (2, 3) or strides[-2] != 1:
        return None
    numbers = (*shape, *strides, start)
    if any(type(number) is not int for number in numbers):
        return None  # a trace leaves it open
    matrices, stack = (shape[0], strides[0]) if len(shape) == 3 else (1, 0)
    lines, inner, far = shape[-2], shape[-1], strides[-1]
    if min(lines, inner) < _LEAST or min(numbers) < 0:
        return None
    if matrices > _MOST_BLOCKS or inner > _MOST_BLOCKS * LINES_OF_BLOCK:
        return None
    if dtype.itemsize == 1 and any(each % _WORD for each in (lines, inner, far, stack, start)):
        return None
    return Turning(matrices, lines, inner, stack, far, start)


def transposed(x: DeviceArray, what: Turning) -> DeviceArray:
    """The copy of a contiguous array's elements, of (matrices, lines, inner)."""
    dtype = x.dtype
    assert isinstance(dtype, DType)
    out = new(x, dtype, what.matrices, what.lines, what.inner)
    start = what.start + x.offset
    is_big = max(x.offset + x.size, out.size) >= MOST_NARROW
    per = _WORD // dtype.itemsize
    kernel = (byte_turner if per > 1 else word_turner)(is_big)
    side = BYTES_OF_BLOCK if per > 1 else LINES_OF_BLOCK
    grid = (-(-what.lines // side), -(-what.inner // side), what.matrices)
    kernel[grid, THREADS](
        _words(x, per), _words(out, per), what.lines // per, what.inner // per, what.far // per,
        what.stack // per, start // per,
    )  # fmt: skip
    return out


def _words(array: DeviceArray, per: int) -> DeviceArray:
    """The memory of an array from its beginning, as words."""
    return DeviceArray(
        array.device, array.storage, u32, ((array.offset + array.size) // per,), (1,), 0
    )
