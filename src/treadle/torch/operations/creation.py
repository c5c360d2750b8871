"""Tensors from nothing, from numbers and from other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import dtypes
from treadle.torch.devices import place


def extents(size: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape that is given as several integers, or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        return tuple(size[0])
    return tuple(size)


def _tracked(made: Inner, requires_grad: bool) -> Inner:
    return made.requires_grad_() if requires_grad else made


def zeros(
    *size: Any,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """A tensor of zeros."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    return _tracked(td.zeros(extents(size), dtype=dtype, device=place(device)), requires_grad)


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """A copy of numbers, of nested sequences of them, or of an array. Python's floating numbers
    have the default dtype, its integers are int64."""
    if isinstance(data, Inner):
        where = data.device if device is None else place(device)
        made = data.detach().to(where, dtype=dtype).copied()
        return _tracked(made, requires_grad)
    array = np.asarray(data)
    if dtype is None and not isinstance(data, (np.ndarray, np.generic)):
        dtype = dtypes.get_default_dtype() if array.dtype.kind == "f" else None
    made = td.asarray(array, dtype=dtype, device=place(device), copy=True)
    return _tracked(made, requires_grad)
