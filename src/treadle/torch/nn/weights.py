"""Weights that are computed from others, on treadle's tensors: by their norm, and by their greatest
singular value."""

from __future__ import annotations

import math

from treadle.graph.history import recorded
from treadle.tensor import random
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.distances import normalize
from treadle.tensor.manipulation import permute_dims
from treadle.tensor.products import matmul
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

_sqrt = FUNCTIONS["sqrt"]


def norm_except(x: Tensor, dim: int | None) -> Tensor:
    """The norm over all axes but one, which stay with one element; of everything for None or -1."""
    if dim is None or dim == -1:
        found: Tensor = _sqrt(total(x * x))
        return found
    axes = tuple(at for at in range(len(x.shape)) if at != dim % len(x.shape))
    rest: Tensor = _sqrt(total(x * x, axis=axes, keepdims=True))
    return rest


def of_direction(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """G v / |v|, the weight by T. Salimans and D. Kingma, 2016."""
    found: Tensor = v * (g / norm_except(v, dim))
    return found


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight with its axis of outputs first, and the others as one."""
    if dim:
        rest = [at for at in range(len(weight.shape)) if at != dim]
        weight = permute_dims(weight, (dim, *rest))
    return weight.reshape((weight.shape[0], math.prod(weight.shape[1:])))


def unit(count: int, like: Tensor, eps: float) -> Tensor:
    """A drawn vector of length 1."""
    drawn = random.normal((count,), dtype=like.dtype, device=like.device)
    return normalize(drawn, 2.0, 0, eps)


def unit_vector(x: Tensor, eps: float) -> Tensor:
    """A vector divided by its length."""
    return normalize(x, 2.0, 0, eps)


def power_steps(
    matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float, *, left_first: bool = False
) -> None:
    """Bring u and v nearer to the singular vectors of the greatest singular value, in place: first
    v by u, or the other way."""
    with recorded(False):
        w = matrix.detach()
        left, right = u.detach(), v.detach()
        for _ in range(count):
            if left_first:
                left = normalize(matmul(w, right), 2.0, 0, eps)
            right = normalize(matmul(left, w), 2.0, 0, eps)
            if not left_first:
                left = normalize(matmul(w, right), 2.0, 0, eps)
        u[...] = left
        v[...] = right


def by_greatest(weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The weight divided by its greatest singular value, of which u and v are the vectors."""
    sigma = total(u.copied() * matmul(matrix, v.copied()))
    return weight / sigma
