"""`torch.nn.init`: initial values, written into tensors without recording that."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from treadle.nn import init as inner
from treadle.torch.tensors import Tensor, unwrapped

_FILLING = (
    "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_",
    "zeros_",
)  # fmt: skip
# Their names without the underscore are PyTorch's old ones.
_OLD = {name.removesuffix("_"): name for name in _FILLING}
__all__ = [*_FILLING, "calculate_gain"]

calculate_gain = inner.calculate_gain


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many elements go into a result of a weight, and how many results an element goes into."""
    return inner.fans(tensor._inner)


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """One of both: "fan_in" or "fan_out"."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode is "fan_in" or "fan_out", not {mode!r}')
    return inner.fans(tensor._inner)[mode == "fan_out"]


def _filling(function: Callable[..., Any]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def fill(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        function(tensor._inner, *unwrapped(args), **unwrapped(kwargs))
        return tensor

    return fill


def _old(name: str) -> Callable[..., Tensor]:
    new = _OLD[name]
    function = globals().get(new) or __getattr__(new)

    @functools.wraps(function)
    def fill(*args: Any, **kwargs: Any) -> Tensor:
        text = f"`nn.init.{name}` is now deprecated in favor of `nn.init.{new}`."
        warnings.warn(text, FutureWarning, stacklevel=2)
        made: Tensor = function(*args, **kwargs)
        return made

    return fill


def __getattr__(name: str) -> Any:
    if name in _OLD:
        found = globals()[name] = _old(name)
        return found
    if name not in _FILLING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _filling(getattr(inner, name))
    return found
