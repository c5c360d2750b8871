"""Lazy layers: how many features come in is known when the first input comes.

Until then such a layer has no parameters, so an optimizer is made after the first call: this makes
them, and the layer becomes one of the plain class.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from treadle.torch import random
from treadle.torch.nn import layers
from treadle.torch.nn.module import Module
from treadle.torch.tensors import Tensor

# Lazy classes: the plain class, its argument for the number of features, and the axis of the input
# that has them, counted without a batch for convolutions and instance norms.
_PLAIN = {
    "LazyLinear": ("Linear", "in_features", -1),
    **{
        f"Lazy{kind}{axes}d": (f"{kind}{axes}d", "in_channels", -axes - 1)
        for kind in ("Conv", "ConvTranspose")
        for axes in (1, 2, 3)
    },
    **{f"LazyBatchNorm{axes}d": (f"BatchNorm{axes}d", "num_features", 1) for axes in (1, 2, 3)},
    **{
        f"LazyInstanceNorm{axes}d": (f"InstanceNorm{axes}d", "num_features", -axes - 1)
        for axes in (1, 2, 3)
    },
}  # fmt: skip
__all__ = sorted(_PLAIN)


class _Lazy(Module):
    """What all lazy layers do."""

    _plain: str
    _features: str
    _axis: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        signature = _signature(self._plain, self._features)
        bound = signature.bind(*args, **kwargs)
        self.__dict__["_settings_to_come"] = dict(bound.arguments)
        self.__dict__["_changes_to_come"] = []

    def has_uninitialized_params(self) -> bool:
        """Whether no input has come yet."""
        return "_settings_to_come" in self.__dict__

    def initialize_parameters(self, input: Tensor) -> None:
        """Become a layer of the plain class, for inputs like this one."""
        own = self.__dict__
        settings, changes = own.pop("_settings_to_come"), own.pop("_changes_to_come")
        kept = {key: own[key] for key in ("_hooks", "training")}
        settings[self._features] = input.shape[self._axis]
        self.__class__ = getattr(layers, self._plain)
        self.__init__(**settings)  # type: ignore[misc]
        own.update(kept)
        for change in changes:
            self._apply(change)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the plain layer computes, from the first input on."""
        given = args[0] if args else next(iter(kwargs.values()))
        self.initialize_parameters(given)
        return self(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.__dict__["_changes_to_come"].append(fn)
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} has no parameters to load before its first input: call the "
            "model once"
        )

    def extra_repr(self) -> str:
        """The settings of the plain layer, with 0 for what is not known yet."""
        settings = self.__dict__.get("_settings_to_come", {})
        plain = getattr(layers, self._plain)
        state = random.get_rng_state()  # a layer draws its parameters
        with warnings.catch_warnings(action="ignore"):
            text: str = plain(**settings, **{self._features: 1}).extra_repr()
        random.set_rng_state(state)
        return text.replace("1", "0", 1)  # the features come first


@functools.cache
def _signature(plain: str, features: str) -> inspect.Signature:
    found = inspect.signature(getattr(layers, plain).__init__)
    rest = [each for name, each in found.parameters.items() if name not in ("self", features)]
    return found.replace(parameters=rest)


def __getattr__(name: str) -> Any:
    if name not in _PLAIN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    plain, features, axis = _PLAIN[name]
    members = {
        "_plain": plain, "_features": features, "_axis": axis, "__module__": __name__,
        "__doc__": f"`{plain}`, whose `{features}` is that of the first input.",
    }  # fmt: skip
    found = globals()[name] = type(name, (_Lazy,), members)
    return found
