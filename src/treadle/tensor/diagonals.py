"""Diagonals and triangles of matrices: `diag`, `trace`, `tril_indices`, `triu_indices`."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.assembly import concat
from treadle.tensor.axes import integer
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.manipulation import diagonal
from treadle.tensor.operands import operand
from treadle.tensor.ranges import eye
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["diag", "trace", "tril_indices", "triu_indices"]


def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Of an array of one axis the square matrix with it on the k-th diagonal, and zeros elsewhere;
    of a matrix a copy of its k-th diagonal (`td.diagonal` is a view). Above the main diagonal k is
    positive. ShapeError for other shapes.

    >>> import treadle as td
    >>> td.diag(td.asarray([1, 2], device="cpu"), k=1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    >>> td.diag(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
    [1, 4]
    """
    x = operand("diag", x)
    at = integer("diag", k, "k")
    if len(x.shape) == 2:
        return diagonal(x, offset=at).copied()
    if len(x.shape) != 1:
        raise ShapeError(
            f"diag takes one axis or two, not shape {x.shape}: td.diagonal takes more axes"
        )
    extent = x.shape[0] + abs(at)
    if at:
        x = concat([x, zeros(abs(at), dtype=x.dtype, device=x.device)])
    place = eye(extent, extent, k=at, dtype=bool, device=x.device)
    along = x.reshape(extent, 1) if at >= 0 else x.reshape(1, extent)
    return FUNCTIONS["where"](place, along, zeros((), dtype=x.dtype, device=x.device))


def trace(
    x: ArrayLike,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The sum of a diagonal of the matrices along two axes, the first two without others, with the
    dtypes of `td.sum`. (`td.linalg.trace` takes the last two.) ShapeError for fewer than two axes.

    >>> import treadle as td
    >>> td.trace(td.asarray([[1, 2], [3, 4]], device="cpu")).item()
    5
    """
    x = operand("trace", x)
    if len(x.shape) < 2:
        raise ShapeError(f"trace takes arrays of at least two axes, not of shape {x.shape}")
    found: Tensor = total(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)
    return found


def tril_indices(
    n: int, /, k: int = 0, m: int | None = None, *, device: str | Device | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements on and below the k-th diagonal of a matrix of n rows and
    m (or n) columns, row by row, as two arrays of the device's default integer.

    >>> import treadle as td
    >>> rows, columns = td.tril_indices(2, device="cpu")
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    return _places("tril_indices", np.tril_indices, n, k, m, device)


def triu_indices(
    n: int, /, k: int = 0, m: int | None = None, *, device: str | Device | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements on and above the k-th diagonal of a matrix of n rows and
    m (or n) columns, row by row, as two arrays of the device's default integer.

    >>> import treadle as td
    >>> rows, columns = td.triu_indices(2, k=1, device="cpu")
    >>> rows.tolist(), columns.tolist()
    ([0], [1])
    """
    return _places("triu_indices", np.triu_indices, n, k, m, device)


def _places(name: str, find: Any, n: Any, k: Any, m: Any, device: Any) -> tuple[Tensor, Tensor]:
    rows = integer(name, n, "n")
    columns = rows if m is None else integer(name, m, "m")
    if rows < 0 or columns < 0:
        raise ShapeError(f"{name}: an extent cannot be negative: ({rows}, {columns})")
    where = find_device(device)
    found = find(rows, integer(name, k, "k"), columns)
    row, column = (asarray(each, dtype=default_integer(where), device=where) for each in found)
    return row, column
