"""Shared parts of losses: the dtype of their operands, and the reduction of elementwise losses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import DType, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.dtypes import promote
from treadle.tensor.functional.compute_dtype import compute_dtypes
from treadle.tensor.operands import operand
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

REDUCTIONS = ("mean", "sum", "none")


def reduction_of(
    name: str,
    reduction: str,
    size_average: bool | None = None,
    reduce: bool | None = None,
    choices: Sequence[str] = REDUCTIONS,
) -> str:
    """The reduction, from the current argument or PyTorch's deprecated ones."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in choices:
        named = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{name}: reduction is one of {named}, not {reduction!r}")
    return reduction


def reduced(losses: Tensor, reduction: str, dtype: DType) -> Tensor:
    """The losses themselves, their mean or their sum."""
    if reduction != "none":
        losses = (mean if reduction == "mean" else total)(losses)
    return losses.to(dtype)


def weighted(name: str, losses: Tensor, weight: Any) -> Tensor:
    """Losses times a weight that broadcasts, if there is one."""
    return losses if weight is None else losses * operands(name, weight)[0][0]


def operands(name: str, *values: Any, may_be_complex: bool = False) -> tuple[list[Tensor], DType]:
    """Operands as tensors in the dtype to compute in, and their common dtype: that of the floats
    (float32 if there are none). DtypeError for complex numbers unless `may_be_complex`."""
    tensors = [operand(name, value) for value in values]
    dtype: DType | None = None
    for tensor in tensors:
        if tensor.dtype.kind == "complex" and not may_be_complex:
            raise DtypeError(f"{name} takes real numbers, not {tensor.dtype}: take their parts")
        if tensor.dtype.kind in ("float", "complex"):
            dtype = tensor.dtype if dtype is None else promote(dtype, tensor.dtype)
    dtype = dtype or float32
    work = compute_dtypes(dtype)[0]
    return [tensor.to(work) for tensor in tensors], dtype


def warn_of_shapes(name: str, x: Tensor, target: Tensor) -> None:
    """Warn if the shapes of an input and its target differ, so that they are broadcast:
    broadcasting (n, 1) with (n,) is rarely intended."""
    if x.shape != target.shape:
        warnings.warn(
            f"{name}: the target has shape {target.shape} and the input {x.shape}; they are "
            "broadcast, which is rarely meant: reshape one of them",
            stacklevel=4,
        )


def check_same_shape(name: str, **tensors: Tensor) -> None:
    """ShapeError unless all have one shape."""
    shapes = {what: tensor.shape for what, tensor in tensors.items()}
    if len(set(shapes.values())) > 1:
        named = " and ".join(f"{what} {shape}" for what, shape in shapes.items())
        raise ShapeError(f"{name}: the shapes must be equal, but they are {named}")
