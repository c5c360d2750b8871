"""Other shapes and axes for the same elements, and tensors put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import treadle as td
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.operations.creation import extents


def cat(tensors: Sequence[Inner], dim: int = 0) -> Inner:
    """Tensors one after the other along an axis."""
    return td.concat(list(tensors), axis=dim)


def reshape(input: Inner, *shape: Any) -> Inner:
    """The same elements in another shape; a view where that is possible."""
    return input.reshape(extents(shape))


def view(input: Inner, *shape: Any) -> Inner:
    """A view of another shape. RuntimeError if the elements would have to be copied."""
    try:
        return input.reshape(extents(shape), copy=False)
    except td.errors.ShapeError:
        raise
    except ValueError as error:
        raise RuntimeError(str(error)) from None
