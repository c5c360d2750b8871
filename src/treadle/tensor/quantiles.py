"""Order statistics: `quantile`, `percentile`, `median`, `kthvalue`, and those that leave out NaN.

The elements are sorted on the device. Which of them a quantile lies between, and where, depends on
their number alone and is computed on the host, in float64. Where NaN is left out that number is
known on the device only, which looks it up in a table for all numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, bfloat16, bool_, float16, float32
from treadle.core.errors import DtypeError, ShapeError
from treadle.tensor.annotations import ArrayLike, Axes
from treadle.tensor.axes import integer, one_axis, some_axes, takes_dim
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.operands import operand
from treadle.tensor.reductions import count_nonzero
from treadle.tensor.searching import take_along_axis
from treadle.tensor.sorting import argsort, sort
from treadle.tensor.tensor import Tensor

__all__ = [
    "KthValue", "kthvalue", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile",
    "quantile",
]  # fmt: skip

_where = FUNCTIONS["where"]
_Floats = np.ndarray[Any, Any]


@takes_dim
def quantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axes | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """The numbers below which the parts q (from 0 to 1) of the elements lie, along one axis,
    several or all; NaN if an element is NaN.

    q is a number, or an array, whose shape comes first in the result's; it is read. `method` says
    what is taken between two elements. "linear" interpolates, as do NumPy's "hazen", "weibull",
    "median_unbiased", "normal_unbiased" and "interpolated_inverted_cdf", whose positions differ
    slightly; "midpoint" takes the middle. "lower", "higher", "nearest", "inverted_cdf" and
    "closest_observation" take an element, in x's dtype; the others give float32 for integers.
    "averaged_inverted_cdf" takes one, or the mean of two. ShapeError for no elements; ValueError
    for a q that is not from 0 to 1; DtypeError for complex numbers.

    >>> import treadle as td
    >>> x = td.asarray([[4.0, 1.0], [2.0, 3.0]], device="cpu")
    >>> td.quantile(x, 0.5).item(), td.quantile(x, [0.0, 0.75], axis=1).tolist()
    (2.5, [[1.0, 2.0], [3.25, 2.75]])
    """
    return _quantile("quantile", x, _parts("quantile", q, 1), axis, method, keepdims, False)


@takes_dim
def nanquantile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axes | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where all are.

    >>> import treadle as td
    >>> td.nanquantile(td.asarray([1.0, float("nan"), 3.0], device="cpu"), 0.5).item()
    2.0
    """
    return _quantile("nanquantile", x, _parts("nanquantile", q, 1), axis, method, keepdims, True)


@takes_dim
def percentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axes | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`quantile` of q / 100: q is from 0 to 100.

    >>> import treadle as td
    >>> td.percentile(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu"), 50).item()
    2.5
    """
    return _quantile("percentile", x, _parts("percentile", q, 100), axis, method, keepdims, False)


@takes_dim
def nanpercentile(
    x: ArrayLike,
    /,
    q: ArrayLike,
    axis: Axes | None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Tensor:
    """`nanquantile` of q / 100: q is from 0 to 100.

    >>> import treadle as td
    >>> td.nanpercentile(td.asarray([1.0, float("nan"), 3.0], device="cpu"), 25).item()
    1.5
    """
    parts = _parts("nanpercentile", q, 100)
    return _quantile("nanpercentile", x, parts, axis, method, keepdims, True)


@takes_dim
def median(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The element in the middle along one axis, several or all, or the mean of the two in the
    middle, as in NumPy; NaN if one is NaN. (PyTorch's median is the lower one of two:
    `td.quantile(x, 0.5, axis, method="lower")`, or `kthvalue` for its index.) ShapeError for no
    elements.

    >>> import treadle as td
    >>> td.median(td.asarray([[3, 1, 2], [9, 7, 9]], device="cpu"), axis=1).tolist()
    [2.0, 9.0]
    """
    return _quantile("median", x, np.asarray(0.5), axis, "linear", keepdims, False)


@takes_dim
def nanmedian(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """`median` of the elements that are not NaN; NaN where all are.

    >>> import treadle as td
    >>> td.nanmedian(td.asarray([3.0, float("nan"), 1.0], device="cpu")).item()
    2.0
    """
    return _quantile("nanmedian", x, np.asarray(0.5), axis, "linear", keepdims, True)


class KthValue(NamedTuple):
    """The result of `kthvalue`."""

    values: Tensor
    indices: Tensor


@takes_dim
def kthvalue(x: ArrayLike, /, k: int, axis: int = -1, *, keepdims: bool = False) -> KthValue:
    """The k-th least element along an axis, counted from 1, and its index; NaN counts as greatest.
    ShapeError for a k that is not from 1 to the number of elements.

    >>> import treadle as td
    >>> found = td.kthvalue(td.asarray([30, 10, 20], device="cpu"), 2)
    >>> found.values.item(), found.indices.item()
    (20, 2)
    """
    x = operand("kthvalue", x)
    shape = x.shape
    at = one_axis("kthvalue", axis, len(shape) or 1)
    x = x if shape else x.reshape(1)
    wanted = integer("kthvalue", k, "k")
    if not 1 <= wanted <= x.shape[at]:
        raise ShapeError(
            f"kthvalue: k is from 1 to {x.shape[at]}, the elements of axis {at} of shape {shape}, "
            f"not {wanted}"
        )
    part = (slice(None),) * at + (slice(wanted - 1, wanted),)
    places = argsort(x, axis=at)[part]
    values = take_along_axis(x, places, axis=at)
    if keepdims or not shape:
        return KthValue(values.reshape(places.shape if shape else ()),
                        places.copied().reshape(places.shape if shape else ()))  # fmt: skip
    kept = (*shape[:at], *shape[at + 1 :])
    return KthValue(values.reshape(kept), places.copied().reshape(kept))


# --- where a quantile lies --------------------------------------------------------------


def _parts(name: str, q: ArrayLike, whole: float) -> _Floats:
    """The parts as numbers from 0 to 1."""
    given = np.asarray(q.numpy() if isinstance(q, Tensor) else q)
    if given.dtype.kind not in "fiu":
        raise DtypeError(f"{name}: q are real numbers, not {given.dtype}")
    given = given.astype(np.float64)
    if not ((given >= 0) & (given <= whole)).all():
        raise ValueError(f"{name}: q is from 0 to {whole}, not {q!r}")
    return given / whole


def _continuous(alpha: float, beta: float) -> Callable[[_Floats, _Floats], _Floats]:
    """Positions of quantiles by the plotting positions of Hyndman and Fan, from 0."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _averaged(n: _Floats, q: _Floats) -> _Floats:
    """The element after n q others, or the middle between two if n q is whole."""
    at = n * q
    whole = at == np.floor(at)
    return np.where(whole, at - 0.5, np.floor(at))


def _closest(n: _Floats, q: _Floats) -> _Floats:
    """The nearest of the positions n q, counted from 1, halves to the even one."""
    at = n * q - 1.5
    floor = np.floor(at)
    stays = (at == floor) & (floor % 2 == 1)
    return np.where(stays, floor, floor + 1)


# The position of a quantile q of n elements, from 0; whole numbers are elements.
_METHODS: dict[str, Callable[[_Floats, _Floats], _Floats]] = {
    "linear": lambda n, q: (n - 1) * q,
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.rint((n - 1) * q),
    "midpoint": lambda n, q: (np.floor((n - 1) * q) + np.ceil((n - 1) * q)) / 2,
    "inverted_cdf": lambda n, q: np.ceil(n * q) - 1,
    "averaged_inverted_cdf": _averaged,
    "closest_observation": _closest,
    "interpolated_inverted_cdf": _continuous(0, 1),
    "hazen": _continuous(0.5, 0.5),
    "weibull": _continuous(0, 0),
    "median_unbiased": _continuous(1 / 3, 1 / 3),
    "normal_unbiased": _continuous(3 / 8, 3 / 8),
}
_OF_ELEMENTS = frozenset({"lower", "higher", "nearest", "inverted_cdf", "closest_observation"})


def _positions(method: str, count: _Floats, q: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    """The elements below and above quantiles, and how far they are from the one below."""
    at = np.clip(_METHODS[method](count, q), 0, np.maximum(count - 1, 0))
    low = np.floor(at)
    return low.astype(np.int32), np.ceil(at).astype(np.int32), at - low


def _quantile(
    name: str, x: ArrayLike, q: _Floats, axis: Any, method: str, keepdims: bool, without_nan: bool
) -> Tensor:
    if method not in _METHODS:
        raise ValueError(f"{name}: method is one of {', '.join(_METHODS)}, not {method!r}")
    x = operand(name, x)
    if not isinstance(x.dtype, DType) or x.dtype.kind == "complex":
        raise DtypeError(f"{name} takes real numbers, not {x.dtype}")
    if x.dtype is bool_:
        x = x.to(default_integer(x.device))
    axes = sorted(some_axes(name, axis, len(x.shape)))
    kept = [extent for each, extent in enumerate(x.shape) if each not in axes]
    rows = x
    if axes != list(range(len(kept), len(x.shape))):
        rows = moveaxis(x, tuple(axes), tuple(range(len(kept), len(x.shape))))
    count = math.prod([x.shape[each] for each in axes])
    if not count:
        raise ShapeError(f"{name} of no elements: shape {x.shape} along axes {tuple(axes)}")
    ordered = sort(rows.reshape((*kept, count)))
    found = _taken(ordered, count, q.reshape(-1), method, without_nan)
    shown = [1 if each in axes else extent for each, extent in enumerate(x.shape)]
    shape = (*q.shape, *(shown if keepdims else kept))
    if q.ndim and kept:
        found = moveaxis(found, -1, 0).copied()
    return found.reshape(shape)


def _taken(ordered: Tensor, count: int, q: _Floats, method: str, without_nan: bool) -> Tensor:
    """Quantiles of sorted rows, along a last axis."""
    dtype = ordered.dtype
    is_float = dtype.kind == "float"
    result = dtype if is_float or method in _OF_ELEMENTS else float32
    work = float32 if result in (float16, bfloat16) else result
    if without_nan and is_float:
        numbers = np.arange(count + 1, dtype=np.float64)[:, None]
        tables = _positions(method, numbers, q)
        present = count_nonzero(apply("logical_not", apply("isnan", ordered)), axis=-1)
        low, high, part = (
            asarray(each.astype(work.numpy) if each.dtype.kind == "f" else each,
                    device=ordered.device)[present]
            for each in tables
        )  # fmt: skip
        below, above = (take_along_axis(ordered, each, axis=-1).to(work) for each in (low, high))
        return _between(below, above, part).to(result)
    places = _positions(method, np.asarray(float(count)), q)
    below = ordered[..., places[0]].to(work)
    found = below
    if places[2].any():
        above = ordered[..., places[1]].to(work)
        part = asarray(places[2].astype(work.numpy), device=ordered.device)
        found = _between(below, above, part)
    if is_float:  # NaN is sorted behind all others
        found = _where(apply("isnan", ordered[..., -1:]), math.nan, found)
    return found.to(result)


def _between(below: Tensor, above: Tensor, part: Tensor) -> Tensor:
    """The number between two others: exactly one of them at its end, and infinite where it is."""
    if below.dtype.kind != "float":
        return below
    distance = above - below
    near = apply("less", part, 0.5)
    found = _where(near, below + distance * part, above - distance * (1 - part))
    infinite = _where(apply("equal", part, 0), below, below * (1 - part) + above * part)
    return _where(apply("isfinite", distance), found, infinite)
