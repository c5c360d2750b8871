"""Quantized weights on a device: `QuantizedTensor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from types import EllipsisType
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_dtype, float32
from treadle.core.errors import ShapeError
from treadle.quant.blocks import FORMATS, BlockFormat, Quantized, format_named
from treadle.quant.gradients import linear, times
from treadle.quant.layouts import Plane
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.dtypes import check_dtype
from treadle.tensor.tensor import Tensor

# Bytes of blocks that are split at a time: the planes of a whole matrix on the host would take as
# much memory again, and touching new memory takes ten times as long as splitting.
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class QuantizedTensor(Quantized):
    """Numbers in ggml's blocks along the last axis, on a device.

    It multiplies and is indexed by rows; `dequantize()` gives its elements for anything else. Its
    elements cannot be written.

    >>> import numpy as np, treadle as td
    >>> w = td.quant.quantize(np.eye(32, dtype=np.float32), "q8_0", device="cpu")
    >>> w
    QuantizedTensor(shape=(32, 32), format='q8_0', device='cpu', nbytes=1088)
    >>> (td.ones((1, 32), device="cpu") @ w.T).shape, w.rows([3, 4]).argmax(axis=1).tolist()
    ((1, 32), [3, 4])
    """

    __array_ufunc__ = None  # NumPy's operators leave it to this class

    @staticmethod
    def from_blocks(
        blocks: np.ndarray[Any, Any],
        shape: Sequence[int],
        format: str | BlockFormat,
        device: str | Device | None = None,
    ) -> QuantizedTensor:
        """A quantized tensor of blocks as a file has them, on a device.

        ShapeError if they are not the blocks of this shape.
        """
        kind = format if isinstance(format, BlockFormat) else format_named(format)
        extents = tuple([index(extent) for extent in shape])
        per_row = blocks_of_row(extents, kind)
        rows = prod(extents[:-1])
        raw = np.asarray(blocks)
        if raw.dtype != np.uint8:
            raise TypeError(f"blocks are bytes, as uint8, and these are {raw.dtype}")
        if raw.size != rows * per_row * kind.nbytes:
            raise ShapeError(
                f"a {kind.name} tensor of shape {extents} is {rows * per_row * kind.nbytes} bytes, "
                f"and these blocks are {raw.size}"
            )
        planes = _uploaded(kind, raw.reshape(rows, per_row, kind.nbytes), find_device(device))
        return QuantizedTensor(kind, extents, planes)

    # --- what it is ------------------------------------------------------------------------------

    @property
    def device(self) -> Device:
        """The device that has the blocks."""
        return self.planes[self.format.planes[0].name].device

    @property
    def dtype(self) -> DType:
        """The dtype of the elements, once they are dequantized: float32."""
        return float32

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the blocks on the device. Formats with packed scales take up to 3 % more of
        them there than in a file."""
        return sum(plane.nbytes for plane in self.planes.values())

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return (
            f"QuantizedTensor(shape={self.shape}, format={self.format.name!r}, "
            f"device={self.device.id!r}, nbytes={self.nbytes})"
        )

    # --- its elements ----------------------------------------------------------------------------

    def blocks(self) -> np.ndarray[Any, Any]:
        """The blocks as a file has them: uint8 (rows, blocks of a row, bytes of a block)."""
        return self.format.join({name: plane.numpy() for name, plane in self.planes.items()})

    async def blocks_async(self) -> np.ndarray[Any, Any]:
        """`blocks`, awaiting instead of blocking."""
        found = {name: await plane.numpy_async() for name, plane in self.planes.items()}
        return self.format.join(found)

    def dequantize(self) -> Tensor:
        """The elements as float32. They are lazy: an expression of the blocks, which is fused into
        the kernels that read it."""
        return self.format.dequantize(self.planes).reshape(self.shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array of float32."""
        return self.dequantize().numpy()

    async def numpy_async(self) -> np.ndarray[Any, Any]:
        """`numpy`, awaiting instead of blocking."""
        return await self.dequantize().numpy_async()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("copy=False: quantized elements are computed; leave it out")
        return np.asarray(self.numpy(), dtype)

    def rows(self, indices: ArrayLike) -> Tensor:
        """The elements of rows of a matrix, as embeddings are looked up: float32 (*shape of the
        indices, n). Only the blocks of these rows are read."""
        self._check_matrix("rows(indices)")
        picks = indices if isinstance(indices, Tensor) else asarray(indices, device=self.device)
        flat = picks.reshape((-1,))
        found = self.format.dequantize({name: p[flat] for name, p in self.planes.items()})
        return found.reshape((*picks.shape, self.shape[1]))

    def __getitem__(self, key: Any) -> QuantizedTensor:
        """A part of it along the axes before the last one, by integers and slices: still quantized,
        and in the same memory where that is one stretch."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) >= self.ndim and not (len(keys) == self.ndim and keys[-1] == slice(None)):
            raise IndexError(
                f"a quantized tensor of shape {self.shape} is indexed along its first "
                f"{self.ndim - 1} axes, as its blocks lie along the last one: dequantize() it first"
            )
        for one in keys:
            if not isinstance(one, (slice, EllipsisType)) and not hasattr(one, "__index__"):
                raise IndexError(
                    "a quantized tensor is indexed with integers and slices: rows(indices) gives "
                    "the elements of any rows"
                )
        lead = self.shape[:-1]
        planes = {}
        for name, plane in self.planes.items():
            part = plane.reshape((*lead, *plane.shape[1:]))[keys[: self.ndim - 1]]
            kept = part.shape[: part.ndim - plane.ndim + 1]
            planes[name] = part.reshape((prod(kept), *plane.shape[1:]))
        return QuantizedTensor(self.format, (*kept, self.shape[-1]), planes)

    def to(self, device: str | Device) -> QuantizedTensor:
        """The same blocks on another device; itself if it is there already."""
        where = find_device(device)
        if where is self.device:
            return self
        planes = {name: plane.to(where) for name, plane in self.planes.items()}
        return QuantizedTensor(self.format, self.shape, planes)

    async def to_async(self, device: str | Device) -> QuantizedTensor:
        """`to`, awaiting instead of blocking where the blocks go through the host's memory."""
        where = find_device(device)
        if where is self.device:
            return self
        planes = {name: await plane.to_async(device=where) for name, plane in self.planes.items()}
        return QuantizedTensor(self.format, self.shape, planes)

    # --- products --------------------------------------------------------------------------------

    @property
    def T(self) -> Transposed:
        """The matrix transposed, for `x @ w.T`."""
        self._check_matrix("T")
        return Transposed(self)

    def __rmatmul__(self, x: ArrayLike) -> Tensor:
        """`x @ w`, where the rows of w are summed: what the gradient of `x @ w.T` is made of."""
        self._check_matrix("x @ w")
        return times(x if isinstance(x, Tensor) else asarray(x, device=self.device), self)

    def _check_matrix(self, name: str) -> None:
        if self.ndim != 2:
            raise ShapeError(
                f"{name} takes a matrix, and this quantized tensor has shape {self.shape}: index "
                "its first axes"
            )


@dataclass(frozen=True, eq=False)
class Transposed:
    """A quantized matrix transposed: the right side of `x @ w.T`."""

    T: QuantizedTensor
    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the transposed matrix."""
        rows, columns = self.T.shape
        return columns, rows

    def __rmatmul__(self, x: ArrayLike) -> Tensor:
        w = self.T
        left = x if isinstance(x, Tensor) else asarray(x, device=w.device)
        if not left.size * w.size and left.shape[-1:] == w.shape[1:]:
            return zeros((*left.shape[:-1], w.shape[0]), device=w.device)
        return linear(left, w)


def blocks_of_row(shape: Sequence[int], format: BlockFormat) -> int:
    """The blocks of a row. ShapeError, with formats that fit, if rows are not whole blocks."""
    if not shape or min(shape) < 0:
        raise ShapeError(f"{tuple(shape)} is not a shape of rows of blocks")
    length = shape[-1]
    if length % format.elements:
        fit = [each.name for each in FORMATS.values() if length % each.elements == 0]
        raise ShapeError(
            f"rows of {length} elements are not whole blocks of {format.name}, which have "
            f"{format.elements}: formats that fit are {', '.join(fit)}"
        )
    return length // format.elements


def _uploaded(
    format: BlockFormat, blocks: np.ndarray[Any, Any], device: Device
) -> dict[str, Tensor]:
    """The planes of blocks (rows, blocks, bytes) on a device."""
    rows, per_row, nbytes = blocks.shape
    arrays = {plane.name: _allocated(plane, rows, per_row, device) for plane in format.planes}
    step = max(_CHUNK // max(per_row * nbytes, 1), 1)
    for at in range(0, rows, step):
        for name, part in format.split(blocks[at : at + step]).items():
            whole = arrays[name]
            offset = at * (whole.size // rows)
            whole.view(part.shape, packed_strides(part.shape), offset).upload(part)
    return {name: Tensor(array) for name, array in arrays.items()}


def _allocated(plane: Plane, rows: int, per_row: int, device: Device) -> DeviceArray:
    dtype = as_dtype(plane.dtype)
    check_dtype(dtype, device)
    return DeviceArray.allocate(device, dtype, (rows, per_row, *plane.shape))
