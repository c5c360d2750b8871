"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.nn.utils import vectors as inner
from treadle.torch.tensors import Tensor, wrap

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other.

    >>> import treadle.torch as torch
    >>> torch.nn.utils.parameters_to_vector(torch.nn.Linear(3, 2).parameters()).shape
    torch.Size([8])
    """
    return wrap(inner.parameters_to_vector([each._inner for each in parameters]))


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into parameters, one after the other."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    inner.vector_to_parameters(vec._inner, [each._inner for each in parameters])
