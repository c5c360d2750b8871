"""NumPy's protocols for tensors: `__array__`, `__array_ufunc__`, `__array_function__`.

NumPy's functions take tensors and return NumPy arrays, as a caller of `np.sort` expects. Python's
operators between an array and a tensor return tensors, whichever side they are on. (NumPy does not
say whether it was called by `array + tensor` or by `np.add(array, tensor)`: both return tensors.)
In-place operators keep the type of their left side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from treadle.runtime.arrays import packed_strides
from treadle.runtime.export import Exported, host_view


class NumPyProtocols(Exported):
    """The methods by which NumPy accepts a tensor."""

    __slots__ = ()
    # There is no `__array_interface__`: NumPy prefers it to `__array__`, but then keeps the tensor
    # alive and not the exported memory, so the export would never be released.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """The elements for NumPy: on the CPU the memory itself, unless a copy is requested."""
        wanted = None if dtype is None else np.dtype(dtype)
        cell: Any = self._cell  # type: ignore[attr-defined]
        if cell.base is not None and cell.base.device.traits.host_memory and not copy:
            data = _host_of_base(self)
            return data if wanted is None else data.astype(wanted, copy=False)
        array = self.__treadle_array__()
        if not array.device.traits.host_memory:
            if copy is False:
                raise ValueError(
                    f"copy=False: NumPy cannot reach the memory of {array.device.id}: leave it "
                    "out, or call x.numpy(), which copies"
                )
            data = array.to_host()
        elif copy:
            data = array.to_host()
        else:
            data = host_view(array)
        if wanted is None or data.dtype == wanted:
            found: np.ndarray[Any, Any] = data
            return found
        if copy is False:
            raise ValueError(
                f"copy=False: {array.dtype} elements must be copied to be {wanted}: leave it out"
            )
        converted: np.ndarray[Any, Any] = data.astype(wanted)
        return converted

    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: Any, **keywords: Any
    ) -> Any:
        """A ufunc of NumPy, called as a function or as an operator with an array on the left."""
        others = (*inputs, *keywords.get("out", ()))
        if not all(isinstance(one, _NUMPYS_OWN) or not _has_ufuncs(one) for one in others):
            return NotImplemented
        if method == "__call__" and len(inputs) == 2 and inputs[1] is self and not keywords:
            reflected = getattr(self, _REFLECTED.get(function, ""), None)
            if reflected is not None and isinstance(inputs[0], (np.ndarray, np.generic)):
                return reflected(inputs[0])
        return getattr(function, method)(*_for_numpy(inputs), **_for_numpy(keywords))

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        """A function of NumPy, called with arrays in place of tensors."""
        if not all(issubclass(one, (NumPyProtocols, np.ndarray)) for one in types):
            return NotImplemented
        return function(*_for_numpy(arguments), **_for_numpy(keywords))


_NUMPYS_OWN = (NumPyProtocols, np.ndarray, np.generic)
# The reflected method for an operator's ufunc.
_REFLECTED = {
    np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__", np.floor_divide: "__rfloordiv__", np.remainder: "__rmod__",
    np.power: "__rpow__", np.matmul: "__rmatmul__", np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__", np.bitwise_xor: "__rxor__", np.left_shift: "__rlshift__",
    np.right_shift: "__rrshift__", np.equal: "__eq__", np.not_equal: "__ne__",
    np.less: "__gt__", np.less_equal: "__ge__", np.greater: "__lt__", np.greater_equal: "__le__",
}  # fmt: skip


def _has_ufuncs(value: Any) -> bool:
    """Whether an object of another library overrides NumPy's ufuncs."""
    return getattr(type(value), "__array_ufunc__", None) is not None


def _for_numpy(value: Any) -> Any:
    """An argument with the tensors in it replaced by NumPy arrays. Copies of a device's memory are
    read-only, since a write to one would be lost."""
    if isinstance(value, NumPyProtocols):
        data = np.asarray(value)
        if not value.__treadle_array__().device.traits.host_memory:
            data.flags.writeable = False
        return data
    if type(value) in (list, tuple):
        return type(value)(map(_for_numpy, value))
    if type(value) is dict:
        return {name: _for_numpy(one) for name, one in value.items()}
    return value


def _host_of_base(tensor: Any) -> np.ndarray[Any, Any]:
    """A computed view's elements in the memory of the tensor that it is a view of."""
    cell = tensor._cell
    whole: np.ndarray[Any, Any] = cell.host(cell.base.__array__())
    view = tensor._view
    if view is None:
        return whole
    step = whole.strides[-1] if whole.ndim else whole.itemsize
    if whole.strides == tuple(each * step for each in packed_strides(whole.shape)):
        return np.lib.stride_tricks.as_strided(
            whole.reshape(-1)[view.offset :] if 0 not in view.shape else whole,
            view.shape, [each * step for each in view.strides],
        )  # fmt: skip
    copied: np.ndarray[Any, Any] = tensor.numpy()
    copied.flags.writeable = False  # what is written into it would be lost
    return copied
