"""Permutations, and parts of arrays that are chosen at random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treadle.core.dtypes import float32, float64, uint32, uint64
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.core.sizes import index as as_index
from treadle.graph.node import COPY, GATHER, INDEX, VIEW, Node, constant, view_of
from treadle.graph.views import View
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.axes import one_axis
from treadle.tensor.conversions import cast, device_of, shaped
from treadle.tensor.creation import Shape, asarray, extents_of
from treadle.tensor.dtypes import check_fits, default_integer, supports
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.generator import Generator
from treadle.tensor.operands import node_of
from treadle.tensor.random.draws import device_for, dtype_for, new_draw
from treadle.tensor.random.elementary import exponential, integers, uniform
from treadle.tensor.reductions import argmax
from treadle.tensor.reductions import max as greatest
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.searching import take
from treadle.tensor.sorting import topk
from treadle.tensor.tensor import Tensor, from_node

_where, _isfinite = FUNCTIONS["where"], FUNCTIONS["isfinite"]


# --- permutations --------------------------------------------------------------------------------


def permutation(
    x: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """The integers from 0 to x-1 in random order; of an array, a copy with its first axis in random
    order.

    >>> import treadle as td
    >>> sorted(permutation(5, device="cpu").tolist())
    [0, 1, 2, 3, 4]
    >>> rows = td.asarray([[1, 2], [3, 4]], device="cpu")
    >>> sorted(permutation(rows).tolist())
    [[1, 2], [3, 4]]
    """
    if not isinstance(x, Tensor) and hasattr(x, "__index__"):
        count = as_index(x)
        if count < 0:
            raise ValueError(
                f"permutation: a number of integers must not be negative, as {count} is"
            )
        where = find_device(device)
        given = default_integer(where) if dtype is None else dtype_for(dtype, where)
        if not given.is_integer:
            raise DtypeError(f"permutation of integers makes integer dtypes, not {given}")
        if count:
            check_fits(count - 1, given)
        return from_node(cast(_order(count, where, generator), given))
    where = device_for("permutation", (x,), device)
    node = node_of("permutation", x, where)
    if not node.shape:
        raise ShapeError("permutation takes an integer, or an array with at least one axis")
    given = node.dtype if dtype is None else dtype_for(dtype, where)
    if not node.size:
        return from_node(cast(Node(COPY, (node,), node.shape, node.dtype, where), given))
    rows, length = node.shape[0], node.size // node.shape[0]
    index = default_integer(where)
    order = cast(_order(rows, where, generator), index)
    column = order if length == 1 else shaped(_with_axis(order), (rows, length))
    if length > 1:
        step = constant(length, column.shape, index, where)
        start = Node("multiply", (column, step), column.shape, index, where)
        along = shaped(Node(INDEX, (), (length,), index, where), column.shape)
        column = Node("add", (start, along), column.shape, index, where)
    whole = node
    if node.op == VIEW or (node.array is not None and not node.array.contiguous):
        whole = Node(COPY, (node,), node.shape, node.dtype, where)
    found = Node(GATHER, (whole, column), column.shape, node.dtype, where)
    return from_node(cast(found, given)).reshape(node.shape)


def _order(count: int, device: Device, generator: Generator | None) -> Node:
    """The permutation that sorts random keys of 64 bits. Devices without 64-bit integers sort by
    the lower words, and then, stably, by the upper words, with the same result."""
    if count >= MOST_NARROW:
        raise ShapeError(f"permutation: {count} elements are too many to be put in order at once")
    index = default_integer(device)
    draw = new_draw("permutation", (count,), (), index, device, generator)
    if not count:
        return draw.constant(0, index)
    if supports(device, uint64):
        return draw.sorted(draw.node("random_word_64", uint64, *draw.key))
    low, high = (draw.node(name, uint32, *draw.key) for name in ("random_low", "random_high"))
    first = draw.sorted(low)
    second = draw.sorted(draw.node(GATHER, uint32, high, first))
    return draw.node(GATHER, index, first, second)


def _with_axis(node: Node) -> Node:
    return view_of(node, View((*node.shape, 1), (1, 0), 0))


def shuffle(x: Tensor, *, axis: int = 0, generator: Generator | None = None) -> None:
    """Put the parts of a tensor along an axis into random order, in place, as NumPy does.
    (`permutation` makes a new array.) TypeError for anything but a tensor.

    >>> import treadle as td
    >>> x = td.arange(5, device="cpu")
    >>> td.random.shuffle(x)
    >>> sorted(x.tolist())
    [0, 1, 2, 3, 4]
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"shuffle changes a tensor in place, not {type(x).__name__}: make one")
    at = one_axis("shuffle", axis, len(x.shape))
    order = permutation(x.shape[at], device=x.device, generator=generator)
    x[...] = take(x, order, axis=at)


# --- choices ----------------------------------------------------------------------------


def choice(
    x: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    *,
    axis: int = 0,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Parts of x along an axis, or integers from 0 to x-1 if x is an integer, drawn at random: as
    many as `shape` says, whose extents stand in the place of the axis.

    Without `replace` each is drawn once at most, in random order; ShapeError if there are too few.
    p has their probabilities, which are divided by their sum, in float32. Those of 0 are never
    drawn; ValueError if fewer others are left than are drawn, if one is negative, or if all are 0.
    p is read for that.

    >>> import treadle as td
    >>> td.random.choice(5, (2, 3), device="cpu").shape
    (2, 3)
    >>> x = td.asarray([1, 2, 4], device="cpu")
    >>> sorted(td.random.choice(x, 2, False, [0, 1, 1]).tolist())
    [2, 4]
    """
    is_count = not isinstance(x, Tensor) and hasattr(x, "__index__")
    where = find_device(device) if is_count else device_for("choice", (x,), device)
    values = None if is_count else from_node(node_of("choice", x, where))
    at = 0 if values is None else one_axis("choice", axis, len(values.shape))
    among = as_index(x) if values is None else values.shape[at]
    extents = extents_of(shape)
    wanted = math.prod(extents)
    if wanted and among < (1 if replace else wanted):
        raise ShapeError(f"choice: {wanted} of {among} cannot be drawn, replace={replace}")
    if p is None:
        if replace:
            places = integers(wanted, 0, max(among, 1), device=where, generator=generator)
        else:
            places = permutation(among, device=where, generator=generator)[:wanted]
    else:
        given = np.asarray(p.numpy() if isinstance(p, Tensor) else p, np.float64)
        _check_probabilities(given, among, wanted, replace)
        weights = asarray((given / given.sum()).astype(np.float32), device=where)
        places = _chosen(weights, wanted, replace, generator)
    if values is None:
        return places.reshape(extents)
    found = take(values, places, axis=at)
    return found.reshape((*values.shape[:at], *extents, *values.shape[at + 1 :]))


def _check_probabilities(p: Any, among: int, wanted: int, replace: bool) -> None:
    if p.shape != (among,):
        raise ShapeError(f"choice: p is a number for each of {among}, not of shape {p.shape}")
    if not ((p >= 0) & (p < np.inf)).all() or not p.any():
        raise ValueError("choice: probabilities are finite, not negative, and not all 0")
    if not replace and np.count_nonzero(p) < wanted:
        raise ValueError(
            f"choice: {wanted} are drawn without replacement, and {np.count_nonzero(p)} have a "
            "probability above 0"
        )


def multinomial(
    input: ArrayLike,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """PyTorch's: indices drawn with the probabilities that the last axis of `input`, of one axis or
    two, has up to a factor, `num_samples` for each row. An index is -1 where there is none of a
    probability above 0 (left), as the weights are not read.

    >>> import treadle as td
    >>> weights = td.asarray([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], device="cpu")
    >>> td.random.multinomial(weights, 2, replacement=True).tolist()
    [[1, 1], [0, 0]]
    """
    device = device_of("multinomial", (input,))
    node = node_of("multinomial", input, device)
    if len(node.shape) not in (1, 2) or node.dtype.kind == "complex":
        raise ShapeError(
            f"multinomial takes real weights of one axis or two, not {node.dtype} of shape "
            f"{node.shape}"
        )
    count = as_index(num_samples)
    if count < 0 or node.shape[-1] < (count if not replacement else min(count, 1)):
        raise ShapeError(f"multinomial: {count} cannot be drawn from {node.shape[-1]}")
    wide = float64 if node.dtype is float64 else float32
    return _chosen(from_node(cast(node, wide)), count, replacement, generator)


def _chosen(weights: Tensor, count: int, replace: bool, generator: Generator | None) -> Tensor:
    """Indices along the last axis with probabilities that are proportional to weights; -1 where
    none is left. What has no weight is not drawn, whatever running sums round to."""
    options: dict[str, Any] = {
        "dtype": weights.dtype, "device": weights.device, "generator": generator,
    }  # fmt: skip
    positive: Any = weights > 0
    if not replace:  # those of the earliest times, each exponential with its weight as the rate
        times: Any = exponential(weights.shape, **options)
        times = _where(positive, times / _where(positive, weights, 1), np.inf)
        found = topk(times, count, largest=False)
        return _where(_isfinite(found.values), found.indices, -1)
    running: Any = _where(positive, cumulative_sum(weights, axis=-1), 0)
    whole = greatest(running, axis=-1, keepdims=True) if weights.shape[-1] else running
    drawn: Any = uniform((*weights.shape[:-1], count), **options) * whole
    reached: Any = (running[..., None, :] > drawn[..., None]) & positive[..., None, :]
    return _where((whole > 0) & _isfinite(whole), argmax(reached.to(uint32), axis=-1), -1)
