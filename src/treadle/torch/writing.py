"""Writing a result into a tensor, for in-place methods and `out=`."""

from __future__ import annotations

from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import can_cast


def write(place: Inner, result: Inner) -> None:
    """Replace the elements. RuntimeError if the shapes differ, or if the result's dtype is of a
    higher kind than the tensor's (floating numbers into integers, say)."""
    if result.shape != place.shape:
        raise RuntimeError(
            f"output with shape {list(place.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    if not can_cast(result.dtype, place.dtype):
        raise RuntimeError(f"result type {result.dtype} can't be cast to {place.dtype}")
    place[...] = result
