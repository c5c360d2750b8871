"""Operands of elementwise functions, cast to the dtype that PyTorch computes in."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType, cast_number
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import floating, of_number, result_type
from treadle.torch.errors import kind_of

# Functions that PyTorch has of two numbers, too, the first of which is a tensor then.
_OF_NUMBERS = frozenset(
    {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"}
)
ValuesIndices = namedtuple("ValuesIndices", "values indices")
ValuesIndices.__doc__ = "What functions along an axis return that also say where."


def cast(value: Any, dtype: DType) -> Any:
    """A tensor in a dtype; numbers stay as they are, but integers wrap into integer dtypes."""
    if isinstance(value, Inner):
        return value if value.dtype is dtype else value.to(dtype)
    if isinstance(value, np.generic):
        value = value.item()
    if dtype.is_integer and type(value) is int and not 0 <= value < 128:
        return cast_number(value, dtype).item()
    return int(value) if type(value) is bool and dtype.kind != "bool" else value


def converted(value: Inner, dtype: DType) -> Inner:
    """A tensor in any dtype: of complex numbers their real parts, with PyTorch's warning."""
    if value.dtype.is_complex and not dtype.is_complex and dtype.kind != "bool":
        warnings.warn("Casting complex values to real discards the imaginary part", stacklevel=4)
        value = apply("real", value)
    return value.to(dtype)


def together(name: str, *operands: Any) -> list[Any]:
    """Operands on one device: tensors without axes on the CPU go where the others are. TypeError
    if none is a tensor."""
    tensors = [each for each in operands if isinstance(each, Inner)]
    if not tensors and name in _OF_NUMBERS:
        first, *others = operands
        return [td.asarray(first, dtype=of_number(first), device=place()), *others]
    if not tensors:
        raise TypeError(f"{name}(): one of the arguments must be a Tensor, these are numbers")
    devices = {each.device.id for each in tensors}
    if len(devices) == 1:
        return list(operands)
    where = next((each.device for each in tensors if each.shape), tensors[0].device)
    where = where if where.id != "cpu" else tensors[0].device
    return [
        each.to(where)
        if isinstance(each, Inner) and not each.shape and each.device.id == "cpu"
        else each
        for each in operands
    ]


def common(name: str, *operands: Any, floats: bool = False) -> list[Any]:
    """Operands in their common dtype; `floats`: in a floating one."""
    found = together(name, *operands)
    dtype = result_type(*found)
    if floats:
        dtype = floating(dtype)
    return [cast(each, dtype) for each in found]


def promoted(name: str, one: Any, other: Any, *, floats: bool = False) -> Inner:
    """A function of two operands in their common dtype; `floats`: in a floating one."""
    if type(other) in (float, int) and type(one) is Inner and one.dtype.kind == "float":
        return apply(name, one, other)  # the number changes no dtype
    if not (
        isinstance(one, Inner)
        and isinstance(other, Inner)
        and one.dtype is other.dtype
        and one.device is other.device
        and not floats
    ):
        one, other = common(name, one, other, floats=floats)
    return apply(name, one, other)


def in_floats(name: str, value: Any) -> Inner:
    """A function with floating results: integers are cast to the default dtype."""
    if not isinstance(value, Inner):
        raise TypeError(
            f"{name}(): argument 'input' must be a Tensor of treadle.torch, not a "
            f"{kind_of(value)}: torch.as_tensor makes one"
        )
    dtype = value.dtype
    return apply(name, value if dtype.kind in ("float", "complex") else value.to(floating(dtype)))
