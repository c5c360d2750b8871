"""The order of rows of queries and keys: GGUF files of Llama's architecture have another one."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def interleaved(heads: int, x: Array) -> Array:
    """Rows of each head whose two halves rotate together, as pairs side by side."""
    halves = x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:])
    return halves.swapaxes(1, 2).reshape(x.shape)


def halved(heads: int, x: Array) -> Array:
    """The inverse of `interleaved`."""
    pairs = x.reshape(heads, x.shape[0] // heads // 2, 2, *x.shape[1:])
    return pairs.swapaxes(1, 2).reshape(x.shape)
