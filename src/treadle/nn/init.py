"""Initial values: each function writes into a tensor, without recording that, and gives it back.

The numbers are drawn from treadle's default generator, or from `generator`.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.history import recorded
from treadle.tensor import random
from treadle.tensor.generator import Generator
from treadle.tensor.tensor import Tensor


def _filled(tensor: Tensor, values: Any) -> Tensor:
    with recorded(False):
        tensor[...] = values
    return tensor


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Numbers from a up to b, all equally likely.

    >>> import treadle as td
    >>> x = td.nn.init.uniform_(td.empty((100, 100), device="cpu"), -1, 1)
    >>> bool(abs(x.mean().item()) < 0.05)
    True
    """
    drawn = random.uniform(
        tensor.shape, a, b, dtype=tensor.dtype, device=tensor.device, generator=generator
    )
    return _filled(tensor, drawn)
