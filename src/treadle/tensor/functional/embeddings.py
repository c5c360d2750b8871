"""Embeddings: rows of a table by index, bags of rows, and one-hot rows.

Indices in tensors are not read, so one outside the table raises no error and gives zeros. Under
TREADLE_CHECK=1, and in lists and NumPy arrays, it is an IndexError.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.core.dtypes import int32
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.graph.history import recorded
from treadle.kernels.device_code.embedding_bags import IGNORED, OUTSIDE
from treadle.runtime.devices import default_device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.checks import looked_at
from treadle.tensor.conversions import device_of
from treadle.tensor.creation import asarray
from treadle.tensor.dtypes import default_integer
from treadle.tensor.elementwise_functions import clip, where
from treadle.tensor.functional.compute_dtype import widened_real
from treadle.tensor.functional.distances import lengths
from treadle.tensor.functional.embedding_operations import (
    TableGradient,
    gather_rows,
    max_of_bags,
    reduce_bags,
)
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.operands import operand
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import max as largest
from treadle.tensor.tensor import Tensor

__all__ = ["embedding", "embedding_bag", "one_hot"]

_MODES = ("sum", "mean", "max")


def one_hot(tensor: ArrayLike, num_classes: int = -1) -> Tensor:
    """For each integer a row of num_classes zeros with a 1 at its index, in the device's default
    integer. With -1 the number of classes is the greatest integer, which is read, plus 1.

    >>> import treadle as td
    >>> td.nn.functional.one_hot(td.asarray([0, 2], device="cpu")).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    x = _integers("one_hot", tensor)
    if num_classes == -1:
        if not x.size:
            raise ShapeError("one_hot of no integers: say num_classes")
        num_classes = int(largest(x)) + 1
    if num_classes < 1:
        raise ValueError(f"one_hot: num_classes must be positive, or -1, not {num_classes}")
    check_inside("one_hot", tensor, x, num_classes)
    classes = arange(num_classes, dtype=x.dtype, device=x.device)
    return (expand_dims(x, -1) == classes).to(default_integer(x.device))


def embedding(
    input: ArrayLike,
    weight: ArrayLike,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table `weight` at integer indices: the result has the shape of the input
    followed by that of a row.

    With `max_norm` the used rows whose norm is greater are first scaled to it, in the table itself.
    The row `padding_idx` gets no gradient; with `scale_grad_by_freq` gradients are divided by the
    number of lookups of the row. Gradients are never `sparse`.

    >>> import treadle as td
    >>> table = td.asarray([[0.0, 1.0], [2.0, 3.0]], device="cpu")
    >>> td.nn.functional.embedding(td.asarray([1, 0, 1], device="cpu"), table).tolist()
    [[2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]
    """
    index, table = _looked_up("embedding", input, weight, padding_idx)
    if max_norm is not None:
        _renormalize("embedding", index, table, max_norm, norm_type)
    return gather_rows(index, table, _giving(table, padding_idx, scale_grad_by_freq))


def embedding_bag(
    input: ArrayLike,
    weight: ArrayLike,
    offsets: ArrayLike | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: ArrayLike | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, the mean or the maximum, by `mode`, of the rows of a table at the indices in each
    row of the input, a bag; or of an input with one axis, in which bag i begins at offsets[i].

    With `include_last_offset` the last offset is the end of the last bag. Rows are multiplied by
    `per_sample_weights`, if given, with mode "sum" only. The row `padding_idx` is left out of bags;
    bags without rows are zeros. A maximum is NaN if there is one (in PyTorch only if that comes
    first). Other arguments are as for `embedding`.

    >>> import treadle as td
    >>> table = td.asarray([[0.0, 1.0], [2.0, 3.0]], device="cpu")
    >>> index, offsets = td.asarray([1, 0, 1], device="cpu"), td.asarray([0, 1], device="cpu")
    >>> td.nn.functional.embedding_bag(index, table, offsets, mode="sum").tolist()
    [[2.0, 3.0], [2.0, 4.0]]
    """
    name = "embedding_bag"
    if mode not in _MODES:
        raise ValueError(f"{name}: mode is one of {', '.join(_MODES)}, not {mode!r}")
    index, table = _looked_up(name, input, weight, padding_idx)
    starts, bags = _starts(name, index, offsets, include_last_offset)
    samples = _samples(name, index, table, per_sample_weights, mode)
    if max_norm is not None:
        _renormalize(name, index, table, max_norm, norm_type)
    if table.dtype.kind != "float":
        raise DtypeError(f"{name} takes a table of floats, not of {table.dtype}")
    if table.shape[0] >= MOST_NARROW:
        raise ShapeError(f"{name}: a table of {table.shape[0]} rows has too many for 32 bits")
    inside = (index >= 0) & (index < table.shape[0])
    rows = where(inside, index, OUTSIDE)
    if padding_idx is not None:
        rows = where(index == padding_idx % table.shape[0], IGNORED, rows)
    flat = rows.to(int32).reshape(-1)
    if mode == "max":
        return max_of_bags(table, flat, starts, bags)
    giving = _giving(table, None, scale_grad_by_freq)
    return reduce_bags(table, flat, starts, samples, bags, mode == "mean", giving)


# --- indices and tables -----------------------------------------------------------------


def _looked_up(
    name: str, input: Any, weight: Any, padding_idx: int | None
) -> tuple[Tensor, Tensor]:
    """The indices of rows, and the table."""
    device_of(name, [x for x in (input, weight) if type(x) is Tensor])
    index, table = _integers(name, input), operand(name, weight)
    if table.ndim != 2:
        raise ShapeError(f"{name}: weight is a table of shape (rows, columns), not {table.shape}")
    rows = table.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise IndexError(f"{name}: padding_idx={padding_idx} is not a row of a table of {rows}")
    check_inside(name, input, index, rows)
    return index, table


def _integers(name: str, x: Any) -> Tensor:
    if type(x) is not Tensor:
        x = np.asarray(x)
        if x.dtype == np.int64 and default_integer(default_device()) is int32:
            x = x.astype(np.int32)
    found = operand(name, x)
    if found.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"{name} takes integers, not {found.dtype}: cast them")
    if found.dtype.kind == "uint" or found.dtype.itemsize < 4:  # it may not hold -1, or a size
        return found.to(default_integer(found.device))
    return found


def check_inside(name: str, given: Any, index: Tensor, count: int) -> None:
    """IndexError for indices outside the table, if they are in the host's memory or TREADLE_CHECK=1
    is set."""
    if type(given) is Tensor and not looked_at(index.device):
        return
    values = np.asarray(index.numpy())
    if values.size and not 0 <= values.min() <= values.max() < count:
        wrong = values[(values < 0) | (values >= count)].ravel()[0]
        raise IndexError(f"{name}: {wrong} is not from 0 to {count - 1}")


def _giving(table: Tensor, padding_idx: int | None, by_frequency: bool) -> TableGradient:
    rows = table.shape[0]
    return TableGradient(rows, by_frequency, None if padding_idx is None else padding_idx % rows)


def _renormalize(name: str, index: Tensor, table: Tensor, most: float, p: float) -> None:
    """Scale the used rows whose norm is too large, in the table."""
    flat = index.reshape(-1)
    with recorded(False):  # a write without recording, as by an optimizer
        rows, dtype = widened_real(name, gather_rows(flat, table, TableGradient(table.shape[0])))
        length = lengths(rows, p, -1, True)
        scaled = where(length > most, rows * (most / (length + 1e-7)), rows).to(dtype)
        dropped = where((flat >= 0) & (flat < table.shape[0]), flat, table.shape[0])
        table[dropped] = scaled


# --- bags -----------------------------------------------------------------------------------------


def _starts(name: str, index: Tensor, offsets: Any, last: bool) -> tuple[Tensor, int]:
    """The starts of the bags in the flat index, and their number."""
    if index.ndim not in (1, 2):
        raise ShapeError(f"{name} takes an input of one axis or two, not of shape {index.shape}")
    if index.size >= MOST_NARROW:
        raise ShapeError(f"{name}: {index.size} rows are too many at once")
    if index.ndim == 2:
        if offsets is not None:
            raise ShapeError(f"{name}: an input of shape {index.shape} has bags without offsets")
        bags, length = index.shape
        return arange(bags, dtype=int32, device=index.device) * length, bags
    if offsets is None:
        raise ShapeError(f"{name}: an input of one axis needs offsets")
    found = _integers(name, asarray(offsets, device=index.device))
    if found.ndim != 1 or (last and not found.size):
        raise ShapeError(f"{name}: offsets have one axis, not shape {found.shape}")
    if type(offsets) is not Tensor or looked_at(offsets.device):
        ends = found.numpy()
        if ends.size and (ends[0] != 0 or (np.diff(ends) < 0).any() or ends[-1] > index.size):
            raise ValueError(
                f"{name}: offsets begin at 0 and rise to at most {index.size}, the number of "
                f"indices, not as {ends.tolist()} do"
            )
    inside = clip(found, 0, index.size).to(int32)
    return inside, found.size - 1 if last else found.size


def _samples(name: str, index: Tensor, table: Tensor, given: Any, mode: str) -> Tensor | None:
    if given is None:
        return None
    if mode != "sum":
        raise ValueError(f'{name}: per_sample_weights are for mode="sum", not "{mode}"')
    weights = operand(name, given)
    if weights.shape != index.shape or weights.dtype is not table.dtype:
        raise ShapeError(
            f"{name}: per_sample_weights are {table.dtype} of the input's shape {index.shape}, not "
            f"{weights.dtype} of shape {weights.shape}"
        )
    return weights.reshape(-1)
