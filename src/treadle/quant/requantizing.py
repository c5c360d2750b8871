"""Tensors of a model on their way from one file to another, a part of their rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from treadle.core.dtypes import as_dtype
from treadle.core.errors import FormatError
from treadle.formats.contents import shortened
from treadle.formats.ggml_types import TYPES
from treadle.quant.blocks import FORMATS
from treadle.quant.matrix import QuantizedTensor

_CHUNK = 1 << 22  # elements that are float32 at a time
_FLOATS = ("f32", "f16", "bf16", "f64")


@dataclass(frozen=True)
class StoredWeights:
    """A tensor in a file."""

    name: str
    shape: tuple[int, ...]
    type: str  # ggml's, in small letters
    raw: Callable[[], np.ndarray[Any, Any]]  # its bytes, mapped

    @property
    def is_quantized(self) -> bool:
        """Whether its numbers have been rounded to blocks."""
        return TYPES[self.type].elements > 1

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    def nbytes_as(self, kind: str) -> int:
        """How many bytes it takes as another type."""
        return self.elements // TYPES[kind].elements * TYPES[kind].nbytes


def can_convert(source: str, kind: str) -> bool:
    """Whether there is a way from one type to another."""
    return source == kind or (
        (source in _FLOATS or source in FORMATS) and (kind in ("f32", *FORMATS))
    )


def converted(
    tensor: StoredWeights, kind: str, advance: Callable[[int], None]
) -> np.ndarray[Any, Any]:
    """The bytes of a tensor as another type; `advance` is called with numbers of elements.

    FormatError for numbers that the type cannot hold.
    """
    if kind == tensor.type:
        advance(tensor.elements)
        return tensor.raw()
    row = tensor.shape[-1] if tensor.shape else 1
    rows = tensor.elements // max(row, 1)
    target = TYPES[kind]
    made = np.empty((rows, row // target.elements * target.nbytes), np.uint8)
    stored = tensor.raw().reshape(rows, -1)
    step = max(_CHUNK // max(row, 1), 1)
    for start in range(0, rows, step):
        numbers = _numbers(tensor.type, stored[start : start + step], row)
        try:
            blocks = _blocks(kind, numbers)
        except ValueError as error:
            raise FormatError(f"the tensor {shortened(tensor.name)}: {error}") from None
        made[start : start + step] = blocks.reshape(len(numbers), -1)
        advance(numbers.size)
    return made


def _numbers(kind: str, raw: np.ndarray[Any, Any], row: int) -> np.ndarray[Any, Any]:
    """Rows of bytes as float32."""
    if kind in _FLOATS:
        flat = np.ascontiguousarray(raw).reshape(-1).view(as_dtype(kind).numpy)
        return flat.reshape(len(raw), row).astype(np.float32)
    return QuantizedTensor.from_blocks(raw, (len(raw), row), kind, "cpu").numpy()


def _blocks(kind: str, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows of float32 as bytes of a type. ValueError for numbers that it cannot hold."""
    if kind == "f32":
        return numbers.view(np.uint8)
    if kind == "f16" and np.isfinite(numbers).all() and np.abs(numbers).max(initial=0) > 65504:
        raise ValueError(
            f"numbers up to {np.abs(numbers).max()} are too large for f16, and not for bf16"
        )
    return FORMATS[kind].quantize(numbers)
