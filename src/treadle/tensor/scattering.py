"""Gather and scatter along an axis: `gather`, `scatter`, `index_add` and similar functions.

Names, arguments and results are PyTorch's. Indices may be negative. One outside its axis gives 0,
and a write there is dropped (indices in a tensor are not read; under TREADLE_CHECK=1 they are, and
raise an IndexError). Functions that end in `_` are methods only and write into the tensor itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.node import Node, constant
from treadle.graph.views import View
from treadle.tensor.advanced_indexing import (
    Term,
    gathered,
    gathered_from_empty,
    places_along,
    scattered_at,
    sum_of,
)
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.axes import one_axis
from treadle.tensor.conversions import cast, is_number, number_as
from treadle.tensor.dtypes import iinfo
from treadle.tensor.elementwise_functions import FUNCTIONS, apply
from treadle.tensor.indexing import Pick, all_inside
from treadle.tensor.manipulation import broadcast_arrays
from treadle.tensor.operands import operand, prepare, values_of
from treadle.tensor.searching import indices_of
from treadle.tensor.tensor import Tensor, from_node

__all__ = [
    "gather", "index_add", "index_copy", "index_fill", "index_select", "masked_fill",
    "masked_select", "scatter", "scatter_add", "scatter_reduce",
]  # fmt: skip

# How values are combined, by PyTorch's names.
_REDUCTIONS = {"sum": "sum", "prod": "prod", "mean": "sum", "amax": "max", "amin": "min"}
_OF_SCATTER = {None: "put", "add": "sum", "multiply": "prod"}


# --- reading -------------------------------------------------------------------------------------


def gather(input: ArrayLike, dim: int, index: ArrayLike) -> Tensor:
    """`input[i, index[i, j], k]` for dim 1, and so for every axis: index has as many axes as input,
    and none but the axis `dim` may be longer. The result has its shape.

    >>> import treadle as td
    >>> x = td.asarray([[1, 2], [3, 4]], device="cpu")
    >>> td.gather(x, 1, td.asarray([[0, 0], [1, 0]], device="cpu")).tolist()
    [[1, 1], [4, 3]]
    """
    x = operand("gather", input)
    places, _ = _flat_places("gather", x, dim, index)
    if not x.size:
        made = from_node(gathered_from_empty(x._node, places.shape))
    else:
        made = from_node(gathered(x._node, places))
    return made if np.shape(index) else made.reshape(())  # type: ignore[arg-type]


def index_select(input: ArrayLike, dim: int, index: ArrayLike) -> Tensor:
    """The parts at some indices along an axis: `td.take` with PyTorch's arguments. From a tensor
    without axes one element is selected, which has none either.

    >>> import treadle as td
    >>> x = td.asarray([10, 20, 30], device="cpu")
    >>> td.index_select(x, 0, td.asarray([2, 0], device="cpu")).tolist()
    [30, 10]
    """
    x = operand("index_select", input)
    at = one_axis("index_select", dim, len(x.shape) or 1)
    places = _one_axis_of("index_select", index)
    if x.shape:
        return x[(slice(None),) * at + (places,)]
    if places.shape != (1,):
        raise ShapeError(
            f"index_select: a tensor without axes takes one index, not {places.shape[0]}"
        )
    return x.reshape(1)[places].reshape(())


def masked_select(input: ArrayLike, mask: ArrayLike) -> Tensor:
    """The elements where a mask is true, in order; both broadcast. Their number is read.

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 3], device="cpu")
    >>> td.masked_select(x, x > 1).tolist()
    [2, 3]
    """
    x, chosen = broadcast_arrays(operand("masked_select", input), _mask("masked_select", mask))
    return x[chosen]


def masked_fill(input: ArrayLike, mask: ArrayLike, value: Any) -> Tensor:
    """The elements, replaced by a number where the mask is true.

    >>> import treadle as td
    >>> x = td.asarray([1, 2, 3], device="cpu")
    >>> td.masked_fill(x, x > 1, 0).tolist()
    [1, 0, 0]
    """
    x, chosen = operand("masked_fill", input), _mask("masked_fill", mask)
    if not is_number(value):
        if tuple(value.shape):
            raise ShapeError(
                f"masked_fill fills with one number, not with shape {tuple(value.shape)}: "
                "td.where(mask, values, x) takes one for each element"
            )
        value = cast(prepare("masked_fill", (value,), x.device)[2][0], x.dtype)
        return FUNCTIONS["where"](chosen, from_node(value), x)
    filled = from_node(values_of(value, (), x.dtype, x.device))
    return FUNCTIONS["where"](chosen, filled, x)


# --- writing -------------------------------------------------------------------------------------


def scatter(
    input: ArrayLike, dim: int, index: ArrayLike, src: ArrayLike, *, reduce: str | None = None
) -> Tensor:
    """The tensor with `src[i, j, k]` written to `[i, index[i, j, k], k]` for dim 1. index must not
    be longer than src along any axis; src may also be a number. Of several values for an element
    the last one stays, or all are added to it or multiplied with it (`reduce="add"`, `"multiply"`).

    >>> import treadle as td
    >>> x, at = td.zeros((2, 3), device="cpu"), td.asarray([[2], [0]], device="cpu")
    >>> td.scatter(x, 1, at, 5.0).tolist()
    [[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]
    """
    if reduce not in _OF_SCATTER:
        raise ValueError(f'scatter: reduce is None, "add" or "multiply", not {reduce!r}')
    return _scattered("scatter", input, dim, index, src, _OF_SCATTER[reduce])


def scatter_add(input: ArrayLike, dim: int, index: ArrayLike, src: ArrayLike) -> Tensor:
    """`scatter` that adds all values for an element to it.

    >>> import treadle as td
    >>> x = td.zeros(3, device="cpu")
    >>> places = td.asarray([0, 2, 2], device="cpu")
    >>> td.scatter_add(x, 0, places, td.ones(3, device="cpu")).tolist()
    [1.0, 0.0, 2.0]
    """
    return _scattered("scatter_add", input, dim, index, src, "sum")


def scatter_reduce(
    input: ArrayLike,
    dim: int,
    index: ArrayLike,
    src: ArrayLike,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """`scatter` that reduces all values for an element: "sum", "prod", "mean", "amax" or "amin" of
    them and, with `include_self`, of the element itself.

    >>> import treadle as td
    >>> x, at = td.zeros(2, device="cpu"), td.asarray([0, 0], device="cpu")
    >>> values = td.asarray([2.0, 4.0], device="cpu")
    >>> td.scatter_reduce(x, 0, at, values, "mean", include_self=False).tolist()
    [3.0, 0.0]
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce is one of {list(_REDUCTIONS)}, not {reduce!r}")
    how = _REDUCTIONS[reduce]
    x = operand("scatter_reduce", input)
    if how != "sum" and x.dtype.kind == "complex":
        raise DtypeError(f"scatter_reduce: complex numbers have no {reduce} here: use sum")
    places, base = _flat_places("scatter_reduce", x, dim, index)
    values = _values("scatter_reduce", src, places, base, x)
    start: Tensor = x
    if not include_self:
        start = from_node(_put(x, places, _neutral(how, x.dtype, x), "put"))
    result = from_node(_put(start, places, values, how))
    if reduce != "mean":
        return result
    count = from_node(constant(int(include_self), x.shape, x.dtype, x.device))
    ones = constant(1, (1,), x.dtype, x.device)
    count = from_node(_put(count, places, ones, "sum"))
    divide = "divide" if x.dtype.kind == "float" else "floor_divide"
    none = apply("equal", count, 0)
    # A count of 0 becomes 1, so that no gradient is NaN there.
    mean = apply(divide, result, FUNCTIONS["where"](none, 1, count))
    return FUNCTIONS["where"](none, x, mean).to(x.dtype)


def index_add(
    input: ArrayLike, dim: int, index: ArrayLike, source: ArrayLike, *, alpha: Any = 1
) -> Tensor:
    """The tensor with `alpha * source[:, i]` added to `[:, index[i]]`, for dim 1.

    >>> import treadle as td
    >>> x = td.zeros((3, 2), device="cpu")
    >>> rows = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.index_add(x, 0, td.asarray([2, 2], device="cpu"), rows).tolist()
    [[0.0, 0.0], [0.0, 0.0], [4.0, 6.0]]
    """
    values = source if alpha == 1 else apply("multiply", source, alpha)
    return _along_one_axis("index_add", input, dim, index, values, "sum")


def index_copy(input: ArrayLike, dim: int, index: ArrayLike, source: ArrayLike) -> Tensor:
    """The tensor with `source[:, i]` written to `[:, index[i]]`, for dim 1.

    >>> import treadle as td
    >>> x = td.asarray([10, 20, 30], device="cpu")
    >>> places = td.asarray([2, 0], device="cpu")
    >>> td.index_copy(x, 0, places, td.asarray([1, 2], device="cpu")).tolist()
    [2, 20, 1]
    """
    return _along_one_axis("index_copy", input, dim, index, source, "put")


def index_fill(input: ArrayLike, dim: int, index: ArrayLike, value: ArrayLike) -> Tensor:
    """The tensor with one number written to `[:, index[i]]`, for dim 1.

    >>> import treadle as td
    >>> x = td.asarray([10, 20, 30], device="cpu")
    >>> td.index_fill(x, 0, td.asarray([0, 2], device="cpu"), -1).tolist()
    [-1, 20, -1]
    """
    return _along_one_axis("index_fill", input, dim, index, value, "put")


# --- shared parts -----------------------------------------------------------------------


def _mask(name: str, mask: Any) -> Tensor:
    chosen = operand(name, mask)
    if chosen.dtype.kind != "bool":
        raise DtypeError(f"{name}: a mask has dtype bool, not {chosen.dtype}: compare, as x > 0")
    return chosen


def _one_axis_of(name: str, index: Any) -> Any:
    found = indices_of(name, index)
    if len(found.shape) > 1:
        raise ShapeError(f"{name}: an index has one axis, not shape {tuple(found.shape)}")
    return found.reshape(-1)


def _flat_places(name: str, x: Tensor, dim: int, index: Any) -> tuple[Node, View]:
    """The linear indices in x's elements, in row-major order, of an index with as many axes, and
    the view of an array of x's shape that has the index's shape. A tensor without axes counts as
    one of shape (1,)."""
    wide = x.shape or (1,)
    at = one_axis(name, dim, len(wide))
    found = indices_of(name, index)
    shape = tuple(found.shape) or (1,)
    found = found.reshape(shape)
    if len(shape) != len(wide):
        raise ShapeError(
            f"{name}: an index of shape {shape} has not as many axes as the tensor, whose shape is "
            f"{x.shape}"
        )
    for axis, (mine, theirs) in enumerate(zip(shape, wide, strict=True)):
        if axis != at and mine > theirs:
            raise ShapeError(
                f"{name}: an index of shape {shape} is longer along axis {axis} than the tensor, "
                f"whose shape is {x.shape}"
            )
    steps = list(views.whole(wide).strides)
    step, steps[at] = steps[at], 0
    base = View(shape, tuple(steps), 0)
    return _linear(found, at, wide[at], step, base, x), base


def _linear(index: Any, axis: int, extent: int, step: int, base: View, x: Tensor) -> Node:
    inside = isinstance(index, np.ndarray)
    values = all_inside(index, axis, extent) if inside else index
    places, valid = places_along(Pick((axis,), values, inside=inside), extent, x._node)
    seen = views.expand(views.whole(places.shape), base.shape)
    return sum_of(base, [Term(places, valid, seen, step)], x.size, x.device)


def _scattered(name: str, input: Any, dim: int, index: Any, src: Any, how: str) -> Tensor:
    x = operand(name, input)
    places, base = _flat_places(name, x, dim, index)
    return from_node(_put(x, places, _values(name, src, places, base, x), how))


def _values(name: str, src: Any, places: Node, base: View, x: Tensor) -> Node:
    """The values to write: one number, or the part of an array that an index covers."""
    if is_number(src):
        return values_of(src, (1,), x.dtype, x.device)
    values = prepare(name, (src,), x.device)[2][0]
    if values.dtype is not x.dtype:
        raise DtypeError(
            f"{name}: src is {values.dtype} and the tensor {x.dtype}: cast one of them"
        )
    shape = values.shape or ((1,) if len(base.shape) == 1 else ())
    if len(shape) != len(base.shape) or any(
        mine > theirs for mine, theirs in zip(base.shape, shape, strict=True)
    ):
        raise ShapeError(
            f"{name}: an index of shape {base.shape} reaches beyond src, whose shape is "
            f"{values.shape}"
        )
    steps = views.whole(shape).strides
    return from_node(values)._seen_through(View(base.shape, steps, 0))._node


def _put(x: Tensor, places: Node, values: Node, how: str) -> Node:
    """A copy of x with values written at linear indices."""
    if how in ("prod", "min", "max") and x.dtype.kind == "complex":
        raise DtypeError("complex numbers are only reduced by sums: reduce their parts")
    return scattered_at(x._node, places, values, how)


def _neutral(how: str, dtype: DType, x: Tensor) -> Node:
    """The neutral value of a reduction."""
    number: Any = int(how == "prod")
    if how in ("min", "max"):
        if dtype.kind == "float":
            number = math.inf if how == "min" else -math.inf
        elif dtype.kind == "bool":
            number = how == "min"
        else:
            number = getattr(iinfo(dtype), "max" if how == "min" else "min")
    return constant(number_as(number, dtype), (1,), dtype, x.device)


def _along_one_axis(name: str, input: Any, dim: int, index: Any, source: Any, how: str) -> Tensor:
    x = operand(name, input)
    at = one_axis(name, dim, max(len(x.shape), 1))
    wide = x.shape or (1,)
    found = _one_axis_of(name, index)
    count = int(found.shape[0])
    shape = (*wide[:at], count, *wide[at + 1 :])
    steps = list(views.whole(wide).strides)
    step, steps[at] = steps[at], 0
    spread = found.reshape((count,) + (1,) * (len(wide) - 1 - at))
    places = _linear(spread, at, wide[at], step, View(shape, tuple(steps), 0), x)
    if is_number(source) or (name == "index_fill" and not tuple(source.shape)):
        values = values_of(source, (1,), x.dtype, x.device)
    else:
        values = prepare(name, (source,), x.device)[2][0]
        if values.dtype is not x.dtype:
            raise DtypeError(
                f"{name}: source is {values.dtype} and the tensor {x.dtype}: cast one of them"
            )
        if (values.shape or (1,)) != shape:
            raise ShapeError(
                f"{name}: source has shape {values.shape}, and {count} places along axis {at} of "
                f"shape {x.shape} take {shape}"
            )
    return from_node(_put(x, places, values, how))


# --- methods -------------------------------------------------------------------------------------


def _in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(function)
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        made = function(self, *arguments, **keywords)
        if self._is_kept_by(made):
            made = function(self.copied(), *arguments, **keywords)
        self._write(made._node)
        return self

    name = f"{function.__name__}_"
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"`{function.__name__}`, written into the tensor itself; the tensor."
    return method


METHODS: dict[str, Callable[..., Tensor]] = {name: globals()[name] for name in __all__} | {
    f"{name}_": _in_place(globals()[name])
    for name in (
        "index_add", "index_copy", "index_fill", "masked_fill", "scatter", "scatter_add",
        "scatter_reduce",
    )
}  # fmt: skip
