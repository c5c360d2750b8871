"""Tensors whose elements are computed from their indices: ranges, grids, identities, triangles.

They are fused into the kernels that read them. The products for evenly spaced floats are exact:
they are computed in int32 where that holds them, else in float64. For a device without float64 the
host computes them.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from treadle.core.dtypes import DType, bool_, complex64, float32, float64, int32, int64
from treadle.core.errors import ShapeError
from treadle.graph import views
from treadle.graph.node import COPY, INDEX, Node, constant, view_of
from treadle.runtime.arrays import check_cast
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import DTypeLike
from treadle.tensor.axes import integer
from treadle.tensor.conversions import cast, device_of, shaped
from treadle.tensor.creation import fitted
from treadle.tensor.dtypes import (
    check_dtype,
    check_fits,
    default_integer,
    python_number,
    supports,
)
from treadle.tensor.operands import node_of as node_for
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node, from_numpy
from treadle.tensor.tensor import cast as cast_data

_FIRST_WIDE = 1 << 31  # the first that int32 does not hold


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """Numbers from start (0 if only stop is given) up to but without stop, by step.

    Integers give the device's default integer, floats float32, unless `dtype` says otherwise. With
    an integer dtype and floats the numbers are NumPy's: the first two are truncated to integers,
    and their difference is the step.

    >>> import treadle as td
    >>> td.arange(2, 8, 3, device="cpu").tolist()
    [2, 5]
    """
    where = find_device(device)
    if stop is None:
        start, stop = 0, start
    first, end, by = (_real("arange", value) for value in (start, stop, step))
    if by == 0:
        raise ValueError("arange: the step must not be 0")
    integers = isinstance(first, int) and isinstance(end, int) and isinstance(by, int)
    if dtype is None:
        kind = default_integer(where) if integers else float32
    else:
        kind = _plain("arange", dtype, where)
    check_dtype(kind, where)
    count = _count(first, end, by)
    if kind.is_integer and count:
        if not (isinstance(first, int) and isinstance(by, int)):
            by = int(first + by) - int(first)
            first = int(first)
        check_fits(first, kind)
        check_fits(first + (count - 1) * by, kind)
        return from_node(_steps(count, first, by, kind, where))
    return _spaced(count, first, by, kind, where)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from start to stop, which is the last one if `endpoint`.

    float32 (complex64 if one end is complex) unless `dtype` says otherwise; as integers they are
    rounded down.

    >>> import treadle as td
    >>> td.linspace(0, 1, 5, device="cpu").tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    where = find_device(device)
    first, last = _number(start), _number(stop)
    count = integer("linspace", num, "num")
    if count < 0:
        raise ValueError(f"linspace: num must not be negative, as {count} is")
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    kind = (
        (complex64 if is_complex else float32)
        if dtype is None
        else _plain("linspace", dtype, where)
    )
    check_dtype(kind, where)
    if is_complex or kind.kind != "float":
        check_cast(np.dtype(complex if is_complex else float), kind)
        data = np.linspace(first, last, count, endpoint=endpoint)
        return from_numpy(cast_data(np.floor(data) if kind.is_integer else data, kind), where)
    parts = count - 1 if endpoint else count
    by = _as_integer((last - first) / parts) if parts > 0 else 0
    first = _as_integer(first)
    if math.isinf(by) and math.isfinite(first) and math.isfinite(last):
        halves = first / 2 + np.arange(count) * ((last / 2 - first / 2) / parts)
        return from_numpy(cast_data(halves * 2, kind), where)
    return _spaced(count, first, by, kind, where, last if endpoint and count > 1 else None)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
) -> Tensor:
    """Ones on the k-th diagonal (above the main one if k is positive), zeros elsewhere.

    >>> import treadle as td
    >>> td.eye(2, 3, k=1, device="cpu").tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    where = find_device(device)
    kind = float32 if dtype is None else _plain("eye", dtype, where)
    check_dtype(kind, where)
    rows = integer("eye", n_rows, "n_rows")
    columns = rows if n_cols is None else integer("eye", n_cols, "n_cols")
    if rows < 0 or columns < 0:
        raise ShapeError(f"an extent cannot be negative: ({rows}, {columns})")
    ones = _diagonals("equal", rows, columns, k, where)
    return from_node(cast(ones, kind))


def tril(x: Tensor, /, k: int = 0) -> Tensor:
    """The elements on and below the k-th diagonal of the last two axes, and zeros above it.

    >>> import treadle as td
    >>> td.tril(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[1, 0], [3, 4]]
    """
    return _triangle("tril", "less_equal", x, k)


def triu(x: Tensor, /, k: int = 0) -> Tensor:
    """The elements on and above the k-th diagonal of the last two axes, and zeros below it.

    >>> import treadle as td
    >>> td.triu(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [[1, 2], [0, 4]]
    """
    return _triangle("triu", "greater_equal", x, k)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> list[Tensor]:
    """The coordinates of a grid: array i of the result has the i-th array's elements along one axis
    and is constant along the others.

    That axis is i; with indexing "xy" the first two are exchanged, as for images, whose rows run
    along x.

    >>> import treadle as td
    >>> x, y = td.meshgrid(td.asarray([1, 2], device="cpu"), td.asarray([3, 4, 5], device="cpu"))
    >>> x.tolist(), y.tolist()
    ([[1, 2], [1, 2], [1, 2]], [[3, 3], [4, 4], [5, 5]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing is "xy" or "ij", not {indexing!r}')
    device = device_of("meshgrid", arrays)
    nodes = [node_for("meshgrid", array, device) for array in arrays]
    for node in nodes:
        if len(node.shape) > 1:
            raise ShapeError(
                f"meshgrid takes arrays of one axis, not of shape {node.shape}: flatten it first"
            )
    places = list(range(len(nodes)))
    if indexing == "xy" and len(nodes) > 1:
        places[:2] = 1, 0
    extents = [0] * len(nodes)
    for place, node in zip(places, nodes, strict=True):
        extents[place] = node.size
    grids = []
    for place, node in zip(places, nodes, strict=True):
        own_shape = tuple([node.size if axis == place else 1 for axis in range(len(nodes))])
        view = views.expand(views.whole(own_shape), tuple(extents))
        spread = view_of(node, view)
        grids.append(from_node(Node(COPY, (spread,), spread.shape, node.dtype, device)))
    return grids


# --- evenly spaced numbers -----------------------------------------------------------------------


def _number(value: Any) -> Any:
    return python_number(value.item() if isinstance(value, Tensor) else value)


def _real(name: str, value: Any) -> int | float:
    number = _number(value)
    if isinstance(number, complex):
        raise TypeError(f"{name} takes real numbers, not {number}")
    return int(number) if isinstance(number, bool) else number


def _plain(name: str, dtype: Any, device: Device) -> DType:
    kind = as_device_dtype(dtype, device)
    if not isinstance(kind, DType):
        raise TypeError(f"{name} makes numbers, not structs ({kind})")
    return kind


def _as_integer(number: Any) -> Any:
    """A number as an int if it is integral."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _count(start: float, stop: float, step: float) -> int:
    """How many numbers there are from start to below stop."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(-((start - stop) // step), 0)
    distance = (stop - start) / step
    if not (math.isfinite(distance) and math.isfinite(step)):
        raise ValueError(f"arange: there is no last number from {start} to {stop} by {step}")
    return max(math.ceil(distance), 0)


def _index(shape: tuple[int, ...], dtype: DType, device: Device) -> Node:
    return Node(INDEX, (), shape, dtype, device)


def _steps(count: int, start: Any, step: Any, dtype: DType, device: Device) -> Node:
    """start, start + step, …, computed in a dtype."""
    shape = (count,)
    node = _index(shape, dtype, device)
    if step != 1:
        by = constant(_value(step, dtype), shape, dtype, device)
        node = Node("multiply", (node, by), shape, dtype, device)
    if start != 0:
        first = constant(_value(start, dtype), shape, dtype, device)
        node = Node("add", (node, first), shape, dtype, device)
    return node


def _value(number: Any, dtype: DType) -> Any:
    """A number in a dtype; an integer step that it does not hold wraps, and so do the sums."""
    return dtype(number).item()


def _spaced(
    count: int, start: Any, step: Any, dtype: DType, device: Device, last: Any = None
) -> Tensor:
    """start, start + step, … as another dtype; `last` replaces the last one."""
    integers = isinstance(start, int) and isinstance(step, int)
    if last is not None and integers:  # the step may be rounded
        integers = start + (count - 1) * step == last
    if integers and max(abs(start), abs(step), abs(start + count * step), count) < _FIRST_WIDE:
        return from_node(cast(_steps(count, start, step, int32, device), dtype))
    start, step = float(start), float(step)
    if not supports(device, float64):
        data = start + np.arange(count) * step
        if last is not None:
            data[-1] = last
        return from_numpy(cast_data(data, dtype), device)
    node = _steps(count, start, step, float64, device)
    if last is not None:
        shape, wide = (count,), default_integer(device)
        at_end = constant(count - 1, shape, wide, device)
        is_last = Node("equal", (_index(shape, wide, device), at_end), shape, bool_, device)
        end = constant(fitted(float(last), float64), shape, float64, device)
        node = Node("where", (is_last, end, node), shape, float64, device)
    return from_node(cast(node, dtype))


# --- diagonals -----------------------------------------------------------------------------------


def _diagonals(comparison: str, rows: int, columns: int, k: int, device: Device) -> Node:
    """A mask: where column - row compares with k."""
    number = max(
        -rows - 1, min(integer("eye, tril and triu", k, "k"), columns + 1)
    )  # further diagonals change nothing
    shape = (rows, columns)
    narrow = max(rows, columns) < _FIRST_WIDE // 2
    dtype = int32 if narrow else int64
    row = shaped(view_of(_index((rows,), dtype, device), views.whole((rows, 1))), shape)
    column = shaped(_index((columns,), dtype, device), shape)
    difference = Node("subtract", (column, row), shape, dtype, device)
    wanted = constant(number, shape, dtype, device)
    return Node(comparison, (difference, wanted), shape, bool_, device)


def _triangle(name: str, comparison: str, x: Any, k: int) -> Tensor:
    node = operand(name, x)._node
    if len(node.shape) < 2:
        raise ShapeError(f"{name} takes tensors of at least two axes, not of shape {node.shape}")
    device, dtype, shape = node.device, node.dtype, node.shape
    mask = shaped(_diagonals(comparison, shape[-2], shape[-1], k, device), shape)
    zero = constant(dtype(0).item(), shape, dtype, device)
    return from_node(Node("where", (mask, node, zero), shape, dtype, device))
