"""The table of ggml's block formats: what a block is, and what can be done with blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treadle.core.processors import usable_processors
from treadle.quant import layouts
from treadle.quant.expressions import EXPRESSIONS
from treadle.quant.layouts import LAYOUTS, Field, Plane
from treadle.quant.roundings import ROUNDINGS
from treadle.tensor.tensor import Tensor

_CHUNK = 1 << 16  # numbers that are quantized at a time: what is computed with them stays in caches
_CHUNKS_FOR_THREADS = 16


@dataclass(frozen=True)
class BlockFormat:
    """A format of ggml's: a block is `elements` numbers, in `nbytes` bytes of a file."""

    name: str
    number: int  # ggml's, by which files name it
    elements: int

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a block in a file."""
        return LAYOUTS[self.name]

    @cached_property
    def nbytes(self) -> int:
        """The bytes of a block in a file."""
        return sum(field.nbytes for field in self.fields)

    @cached_property
    def planes(self) -> tuple[Plane, ...]:
        """The planes into which blocks are split."""
        return layouts.planes_of(self.fields)

    @property
    def bits(self) -> float:
        """Bits of a file for each element."""
        return 8 * self.nbytes / self.elements

    def split(self, blocks: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The planes of blocks uint8 (…, nbytes): contiguous arrays (…, *plane)."""
        return layouts.split(self.fields, blocks)

    def join(self, planes: Mapping[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
        """The blocks uint8 (…, nbytes) of planes: `split` reversed."""
        return layouts.join(self.fields, planes)

    def quantize(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The blocks uint8 (rows, blocks, nbytes) of float32 (rows, n), where n is a multiple of
        `elements`."""
        rows, n = x.shape
        source = x.reshape(rows * n // self.elements, self.elements)
        blocks = np.empty((len(source), self.nbytes), np.uint8)
        step = max(_CHUNK // self.elements, 1)
        starts = range(0, len(blocks), step)

        def quantize_chunk(at: int) -> None:
            blocks[at : at + step] = self.join(_rounded(self.name, source[at : at + step]))

        if len(starts) < _CHUNKS_FOR_THREADS:
            for at in starts:
                quantize_chunk(at)
        else:
            with ThreadPoolExecutor(usable_processors()) as pool:
                deque(pool.map(quantize_chunk, starts), maxlen=0)
        return blocks.reshape(rows, n // self.elements, self.nbytes)

    def dequantize(self, planes: Mapping[str, Tensor]) -> Tensor:
        """The elements float32 (rows, n) of planes (rows, blocks, *plane), as an expression."""
        rows, blocks = planes[self.planes[0].name].shape[:2]
        return EXPRESSIONS[self.name](planes).reshape((rows, blocks * self.elements))

    def __reduce__(self) -> tuple[Any, ...]:
        return (format_named, (self.name,))

    def __repr__(self) -> str:
        return f"<{self.name}: {self.elements} elements in {self.nbytes} bytes>"


@dataclass(frozen=True, eq=False)
class Quantized:
    """What a product reads of a quantized tensor: its elements in blocks along the last axis.

    `planes` are the blocks' fields, each (rows, blocks of a row, *plane), where the axes before
    the last one are the rows.
    """

    format: BlockFormat
    shape: tuple[int, ...]
    planes: Mapping[str, Tensor]


def _rounded(name: str, x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The planes of numbers (blocks, elements). ValueError if a block of theirs has no scale."""
    numbers = np.ascontiguousarray(x, np.float32)
    with np.errstate(all="ignore"):
        planes = ROUNDINGS[name](numbers)
    scale = planes.get("scale")
    if scale is not None and not np.isfinite(numbers).all():
        raise ValueError(f"{name} has finite numbers only: these have NaN or infinity among them")
    if scale is not None and not np.isfinite(scale).all():
        raise ValueError(
            f"numbers up to {np.abs(numbers).max()} are too large for {name}, whose blocks have "
            "scales of float16"
        )
    return planes


FORMATS: dict[str, BlockFormat] = {
    each.name: each
    for each in (
        BlockFormat("f16", 1, 1),
        BlockFormat("q4_0", 2, 32),
        BlockFormat("q4_1", 3, 32),
        BlockFormat("q5_0", 6, 32),
        BlockFormat("q5_1", 7, 32),
        BlockFormat("q8_0", 8, 32),
        BlockFormat("q2_k", 10, 256),
        BlockFormat("q3_k", 11, 256),
        BlockFormat("q4_k", 12, 256),
        BlockFormat("q5_k", 13, 256),
        BlockFormat("q6_k", 14, 256),
        BlockFormat("q8_k", 15, 256),
        BlockFormat("iq4_nl", 20, 32),
        BlockFormat("iq4_xs", 23, 256),
        BlockFormat("bf16", 30, 1),
        BlockFormat("mxfp4", 39, 32),
    )
}


def format_named(name: str) -> BlockFormat:
    """A format by its name in any case. ValueError with the names that there are."""
    found = FORMATS.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"there is no block format {name!r}: there are {', '.join(FORMATS)}")
    return found
