"""Products by NumPy's BLAS, on the memory of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.drivers.base import Buffer
from treadle.kernels.factors import Product
from treadle.runtime.arrays import DeviceArray

MULTIPLIED = frozenset({dtypes.f32, dtypes.f64, dtypes.complex64, dtypes.complex128})
"""The dtypes that BLAS has."""


def multiply(x: DeviceArray, y: DeviceArray, out: DeviceArray, product: Product) -> None:
    """Fill `out`, an array of (stack, rows, columns). The host does it in the stream's order, at
    each replay of a recording too."""
    batch, rows, columns, inner, first, second = product
    left_steps = (*first.batch, first.line, first.inner)
    right_steps = (*second.batch, second.inner, second.line)
    left = _seen(x, (*batch, rows, inner), left_steps, first.offset)
    right = _seen(y, (*batch, inner, columns), right_steps, second.offset)
    made = _seen(out, (*batch, rows, columns))
    copied = not _is_taken(left), not _is_taken(right)

    def work() -> None:
        """BLAS takes matrices whose rows, or whose columns, lie side by side; others are copied."""
        with np.errstate(all="ignore"):
            one = left.copy() if copied[0] else left
            other = right.copy() if copied[1] else right
            np.matmul(one, other, out=made)

    stream = x.device.default_stream.handle
    stream.call_host(work, (x.buffer, y.buffer, out.buffer))


class _Memory:
    """A buffer's bytes for NumPy, whose arrays keep this as their base."""

    __slots__ = ("__array_interface__", "buffer")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        place = (buffer.address(), False)
        self.__array_interface__ = {
            "version": 3, "shape": (buffer.size,), "typestr": "|u1", "data": place,
        }  # fmt: skip


def _seen(
    array: DeviceArray,
    shape: tuple[int, ...],
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
) -> np.ndarray[Any, Any]:
    """Elements of an array's buffer as NumPy's, without a copy and without lending it: strides and
    offset count elements."""
    assert isinstance(array.dtype, DType)
    item = array.dtype.itemsize
    steps = None if strides is None else tuple([stride * item for stride in strides])
    memory = np.asarray(_Memory(array.buffer))
    return np.ndarray(shape, array.dtype.numpy, memory, (array.offset + offset) * item, steps)


def _is_taken(matrices: np.ndarray[Any, Any]) -> bool:
    """Whether BLAS takes the matrices as they are."""
    item = matrices.itemsize
    for near, far in ((-1, -2), (-2, -1)):
        extent, step, pitch = matrices.shape[near], matrices.strides[near], matrices.strides[far]
        if (step == item or extent == 1) and (pitch >= extent * item or matrices.shape[far] == 1):
            return True
    return False
