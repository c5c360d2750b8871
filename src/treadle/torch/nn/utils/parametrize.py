"""`torch.nn.utils.parametrize`: parameters that are computed from others by modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from treadle.graph.history import recorded
from treadle.torch.nn.containers import ModuleDict, ModuleList
from treadle.torch.nn.module import Module
from treadle.torch.nn.parameter import Parameter
from treadle.torch.tensors import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization",
    "remove_parametrizations", "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """What was computed within `cached()`."""

    depth = 0
    found: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within the block."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.found = {}


class ParametrizationList(ModuleList):
    """The modules that compute a tensor, one after the other, and what they compute it from:
    `original`, or `original0`, `original1`, … if the first one has several inputs."""

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with recorded(False):
            for module in reversed(list(self)):
                inverse = getattr(module, "right_inverse", None)
                if inverse is not None:
                    # One that has no inverse begins with what the value becomes.
                    with suppress(NotImplementedError):
                        value = inverse(value)
        self.is_tensor = isinstance(value, Tensor)
        values = [value] if self.is_tensor else list(value)
        is_learned = isinstance(original, Parameter)
        self.ntensors = len(values)
        for name, each in zip(self._names(), values, strict=True):
            if not is_learned:
                self.register_buffer(name, each)
            elif each is original:
                self.register_parameter(name, original)
            else:
                trains = original.requires_grad
                self.register_parameter(name, Parameter(each.detach(), trains))

    def _names(self) -> list[str]:
        if self.is_tensor:
            return ["original"]
        return [f"original{at}" for at in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Write what gives this value, by the modules' `right_inverse`."""
        with recorded(False):
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse"
                    )
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else list(value)
            for name, each in zip(self._names(), values, strict=True):
                getattr(self, name).detach()[...] = each

    def forward(self) -> Tensor:
        """The tensor."""
        first, *rest = list(self)
        x: Tensor = first(*[getattr(self, name) for name in self._names()])
        for module in rest:
            x = module(x)
        return x


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        if not _Cache.depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in _Cache.found:
            _Cache.found[key] = self.parametrizations[name]()
        return _Cache.found[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


class _Parametrized:
    """A class whose attributes are computed: assigning to one goes by `right_inverse`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_computed", ()):
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a module, or one of its tensors, is parametrized."""
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Any:
    """Have a module compute one of its parameters or buffers by another module.

    >>> import treadle.torch as torch
    >>> class Positive(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.abs()
    >>> layer = torch.nn.Linear(3, 2)
    >>> layer = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> bool((layer.weight >= 0).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        found = module.parametrizations[tensor_name]
        if not unsafe:
            _check(parametrization(getattr(module, tensor_name)), getattr(module, tensor_name))
        if hasattr(parametrization, "right_inverse"):
            with recorded(False):
                found.right_inverse(parametrization.right_inverse(getattr(module, tensor_name)))
        found.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    listed = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        _check(listed(), original)
    if not is_parametrized(module):
        kind = type(module)
        members = {"__module__": kind.__module__}
        module.__class__ = type(f"Parametrized{kind.__name__}", (_Parametrized, kind), members)
        module.parametrizations = ModuleDict()
        module.__dict__["_computed"] = []
    delattr(module, tensor_name)
    module.parametrizations[tensor_name] = listed
    module.__dict__["_computed"].append(tensor_name)
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def _check(made: Any, original: Tensor) -> None:
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    if made.dtype != original.dtype or made.shape != original.shape:
        raise ValueError(
            "A parametrization may not change the shape or dtype of the tensor, unless unsafe=True:"
            f" {made.dtype}, {made.shape} of {original.dtype}, {original.shape}"
        )


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Have the module hold the tensor itself again: as it is computed, or the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = module.parametrizations[tensor_name]
    if not leave_parametrized and not listed.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    with recorded(False):
        value = (listed() if leave_parametrized else listed.original).detach().clone()
    is_learned = bool(listed._parameters)
    trains = any(each.requires_grad for each in listed.parameters(recurse=False))
    delattr(type(module), tensor_name)
    module.__dict__["_computed"].remove(tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
        del module.__dict__["_computed"]
        module.__class__ = type(module).__bases__[1]
    if is_learned:
        module.register_parameter(tensor_name, Parameter(value, trains))
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class of a module as it was before it was parametrized."""
    return type(module).__bases__[1] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Give a module the parametrizations of another one, and their tensors."""
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        listed = from_module.parametrizations[name]
        for each in listed:
            register_parametrization(to_module, name, each, unsafe=listed.unsafe)
        for own, value in [*listed._parameters.items(), *listed._buffers.items()]:
            made = to_module.parametrizations[name]
            (made._parameters if own in made._parameters else made._buffers)[own] = value
    return to_module
