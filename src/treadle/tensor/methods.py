"""Methods and attributes of `Tensor` without a function of the same meaning.

`method_table` says what methods there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.core.errors import ShapeError
from treadle.runtime.arrays import is_contiguous
from treadle.tensor import manipulation
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor


def clone(x: Tensor) -> Tensor:
    """A copy of the tensor in new memory.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> y = x.clone()
    >>> y += 1
    >>> x.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return x.copied()


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself if its elements are contiguous in row-major order, else a copy.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.T.contiguous().strides
    (2, 1)
    """
    return x if is_contiguous(x.shape, x.strides) else x.copied()


def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """The tensor's elements where the condition holds, else those of `other`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.where(x > 1, 0).tolist()
    [[0.0, 2.0], [3.0, 4.0]]
    """
    return FUNCTIONS["where"](condition, x, other)


def permute(x: Tensor, *axes: Any) -> Tensor:
    """A view with the axes in another order, as `x.permute(1, 0)` or `x.permute((1, 0))`.

    >>> import treadle as td
    >>> x = td.zeros((2, 3, 4), device="cpu")
    >>> x.permute(2, 0, 1).shape
    (4, 2, 3)
    """
    return manipulation.permute_dims(x, _several(axes))


def transpose(x: Tensor, *axes: Any) -> Tensor:
    """A view with the axes in another order, as NumPy's `transpose`: all axes are named, or
    reversed if none is. Use `swapaxes` to exchange two axes.

    >>> import treadle as td
    >>> x = td.zeros((2, 3, 4), device="cpu")
    >>> x.transpose().shape
    (4, 3, 2)
    """
    if not axes or axes == (None,):
        return manipulation.permute_dims(x, range(len(x.shape))[::-1])
    return manipulation.permute_dims(x, _several(axes))


def _several(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes


def iterator(x: Tensor) -> Iterator[Tensor]:
    """The parts along the first axis."""
    if not x.shape:
        raise TypeError("a tensor without axes cannot be iterated over")
    return iter(manipulation.unstack(x))


# --- attributes ----------------------------------------------------------------------------------


def transposed(x: Tensor) -> Tensor:
    """A view with the two axes exchanged. ShapeError unless there are two; see `mT`.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> x.T.tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    if len(x.shape) != 2:
        raise ShapeError(
            f"x.T takes tensors of two axes, not of shape {x.shape}: use x.mT for the last two "
            "axes, or x.transpose() to reverse them all"
        )
    return manipulation.swapaxes(x, 0, 1)
