"""Products by the library of a card's vendor, where it is installed."""

from __future__ import annotations

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.drivers.dense import DenseProduct, Operand, PreparedProduct
from treadle.kernels.factors import TF32, Factor, Product
from treadle.kernels.launching import new
from treadle.runtime import settings
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_ALIGNMENT = 16  # bytes


def prepared(
    device: Device, dtype: DType, product: Product, result: DType | None = None
) -> PreparedProduct | None:
    """How the library computes a product; None where there is none, or it does not do this one.
    `result` is the dtype of the products if it is another than that of the factors."""
    may = device.traits.vendor_products and not settings.no_cublas
    dense = _dense(dtype, product) if may else None
    if dense is not None and result is not None and result is not dtype:
        dense = dense._replace(result=result.short)
    if dense is not None and product.factors == TF32:
        dense = dense._replace(rounded=True)
    return None if dense is None else device.handle.dense_product(dense)


def multiply(
    x: DeviceArray, y: DeviceArray, out: DeviceArray, product: Product, how: PreparedProduct
) -> None:
    """Fill `out`, an array of (stack, rows, columns)."""
    # The arrays are held until the library has them, so that no two share memory.
    left, right = _aligned(x, product.first.offset), _aligned(y, product.second.offset)
    scratch = new(x, dtypes.u8, how.workspace) if how.workspace else None
    places = [(array.buffer, array.offset * array.dtype.itemsize) for array in (left, right, out)]
    workspace = None if scratch is None else scratch.buffer
    stream = out.device.default_stream.handle
    stream.multiply(how, places[0], places[1], places[2], workspace)


def _aligned(array: DeviceArray, offset: int) -> DeviceArray:
    """The elements from one on. Libraries read 16 bytes at once, so what begins elsewhere is
    copied."""
    item, first = array.dtype.itemsize, array.offset + offset
    count = array.size - offset
    if first * item % _ALIGNMENT == 0:
        return array.view((count,), (1,), first)
    assert isinstance(array.dtype, DType)
    copy = new(array, array.dtype, count)
    stream = array.device.default_stream.handle
    stream.copy(array.buffer, first * item, copy.buffer, 0, count * item)
    return copy


def _dense(dtype: DType, product: Product) -> DenseProduct | None:
    """The product as such libraries see it: one axis of a stack, and neighbours in each matrix."""
    batch, rows, columns, inner, first, second, _ = product
    if len(batch) > 1:
        return None
    count = batch[0] if batch else 1
    left = _operand(first, (rows, first.line), (inner, first.inner))
    right = _operand(second, (inner, second.inner), (columns, second.line))
    if left is None or right is None:
        return None
    return DenseProduct(dtype.short, count, rows, columns, inner, left, right)


def _operand(factor: Factor, down: tuple[int, int], right: tuple[int, int]) -> Operand | None:
    """A factor whose extents and strides along columns and along rows are these."""
    step = factor.batch[0] if factor.batch else 0
    if step < 0:
        return None
    for transposed, (extent, near), (others, pitch) in ((False, right, down), (True, down, right)):
        if (near == 1 or extent == 1) and (pitch >= extent or others == 1):
            return Operand(transposed, pitch if others > 1 else extent, step)
    return None
