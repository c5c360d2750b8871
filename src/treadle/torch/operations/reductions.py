"""Reductions, with PyTorch's several forms of `max`, `min` and their like."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating, integers
from treadle.torch.operations.axes import long, one, reduced
from treadle.torch.operations.operands import ValuesIndices, cast, promoted

_WITH_MEAN: dict[str, Any] = {
    "std": namedtuple("StdMean", "std mean"), "var": namedtuple("VarMean", "var mean"),
}  # fmt: skip
AMinMax = namedtuple("AMinMax", "min max")


def _wide(input: Inner, dtype: DType | None) -> DType | None:
    """Integers and bools are added up in int64."""
    if dtype is not None or input.dtype.kind in ("float", "complex"):
        return dtype
    return integers(input.device)


def _in_floats(name: str, input: Inner, dtype: DType | None = None) -> Inner:
    """The elements in a floating dtype; RuntimeError if they have none."""
    if dtype is not None:
        input = input.to(dtype)
    if input.dtype.kind not in ("float", "complex"):
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {input.dtype}"
        )
    return input


# --- sums ----------------------------------------------------------------------------------------


def sum(
    input: Inner, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The sum of all elements, or along axes. Integers and bools are added up in int64."""
    if dim is None and dtype is None and input.dtype.kind == "float":
        return td.sum(input, axis=None, keepdims=keepdim)
    axes = reduced(dim, len(input.shape))
    return td.sum(input, axis=axes, keepdims=keepdim, dtype=_wide(input, dtype))


def nansum(
    input: Inner, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The sum of the elements that are not NaN."""
    if input.dtype.kind == "float":
        input = td.where(td.isnan(input), 0, input)
    return sum(input, dim, keepdim, dtype=dtype)


def prod(
    input: Inner, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The product of all elements, or along an axis. Integers and bools are multiplied in int64."""
    axis = None if dim is None else (one(dim, len(input.shape)),)
    return td.prod(input, axis=axis, keepdims=keepdim, dtype=_wide(input, dtype))


def mean(
    input: Inner, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The mean of floating elements, all or along axes."""
    if dim is None and dtype is None and input.dtype.kind == "float":
        return td.mean(input, axis=None, keepdims=keepdim)
    input = _in_floats("mean", input, dtype)
    return td.mean(input, axis=reduced(dim, len(input.shape)), keepdims=keepdim)


def nanmean(
    input: Inner, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Inner:
    """The mean of the elements that are not NaN."""
    input = _in_floats("nanmean", input, dtype)
    known = td.isnan(input) == False  # noqa: E712 - a tensor
    count = sum(known, dim, keepdim).to(input.dtype)
    return td.divide(nansum(input, dim, keepdim), count)


def _spread(name: str) -> Any:
    of = getattr(td, name)

    def function(
        input: Inner, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None,
    ) -> Inner:  # fmt: skip
        axes, by = _spread_of(input, dim, unbiased, correction)
        return _spread_by(of, _in_floats(name, input), axes, by, keepdim)

    function.__name__ = name
    function.__doc__ = (
        f"`td.{name}` of a sample (`correction` is 1), of all elements or along axes."
    )
    return function


def _spread_by(of: Any, input: Inner, axes: Any, correction: Any, keepdim: bool) -> Inner:
    """`td.var` or `td.std`, which are NaN where the correction is all elements or more: the Array
    API has it so, where PyTorch divides by 0."""
    every = range(len(input.shape)) if axes is None else axes
    count = math.prod([input.shape[at] for at in every])
    if correction < count or not count:
        return of(input, axis=axes, correction=correction, keepdims=keepdim)  # type: ignore[no-any-return]
    return of(input, axis=axes, correction=0, keepdims=keepdim) / 0.0  # type: ignore[no-any-return]


def _spread_of(input: Inner, dim: Any, unbiased: bool | None, correction: Any) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return reduced(dim, len(input.shape)), correction


def _with_mean(name: str) -> Any:
    of = getattr(td, name)
    result = _WITH_MEAN[name]

    def function(
        input: Inner, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None,
    ) -> Any:  # fmt: skip
        axes, by = _spread_of(input, dim, unbiased, correction)
        found = _spread_by(of, _in_floats(name, input), axes, by, keepdim)
        return result(found, td.mean(input, axis=axes, keepdims=keepdim))

    function.__name__ = f"{name}_mean"
    function.__doc__ = f"`{name}` and `mean`."
    return function


# --- logic ---------------------------------------------------------------------------------------


def all(input: Inner, dim: Any = None, keepdim: bool = False) -> Inner:
    """Whether all elements are not 0."""
    return _logical(td.all, input, dim, keepdim)


def any(input: Inner, dim: Any = None, keepdim: bool = False) -> Inner:
    """Whether an element is not 0."""
    return _logical(td.any, input, dim, keepdim)


def _logical(of: Any, input: Inner, dim: Any, keepdim: bool) -> Inner:
    found = of(input, axis=reduced(dim, len(input.shape)), keepdims=keepdim)
    return found.to(td.uint8) if input.dtype is td.uint8 else found


def count_nonzero(input: Inner, dim: Any = None) -> Inner:
    """How many elements are not 0."""
    return long(td.count_nonzero(input, axis=reduced(dim, len(input.shape))))


# --- extremes ------------------------------------------------------------------------------------


def amax(input: Inner, dim: Any = (), keepdim: bool = False) -> Inner:
    """The greatest element, of all or along axes; gradients are spread evenly over equal ones."""
    return _extreme("amax", td.max, input, dim, keepdim)


def amin(input: Inner, dim: Any = (), keepdim: bool = False) -> Inner:
    """The least element, of all or along axes; gradients are spread evenly over equal ones."""
    return _extreme("amin", td.min, input, dim, keepdim)


def _extreme(name: str, of: Any, input: Inner, dim: Any, keepdim: bool) -> Inner:
    axes = reduced(dim, len(input.shape))
    shape = input.shape
    for axis in range(len(shape)) if axes is None else axes:
        if shape and not shape[axis]:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    return of(input, axis=axes, keepdims=keepdim)


def aminmax(input: Inner, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The least and the greatest element, of all or along an axis."""
    axes = () if dim is None else (one(dim, len(input.shape)),)
    return AMinMax(
        _extreme("aminmax", td.min, input, axes, keepdim),
        _extreme("aminmax", td.max, input, axes, keepdim),
    )


def _along(name: str, of: Any, where: Any, pairwise: str) -> Any:
    def function(
        input: Inner, dim: Any = None, keepdim: bool = False, *, other: Inner | None = None
    ) -> Any:
        if isinstance(dim, Inner) or other is not None:
            return promoted(pairwise, input, dim if other is None else other)
        if dim is None:
            if not input.size:
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            return of(input)
        at = one(dim, len(input.shape))
        if not input.shape:
            return ValuesIndices(
                input.copied(), td.zeros((), dtype=integers(input.device), device=input.device)
            )
        if not input.shape[at]:
            raise IndexError(f"{name}(): Expected reduction dim {at} to have non-zero size.")
        found = long(where(input, axis=at, keepdims=True))
        if input._is_recorded:  # the gradient is that of the element which is chosen
            values = td.take_along_axis(input, found, axis=at)
            values = values if keepdim else td.squeeze(values, axis=at)
        else:
            values = of(input, axis=at, keepdims=keepdim)
        return ValuesIndices(values, found if keepdim else td.squeeze(found, axis=at))

    function.__name__ = name
    function.__doc__ = (
        f"td.{name} of all elements; along an axis, with the indices; or of pairs of elements."
    )
    return function


def argmax(input: Inner, dim: int | None = None, keepdim: bool = False) -> Inner:
    """Where the greatest element is, in the flattened tensor or along an axis."""
    return _place("argmax", td.argmax, input, dim, keepdim)


def argmin(input: Inner, dim: int | None = None, keepdim: bool = False) -> Inner:
    """Where the least element is, in the flattened tensor or along an axis."""
    return _place("argmin", td.argmin, input, dim, keepdim)


def _place(name: str, of: Any, input: Inner, dim: int | None, keepdim: bool) -> Inner:
    axis = None if dim is None else one(dim, len(input.shape))
    if not input.size and (axis is None or not input.shape[axis]):
        raise IndexError(f"{name}(): Expected reduction dim to have non-zero size.")
    return long(of(input, axis=axis, keepdims=keepdim))


# --- logarithms, norms ---------------------------------------------------------------------------


def logsumexp(input: Inner, dim: Any, keepdim: bool = False) -> Inner:
    """The logarithm of the sum of exponentials, along axes."""
    input = cast(input, floating(input.dtype))
    return td.logsumexp(input, axis=reduced(dim, len(input.shape)), keepdims=keepdim)


def norm(
    input: Inner, p: Any = "fro", dim: Any = None, keepdim: bool = False, *,
    dtype: DType | None = None,
) -> Inner:  # fmt: skip
    """A norm of vectors; "nuc" is one of matrices."""
    from treadle.torch.operations import linear_algebra as norms

    if p == "nuc":
        axes = (-2, -1) if dim is None else dim
        return norms.matrix_norm(input, "nuc", axes, keepdim, dtype=dtype)
    order = 2 if p in (None, "fro") else p
    return norms.vector_norm(input, order, dim, keepdim, dtype=dtype)


def dist(input: Inner, other: Inner, p: float = 2) -> Inner:
    """The norm of the difference."""
    from treadle.torch.operations import linear_algebra as norms

    return norms.vector_norm(promoted("subtract", input, other), p)


def renorm(input: Inner, p: float, dim: int, maxnorm: float) -> Inner:
    """The parts along an axis, those with a norm above a limit scaled down to it."""
    at = one(dim, len(input.shape))
    axes = tuple([axis for axis in range(len(input.shape)) if axis != at])
    sizes = td.linalg.vector_norm(input, axis=axes, keepdims=True, ord=p)
    scale = td.where(sizes > maxnorm, maxnorm / (sizes + 1e-7), 1.0)
    return input * scale.to(input.dtype)


# --- order ---------------------------------------------------------------------------------------


def _cut(found: Inner, at: int, keepdim: bool) -> Inner:
    return found if keepdim else td.squeeze(found, axis=at)


def kthvalue(input: Inner, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th least element along an axis, and its index."""
    at = one(dim, len(input.shape))
    if not input.shape:
        return ValuesIndices(
            input.copied(), td.zeros((), dtype=integers(input.device), device=input.device)
        )
    if not 1 <= k <= input.shape[at]:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return _kth(input, k - 1, at, keepdim)


def _kth(input: Inner, k: Any, at: int, keepdim: bool) -> Any:
    """The element of a place in order; the place may be a tensor."""
    order = long(td.argsort(input, axis=at))
    if isinstance(k, Inner):
        found = td.take_along_axis(order, k, axis=at)
    else:
        found = order[(slice(None),) * at + (slice(k, k + 1),)]
    values = td.take_along_axis(input, found, axis=at)
    return ValuesIndices(_cut(values, at, keepdim), _cut(found, at, keepdim).copied())


def median(input: Inner, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the middle elements; along an axis with its index. NaN if there is one."""
    return _middle(input, dim, keepdim, False)


def nanmedian(input: Inner, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not NaN."""
    return _middle(input, dim, keepdim, True)


def _evenly(found: Inner, flat: Inner) -> Inner:
    """An element found among others, whose gradient all that equal it have in equal parts."""
    found = found.detach()
    same = (flat == found) & td.isfinite(flat)
    share = td.where(same, flat - flat.detach(), 0)
    return found + td.sum(share) / td.clip(td.sum(same), 1).to(flat.dtype)


def _middle(input: Inner, dim: int | None, keepdim: bool, skips: bool) -> Any:
    if dim is None:
        if not input.size:
            return td.full((), math.nan, dtype=input.dtype, device=input.device)
        flat = input.reshape(input.size)
        found = _middle(flat, 0, False, skips).values
        return _evenly(found, flat) if found.requires_grad else found
    at = one(dim, len(input.shape))
    if not input.shape:
        return ValuesIndices(
            input.copied(), td.zeros((), dtype=integers(input.device), device=input.device)
        )
    extent = input.shape[at]
    if not extent:
        raise IndexError(f"median(): Expected reduction dim {at} to have non-zero size.")
    if input.dtype.kind != "float":
        return _kth(input, (extent - 1) // 2, at, keepdim)
    lacking = td.isnan(input)
    missing = td.sum(lacking, axis=at, keepdims=True, dtype=integers(input.device))
    middle = td.floor_divide(td.clip(extent - 1 - missing, 0), 2)
    if not skips:  # NaN is last in order
        middle = td.where(missing > 0, extent - missing, (extent - 1) // 2)
    return _kth(input, long(middle), at, keepdim)


def mode(input: Inner, dim: int = -1, keepdim: bool = False) -> Any:
    """The element that occurs most often along an axis, the least of several, and an index."""
    at = one(dim, len(input.shape))
    if not input.shape:
        return ValuesIndices(
            input.copied(), td.zeros((), dtype=integers(input.device), device=input.device)
        )
    if not input.shape[at]:
        raise IndexError(f"mode(): Expected reduction dim {at} to have non-zero size.")
    from treadle.torch.operations.scans import running

    order = long(td.argsort(input, axis=at))
    ordered = td.take_along_axis(input.detach(), order, axis=at)
    count = input.shape[at]
    row = td.arange(count, dtype=integers(input.device), device=input.device)
    row = row.reshape((count,) + (1,) * (len(input.shape) - at - 1))
    front = (slice(None),) * at
    differs = ordered[(*front, slice(1, None))] != ordered[(*front, slice(None, -1))]
    begins = td.concat([td.ones_like(differs[(*front, slice(0, 1))]), differs], axis=at)
    if count == 1:
        begins = td.ones(input.shape, dtype=td.bool, device=input.device)
    # How far each element is from the first one that equals it.
    (start,) = running(lambda a, b: (td.maximum(a[0], b[0]),), (td.where(begins, row, 0),), at)
    chosen = td.argmax(row - start, axis=at, keepdims=True)
    found = td.take_along_axis(order, chosen, axis=at)
    values = td.take_along_axis(input, found, axis=at)
    return ValuesIndices(_cut(values, at, keepdim), _cut(found, at, keepdim))


def quantile(
    input: Inner, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Inner:  # fmt: skip
    """The numbers below which the parts q of the elements lie."""
    return _quantile("quantile", False, input, q, dim, keepdim, interpolation)


def nanquantile(
    input: Inner, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Inner:  # fmt: skip
    """`quantile` of the elements that are not NaN."""
    return _quantile("nanquantile", True, input, q, dim, keepdim, interpolation)


def _quantile(
    name: str, skips: bool, input: Inner, q: Any, dim: Any, keepdim: bool, interpolation: str
) -> Inner:
    if input.dtype not in (td.float32, td.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    if isinstance(q, Inner):
        if q.dtype is not input.dtype or len(q.shape) > 1:
            raise RuntimeError(
                f"{name}() q tensor must be a scalar or a 1D tensor of the input's dtype, not "
                f"{q.dtype} of shape {list(q.shape)}"
            )
    elif not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    is_flat = dim is None or not input.shape
    at = 0 if dim is None else one(dim, len(input.shape))
    if not input.size and (is_flat or not input.shape[at]):
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    rows = input.reshape(input.size) if is_flat else td.moveaxis(input, at, -1)
    parts = q if isinstance(q, Inner) else td.asarray(q, dtype=input.dtype, device=input.device)
    found = _between(td.sort(rows, axis=-1), parts.reshape(parts.size), skips, interpolation)
    # The parts are the last axis, and come first in PyTorch.
    found = td.moveaxis(found, -1, 0)
    if keepdim:
        ones = (1,) * len(input.shape)
        shape = ones if is_flat else (*input.shape[:at], 1, *input.shape[at + 1 :])
        found = found.reshape((parts.size, *shape))
    return found if parts.shape else td.squeeze(found, axis=0)


def _between(ordered: Inner, parts: Inner, skips: bool, interpolation: str) -> Inner:
    """The elements of sorted rows, or what is between two of them, at parts of their length."""
    extent = ordered.shape[-1]
    missing = td.sum(td.isnan(ordered), axis=-1, keepdims=True).to(ordered.dtype)
    ranks: Any
    if skips:
        ranks = parts * td.clip(extent - 1 - missing, 0)
    else:  # NaN is last, and all quantiles of its row
        ranks = td.where(missing > 0, extent - 1, parts * (extent - 1))
    if interpolation in _ROUNDED:
        ranks = _ROUNDED[interpolation](ranks)
    low: Any = td.floor(ranks)
    high: Any = td.ceil(ranks)
    below, above = (
        td.take_along_axis(ordered, long(each.detach()), axis=-1) for each in (low, high)
    )
    weight: Any = 0.5 if interpolation == "midpoint" else ranks - low.detach()
    return below + (above - below) * weight if interpolation not in _ROUNDED else below


_ROUNDED = {"lower": td.floor, "higher": td.ceil, "nearest": td.round}


FUNCTIONS = {
    "max": _along("max", td.max, td.argmax, "maximum"),
    "min": _along("min", td.min, td.argmin, "minimum"),
    "std": _spread("std"),
    "std_mean": _with_mean("std"),
    "var": _spread("var"),
    "var_mean": _with_mean("var"),
}
