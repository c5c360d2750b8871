"""Medians, quantiles, covariances, histograms, and reductions that leave NaN out."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations import reductions, sorting
from treadle.numpy.operations.operands import (
    array,
    common,
    common_floats,
    converted,
    floats,
    host,
    reduced_axes,
)
from treadle.numpy.operations.reductions import MISSING
from treadle.tensor.computed_views import complex_of
from treadle.tensor.tensor import Tensor as Inner


def _kept(x: Inner, axes: tuple[int, ...], keepdims: Any, made: Inner, front: int = 0) -> Inner:
    if keepdims is MISSING or not keepdims:
        return made
    extents = tuple(1 if at in axes else e for at, e in enumerate(x.shape))
    return made.reshape((*made.shape[:front], *extents))


def median(a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Inner:
    """The middle element of the sorted ones, or the mean of the middle two; NaN if there is one."""
    return _median(a, axis, keepdims, False)


def nanmedian(
    a: Any, axis: Any = None, overwrite_input: bool = False, keepdims: Any = MISSING
) -> Inner:
    """The same of the elements that are not NaN."""
    return _median(a, axis, keepdims, True)


def _median(a: Any, axis: Any, keepdims: Any, skips: bool) -> Inner:
    x = floats(a)
    axes = reduced_axes(axis, len(x.shape))
    if not axes:
        return x.copied()
    lines = _lines(x, axes)
    if not lines.shape[-1]:
        made = td.full(lines.shape[:-1], math.nan, dtype=x.dtype, device=x.device)
    elif x.dtype.kind == "complex":
        ordered = sorting.sort(lines)
        half = lines.shape[-1] // 2
        middle = (
            ordered[..., half]
            if lines.shape[-1] % 2
            else (ordered[..., half - 1] + ordered[..., half]) / 2
        )
        made = td.where(td.any(td.isnan(lines), axis=-1), math.nan, middle)
    else:
        function = td.nanmedian if skips else td.median
        made = function(_wide(lines), axis=-1).to(x.dtype)
    return _kept(x, axes, keepdims, made)


def _wide(x: Inner) -> Inner:
    return x.to(td.float32) if x.dtype.itemsize == 2 else x


def _lines(x: Inner, axes: tuple[int, ...]) -> Inner:
    """The axes as one, the last."""
    rest = [at for at in range(len(x.shape)) if at not in axes]
    turned = td.permute_dims(x, (*rest, *axes))
    count = math.prod(x.shape[at] for at in axes)
    return turned.reshape((*[x.shape[at] for at in rest], count))


# The methods whose results are elements.
_ELEMENTS = ("closest_observation", "higher", "inverted_cdf", "lower", "nearest")


def _quantile(
    a: Any, q: Any, axis: Any, method: str, keepdims: Any, weights: Any, skips: bool, scale: float
) -> Inner:
    if weights is not None:
        raise NotImplementedError("quantiles with weights= have no form for devices")
    if array(a).dtype.kind == "complex":
        raise TypeError("a must be an array of real numbers")
    x = floats(a)
    own = x.dtype
    wanted = host(q)
    if wanted.dtype.kind not in "biuf":
        raise TypeError("q must be real numbers")
    wanted = wanted.astype(np.float64) / scale
    if wanted.size and not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(
            "Percentiles must be in the range [0, 100]"
            if scale == 100
            else "Quantiles must be in the range [0, 1]"
        )
    if array(a).dtype.kind == "bool" and method == "linear":
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported: use integers")
    # Only a number of Python's takes the array's dtype.
    if not isinstance(q, (int, float)) or isinstance(q, np.generic):
        kind = host(q).dtype
        own = promotion.held(
            promotion.result_type(own, kind if kind.kind == "f" else np.dtype(float)), x.device
        )
    if method in _ELEMENTS:
        own = array(a).dtype
    axes = reduced_axes(axis, len(x.shape))
    lines = _lines(_wide(x), axes) if axes else _wide(x).reshape((*x.shape, 1))
    if not lines.shape[-1]:
        raise (
            IndexError("index -1 is out of bounds for axis 0 with size 0")
            if not skips
            else ValueError("no elements")
        )
    function = td.nanquantile if skips else td.quantile
    given = td.asarray(wanted.reshape(-1), dtype=lines.dtype, device=x.device)
    made = function(lines, given, axis=-1, method=method)
    made = made.reshape((*wanted.shape, *lines.shape[:-1])).to(own)
    return _kept(x, axes, keepdims, made, wanted.ndim)


def quantile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Inner:  # fmt: skip
    """The element below which a part q of all elements lies."""
    return _quantile(a, q, axis, method, keepdims, weights, False, 1.0)


def percentile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Inner:  # fmt: skip
    """The element below which q percent of all elements lie."""
    return _quantile(a, q, axis, method, keepdims, weights, False, 100.0)


def nanquantile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = MISSING, *, weights: Any = None,
) -> Inner:  # fmt: skip
    """`quantile` of the elements that are not NaN."""
    return _quantile(a, q, axis, method, keepdims, weights, True, 1.0)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = MISSING, *, weights: Any = None,
) -> Inner:  # fmt: skip
    """`percentile` of the elements that are not NaN."""
    return _quantile(a, q, axis, method, keepdims, weights, True, 100.0)


# --- without NaN ----------------------------------------------------------------------------------


def _without(a: Any, value: Any) -> Inner:
    x = array(a)
    if x.dtype.kind not in ("float", "complex"):
        return x
    return td.where(td.isnan(x), td.full((), value, dtype=x.dtype, device=x.device), x)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = MISSING, initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:  # fmt: skip
    """The sum of the elements that are not NaN."""
    return reductions.sum(
        _without(a, 0), axis, dtype, keepdims=keepdims, initial=initial, where=where
    )


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = MISSING, initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:  # fmt: skip
    """The product of the elements that are not NaN."""
    return reductions.prod(
        _without(a, 1), axis, dtype, keepdims=keepdims, initial=initial, where=where
    )


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Inner:
    """Running sums in which NaN counts as 0."""
    return reductions.cumsum(_without(a, 0), axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Inner:
    """Running products in which NaN counts as 1."""
    return reductions.cumprod(_without(a, 1), axis, dtype)


def _there(a: Any, where: Any) -> tuple[Inner, Any]:
    """The elements, and where they count."""
    x = array(a)
    if x.dtype.kind not in ("float", "complex"):
        return x, where
    known = ~td.isnan(x)
    if where is not MISSING and where is not True:
        known = known & array(where, like=x)
    return x, known


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = MISSING, *, where: Any = MISSING
) -> Inner:
    """The mean of the elements that are not NaN."""
    x, known = _there(a, where)
    return reductions.mean(x, axis, dtype, keepdims=keepdims, where=known)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Inner:  # fmt: skip
    """The variance of the elements that are not NaN; NaN where there are too few."""
    x, known = _there(a, where)
    made = reductions.var(
        x, axis, dtype, ddof=ddof, keepdims=keepdims, where=known, mean=mean, correction=correction
    )
    if known is MISSING:
        return made
    axes = reduced_axes(axis, len(x.shape))
    freedom = ddof if correction is MISSING else correction
    counts = reductions.sum(td.broadcast_to(known, x.shape), axes, keepdims=keepdims)
    return td.where(counts <= freedom, math.nan, made).to(made.dtype)


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = MISSING, *,
    where: Any = MISSING, mean: Any = MISSING, correction: Any = MISSING,
) -> Inner:  # fmt: skip
    """The standard deviation of the elements that are not NaN."""
    return td.sqrt(
        nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


def _nan_extreme(a: Any, axis: Any, keepdims: Any, initial: Any, where: Any, is_max: bool) -> Inner:
    x = array(a)
    function = reductions.amax if is_max else reductions.amin
    if x.dtype.kind not in ("float", "complex"):
        return function(x, axis, keepdims=keepdims, initial=initial, where=where)
    bad = td.isnan(x)
    made = function(
        _without(x, -np.inf if is_max else np.inf),
        axis,
        keepdims=keepdims,
        initial=initial,
        where=where,
    )
    if initial is not MISSING:
        return made
    return td.where(reductions.all(bad, axis, keepdims=keepdims), math.nan, made).to(x.dtype)


def nanmax(
    a: Any,
    axis: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The greatest element that is not NaN."""
    return _nan_extreme(a, axis, keepdims, initial, where, True)


def nanmin(
    a: Any,
    axis: Any = None,
    *,
    keepdims: Any = MISSING,
    initial: Any = MISSING,
    where: Any = MISSING,
) -> Inner:
    """The least element that is not NaN."""
    return _nan_extreme(a, axis, keepdims, initial, where, False)


def _nan_place(a: Any, axis: Any, keepdims: Any, is_max: bool) -> Inner:
    x = array(a)
    if (
        x.dtype.kind in ("float", "complex")
        and x.size
        and bool(td.any(reductions.all(td.isnan(x), axis)))
    ):
        raise ValueError("All-NaN slice encountered")
    value = -np.inf if is_max else np.inf
    function = reductions.argmax if is_max else reductions.argmin
    return function(_without(x, value), axis, keepdims=keepdims)


def nanargmax(a: Any, axis: Any = None, *, keepdims: Any = MISSING) -> Inner:
    """The place of the greatest element that is not NaN. ValueError if all are."""
    return _nan_place(a, axis, keepdims, True)


def nanargmin(a: Any, axis: Any = None, *, keepdims: Any = MISSING) -> Inner:
    """The place of the least element that is not NaN. ValueError if all are."""
    return _nan_place(a, axis, keepdims, False)


# --- covariances ----------------------------------------------------------------------------------


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Inner:  # fmt: skip
    """The covariances of variables, which are rows (columns with rowvar=False)."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    given = [array(m)] if y is None else common(m, y)
    if any(len(each.shape) > 2 for each in given):
        raise ValueError(
            "m has more than 2 dimensions"
            if len(given[0].shape) > 2
            else "y has more than 2 dimensions"
        )
    if dtype is None:
        work = promotion.held(promotion.result_type(*given, np.float64), given[0].device)
    else:
        work = promotion.named(dtype, given[0].device)
    rows = []
    for each in given:
        x = converted(each, work)
        x = x.reshape((1, x.size)) if len(x.shape) < 2 else x
        rows.append(td.matrix_transpose(x) if not rowvar and x.shape[0] != 1 else x)
    x = rows[0] if len(rows) == 1 else td.concat(rows)
    count = x.shape[1]
    freedom = (0 if bias else 1) if ddof is None else int(ddof)
    weights: Any = None
    if fweights is not None:
        weights = _weights("fweights", fweights, count, x)
        if bool(
            td.any(
                array(fweights, like=x).to(work.component)
                != td.round(array(fweights, like=x).to(work.component))
            )
        ):
            raise TypeError("fweights must be integer")
    if aweights is not None:
        other = _weights("aweights", aweights, count, x)
        weights = other if weights is None else weights * other
    if weights is None:
        mean = td.mean(x, axis=1, keepdims=True)
        factor: Any = count - freedom
    else:
        total = td.sum(weights)
        mean = td.sum(x * weights, axis=1, keepdims=True) / total
        if freedom == 0:
            factor = total
        elif aweights is None:
            factor = total - freedom
        else:
            factor = (
                total
                - freedom * td.sum(weights * array(aweights, like=x).to(weights.dtype)) / total
            )
        factor = factor.item()
    if factor <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=3)
        factor = 0.0
    apart = x - mean
    right = apart if weights is None else apart * weights
    right = td.matrix_transpose(td.conj(right) if work.kind == "complex" else right)
    made = td.matmul(apart, right) / td.full((), float(factor), dtype=work, device=x.device)
    return made.reshape(()) if made.shape == (1, 1) else made


def _weights(name: str, value: Any, count: int, x: Inner) -> Inner:
    made = array(value, like=x)
    if len(made.shape) > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if made.shape != (count,):
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if bool(td.any(made < 0)):
        raise ValueError(f"{name} cannot be negative")
    return made.to(x.dtype.component)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Inner:
    """The correlation coefficients of variables."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.shape:
        return c / c
    spread = td.sqrt(td.real(td.linalg.diagonal(c)))
    made = c / spread.reshape((-1, 1)) / spread.reshape((1, -1))
    if made.dtype.kind == "complex":
        return complex_of(td.clip(td.real(made), -1, 1), td.clip(td.imag(made), -1, 1))
    return td.clip(made, -1, 1)


# --- histograms -----------------------------------------------------------------------------------


def _edges(x: Inner, bins: Any, range: Any, weights: Any) -> Inner:
    """The edges of bins, in the host's numbers where the array's extremes are read."""
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError(
                "Automated estimation of the number of bins is not supported for weighted data"
            )
        return td.asarray(np.histogram_bin_edges(host(x), bins, range), device=x.device)
    if type(bins) is Inner or isinstance(bins, (np.ndarray, list, tuple)) or np.ndim(bins) == 1:
        edges = array(bins, like=x)
        if len(edges.shape) != 1:
            if edges.shape:
                raise ValueError("`bins` must be 1d, when an array")
            return _edges(x, int(edges.item()), range, weights)
        values = host(edges)
        if (values[:-1] > values[1:]).any():
            raise ValueError("`bins` must increase monotonically, when an array")
        return edges
    try:
        count = bins.__index__()
    except AttributeError:
        raise TypeError("`bins` must be an integer, a string, or an array") from None
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    low: Any
    high: Any
    if range is not None:
        low, high = (float(each) for each in range)
        if low > high:
            raise ValueError("max must be larger than min in range parameter.")
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"supplied range of [{low}, {high}] is not finite")
    elif not x.size:
        low, high = 0.0, 1.0
    else:
        # In the array's dtype, in which NumPy then computes the edges.
        low, high = td.stack([td.min(x), td.max(x)]).numpy()
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"autodetected range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    work = x.dtype if x.dtype.kind == "float" else promotion.default_float(x.device)
    return td.asarray(
        np.linspace(low, high, count + 1, dtype=work.host), dtype=work, device=x.device
    )


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Inner:
    """The edges of a histogram's bins."""
    return _edges(_counted(a).reshape(-1), bins, range, weights)


def _counted(a: Any) -> Inner:
    x = array(a)
    if x.dtype.kind == "complex":
        raise NotImplementedError("histograms of complex numbers: take their parts, or np.abs")
    return x.to(td.uint8) if x.dtype.kind == "bool" else x


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Inner, Inner]:
    """How many elements lie in each bin, and the bins' edges."""
    x = _counted(a)
    w = None
    if weights is not None:
        w = array(weights, like=x)
        if w.shape != x.shape:
            raise ValueError("weights should have the same shape as a.")
        w = w.reshape(-1)
    x = x.reshape(-1)
    edges = _edges(x, bins, range, w)
    count = edges.size - 1
    one, other = common(x, edges)
    places = td.searchsorted(other, one, side="right") - 1
    places = td.where(one == other[-1], count - 1, places)
    inside = (one >= other[0]) & (one <= other[-1])
    places = td.where(inside, places, count).to(td.int32)
    index = promotion.default_integer(x.device)
    if w is None:
        made = td.bincount(places, minlength=count + 1)[:count].to(index)
    elif w.dtype.kind == "complex":
        parts = [td.bincount(places, each, count + 1)[:count] for each in (td.real(w), td.imag(w))]
        made = complex_of(*[each.to(w.dtype.component) for each in parts])
    else:
        made = td.bincount(places, floats(w) if w.dtype.kind != "float" else w, count + 1)[:count]
        made = td.round(made).to(w.dtype) if w.dtype.is_integer else made.to(w.dtype)
    if density:
        widths = floats(edges[1:] - edges[:-1])
        total = floats(made)
        made = total / widths / td.sum(total)
    return made, edges


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Inner, list[Inner]]:
    """How many points lie in each bin of several axes, and the bins' edges."""
    x = array(sample)
    if isinstance(sample, (list, tuple)) or len(x.shape) != 2:
        if len(x.shape) > 2:
            raise ValueError("too many axes: a sample is a row of each point, or a list of axes")
        x = td.matrix_transpose(x) if len(x.shape) == 2 else x.reshape((-1, 1))
    x = floats(_counted(x))
    axes = x.shape[1]
    is_one = not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0
    each_bins = [bins] * axes if is_one else list(bins)
    if len(each_bins) != axes:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * axes if range is None else list(range)
    if len(ranges) != axes:
        raise ValueError("range argument must have one entry per dimension")
    edges = [
        floats(_edges(x[:, at], each_bins[at], ranges[at], None)) for at in builtins.range(axes)
    ]
    counts = [each.size - 1 for each in edges]
    flat: Any = 0
    inside: Any = None
    for at, line in enumerate(edges):
        values = x[:, at]
        one, other = common(values, line)
        places = td.searchsorted(other, one, side="right") - 1
        places = td.where(one == other[-1], counts[at] - 1, places)
        fits = (one >= other[0]) & (one <= other[-1])
        inside = fits if inside is None else inside & fits
        flat = places + flat * counts[at]
    total = math.prod(counts)
    flat = td.where(inside, flat, total).to(td.int32)
    w = None if weights is None else floats(array(weights, like=x)).reshape(-1)
    made = (
        td.bincount(flat, w, total + 1)[:total]
        .to(promotion.default_float(x.device))
        .reshape(tuple(counts))
    )
    if density:
        made = made / td.sum(made)
        for at, line in enumerate(edges):
            widths = (line[1:] - line[:-1]).reshape(
                tuple(-1 if n == at else 1 for n in builtins.range(axes))
            )
            made = made / widths
    return made, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Inner, Inner, Inner]:
    """How many points of two coordinates lie in each bin, and the edges along both axes."""
    one, other = common_floats(x, y)
    if one.shape != other.shape:
        raise ValueError("x and y must have the same length.")
    if (isinstance(bins, (list, tuple)) and len(bins) not in (1, 2)) or (
        isinstance(bins, (Inner, np.ndarray)) and bins.shape not in ((), (1,), (2,))
    ):
        bins = [bins, bins]
    if isinstance(bins, (Inner, np.ndarray)) and bins.shape == (2,):
        bins = [int(each) for each in host(bins)]
    made, edges = histogramdd([one, other], bins, range, density, weights)
    return made, edges[0], edges[1]
