"""The table of ggml's block formats: what a block is, and what can be done with blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from treadle.quant import layouts
from treadle.quant.expressions import EXPRESSIONS
from treadle.quant.layouts import LAYOUTS, Field, Plane
from treadle.tensor.tensor import Tensor


@dataclass(frozen=True)
class BlockFormat:
    """A format: `elements` numbers in `nbytes` bytes of a file. `number` is ggml's."""

    name: str
    number: int
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

    def dequantize(self, planes: Mapping[str, Tensor]) -> Tensor:
        """The elements float32 (rows, n) of planes (rows, blocks, *plane), as an expression."""
        rows, blocks = planes[self.planes[0].name].shape[:2]
        return EXPRESSIONS[self.name](planes).reshape((rows, blocks * self.elements))


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
