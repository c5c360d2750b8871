"""What options of optimizers may be."""

from __future__ import annotations

from typing import Any

from treadle.tensor.tensor import Tensor


def not_negative(options: dict[str, Any], *names: str) -> None:
    """ValueError if one of these options is negative or no number."""
    for name in names:
        value = number(options[name], name)
        if not value >= 0:
            raise ValueError(f"{name} must be 0 or greater, not {value}")


def decays(betas: Any) -> None:
    """ValueError unless the decays of averages are from 0 up to 1, without it."""
    for at, beta in enumerate(betas):
        if not 0 <= number(beta, f"betas[{at}]") < 1:
            raise ValueError(f"betas[{at}] must be at least 0 and less than 1, not {beta}")


def number(value: Any, name: str = "an option") -> float:
    """A number, which may be a tensor of one element. TypeError for what is not a number."""
    if isinstance(value, Tensor) and value.size != 1:
        raise ValueError(f"a tensor that is an option has one element, not shape {value.shape}")
    try:
        if isinstance(value, str):
            raise TypeError
        return float(value.item() if isinstance(value, Tensor) else value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None


def unsupported(**options: Any) -> None:
    """ValueError for PyTorch's options that ask for what is not there."""
    for name, value in options.items():
        if value:
            raise ValueError(f"{name}={value} is not supported: leave it out")
