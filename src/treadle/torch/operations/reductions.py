"""Reductions, with PyTorch's several forms of `max`, `min` and their like."""

from __future__ import annotations

from typing import Any, NamedTuple

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.operations.operands import promoted


class ValuesIndices(NamedTuple):
    """What reductions along an axis return that also say where."""

    values: Any
    indices: Any


def sum(
    input: Inner, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The sum of all elements, or along axes. Integers and bools are added up in int64."""
    if dtype is None and input.dtype.kind not in ("float", "complex"):
        dtype = td.int64
    return td.sum(input, axis=_axes(dim), keepdims=keepdim, dtype=dtype)


def max(input: Inner, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The greatest element; along an axis with its index; or the greater of two tensors'."""
    other = dim if isinstance(dim, Inner) else other
    if other is not None:
        return promoted("maximum", input, other)
    if dim is None:
        return td.max(input)
    return ValuesIndices(
        td.max(input, axis=dim, keepdims=keepdim),
        td.argmax(input, axis=dim, keepdims=keepdim).to(td.int64),
    )


def _axes(dim: Any) -> Any:
    """No axes are all axes in PyTorch."""
    return tuple(dim) or None if isinstance(dim, (tuple, list)) else dim
