"""Operands of elementwise functions, cast to the dtype that PyTorch computes in."""

from __future__ import annotations

from typing import Any

from treadle.core.dtypes import DType
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating, result_type


def cast(value: Any, dtype: DType) -> Any:
    """A tensor in a dtype; numbers stay as they are."""
    return value.to(dtype) if isinstance(value, Inner) and value.dtype is not dtype else value


def promoted(name: str, one: Any, other: Any, *, floats: bool = False) -> Inner:
    """A function of two operands in their common dtype; `floats`: in a floating one."""
    same = isinstance(one, Inner) and isinstance(other, Inner) and one.dtype is other.dtype
    dtype = one.dtype if same else result_type(one, other)
    if floats:
        dtype = floating(dtype)
    one, other = cast(one, dtype), cast(other, dtype)
    if not isinstance(one, Inner) and not isinstance(other, Inner):
        raise TypeError(f"{name}: one of the arguments must be a tensor")
    return apply(name, one, other)


def in_floats(name: str, value: Inner) -> Inner:
    """A function with floating results: integers are cast to the default dtype."""
    return apply(name, cast(value, floating(value.dtype)))
