"""Which dtypes there are, where arrays are made, and questions about dtypes and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.numpy import promotion
from treadle.numpy.arrays import Values, ndarray, unwrapped
from treadle.numpy.arrays import wrap as shown
from treadle.runtime import devices
from treadle.tensor.tensor import Tensor


def set_device(device: Any) -> None:
    """Make arrays on a device, from here on: "cpu", "cuda:0", "webgpu:0", a Device; None is
    treadle's choice, or what the environment variable TREADLE_DEVICE says. It is the default device
    of all of treadle.

    >>> import treadle.numpy as np
    >>> np.set_device("cpu")
    >>> np.zeros(2).device.id
    'cpu'
    >>> np.set_device(None)
    """
    devices.set_default_device(device)


def wrap(inner: Any) -> ndarray:
    """A tensor of treadle as an array of the same elements. TypeError for anything else.

    >>> import treadle as td
    >>> import treadle.numpy as np
    >>> np.wrap(td.arange(3, device="cpu"))
    array([0, 1, 2])
    """
    if type(inner) is not Tensor:
        kind = f"{type(inner).__module__}.{type(inner).__name__}"
        raise TypeError(
            f"wrap takes a tensor of treadle, not {kind}: np.asarray takes numbers, sequences and "
            "arrays"
        )
    return shown(inner)


def get_device() -> devices.Device:
    """The device on which arrays are made.

    >>> import treadle.numpy as np
    >>> np.get_device() is np.zeros(1).device
    True
    """
    return promotion.place()


def _dtypes(values: Iterable[Any]) -> list[Any]:
    return [each.dtype if isinstance(each, Values) else _numpy(each) for each in values]


def _numpy(value: Any) -> Any:
    return value.numpy if isinstance(value, DType) else value


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype of an operation on arrays, dtypes and numbers.

    >>> import treadle.numpy as np
    >>> np.result_type(np.int8, np.ones(2, np.float32), 3)
    dtype('float32')
    """
    return np.result_type(*_dtypes(arrays_and_dtypes))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype is cast to another one by a rule.

    >>> import treadle.numpy as np
    >>> np.can_cast(np.int32, np.float64), np.can_cast(np.float64, np.int32)
    (True, False)
    """
    (source,) = _dtypes([from_])
    return np.can_cast(source, _numpy(to), casting)  # type: ignore[arg-type]


def common_type(*arrays: Any) -> Any:
    """The floating or complex dtype that holds the elements of arrays.

    >>> import treadle.numpy as np
    >>> np.common_type(np.ones(2, np.float32), np.arange(2))
    <class 'numpy.float64'>
    """
    return np.common_type(*[np.empty(0, each.dtype) for each in arrays])


def min_scalar_type(a: Any) -> np.dtype[Any]:
    """The smallest dtype that holds a number; the dtype of an array.

    >>> import treadle.numpy as np
    >>> np.min_scalar_type(300)
    dtype('uint16')
    """
    if isinstance(a, Values):
        return a.dtype if a.shape else np.min_scalar_type(a.dtype.type(a.item()))
    return np.min_scalar_type(a)


def isscalar(element: Any) -> bool:
    """Whether something is a number, or an element of an array.

    >>> import treadle.numpy as np
    >>> np.isscalar(3), np.isscalar(np.arange(3)[0]), np.isscalar(np.arange(3))
    (True, True, False)
    """
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether something can be iterated over.

    >>> import treadle.numpy as np
    >>> np.iterable(np.arange(3)), np.iterable(np.arange(3)[0])
    (True, False)
    """
    if isinstance(y, Values):
        return bool(unwrapped(y).shape)
    return np.iterable(y)


def finfo(dtype: Any) -> np.finfo[Any]:
    """The limits of a floating dtype.

    >>> import treadle.numpy as np
    >>> np.finfo(np.float32).eps
    np.float32(1.1920929e-07)
    """
    return np.finfo(*_dtypes([dtype]))


def iinfo(type: Any) -> np.iinfo[Any]:
    """The limits of an integer dtype.

    >>> import treadle.numpy as np
    >>> np.iinfo(np.int8).max
    127
    """
    return np.iinfo(*_dtypes([type]))
