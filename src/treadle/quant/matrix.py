"""Quantized matrices on a device: `QuantizedTensor`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.quant.blocks import FORMATS, BlockFormat
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.tensor import Tensor, from_numpy


@dataclass(frozen=True, eq=False)
class QuantizedTensor:
    """Weights in ggml's blocks along the last axis, on a device.

    `planes` are the blocks' fields, each (rows, blocks of a row, …); axes before the last are rows.
    """

    format: BlockFormat
    shape: tuple[int, ...]
    planes: Mapping[str, Tensor]

    @staticmethod
    def from_blocks(
        blocks: np.ndarray[Any, Any],
        shape: Sequence[int],
        format: str | BlockFormat,
        device: str | Device | None = None,
    ) -> QuantizedTensor:
        """A quantized tensor of the bytes of a file, on a device."""
        kind = format if isinstance(format, BlockFormat) else FORMATS[format]
        shape = tuple(shape)
        rows, per_row = prod(shape[:-1]), shape[-1] // kind.elements
        if shape[-1] % kind.elements or blocks.size != rows * per_row * kind.nbytes:
            raise ShapeError(f"{blocks.size} bytes are not {kind.name} blocks of {shape}")
        where = find_device(device)
        split = kind.split(blocks.reshape(rows, per_row, kind.nbytes))
        planes = {name: from_numpy(plane, where) for name, plane in split.items()}
        return QuantizedTensor(kind, shape, planes)

    @property
    def device(self) -> Device:
        """The device that has the planes."""
        return next(iter(self.planes.values())).device

    def blocks(self) -> np.ndarray[Any, Any]:
        """The bytes of a file: uint8 (rows, blocks of a row, bytes of a block)."""
        return self.format.join({name: plane.numpy() for name, plane in self.planes.items()})

    def dequantize(self) -> Tensor:
        """The elements as float32, lazily."""
        return self.format.dequantize(self.planes).reshape(self.shape)
