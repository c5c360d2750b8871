"""PyTorch's promotion of dtypes, and its default dtypes.

Tensors with axes come first, then tensors without axes, then Python's numbers: a later one changes
the dtype only if it is of a higher kind (bool, integers, floating, complex) than all before it.
The rules are those of PyTorch's notes on tensor attributes ("type promotion").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType, as_dtype, bool_, int32, int64
from treadle.core.errors import DtypeError
from treadle.runtime.devices import Device
from treadle.tensor.dtypes import RANK, promote, supports
from treadle.tensor.tensor import Tensor as Inner

_COMPLEX_OF = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64",
               "float64": "complex128"}  # fmt: skip


class _Defaults:
    """The process's default floating dtype."""

    floating: DType = td.float32


_defaults = _Defaults()


def get_default_dtype() -> DType:
    """The dtype of floating numbers from Python: float32 unless `set_default_dtype` said another.

    >>> import treadle.torch as torch
    >>> torch.get_default_dtype()
    treadle.float32
    """
    return _defaults.floating


def set_default_dtype(d: DType) -> None:
    """Make a floating dtype that of floating numbers from Python. TypeError for other dtypes."""
    if not isinstance(d, DType) or d.kind != "float":
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    _defaults.floating = d


def of_number(value: Any) -> DType:
    """The dtype of a Python number."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    is_complex = isinstance(value, (complex, np.complexfloating))
    return complex_default() if is_complex else _defaults.floating


def integers(device: Device) -> DType:
    """The dtype of indices and of Python's integers on a device: int64, where it has them."""
    return int64 if supports(device, int64) else int32


def of_number_on(value: Any, device: Device) -> DType:
    """The dtype of a tensor of Python numbers on a device."""
    dtype = of_number(value)
    return integers(device) if dtype is int64 else dtype


def complex_default() -> DType:
    """The complex dtype of the default floating dtype."""
    found: DType = getattr(td, _COMPLEX_OF[_defaults.floating.name])
    return found


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result may be written into a tensor: not one of a higher kind.

    >>> import treadle.torch as torch
    >>> torch.can_cast(torch.float64, torch.float16), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    if to.kind == "bool":
        return from_.kind == "bool"
    return RANK[from_.kind] <= RANK[to.kind]


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that is as wide as both.

    >>> import treadle.torch as torch
    >>> torch.promote_types(torch.int32, torch.float16)
    treadle.float16
    """
    return promote(type1, type2)


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float
    dtype: str

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        limits = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({limits}, dtype={self.dtype})"


def finfo(type: DType | None = None) -> FloatInfo:
    """The limits of a floating dtype, or of a complex dtype's parts. TypeError for integers.

    >>> import treadle.torch as torch
    >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).resolution
    (65504.0, 1e-06)
    """
    dtype = _defaults.floating if type is None else type
    if not isinstance(dtype, DType) or dtype.kind not in ("float", "complex"):
        raise TypeError(f"torch.finfo() requires a floating point input type, not {dtype}: "
                        "torch.iinfo has the limits of integers")  # fmt: skip
    found = td.finfo(dtype)
    digits = {"bfloat16": 2, "float16": 3, "float32": 6, "float64": 15}[found.dtype.name]
    least = found.smallest_normal
    return FloatInfo(found.bits, found.eps, found.max, found.min, least, least, 10.0**-digits,
                     found.dtype.name)  # fmt: skip


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: str

    def __repr__(self) -> str:
        # PyTorch prints them with 6 digits.
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"


def iinfo(type: DType) -> IntegerInfo:
    """The limits of an integer dtype. TypeError for others.

    >>> import treadle.torch as torch
    >>> torch.iinfo(torch.int8).max
    127
    """
    if not isinstance(type, DType) or not type.is_integer:
        raise TypeError(f"torch.iinfo() requires an integer input type, not {type}")
    found = td.iinfo(type)
    return IntegerInfo(found.bits, found.max, found.min, found.dtype.name)


# Names that PyTorch has for dtypes, besides their own.
ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "cfloat": "complex64",
    "cdouble": "complex128", "short": "int16", "int": "int32", "long": "int64",
}  # fmt: skip


def dtype_named(value: Any) -> DType:
    """The dtype that is meant: a dtype, Python's bool, int, float or complex, or NumPy's."""
    if isinstance(value, DType):
        return value
    if value is float:
        return _defaults.floating
    if value is int:
        return int64
    if value is complex:
        return complex_default()
    return as_dtype(value)


def _common(dtypes: list[DType]) -> DType | None:
    found: DType | None = None
    for each in dtypes:
        try:
            found = each if found is None else promote(found, each)
        except DtypeError as error:  # as uint64 with int64
            raise RuntimeError(str(error)) from None
    return found


def result_type(*operands: Any) -> DType:
    """The dtype that an operation on tensors and numbers computes in.

    >>> import treadle.torch as torch
    >>> torch.result_type(torch.tensor([1, 2], dtype=torch.uint8), 1)
    treadle.uint8
    """
    groups: tuple[list[DType], ...] = ([], [], [])
    for each in operands:
        if isinstance(each, Inner):
            groups[0 if each.shape else 1].append(each.dtype)
        else:
            groups[2].append(of_number(each))
    found: DType | None = None
    for group in groups:
        dtype = _common(group) if len(group) > 1 else group[0] if group else None
        if dtype is None:
            continue
        if found is None:
            found = dtype
        elif RANK[dtype.kind] > RANK[found.kind]:
            is_widened = dtype.kind == "complex" and found.kind == "float"
            found = getattr(td, _COMPLEX_OF[found.name]) if is_widened else dtype
    assert found is not None, "an operation has operands"
    return found


def floating(dtype: DType) -> DType:
    """The dtype in which functions with floating results compute: integers are the default."""
    return dtype if dtype.kind in ("float", "complex") else _defaults.floating
