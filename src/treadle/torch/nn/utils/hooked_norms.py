"""`weight_norm` and `spectral_norm` by hooks: the weight is computed before each call, from other
parameters. (`torch.nn.utils.parametrizations` has them as parametrizations.)"""

from __future__ import annotations

from typing import Any

from treadle.graph.history import recorded
from treadle.torch.nn import layers, weights
from treadle.torch.nn.parameter import Parameter
from treadle.torch.tensors import wrap

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Hook:
    """A hook before `forward` that computes a weight, and how to take it away."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle: Any = None

    def compute(self, module: Any) -> Any:
        """The weight, as a tensor of treadle."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, wrap(self.compute(module)))


def _added(module: Any, hook: _Hook) -> Any:
    for each in _hooks(module):
        if type(each) is type(hook) and each.name == hook.name:
            raise RuntimeError(
                f"Cannot register two {type(hook).__name__[1:]} hooks on the same parameter "
                f"{hook.name}"
            )
    _hooks(module).append(hook)
    hook.handle = module.register_forward_pre_hook(hook)
    return module


def _hooks(module: Any) -> list[_Hook]:
    found: list[_Hook] = module.__dict__.setdefault("_norm_hooks", [])
    return found


def _removed(module: Any, kind: type, name: str, parts: tuple[str, ...]) -> Any:
    for hook in _hooks(module):
        if type(hook) is kind and hook.name == name:
            with recorded(False):
                value = wrap(hook.compute(module).copied())
            delattr(module, name)
            for part in parts:
                delattr(module, name + part)
            module.register_parameter(name, Parameter(value))
            hook.handle.remove()
            _hooks(module).remove(hook)
            return module
    raise ValueError(f"{kind.__name__[1:]} of {name!r} not found in {module}")


class _WeightNorm(_Hook):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = dim

    def compute(self, module: Any) -> Any:
        """The weight of direction and length."""
        own = module._parameters
        return weights.of_direction(own[f"{self.name}_v"], own[f"{self.name}_g"], self.dim)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Have a module learn the length and the direction of a weight, `weight_g` and `weight_v`, in
    place of the weight.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    value = module._parameters[name]
    hook = _WeightNorm(name, dim)
    with recorded(False):
        norm, direction = weights.norm_except(value, dim).copied(), value.detach().copied()
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(wrap(norm)))
    module.register_parameter(f"{name}_v", Parameter(wrap(direction)))
    hook(module, ())
    return _added(module, hook)


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Have a module learn the weight itself again."""
    return _removed(module, _WeightNorm, name, ("_g", "_v"))


class _SpectralNorm(_Hook):
    def __init__(self, name: str, count: int, dim: int, eps: float) -> None:
        super().__init__(name)
        self.count, self.dim, self.eps = count, dim, eps

    def compute(self, module: Any) -> Any:
        """The weight, divided by its greatest singular value; in training, after some steps
        towards its vectors."""
        return self._computed(module, module.training)

    def _computed(self, module: Any, moves: bool) -> Any:
        value = module._parameters[f"{self.name}_orig"]
        matrix = weights.as_matrix(value, self.dim)
        u, v = (module._buffers[f"{self.name}_{each}"] for each in "uv")
        if moves:
            weights.power_steps(matrix, u, v, self.count, self.eps)
        return weights.by_greatest(value, matrix, u, v)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Have a module use a weight divided by its greatest singular value, which power iteration
    finds. By T. Miyato and others, 2018.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if n_power_iterations <= 0:
        raise ValueError(
            f"Expected n_power_iterations to be positive, but got {n_power_iterations}"
        )
    if dim is None:
        dim = 1 if isinstance(module, _transposed()) else 0
    value = module._parameters[name]
    matrix = weights.as_matrix(value.detach(), dim)
    parameter = getattr(module, name)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", parameter)
    for each, extent in zip("uv", matrix.shape, strict=True):
        module.register_buffer(f"{name}_{each}", wrap(weights.unit(extent, value, eps)))
    hook = _SpectralNorm(name, n_power_iterations, dim, eps)
    setattr(module, name, wrap(value.detach()))
    return _added(module, hook)


def _transposed() -> tuple[type, ...]:
    return tuple(getattr(layers, f"ConvTranspose{axes}d") for axes in (1, 2, 3))


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Have a module use the weight itself again, as it was divided last."""
    return _removed(module, _SpectralNorm, name, ("_orig", "_u", "_v"))
