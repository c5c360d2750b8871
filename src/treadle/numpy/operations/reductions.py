"""Reductions: sums, extremes, means, and running sums, with `where=` and `initial=`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.numpy import promotion
from treadle.numpy.operations.calling import call
from treadle.numpy.operations.operands import array, axis_of, converted, reduced_axes
from treadle.tensor.tensor import Tensor as Inner

MISSING: Any = np._NoValue


def _keeps(keepdims: Any) -> bool:
    return False if keepdims is MISSING else bool(keepdims)


def total_dtype(x: Inner) -> DType:
    """The dtype in which NumPy adds up elements."""
    if x.dtype.kind in ("bool", "int", "uint"):
        kind = "uint64" if x.dtype.kind == "uint" else "int64"
        wide = promotion.held(kind, x.device)
        return x.dtype if x.dtype.itemsize > wide.itemsize else wide
    return x.dtype


def _masked(x: Inner, where: Any, value: Any) -> Inner:
    if where is True or where is MISSING:
        return x
    mask = array(where, like=x)
    if mask.dtype.kind != "bool":
        raise TypeError(
            f"Cannot cast array data from dtype('{mask.dtype}') to dtype('bool') according to the "
            "rule 'safe'"
        )
    return td.where(mask, x, td.full((), value, dtype=x.dtype, device=x.device))


def _of_axes(x: Inner, axes: tuple[int, ...], keepdims: Any, found: Inner) -> Inner:
    if not _keeps(keepdims):
        return found
    return found.reshape(tuple(1 if at in axes else e for at, e in enumerate(x.shape)))


def _plain(name: str, x: Any, axis: Any, keepdims: Any) -> Inner | None:
    """A reduction of floating numbers, of all or along one axis, as treadle has it; or None."""
    if type(x) is not Inner or x.dtype.kind != "float" or not x.size:
        return None
    count = len(x.shape)
    if axis is None:
        if not count:
            return None
    elif type(axis) is not int or not -count <= axis < count:
        return None
    function = getattr(td, name)
    found: Inner = (
        function(x, axis=axis)
        if keepdims is MISSING or not keepdims
        else function(x, axis=axis, keepdims=True)
    )
    return found


def _total(
    kind: str, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any, where: Any
) -> Inner:
    x = array(a)
    axes = reduced_axes(axis, len(x.shape))
    wanted = total_dtype(x) if dtype is None else promotion.named(dtype, x.device)
    x = _masked(converted(x, wanted), where, 0 if kind == "sum" else 1)
    is_bool = wanted.kind == "bool"
    function = (td.any if kind == "sum" else td.all) if is_bool else getattr(td, kind)
    made: Inner = x.copied() if not axes else function(x, axis=axes)
    if initial is not MISSING and initial is not None:
        made = call(
            "add" if kind == "sum" else "multiply", made, array(initial, made.dtype, like=made)
        )
    return _of_axes(x, axes, keepdims, made.to(wanted))


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The sum of elements, of all or along axes."""
    if dtype is None and initial is MISSING and where is MISSING:
        made = _plain("sum", a, axis, keepdims)
        if made is not None:
            return made
    return _total("sum", a, axis, dtype, keepdims, initial, where)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The product of elements, of all or along axes."""
    if dtype is None and initial is MISSING and where is MISSING:
        made = _plain("prod", a, axis, keepdims)
        if made is not None:
            return made
    return _total("prod", a, axis, dtype, keepdims, initial, where)


def _bound(x: Inner, is_max: bool) -> Any:
    if x.dtype.kind == "bool":
        return not is_max
    if x.dtype.is_integer:
        limits = td.iinfo(x.dtype)
        return limits.min if is_max else limits.max
    return -np.inf if is_max else np.inf


def _extreme(name: str, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Inner:
    x = array(a)
    if initial is MISSING and where is MISSING:
        made = _plain(name, x, axis, keepdims)
        if made is not None:
            return made
    axes = reduced_axes(axis, len(x.shape))
    has_initial = initial is not MISSING and initial is not None
    if where is not MISSING and where is not True and not has_initial:
        raise ValueError(
            f"reduction operation '{name}imum' does not have an identity, so to use a where mask "
            "one has to specify 'initial'"
        )
    if any_of(x.shape[at] == 0 for at in axes) and not has_initial:
        raise ValueError(f"zero-size array to reduction operation {name}imum which has no identity")
    is_max = name == "max"
    if has_initial:
        first = array(initial, like=x)
        if first.dtype.kind == "complex" or x.dtype.kind == "complex":
            first = converted(first, x.dtype)
        x = _masked(x, where, first.to(x.dtype).item() if where is not MISSING else 0)
        shape = tuple(e for at, e in enumerate(x.shape) if at not in axes)
        if any_of(x.shape[at] == 0 for at in axes):
            made = td.full(shape, initial, dtype=x.dtype, device=x.device)
        else:
            made = _extreme_of(x, axes, is_max)
        made = call(f"{name}imum", made, converted(first, x.dtype))
    else:
        made = _extreme_of(x, axes, is_max)
    return _of_axes(x, axes, keepdims, made)


def _extreme_of(x: Inner, axes: tuple[int, ...], is_max: bool) -> Inner:
    if not axes:
        return x.copied()
    if x.dtype.kind == "complex":
        rest = [at for at in range(len(x.shape)) if at not in axes]
        count = math.prod([x.shape[at] for at in axes])
        flat = td.permute_dims(x, (*rest, *axes)).reshape((*[x.shape[at] for at in rest], count))
        best = argmax(flat, -1) if is_max else argmin(flat, -1)
        return td.take_along_axis(flat, td.expand_dims(best, axis=-1), axis=-1).reshape(
            tuple(x.shape[at] for at in rest)
        )
    return td.max(x, axis=axes) if is_max else td.min(x, axis=axes)


def any_of(values: Any) -> bool:
    """Python's `any`, which a function here hides."""
    return True in list(values)


def amax(
    a: Any,
    axis: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The greatest element, of all or along axes; NaN if there is one."""
    return _extreme("max", a, axis, keepdims, initial, where)


def amin(
    a: Any,
    axis: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The least element, of all or along axes; NaN if there is one."""
    return _extreme("min", a, axis, keepdims, initial, where)


max, min = amax, amin


def ptp(a: Any, axis: Any = None, *, keepdims: Any = MISSING) -> Inner:
    """The greatest element less the least one."""
    found: Inner = call(
        "subtract", amax(a, axis, keepdims=keepdims), amin(a, axis, keepdims=keepdims)
    )
    return found


def all(a: Any, axis: Any = None, *, keepdims: Any = MISSING, where: Any = MISSING) -> Inner:
    """Whether all elements are true."""
    x = array(a).to(td.bool)
    axes = reduced_axes(axis, len(x.shape))
    found = td.all(_masked(x, where, True), axis=axes) if axes else x.copied()
    return _of_axes(x, axes, keepdims, found)


def any(a: Any, axis: Any = None, *, keepdims: Any = MISSING, where: Any = MISSING) -> Inner:
    """Whether any element is true."""
    x = array(a).to(td.bool)
    axes = reduced_axes(axis, len(x.shape))
    found = td.any(_masked(x, where, False), axis=axes) if axes else x.copied()
    return _of_axes(x, axes, keepdims, found)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Inner:
    """The number of elements that are not zero."""
    return sum(array(a).to(td.bool), axis, keepdims=keepdims)


# --- means ----------------------------------------------------------------------------------------


def _counts(x: Inner, axes: tuple[int, ...], where: Any) -> Any:
    """The number of elements in each mean: a number, or a tensor that keeps the axes."""
    if where is MISSING or where is True:
        count = 1
        for at in axes:
            count *= x.shape[at]
        return count
    mask = td.broadcast_to(array(where, like=x), x.shape)
    return td.sum(mask, axis=axes, keepdims=True) if axes else mask


def _mean_dtype(x: Inner, dtype: Any) -> tuple[DType, DType]:
    """The dtype in which a mean is computed, and the result's."""
    if dtype is not None:
        wanted = promotion.named(dtype, x.device)
        return wanted, wanted
    if x.dtype.kind in ("bool", "int", "uint"):
        wanted = promotion.default_float(x.device)
        return wanted, wanted
    return (td.float32 if x.dtype.itemsize == 2 and x.dtype.kind == "float" else x.dtype), x.dtype


def mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = MISSING, where: Any = MISSING
) -> Inner:
    """The mean of elements; of integers in float64."""
    x = array(a)
    if dtype is None and where is MISSING and x.dtype.itemsize > 2:
        quick = _plain("mean", x, axis, keepdims)
        if quick is not None:
            return quick
    axes = reduced_axes(axis, len(x.shape))
    work, wanted = _mean_dtype(x, dtype)
    if work.kind not in ("float", "complex"):
        total = sum(x, axes, dtype=dtype, keepdims=True, where=where)
        made = call("divide", total, _counts(x, axes, where)).to(wanted)
        return made if _keeps(keepdims) else td.squeeze(made, axis=axes)
    x = converted(x, work)
    if where is MISSING or where is True:
        made = td.mean(x, axis=axes) if axes else x.copied()
        return _of_axes(x, axes, keepdims, made.to(wanted))
    total = sum(x, axes, keepdims=True, where=where)
    made = (total / _counts(x, axes, where)).to(wanted)
    return made if _keeps(keepdims) else td.squeeze(made, axis=axes)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = MISSING,
    where: Any = MISSING,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Inner:
    """The variance of elements: the mean square distance from their mean."""
    if correction is not MISSING:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    x = array(a)
    axes = reduced_axes(axis, len(x.shape))
    work, wanted = _mean_dtype(x, dtype)
    x = converted(x, work)
    wanted = wanted.component
    plain = where is MISSING or where is True
    if (
        plain
        and mean is MISSING
        and work.kind == "float"
        and isinstance(ddof, (int, float))
        and axes
        # td.var is NaN for more: the Array API has it so, where NumPy divides by 0.
        and ddof < math.prod([x.shape[at] for at in axes])
    ):
        made = td.var(x, axis=axes, correction=ddof)
        return _of_axes(x, axes, keepdims, made.to(wanted))
    counts = _counts(x, axes, where)
    center = array(mean, like=x) if mean is not MISSING else (
        sum(x, axes, keepdims=True, where=where) / counts
    )  # fmt: skip
    apart = x - center
    square = td.real(apart * td.conj(apart)) if work.kind == "complex" else apart * apart
    total = sum(square, axes, keepdims=True, where=where)
    divisor = td.maximum(counts - ddof, 0) if type(counts) is Inner else (
        counts - ddof if counts > ddof else 0
    )  # fmt: skip
    made = call("divide", total, divisor).to(wanted)
    return made if _keeps(keepdims) else td.squeeze(made, axis=axes)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = MISSING,
    where: Any = MISSING,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Inner:
    """The standard deviation of elements: the root of `var`."""
    return td.sqrt(
        var(
            a, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean,
            correction=correction,
        )
    )  # fmt: skip


def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = MISSING,
) -> Any:
    """The mean of elements with weights. ZeroDivisionError if the weights add up to 0."""
    x = array(a)
    if weights is None:
        made = mean(x, axis, keepdims=keepdims)
        if not made.size:
            raise ZeroDivisionError("division by zero")
        counts = float(_counts(x, reduced_axes(axis, len(x.shape)), MISSING))
        total = td.full(made.shape, counts, dtype=made.dtype, device=made.device)
        return (made, total) if returned else made
    w = array(weights, like=x)
    axes = reduced_axes(axis, len(x.shape))
    if w.shape != x.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        if w.shape != tuple(x.shape[at] for at in axes):
            raise ValueError(
                "Shape of weights must be consistent with shape of a along specified axis."
            )
        order = sorted(range(len(axes)), key=lambda at: axes[at])
        w = td.permute_dims(w, order) if len(order) > 1 else w
        w = w.reshape(tuple(e if at in axes else 1 for at, e in enumerate(x.shape)))
    kinds = [x, w] if x.dtype.kind in ("float", "complex") else [x, w, np.dtype("float64")]
    dtype = promotion.held(promotion.result_type(*kinds), x.device)
    w = td.broadcast_to(converted(w, dtype), x.shape)
    scale = sum(w, axes, keepdims=True)
    if bool(td.any(scale == 0)):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    made = sum(converted(x, dtype) * w, axes, keepdims=True) / scale
    if not _keeps(keepdims):
        made, scale = td.squeeze(made, axis=axes), td.squeeze(scale, axis=axes)
    return (made, td.broadcast_to(scale, made.shape)) if returned else made


# --- places ---------------------------------------------------------------------------------------


def _place(kind: str, a: Any, axis: Any, keepdims: Any) -> Any:
    x = array(a)
    shape = x.shape
    at = None if axis is None else axis_of(axis, max_of(len(shape), 1))
    if x.size == 0 and (at is None or shape[at] == 0):
        raise ValueError(f"attempt to get {kind} of an empty sequence")
    index = promotion.default_integer(x.device)
    if x.dtype.kind == "complex":
        return _of_complex(kind, x, at, keepdims)
    if x.dtype.kind == "bool":
        x = x.to(td.uint8)
    made = getattr(td, kind)(x if at is not None else x.reshape(-1), axis=at or 0).to(index)
    if not _keeps(keepdims):
        return made
    return made.reshape(tuple(1 if at is None or each == at else e for each, e in enumerate(shape)))


def max_of(one: int, other: int) -> int:
    """The greater of two."""
    return one if one > other else other


def _of_complex(kind: str, x: Inner, at: int | None, keepdims: Any) -> Inner:
    """Of the greatest (least) real parts, the greatest (least) imaginary one; NaN is first."""
    best, worst = (td.max, -np.inf) if kind == "argmax" else (td.min, np.inf)
    flat = x.reshape(-1) if at is None else x
    axis = 0 if at is None else at
    real, imag = td.real(flat), td.imag(flat)
    bad = td.isnan(real) | td.isnan(imag)
    tied = real == best(td.where(bad, worst, real), axis=axis, keepdims=True)
    top = best(td.where(tied & ~bad, imag, worst), axis=axis, keepdims=True)
    chosen = tied & (imag == top) & ~bad
    chosen = td.where(td.any(bad, axis=axis, keepdims=True), bad, chosen)
    made = td.argmax(chosen.to(td.uint8), axis=axis).to(promotion.default_integer(x.device))
    if not _keeps(keepdims):
        return made
    return made.reshape(tuple(1 if at is None or n == at else e for n, e in enumerate(x.shape)))


def argmax(a: Any, axis: Any = None, *, keepdims: Any = MISSING) -> Inner:
    """The place of the greatest element, the first of equals."""
    made: Inner = _place("argmax", a, axis, keepdims)
    return made


def argmin(a: Any, axis: Any = None, *, keepdims: Any = MISSING) -> Inner:
    """The place of the least element, the first of equals."""
    made: Inner = _place("argmin", a, axis, keepdims)
    return made


# --- running sums ---------------------------------------------------------------------------------


def _running(kind: str, a: Any, axis: Any, dtype: Any, initial: bool = False) -> Inner:
    x = array(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    elif not x.shape:
        x = x.reshape(1)
    at = axis_of(axis, len(x.shape))
    wanted = total_dtype(x) if dtype is None else promotion.named(dtype, x.device)
    x = converted(x, wanted)
    if wanted.kind == "bool":
        x = x.to(td.int32)
    made: Inner = getattr(td, kind)(x, axis=at, include_initial=initial)
    return made.to(wanted)


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Inner:
    """The sums of the elements up to each, along an axis or of the flattened array."""
    return _running("cumulative_sum", a, axis, dtype)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Inner:
    """The products of the elements up to each."""
    return _running("cumulative_prod", a, axis, dtype)


def _standard(kind: str, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Inner:
    made = array(x)
    if axis is None:
        if len(made.shape) > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is required."
            )
        axis = 0
    return _running(kind, made, axis, dtype, include_initial)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Inner:
    """The sums of the elements up to each, and 0 before them with `include_initial`."""
    return _standard("cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Inner:
    """The products of the elements up to each, and 1 before them with `include_initial`."""
    return _standard("cumulative_prod", x, axis, dtype, include_initial)
