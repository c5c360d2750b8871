"""Reductions that leave out elements that are NaN: `nansum`, `nanmean`, `nanmax` and the like.

They are made of the reductions of the same names and fused with what is around them; derivatives
follow from those of their parts, and are 0 for what is left out.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import DType, bfloat16, float16, float32
from treadle.core.errors import DtypeError
from treadle.tensor.annotations import ArrayLike, Axes, DTypeLike
from treadle.tensor.axes import takes_dim
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.operands import operand
from treadle.tensor.reductions import all as every
from treadle.tensor.reductions import argmax, argmin
from treadle.tensor.reductions import max as greatest
from treadle.tensor.reductions import min as least
from treadle.tensor.reductions import prod as product
from treadle.tensor.reductions import sum as total
from treadle.tensor.scans import cumulative_prod, cumulative_sum
from treadle.tensor.tensor import Tensor

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip

_where = FUNCTIONS["where"]


@takes_dim
def nansum(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """`td.sum` of the elements that are not NaN: 0 if there are none.

    >>> import treadle as td
    >>> td.nansum(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    3.0
    """
    return total(_instead("nansum", x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


@takes_dim
def nanprod(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> Tensor:
    """`td.prod` of the elements that are not NaN: 1 if there are none.

    >>> import treadle as td
    >>> td.nanprod(td.asarray([2.0, float("nan"), 3.0], device="cpu")).item()
    6.0
    """
    return product(_instead("nanprod", x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The running sum along an axis, for which NaN is 0; without an axis of x.reshape(-1).

    >>> import treadle as td
    >>> td.nancumsum(td.asarray([1.0, float("nan"), 2.0], device="cpu")).tolist()
    [1.0, 1.0, 3.0]
    """
    values, at = _along(_instead("nancumsum", x, 0), axis)
    return cumulative_sum(values, axis=at, dtype=dtype)


def nancumprod(x: ArrayLike, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The running product along an axis, for which NaN is 1; without an axis of x.reshape(-1).

    >>> import treadle as td
    >>> td.nancumprod(td.asarray([2.0, float("nan"), 3.0], device="cpu")).tolist()
    [2.0, 2.0, 6.0]
    """
    values, at = _along(_instead("nancumprod", x, 1), axis)
    return cumulative_prod(values, axis=at, dtype=dtype)


@takes_dim
def nanmax(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The greatest of the elements that are not NaN along one axis, several or all; NaN if all are.
    ShapeError for no elements, DtypeError for complex numbers.

    >>> import treadle as td
    >>> td.nanmax(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    2.0
    """
    return _extreme("nanmax", x, greatest, -math.inf, axis, keepdims)


@takes_dim
def nanmin(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The least of the elements that are not NaN along one axis, several or all; NaN if all are.
    ShapeError for no elements, DtypeError for complex numbers.

    >>> import treadle as td
    >>> td.nanmin(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    1.0
    """
    return _extreme("nanmin", x, least, math.inf, axis, keepdims)


@takes_dim
def nanargmax(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the greatest element that is not NaN along an axis, the first of equals, and -1
    if all are NaN (where NumPy raises, for which the elements would have to be read). Without an
    axis, the index in x.reshape(-1).

    >>> import treadle as td
    >>> td.nanargmax(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    2
    """
    return _place("nanargmax", x, argmax, -math.inf, axis, keepdims)


@takes_dim
def nanargmin(x: ArrayLike, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least element that is not NaN along an axis, the first of equals, and -1 if
    all are NaN. Without an axis, the index in x.reshape(-1).

    >>> import treadle as td
    >>> td.nanargmin(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    0
    """
    return _place("nanargmin", x, argmin, math.inf, axis, keepdims)


@takes_dim
def nanmean(x: ArrayLike, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements that are not NaN along one axis, several or all, in `td.mean`'s
    dtypes; NaN if there are none.

    >>> import treadle as td
    >>> td.nanmean(td.asarray([1.0, float("nan"), 2.0], device="cpu")).item()
    1.5
    """
    values, missing, dtype = _floating("nanmean", x)
    found = total(values, axis=axis, keepdims=keepdims) / _count(values, missing, axis, keepdims)
    return found.to(dtype)


@takes_dim
def nanvar(
    x: ArrayLike, /, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance of the elements that are not NaN: the sum of the squared differences from their
    mean, divided by their number minus `correction`; NaN where that is not positive.

    >>> import treadle as td
    >>> td.nanvar(td.asarray([1.0, float("nan"), 3.0], device="cpu"), correction=1).item()
    2.0
    """
    values, missing, dtype = _floating("nanvar", x)
    middle = total(values, axis=axis, keepdims=True) / _count(values, missing, axis, True)
    away: Any = _where(missing, 0, values - middle)
    if dtype.kind == "complex":
        dtype = dtype.component
        away = apply("abs", away)
    count = _count(away, missing, axis, keepdims) - correction
    found = total(away * away, axis=axis, keepdims=keepdims) / count
    return _where(apply("greater", count, 0), found, math.nan).to(dtype)


@takes_dim
def nanstd(
    x: ArrayLike, /, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The standard deviation of the elements that are not NaN: the square root of `nanvar`.

    >>> import treadle as td
    >>> td.nanstd(td.asarray([1.0, float("nan"), 3.0], device="cpu")).item()
    1.0
    """
    values, _, dtype = _floating("nanstd", x)
    wide = _where(apply("isnan", operand("nanstd", x)), math.nan, values)
    found = nanvar(wide, axis=axis, correction=correction, keepdims=keepdims)
    return apply("sqrt", found).to(dtype.component if dtype.kind == "complex" else dtype)


# --- shared parts -----------------------------------------------------------------------


def _numbers(name: str, x: ArrayLike) -> Tensor:
    x = operand(name, x)
    if not isinstance(x.dtype, DType):
        raise DtypeError(f"{name} takes numbers, not structs ({x.dtype})")
    return x


def _instead(name: str, x: ArrayLike, number: float) -> Tensor:
    """The elements, with a number in the place of NaN."""
    x = _numbers(name, x)
    return _where(apply("isnan", x), number, x) if x.dtype.kind in ("float", "complex") else x


def _along(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _floating(name: str, x: ArrayLike) -> tuple[Tensor, Tensor, DType]:
    """The elements as floats that are precise enough to accumulate, with 0 in the place of NaN;
    which of them are NaN; the result's dtype."""
    x = _numbers(name, x)
    dtype = x.dtype if x.dtype.kind in ("float", "complex") else float32
    assert isinstance(dtype, DType)
    values = x.to(float32 if dtype in (float16, bfloat16) else dtype)
    missing = apply("isnan", values)
    return _where(missing, 0, values), missing, dtype


def _count(values: Tensor, missing: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """The number of elements that are not NaN, in the dtype of the values."""
    present = apply("logical_not", missing).to(default_integer(values.device))
    return total(present, axis=axis, keepdims=keepdims).to(values.dtype)


def _extreme(
    name: str, x: ArrayLike, reduce: Any, number: float, axis: Any, keepdims: bool
) -> Tensor:
    x = _numbers(name, x)
    if x.dtype.kind != "float":
        return reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]
    missing = apply("isnan", x)
    found = reduce(_where(missing, number, x), axis=axis, keepdims=keepdims)
    return _where(every(missing, axis=axis, keepdims=keepdims), math.nan, found)


def _place(
    name: str, x: ArrayLike, reduce: Any, number: float, axis: Any, keepdims: bool
) -> Tensor:
    x = _numbers(name, x)
    if x.dtype.kind != "float":
        return reduce(x, axis=axis, keepdims=keepdims)  # type: ignore[no-any-return]
    missing = apply("isnan", x)
    values = _where(missing, number, x)
    found = reduce(values, axis=axis, keepdims=keepdims)
    # Where the extreme is the number that stands for NaN, the first that is not NaN is meant.
    first = argmax(apply("logical_not", missing).to(default_integer(x.device)), axis=axis,
                   keepdims=keepdims)  # fmt: skip
    extreme = (greatest if number < 0 else least)(values, axis=axis, keepdims=keepdims)
    found = _where(apply("equal", extreme, number), first, found)
    return _where(every(missing, axis=axis, keepdims=keepdims), -1, found)
