"""Counts of values: `bincount`, `histogram`, `histc`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, bool_, float32, float64, int32, int64
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.graph import history as histories
from treadle.graph.node import Node, constant
from treadle.graph.placeholders import record_composite
from treadle.tensor.advanced_indexing import scattered_at
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import cast
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer, supports
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.operands import prepare
from treadle.tensor.reductions import max as largest
from treadle.tensor.reductions import min as smallest
from treadle.tensor.reductions import sum as total
from treadle.tensor.searching import searchsorted
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["Histogram", "bincount", "histc", "histogram"]


class Histogram(NamedTuple):
    """The result of `histogram`."""

    hist: Tensor
    bin_edges: Tensor


def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of 0, 1, 2, … among non-negative integers along one axis, or the
    sums of their weights. The result has one element more than the greatest integer, which is read,
    and at least `minlength` elements.

    >>> import treadle as td
    >>> td.bincount(td.asarray([1, 3, 1], device="cpu")).tolist()
    [0, 2, 0, 1]
    >>> td.bincount(td.asarray([1, 0], device="cpu"), weights=[0.5, 2.0], minlength=3).tolist()
    [2.0, 0.5, 0.0]
    """
    values = x if type(x) is Tensor else asarray(x)
    if values.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"bincount counts integers, not {values.dtype}: cast them")
    if len(values.shape) != 1:
        raise ShapeError(f"bincount takes one axis, not shape {values.shape}: use x.reshape(-1)")
    if minlength < 0:
        raise ValueError(f"bincount: minlength is not negative, as {minlength} is")
    length = minlength
    if values.size:
        length = max(length, _greatest(values) + 1)
    places = values._node
    if values.dtype.kind == "uint":  # as indices are
        places = cast(places, int32 if length < MOST_NARROW else int64)
    if weights is None:
        return _counted(places, None, length, default_integer(values.device))
    node = prepare("bincount", (weights,), values.device)[2][0]
    if node.shape != values.shape:
        raise ShapeError(
            f"bincount: there is one weight for each of shape {values.shape}, not {node.shape}"
        )
    dtype = node.dtype if node.dtype.kind in ("float", "complex") else float32
    return _counted(places, cast(node, dtype), length, dtype)


def histogram(
    x: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> Histogram:
    """The number of elements in each bin, as NumPy's: `bins` is the number of equal bins from the
    least to the greatest element (or over `range`), or an ascending sequence of edges. The last bin
    includes its upper edge, the others do not; elements outside, and NaN, are not counted. With
    `weights` these are summed; with `density` the areas of the bins sum to 1.

    >>> import treadle as td
    >>> counts, edges = td.histogram(td.asarray([1.0, 2.0, 1.5, 4.0], device="cpu"), bins=3)
    >>> counts.tolist(), edges.tolist()
    ([2, 1, 1], [1.0, 2.0, 3.0, 4.0])
    """
    values = (x if type(x) is Tensor else asarray(x)).reshape(-1)
    values = _real("histogram", values)
    edges = _edges("histogram", values, bins, range)
    found = asarray(edges.astype(values.dtype.numpy), device=values.device)
    if _is_count(bins) and range is None and values._is_recorded:
        # The range is that of the elements, which were read for it.
        record_composite(histories.Unknown("histogram"), [found._cell.value], [values._node])
    parts = len(edges) - 1
    place = apply("subtract", searchsorted(found, values, side="right"), 1)
    last = apply("equal", values, found[parts])
    place = FUNCTIONS["where"](last, parts - 1, place)  # the last bin includes its upper edge
    node, wanted = None, default_integer(values.device)
    if weights is not None:
        node = prepare("histogram", (weights,), values.device)[2][0]
        if node.size != values.size:
            raise ShapeError(
                f"histogram: there is one weight for each of {values.size} elements, and weights "
                f"have shape {node.shape}"
            )
        wanted = node.dtype if node.dtype.kind in ("float", "complex") else float32
        node = from_node(cast(node, wanted)).reshape(-1)._node
    inside = apply("logical_not", apply("isnan", values)) if values.dtype.kind == "float" else None
    if inside is not None:
        place = FUNCTIONS["where"](inside, place, -1)
    hist = _counted(place._node, node, parts, wanted)
    if density:
        widths = apply("subtract", found[1:], found[:-1])
        hist = apply("divide", apply("divide", hist.to(found.dtype), widths), total(hist))
    return Histogram(hist, found)


def histc(input: ArrayLike, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """PyTorch's histogram: the counts of `bins` equal bins from min to max (of the elements, if
    both are 0), in the elements' dtype."""
    x = input if type(input) is Tensor else asarray(input)
    chosen = None if min == max == 0 else (min, max)
    return histogram(x, bins, chosen).hist.to(x.dtype)


# --- shared parts -----------------------------------------------------------------------


def _greatest(values: Tensor) -> int:
    """The greatest of some integers; ValueError if one is negative. One number is read: among
    signed integers, negative ones count as the greatest that there is."""
    most = int(np.iinfo(values.dtype.numpy).max)
    negative = apply("less", values, 0) if values.dtype.kind == "int" else None
    shown = values if negative is None else FUNCTIONS["where"](negative, most, values)
    found = int(largest(shown).item())
    if found == most and negative is not None and (low := smallest(values).item()) < 0:
        raise ValueError(f"bincount takes no negative integers such as {low}")
    return found


def _counted(places: Node, weights: Node | None, length: int, dtype: DType) -> Tensor:
    """Numbers accumulated at indices; indices outside are dropped."""
    device = places.device
    zeros = constant(0, (length,), dtype, device)
    if not length or not places.size:
        return from_node(zeros)
    values = weights or constant(1, (1,), dtype, device)
    return from_node(scattered_at(zeros, places, values, "sum"))


def _real(name: str, values: Tensor) -> Tensor:
    dtype = values.dtype
    if dtype.kind == "complex":
        raise DtypeError(f"{name}: complex numbers have no order")
    if dtype.kind == "float":
        return values
    exact = float64 if dtype.itemsize >= 4 and supports(values.device, float64) else float32
    return values.to(int32).to(exact) if dtype is bool_ else values.to(exact)


def _is_count(bins: Any) -> bool:
    """Whether bins is a number of equal bins and not edges. (Arrays have `__index__`, too.)"""
    return hasattr(bins, "__index__") and not getattr(bins, "shape", ())


def _edges(name: str, values: Tensor, bins: Any, span: Any) -> np.ndarray[Any, Any]:
    """The edges, as NumPy computes them."""
    if not _is_count(bins):
        edges = np.asarray(bins.numpy() if type(bins) is Tensor else bins, np.float64)
        if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) < 0).any():
            raise ValueError(f"{name}: edges are two or more numbers that ascend")
        return edges
    bins = bins.__index__()
    if bins < 1:
        raise ValueError(f"{name}: bins must be positive, not {bins}")
    if span is None:
        low, high = (smallest(values).item(), largest(values).item()) if values.size else (0, 1)
    else:
        low, high = span
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name}: {low} to {high} has no {bins} equal bins: give another range")
    if low > high:
        raise ValueError(f"{name}: a range goes up, not from {low} to {high}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)
