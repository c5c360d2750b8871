"""Covariances and correlations of variables: `cov`, `corrcoef`."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.runtime.arrays import numpy_dtype
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.assembly import concat
from treadle.tensor.computed_views import complex_of
from treadle.tensor.conversions import cast
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.manipulation import diagonal
from treadle.tensor.operands import as_nodes, prepare
from treadle.tensor.products import matmul
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["corrcoef", "cov"]


def cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Tensor:
    """The covariance matrix of variables, with NumPy's arguments: x has a variable in each row and
    an observation in each column (the other way round without `rowvar`); one axis is one variable,
    whose result has no axes. The variables of y are added.

    It is divided by the number of observations minus `ddof`, which is 1, or 0 with `bias`.
    `fweights` says how often each observation occurs, in integers, `aweights` how much it weighs.
    The dtype is x's, or float32 for integers. ShapeError for more than two axes, or for weights
    that are not one for each observation.

    >>> import treadle as td
    >>> td.cov(td.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], device="cpu")).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    rows, dtype = _variables("cov", x, y, rowvar)
    return _covariance("cov", rows, bias, ddof, fweights, aweights).to(dtype)


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, /, rowvar: bool = True) -> Tensor:
    """The correlation matrix of variables, which are given as for `cov`: their covariances, divided
    by the standard deviations of both, limited to -1 … 1. NaN for a variable that is constant.

    >>> import treadle as td
    >>> td.corrcoef(td.asarray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]], device="cpu")).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    rows, dtype = _variables("corrcoef", x, y, rowvar)
    found: Any = _covariance("corrcoef", rows, False, None, None, None)
    if not found.shape:
        return apply("divide", found, found).to(dtype)
    spread = apply("sqrt", apply("real", diagonal(found)))
    found = found / spread.reshape(-1, 1) / spread.reshape(1, -1)
    clip = FUNCTIONS["clip"]
    if dtype.kind != "complex":
        return clip(found, -1, 1).to(dtype)
    real, imaginary = (clip(apply(part, found), -1, 1) for part in ("real", "imag"))
    return complex_of(real, imaginary).to(dtype)


def _variables(name: str, x: ArrayLike, y: ArrayLike | None, rowvar: bool) -> tuple[Tensor, DType]:
    """The variables as rows of floats that are precise enough to add up, and the result's dtype."""
    given = (x,) if y is None else (x, y)
    device, dtype, found = prepare(name, given)
    if dtype.kind not in ("float", "complex"):
        dtype = float32
    work = float32 if dtype in (float16, bfloat16) else dtype
    parts = []
    for each in found:
        rows = from_node(as_nodes((each,), work, getattr(each, "shape", ()), device)[0])
        if len(rows.shape) > 2:
            raise ShapeError(f"{name} takes one axis or two, not shape {rows.shape}")
        if len(rows.shape) < 2:
            rows = rows.reshape(1, rows.size)
        elif not rowvar:
            rows = rows.T
        parts.append(rows)
    if len(parts) == 2 and parts[0].shape[1] != parts[1].shape[1]:
        raise ShapeError(
            f"{name}: x has {parts[0].shape[1]} observations and y {parts[1].shape[1]}: they must "
            "be equal"
        )
    return (concat(parts) if len(parts) == 2 else parts[0]), dtype


def _covariance(
    name: str, rows: Tensor, bias: bool, ddof: int | None, fweights: Any, aweights: Any
) -> Tensor:
    if ddof is not None and ddof != int(ddof):
        raise ValueError(f"{name}: ddof is an integer, not {ddof}")
    less = int(ddof) if ddof is not None else 0 if bias else 1
    count = rows.shape[1]
    weights = None
    for what, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            one = _weights(name, what, given, rows)
            weights = one if weights is None else weights * one
    by: Any = max(count - less, 0)
    if weights is None:
        away = rows - total(rows, axis=1, keepdims=True) / count
        other = away
    else:
        whole: Any = total(weights)
        away = rows - total(rows * weights, axis=1, keepdims=True) / whole
        other = away * weights
        by = whole - less
        if aweights is not None and less:
            squares = total(weights * _weights(name, "aweights", aweights, rows))
            by = whole - less * squares / whole
        by = apply("maximum", by, 0)
    if rows.dtype.kind == "complex":
        other = apply("conj", other)
    found = matmul(away, other.T)
    found = from_node(cast(apply("divide", found, by)._node, rows.dtype))
    return found.reshape(()) if found.shape == (1, 1) else found


def _weights(name: str, what: str, given: Any, rows: Tensor) -> Any:
    whole = False
    if isinstance(given, list | tuple | np.ndarray):
        # NumPy's integers have 64 bits, which not every device has: here they become numbers.
        given = np.asarray(given)
        whole = given.dtype.kind in "iu"
        if whole:
            given = given.astype(numpy_dtype(rows.dtype.component))
    _, dtype, (node,) = prepare(name, (given,), rows.device)
    if node.shape != (rows.shape[1],):
        raise ShapeError(
            f"{name}: {what} are one number for each of {rows.shape[1]} observations, not of shape "
            f"{node.shape}"
        )
    if what == "fweights" and not (whole or dtype.is_integer):
        raise DtypeError(f"{name}: fweights are integers, not {dtype}: aweights may be any numbers")
    return from_node(cast(node, rows.dtype.component))
