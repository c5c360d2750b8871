"""Errors for indices outside an array, which PyTorch raises on the CPU.

On other devices nothing is read to look for them: there treadle reads 0 and writes nothing, and
TREADLE_CHECK=1 looks everywhere.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.tensor import Tensor as Inner


def looking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that looks at indices in the host's memory before it uses them."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with in_host_memory():
            return function(*args, **kwargs)

    return call


def check(
    index: Inner,
    extent: int,
    error: type[Exception] = IndexError,
    low: int = 0,
    message: str = "index {wrong} is out of bounds for dimension with size {extent}",
) -> None:
    """An error for an index that is not from `low` to the extent, if values are looked at."""
    if not index.size or not looked_at(index.device):
        return
    values = index.numpy()
    least, greatest = int(values.min()), int(values.max())
    if least < low or greatest >= extent:
        wrong = least if least < low else greatest
        raise error(message.format(wrong=wrong, extent=extent))
