"""Distances between all pairs of rows."""

from __future__ import annotations

import math

from treadle.core.dtypes import bfloat16, bool_, float16, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import composite
from treadle.tensor.conversions import cast, common_shape
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.operands import prepare
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["cdist"]

_HALVES = (float16, bfloat16)


@composite
def cdist(x1: ArrayLike, x2: ArrayLike, p: float = 2.0) -> Tensor:
    """The distance of each row of x1 to each row of x2, of shape (…, rows of x1, rows of x2);
    leading axes broadcast. It is the p-norm of the difference: the p-th root of the sum of
    |difference|^p; for p = 0 the number of elements that differ, for infinity the greatest
    difference. It is computed from the differences, not from products of the rows, so that near
    rows have a precise distance, and the differences are not materialized.

    >>> import treadle as td
    >>> x = td.asarray([[0.0, 0.0], [3.0, 4.0]], device="cpu")
    >>> td.cdist(x, x).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    _, dtype, nodes = prepare("cdist", (x1, x2))
    if dtype.kind == "complex" or dtype is bool_:
        raise DtypeError(f"cdist takes real numbers, not {dtype}")
    wanted = dtype if dtype.kind == "float" else float32
    work = float32 if wanted in _HALVES else wanted
    left, right = (from_node(cast(node, work)) for node in nodes)
    if len(left.shape) < 2 or len(right.shape) < 2 or left.shape[-1] != right.shape[-1]:
        raise ShapeError(
            f"cdist takes rows of one length: x1 has shape {left.shape} and x2 {right.shape}"
        )
    common_shape("cdist", (left.shape[:-2], right.shape[:-2]))
    if not p >= 0:
        raise ValueError(f"cdist: p must not be negative, as {p} is")
    away = apply("abs", apply("subtract", left[..., :, None, :], right[..., None, :, :]))
    return _norm(away, p).to(wanted)


def _norm(away: Tensor, p: float) -> Tensor:
    """The norm of differences along the last axis."""
    if p == 0:
        return total(apply("not_equal", away, 0).to(away.dtype), axis=-1)
    if p == 1:
        return total(away, axis=-1)
    if p == 2:
        return apply("sqrt", total(FUNCTIONS["square"](away), axis=-1))
    if math.isinf(p):
        return largest(away, axis=-1) if away.shape[-1] else total(away, axis=-1)
    return apply("pow", total(apply("pow", away, p), axis=-1), 1 / p)
