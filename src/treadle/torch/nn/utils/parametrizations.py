"""`torch.nn.utils.parametrizations`: weights by their norm, by their greatest singular value, and
orthogonal ones."""

from __future__ import annotations

from typing import Any

from treadle.torch.nn import layers, weights
from treadle.torch.nn.module import Module
from treadle.torch.nn.utils import parametrize
from treadle.torch.nn.utils.orthogonality import orthogonal
from treadle.torch.tensors import Tensor, wrap

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """A length and a direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight."""
        return wrap(weights.of_direction(weight_v._inner, weight_g._inner, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length, and the weight as the direction."""
        return wrap(weights.norm_except(weight._inner, self.dim)), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Have a module learn the length and the direction of a weight (`original0`, `original1`).

    >>> import treadle.torch as torch
    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    >>> list(layer.state_dict())[1:]
    ['parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight, divided by its greatest singular value."""

    def __init__(self, weight: Tensor, count: int, dim: int, eps: float) -> None:
        super().__init__()
        axes = weight.dim()
        if not -axes <= dim < axes:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}] but got "
                f"{dim})"
            )
        if count <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got {count}")
        self.dim = dim % axes
        self.eps = eps
        self.n_power_iterations = count
        if axes > 1:
            value = weight._inner.detach()
            matrix = weights.as_matrix(value, self.dim)
            u, v = (weights.unit(extent, value, eps) for extent in matrix.shape)
            weights.power_steps(matrix, u, v, 15, eps, left_first=True)
            self.register_buffer("_u", wrap(u))
            self.register_buffer("_v", wrap(v))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight; in training, after some steps of power iteration."""
        x = weight._inner
        if len(x.shape) == 1:
            return wrap(weights.unit_vector(x, self.eps))
        matrix = weights.as_matrix(x, self.dim)
        u, v = self._vectors()
        if self.training:
            count = self.n_power_iterations
            weights.power_steps(matrix, u, v, count, self.eps, left_first=True)
        return wrap(weights.by_greatest(x, matrix, u, v))

    def _vectors(self) -> tuple[Any, Any]:
        return self._buffers["_u"], self._buffers["_v"]

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value: what is divided is assumed to have been."""
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Have a module use a weight divided by its greatest singular value.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> bool(abs(torch.linalg.matrix_norm(layer.weight, 2) - 1) < 0.1)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = tuple(getattr(layers, f"ConvTranspose{axes}d") for axes in (1, 2, 3))
        dim = 1 if isinstance(module, transposed) else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)
