"""The properties of a tensor (shape, dtype, device, …), and its elements for Python and NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core.dtypes import (
    DType,
    bfloat16,
    float32,
    has_bfloat16_arrays,
    number_of,
)
from treadle.core.errors import ShapeError
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray, packed_strides
from treadle.runtime.devices import Device
from treadle.tensor.cells import Cell, compute


class Properties:
    """The properties of a tensor, which is a cell and a view of it."""

    __slots__ = ("_cell", "_locked", "_view")

    _cell: Cell
    _view: View | None
    _locked: bool

    if TYPE_CHECKING:

        @property
        def _array(self) -> DeviceArray: ...

    # --- properties ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each axis.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.shape
        (2, 2)
        """
        view = self._view
        return self._cell.value.shape if view is None else view.shape

    @property
    def dtype(self) -> DType:
        """The elements' dtype; NumPy's structured dtype for an array of structs.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.dtype
        treadle.float32
        """
        return self._cell.value.dtype

    @property
    def device(self) -> Device:
        """The device that holds the elements.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.device.id
        'cpu'
        """
        return self._cell.value.device

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements (not bytes) between neighbours along each axis.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.strides
        (2, 1)
        """
        view = self._view
        return packed_strides(self._cell.value.shape) if view is None else view.strides

    @property
    def ndim(self) -> int:
        """The number of axes.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.size
        4
        """
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        """The bytes that the elements take.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.nbytes
        16
        """
        return self.size * self.dtype.itemsize

    # --- reading ---------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray[Any, Any]:
        """The elements as a new NumPy array. Waits until they are computed.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.numpy().sum(axis=0).tolist()
        [4.0, 6.0]
        """
        return self._array.to_host()

    async def numpy_async(self) -> np.ndarray[Any, Any]:
        """`numpy`, awaiting instead of blocking."""
        source, span = self._array.span()
        target, raw, offset = source.host_target()
        if source.size:
            await source.device.default_stream.handle.read_async(source.buffer, offset, raw)
        picked: np.ndarray[Any, Any] = span(target)
        return picked

    def item(self) -> Any:
        """The one element as a Python number; ShapeError if there is not exactly one.

        >>> import treadle as td
        >>> td.asarray(2.5, device="cpu").item()
        2.5
        """
        node, view = self._cell.value, self._view
        if (node.size if view is None else self.size) != 1:
            raise ShapeError(f"item() needs one element; this tensor has shape {self.shape}")
        array = node.array
        if array is None:
            compute(node, self._cell)
            array = node.whole_array
        offset = array.offset if view is None else array.offset + view.offset
        size = array.dtype.itemsize
        raw = bytearray(size)
        array.device.default_stream.handle.read(array.buffer, offset * size, memoryview(raw))
        return number_of(raw, array.dtype)

    async def item_async(self) -> Any:
        """`item`, awaiting instead of blocking."""
        if self.size != 1:
            raise ShapeError(f"item() needs one element; this tensor has shape {self.shape}")
        return (await self._for_numpy().numpy_async()).item()

    def tolist(self) -> Any:
        """The elements as nested lists.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """
        return self._for_numpy().numpy().tolist()

    async def tolist_async(self) -> Any:
        """`tolist`, awaiting instead of blocking."""
        return (await self._for_numpy().numpy_async()).tolist()

    def _for_numpy(self) -> Any:
        """The tensor, or one with its numbers in a dtype that NumPy has."""
        if self.dtype == bfloat16 and not has_bfloat16_arrays():
            return self.to(float32)  # type: ignore[attr-defined]
        return self
