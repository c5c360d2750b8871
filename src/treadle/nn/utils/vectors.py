"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.core.errors import ShapeError
from treadle.graph.history import recorded
from treadle.tensor.assembly import concat
from treadle.tensor.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    >>> import treadle as td
    >>> td.nn.utils.parameters_to_vector(td.nn.Linear(3, 2, device="cpu").parameters()).shape
    (8,)
    """
    return concat([each.reshape(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into parameters, one after the other; this is not recorded.
    ShapeError, before anything is written, if they are not as many."""
    listed = list(parameters)
    count = sum(each.size for each in listed)
    if vec.ndim != 1 or vec.shape[0] != count:
        raise ShapeError(
            f"vector_to_parameters: the parameters have {count} elements, the vector's shape is "
            f"{vec.shape}"
        )
    start = 0
    with recorded(False):
        for each in listed:
            part = vec.detach()[start : start + each.size]
            each.detach()[...] = part.reshape(each.shape)
            start += each.size
