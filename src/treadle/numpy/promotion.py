"""NumPy's dtypes for arrays on devices, and which dtype an operation computes in.

`x.dtype` is NumPy's own dtype, and NumPy itself says which dtypes a ufunc takes and returns: so
promotion is NumPy 2's, with all its rules for Python's numbers. A device without float64 or int64
computes in the dtype of half the size instead, as long as no program names the missing one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_dtype
from treadle.core.errors import DtypeError, TreadleError
from treadle.runtime.devices import Device, default_device
from treadle.runtime.devices import device as find_device
from treadle.tensor.dtypes import supports
from treadle.tensor.tensor import Tensor as Inner

_known: dict[Any, DType] = {}
_HALF = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_WEAK = (bool, int, float, complex)  # Python's numbers, which have no width


def place(device: Any = None) -> Device:
    """The device that is named, or the default device. ValueError if there is none of that name."""
    if device is None:
        return default_device()
    try:
        return find_device(device)
    except (TypeError, ValueError, TreadleError) as error:
        raise ValueError(str(error)) from None


def inner_dtype(dtype: Any) -> DType:
    """The dtype of treadle's that `dtype` names as NumPy understands it. TypeError for dtypes that
    arrays on devices do not have."""
    try:
        return _known[dtype]
    except (KeyError, TypeError):
        pass
    if isinstance(dtype, DType):
        return dtype
    found = np.dtype(dtype)
    if (found.kind == "f" and found.itemsize > 8) or (found.kind == "c" and found.itemsize > 16):
        raise DtypeError(f"arrays on devices have no {found}: use float64, or complex128")
    if found.kind not in "biufcV" or found.names is not None or found.subdtype is not None:
        raise DtypeError(
            f"arrays on devices hold bools, integers, floating and complex numbers, not {found}"
        )
    try:
        known = as_dtype(found)
    except DtypeError:
        raise DtypeError(f"arrays on devices have no dtype {found}") from None
    _known[dtype] = known
    return known


def held(dtype: Any, device: Device) -> DType:
    """The dtype of a result whose dtype no program has named: on a device that lacks it, the one of
    half its size."""
    found = inner_dtype(dtype)
    if supports(device, found):
        return found
    return as_dtype(_HALF[found.name])


def named(dtype: Any, device: Device) -> DType:
    """The dtype that a program names; Python's int, float and complex are the default ones.
    TypeError if the device lacks it."""
    if dtype in (float, int, complex):
        return held(dtype, device)
    found = inner_dtype(dtype)
    if not supports(device, found):
        raise DtypeError(
            f"{device.id} ({device.name}) has no {found.name}: use "
            f'dtype=np.{_HALF[found.name]}, or the device "cpu"'
        )
    return found


def default_float(device: Device) -> DType:
    """Float64, or float32 on a device without float64."""
    return held("float64", device)


def default_integer(device: Device) -> DType:
    """Int64, or int32 on a device without int64."""
    return held("int64", device)


def device_of(values: Iterable[Any]) -> Device:
    """The device of the first tensor, or the default device."""
    for value in values:
        if type(value) is Inner:
            return value.device
    return default_device()


def kind_of(value: Any) -> Any:
    """What NumPy's promotion sees of an operand: a dtype, or the class of a Python number."""
    if type(value) is Inner:
        return value.dtype.numpy
    kind = type(value)
    if kind is bool:
        return _BOOL
    if kind in _WEAK:
        return kind
    if isinstance(value, (np.generic, np.ndarray)):
        return value.dtype
    raise TypeError(f"{kind.__name__} is no operand of an array")


_BOOL = np.dtype(bool)
_loops: dict[Any, tuple[np.dtype[Any], ...]] = {}


def loop(
    function: np.ufunc, kinds: tuple[Any, ...], casting: str = "same_kind", signature: Any = None
) -> tuple[np.dtype[Any], ...]:
    """The dtypes in which a ufunc of NumPy computes operands of these kinds, the results' last."""
    key = (function, kinds, casting, signature)
    found = _loops.get(key)
    if found is None:
        given = (*kinds, *(None,) * (function.nargs - len(kinds)))
        keywords: dict[str, Any] = {} if signature is None else {"signature": signature}
        found = function.resolve_dtypes(given, casting=casting, **keywords)  # type: ignore[arg-type]
        if len(_loops) < 4096:
            _loops[key] = found
    return found


def result_type(*values: Any) -> np.dtype[Any]:
    """NumPy's common dtype of tensors, arrays, dtypes and Python numbers."""
    given = []
    for value in values:
        if type(value) is Inner:
            given.append(value.dtype.numpy)
        elif type(value) in _WEAK and type(value) is not bool:
            given.append(type(value)(0))
        elif isinstance(value, DType):
            given.append(value.numpy)
        else:
            given.append(value)
    return np.result_type(*given)


def check_cast(source: DType, target: DType, casting: str, what: str) -> None:
    """TypeError unless NumPy casts so, by its rule."""
    if source is not target and not np.can_cast(source.numpy, target.numpy, casting):  # type: ignore[arg-type]
        raise np_casting_error(what, source, target, casting)


def np_casting_error(what: str, source: DType, target: DType, casting: str) -> TypeError:
    """NumPy's error for a result that does not fit where it is written."""
    return TypeError(
        f"Cannot cast {what} from dtype('{source}') to dtype('{target}') with casting rule "
        f"'{casting}'"
    )
