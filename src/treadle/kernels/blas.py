"""Products of matrices by NumPy's BLAS, in place in the memory of the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.sizes import has_sizes, valued
from treadle.drivers.base import Buffer
from treadle.kernels.factors import Factor, Product
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.varying import varying

MULTIPLIED = frozenset({dtypes.f32, dtypes.f64, dtypes.complex64, dtypes.complex128})
"""The dtypes that BLAS has."""

Matrices = np.ndarray[Any, Any]


class _Seen(NamedTuple):
    """A view of a part of a buffer for NumPy: strides and offset are bytes. `copied`: BLAS cannot
    read the matrices with these strides."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    copied: bool

    def of(self, array: DeviceArray) -> Matrices:
        """The part of an array's buffer."""
        return self.at(array.buffer, array.offset)

    def at(self, buffer: Buffer, first: int) -> Matrices:
        """The part of the buffer of an array whose elements begin there."""
        offset = first * self.dtype.itemsize + self.offset
        return np.ndarray(self.shape, self.dtype, buffer.host_bytes(), offset, self.strides)


class _Work:
    """A product to be computed, now or at each replay, and what profiles show of it."""

    __slots__ = ("bytes", "copied", "left", "operations", "out", "right")
    name = "product"

    def __init__(
        self, left: Matrices, right: Matrices, out: Matrices, bytes: int, operations: int
    ) -> None:
        self.left = left
        self.right = right
        self.out = out
        self.bytes = bytes
        self.operations = operations
        self.copied = False, False

    def become(self, other: _Work) -> None:
        """Multiply other matrices from here on."""
        self.left, self.right, self.out, self.copied = (
            other.left, other.right, other.out, other.copied
        )  # fmt: skip

    def __call__(self) -> None:
        """Multiply."""
        left = self.left.copy() if self.copied[0] else self.left
        right = self.right.copy() if self.copied[1] else self.right
        with np.errstate(all="ignore"):
            np.matmul(left, right, out=self.out)


Fill = Callable[[DeviceArray, DeviceArray, DeviceArray], None]


def filling(dtype: DType, product: Product) -> Fill:
    """A function that fills an array of (stack, rows, columns) with a product. The host computes
    it in the stream's order, and again at each replay of a recording."""
    if varying.get() is not None and has_sizes(product):
        return partial(_fill_varying, dtype, product)
    return _filling(dtype, product)


def _fill_varying(
    dtype: DType, product: Product, x: DeviceArray, y: DeviceArray, out: DeviceArray
) -> None:
    """Fill an array with a product of sizes that may be others at a replay."""
    arrays = x, y, out
    numbers = (product[:6], x.offset, y.offset, out.offset)
    work = _work(dtype, valued(product), arrays, valued(numbers[1:]))
    if (noted := varying.get()) is not None:
        buffers = tuple([_InBuffer(array.buffer) for array in arrays])

        def change(numbers: tuple[Any, ...]) -> None:
            wanted, *offsets = numbers
            batch, rows, columns, inner, first, second = wanted
            now = Product(batch, rows, columns, inner, Factor(*first), Factor(*second))
            work.become(_work(dtype, now, buffers, offsets))

        noted.host(_plain(numbers), change)
    stream = out.device.default_stream.handle
    stream.call_host(work, (x.buffer, y.buffer, out.buffer))


class _InBuffer(NamedTuple):
    """A buffer, as what matrices lie in."""

    buffer: Any


def _plain(numbers: Any) -> Any:
    """Numbers in tuples that have no names."""
    return tuple([_plain(each) for each in numbers]) if isinstance(numbers, tuple) else numbers


def _work(dtype: DType, product: Product, arrays: Sequence[Any], offsets: Sequence[int]) -> _Work:
    seen, bytes = _views(dtype, product)
    left, right, out = [
        one.at(array.buffer, offset)
        for one, array, offset in zip(seen, arrays, offsets, strict=True)
    ]
    work = _Work(left, right, out, bytes, product.operations)
    work.copied = seen[0].copied, seen[1].copied
    return work


@lru_cache(1024)
def _filling(dtype: DType, product: Product) -> Fill:
    (of_left, of_right, of_result), bytes = _views(dtype, product)

    def fill(x: DeviceArray, y: DeviceArray, out: DeviceArray) -> None:
        work = _Work(of_left.of(x), of_right.of(y), of_result.of(out), bytes, product.operations)
        if of_left.copied or of_right.copied:
            work.copied = of_left.copied, of_right.copied
        stream = out.device.default_stream.handle
        stream.call_host(work, (x.buffer, y.buffer, out.buffer))

    return fill


def _views(dtype: DType, product: Product) -> tuple[tuple[_Seen, _Seen, _Seen], int]:
    """How NumPy sees the factors and the result of a product, and the bytes that are moved."""
    batch, rows, columns, inner, first, second, _ = product
    one = (*first.batch, first.line, first.inner)
    other = (*second.batch, second.inner, second.line)
    result = (*batch, rows, columns)
    of_left = _seen(dtype, (*batch, rows, inner), one, first.offset)
    of_right = _seen(dtype, (*batch, inner, columns), other, second.offset)
    of_result = _seen(dtype, result, packed_strides(result), 0)

    bytes = dtype.itemsize * math.prod(result[:-2]) * (inner * (rows + columns) + rows * columns)
    return (of_left, of_right, of_result), bytes


def _seen(dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> _Seen:
    item = dtype.itemsize
    steps = tuple([stride * item for stride in strides])
    return _Seen(dtype.numpy, shape, steps, offset * item, not _is_taken(shape, strides))


def _is_taken(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether BLAS can read matrices with these strides: rows or columns are contiguous and do not
    overlap."""
    for near, far in ((-1, -2), (-2, -1)):
        extent, others = shape[near], shape[far]
        if (strides[near] == 1 or extent == 1) and (strides[far] >= extent or others == 1):
            return True
    return False
