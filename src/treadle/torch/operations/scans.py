"""Running sums, products, extremes and the like along an axis, and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating, integers
from treadle.torch.operations.axes import one
from treadle.torch.operations.operands import ValuesIndices, cast

Several = tuple[Inner, ...]


def running(combine: Callable[[Several, Several], Several], values: Several, at: int) -> Several:
    """What an associative function makes of all elements up to each, along an axis: in as many
    steps as the extent has binary digits, each over twice as many elements as the last."""
    extent, step, front = values[0].shape[at], 1, (slice(None),) * at
    while step < extent:
        before = tuple([each[(*front, slice(None, extent - step))] for each in values])
        behind = tuple([each[(*front, slice(step, None))] for each in values])
        made = combine(before, behind)
        values = tuple(
            [
                td.concat([each[(*front, slice(None, step))], new], axis=at)
                for each, new in zip(values, made, strict=True)
            ]
        )
        step *= 2
    return values


def cumsum(input: Inner, dim: int, *, dtype: DType | None = None) -> Inner:
    """The running sum; integers are added up in int64."""
    return _total(td.cumulative_sum, input, dim, dtype)


def cumprod(input: Inner, dim: int, *, dtype: DType | None = None) -> Inner:
    """The running product; integers are multiplied in int64."""
    return _total(td.cumulative_prod, input, dim, dtype)


def _total(of: Any, input: Inner, dim: int, dtype: DType | None) -> Inner:
    if dtype is None and input.dtype.kind not in ("float", "complex"):
        dtype = integers(input.device)
    if dtype is not None:
        input = cast(input, dtype)
    at = one(dim, len(input.shape))
    return of(input, axis=at, dtype=dtype) if input.shape else input.copied()


def _extreme(name: str, below: str) -> Any:
    def combine(a: Several, b: Several) -> Several:
        takes = getattr(td, below)(a[0], b[0])  # the later one of equals
        if a[0].dtype.kind == "float":
            takes = (takes & (td.isnan(a[0]) == False)) | td.isnan(b[0])  # noqa: E712 - a tensor
        return tuple([td.where(takes, mine, theirs) for mine, theirs in zip(b, a, strict=True)])

    def function(input: Inner, dim: int) -> Any:
        at = one(dim, len(input.shape))
        if not input.shape:
            zero = td.zeros((), dtype=integers(input.device), device=input.device)
            return ValuesIndices(input.copied(), zero)
        shape, known = input.shape, input.detach()
        if not input.size:
            return ValuesIndices(
                input.copied(), td.zeros(shape, dtype=integers(input.device), device=input.device)
            )
        row = td.arange(shape[at], dtype=integers(input.device), device=input.device)
        row = row.reshape((shape[at],) + (1,) * (len(shape) - at - 1))
        _, found = running(combine, (known, td.broadcast_to(row, shape)), at)
        return ValuesIndices(td.take_along_axis(input, found, axis=at), found)

    function.__name__ = name
    function.__doc__ = f"The running {name[3:]}imum, and the index of each."
    return function


def logcumsumexp(input: Inner, dim: int) -> Inner:
    """The logarithm of the running sum of exponentials."""
    input = cast(input, floating(input.dtype))
    at = one(dim, len(input.shape))
    if not input.shape or not input.size:
        return input.copied()
    (found,) = running(lambda a, b: (td.logaddexp(a[0], b[0]),), (input,), at)
    return found


def diff(
    input: Inner, n: int = 1, dim: int = -1, prepend: Inner | None = None,
    append: Inner | None = None,
) -> Inner:  # fmt: skip
    """The differences of neighbours along an axis, n times over."""
    if not input.shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    at = one(dim, len(input.shape))
    if n == 0:
        return input.copied()
    if n > 1:
        input = _joined(input, prepend, append, at)
        prepend = append = None
        if n >= input.shape[at]:
            return input[(slice(None),) * at + (slice(0, 0),)].copied()
    return td.diff(input, axis=at, n=n, prepend=prepend, append=append)


def _joined(input: Inner, prepend: Inner | None, append: Inner | None, at: int) -> Inner:
    parts = [each for each in (prepend, input, append) if each is not None]
    return td.concat(parts, axis=at) if len(parts) > 1 else input


def trapezoid(y: Inner, x: Inner | None = None, *, dx: Any = 1, dim: int = -1) -> Inner:
    """The integral along an axis by the trapezoidal rule."""
    return td.sum(_areas(y, x, dx, dim), axis=dim)


def cumulative_trapezoid(y: Inner, x: Inner | None = None, *, dx: Any = 1, dim: int = -1) -> Inner:
    """The running integral along an axis by the trapezoidal rule."""
    return td.cumulative_sum(_areas(y, x, dx, dim), axis=dim)


def _areas(y: Inner, x: Inner | None, dx: Any, dim: int) -> Inner:
    at = one(dim, len(y.shape))
    if y.dtype.kind not in ("float", "complex"):
        y = y.to(floating(y.dtype))
    front = (slice(None),) * at
    low, high = y[(*front, slice(None, -1))], y[(*front, slice(1, None))]
    if x is None:
        return (low + high) * (dx / 2)
    if len(x.shape) == 1 or x.shape == ():
        if x.size != y.shape[at] and x.size != 1:
            raise RuntimeError("trapezoid: there must be one `x` value for each sample point")
        x = x.reshape((x.size,) + (1,) * (len(y.shape) - at - 1))
        own = 0
    else:
        own = len(x.shape) - len(y.shape) + at
    ahead = (slice(None),) * own
    width = x[(*ahead, slice(1, None))] - x[(*ahead, slice(None, -1))]
    return (low + high) * width.to(y.dtype) / 2


FUNCTIONS = {
    "cummax": _extreme("cummax", "less_equal"),
    "cummin": _extreme("cummin", "greater_equal"),
}
